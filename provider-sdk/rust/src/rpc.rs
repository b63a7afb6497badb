//! The protocol's services on top of the traits. What all of them share is here: the provider, the cluster of the last
//! handshake, leadership, and the one way in which a call is answered.
use std::future::Future;
use std::sync::Arc;

use ccm_proto::v1;
use ccm_proto::v1::clusters_server::ClustersServer;
use ccm_proto::v1::identity_server::IdentityServer;
use ccm_proto::v1::instances_server::InstancesServer;
use ccm_proto::v1::load_balancers_server::LoadBalancersServer;
use ccm_proto::v1::routes_server::RoutesServer;
use ccm_proto::v1::volumes_server::VolumesServer;
use ccm_proto::v1::zones_server::ZonesServer;
use futures::future::BoxFuture;
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::context::CallContext;
use crate::error::ProviderError;
use crate::leadership::Leadership;
use crate::node_sets::NodeSets;
use crate::parts::Parts;
use crate::provider::{Provider, Result};
use call::{Call, Kind};

mod call;
mod clusters;
mod identity;
mod instances;
mod load_balancers;
mod metadata;
mod routes;
mod volumes;
mod zones;

/// The largest message that is accepted, in bytes.
const MAX_DECODED: usize = 64 << 20;
/// The largest message that is sent, in bytes.
const MAX_ENCODED: usize = 16 << 20;

/// What the services share.
pub(crate) struct Shared {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) leadership: Arc<Leadership>,
    pub(crate) node_sets: NodeSets,
    /// Running calls and detached mutations.
    pub(crate) running: TaskTracker,
    /// Fires when the server ends: every call and stream stops.
    pub(crate) ended: CancellationToken,
    /// What a handshake waits for before it is looked at.
    handshake: Option<Hold>,
    cluster: RwLock<v1::ClusterRef>,
}

/// Something to be waited for.
pub(crate) type Hold = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

impl Shared {
    pub(crate) fn new(provider: Arc<dyn Provider>, handshake: Option<Hold>) -> Arc<Self> {
        Arc::new(Self {
            provider,
            leadership: Arc::default(),
            node_sets: NodeSets::default(),
            running: TaskTracker::new(),
            ended: CancellationToken::new(),
            handshake,
            cluster: RwLock::default(),
        })
    }

    /// What the provider serves now.
    fn parts(&self) -> Parts {
        Arc::clone(&self.provider).parts()
    }

    /// The part that `pick` takes, if the provider serves `capability`, which `method` needs.
    fn part<P: ?Sized>(
        &self,
        capability: v1::Capability,
        method: &str,
        pick: impl FnOnce(Parts) -> Option<Arc<P>>,
    ) -> Result<Arc<P>> {
        let parts = self.parts();
        let part = if parts.serves(capability) { pick(parts) } else { None };
        part.ok_or_else(|| ProviderError::not_implemented(method))
    }

    /// Stops everything that still runs.
    pub(crate) fn end(&self) {
        self.ended.cancel();
        self.leadership.end();
    }

    /// Answers a call: with deadline, cancellation, log line and request id, whatever `work` does.
    async fn answer<Q, A, F, W>(
        &self,
        method: &'static str,
        kind: Kind,
        request: Request<Q>,
        work: F,
    ) -> Result<Response<A>, Status>
    where
        F: FnOnce(CallContext, Q) -> W,
        W: Future<Output = Result<A>>,
    {
        let call = Call::begin(method, kind, &request, self.cluster.read().clone());
        let _counted = self.running.token();
        let work = work(call.context(), request.into_inner());
        let result = tokio::select! {
            result = call.guard(work) => result,
            () = self.ended.cancelled() => Err(ProviderError::unavailable("the provider is shutting down")),
        };
        call.end(result)
    }
}

/// Every service of the protocol. The parts that a provider lacks answer UNIMPLEMENTED.
pub(crate) fn services(shared: &Arc<Shared>) -> Routes {
    macro_rules! limited {
        ($server:ident, $service:expr) => {
            $server::new($service).max_decoding_message_size(MAX_DECODED).max_encoding_message_size(MAX_ENCODED)
        };
    }
    Routes::new(limited!(IdentityServer, identity::Service::new(shared)))
        .add_service(limited!(InstancesServer, instances::Service::new(shared)))
        .add_service(limited!(LoadBalancersServer, load_balancers::Service::new(shared)))
        .add_service(limited!(RoutesServer, routes::Service::new(shared)))
        .add_service(limited!(ZonesServer, zones::Service::new(shared)))
        .add_service(limited!(ClustersServer, clusters::Service::new(shared)))
        .add_service(limited!(VolumesServer, volumes::Service::new(shared)))
}

/// A message field that the contract requires.
fn required<T>(field: &str, value: Option<T>) -> Result<T> {
    value.ok_or_else(|| ProviderError::invalid_request(field, "required"))
}

/// A text field that the contract requires.
fn nonempty<'a>(field: &str, value: &'a str) -> Result<&'a str> {
    if value.is_empty() { Err(ProviderError::invalid_request(field, "required")) } else { Ok(value) }
}

/// The cluster of a request.
fn required_cluster(cluster: Option<v1::ClusterRef>) -> Result<v1::ClusterRef> {
    let cluster = required("cluster", cluster)?;
    nonempty("cluster.uid", &cluster.uid)?;
    Ok(cluster)
}
