//! A server without the SDK: whatever it is told to answer crosses the wire, valid or not. For tests of the core's defences.
use ccm_proto::v1;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status, Streaming};

use super::provider::running;
use super::{Script, Serving};
use crate::endpoint::Endpoint;
use crate::error::ProviderError;

pub use load_balancers::RawLoadBalancers;
pub use routes::RawRoutes;

mod load_balancers;
mod routes;

type Answer<T> = Result<T, Status>;

/// A scripted server of Identity, Instances, LoadBalancers and Routes. Clones share the scripts.
#[derive(Clone)]
pub struct RawServer {
    /// Answers the handshake.
    pub info: Script<v1::GetProviderInfoRequest, Answer<v1::GetProviderInfoResponse>>,
    /// Answers each message of a Lead stream.
    pub lead: Script<v1::LeadRequest, Answer<v1::LeadResponse>>,
    /// Answers batches.
    pub batch: Script<v1::BatchGetInstancesRequest, Answer<v1::BatchGetInstancesResponse>>,
    /// Answers about load balancers.
    pub load_balancers: RawLoadBalancers,
    /// Answers about routes.
    pub routes: RawRoutes,
}

impl Default for RawServer {
    /// A sound provider of machines that all run.
    fn default() -> Self {
        Self {
            info: Script::new(|_| Ok(v1::GetProviderInfoResponse { info: Some(Self::sound_info()) })),
            lead: Script::new(|word: v1::LeadRequest| Ok(v1::LeadResponse { epoch: word.epoch })),
            batch: Script::new(|request: v1::BatchGetInstancesRequest| {
                let results = request.queries.iter().map(|query| Self::running(&query.node_name)).collect();
                Ok(v1::BatchGetInstancesResponse { results })
            }),
            load_balancers: RawLoadBalancers::default(),
            routes: RawRoutes::default(),
        }
    }
}

impl RawServer {
    /// A description that keeps the contract; tests break the field that they are about.
    pub fn sound_info() -> v1::ProviderInfo {
        v1::ProviderInfo {
            name: "fake".into(),
            version: "0".into(),
            protocol_version: ccm_proto::PROTOCOL_VERSION.into(),
            capabilities: vec![v1::Capability::Lead.into(), v1::Capability::Instances.into()],
            provider_id_prefixes: vec!["fake://".into()],
            cloud_identity: "fake".into(),
            cluster_id: Some("fake".into()),
            ..v1::ProviderInfo::default()
        }
    }

    /// The result for a machine that runs, `fake://NAME`, read now.
    pub fn running(name: &str) -> v1::InstanceResult {
        v1::InstanceResult {
            node_name: name.into(),
            observed_at: Some(std::time::SystemTime::now().into()),
            outcome: Some(v1::instance_result::Outcome::Instance(running(name))),
        }
    }

    /// Serves on `unix:///absolute/path`, which must not exist yet.
    pub fn start(&self, endpoint: &Endpoint) -> std::io::Result<Serving<tonic::transport::Error>> {
        let incoming = UnixListenerStream::new(UnixListener::bind(endpoint.path())?);
        let server = tonic::transport::Server::builder()
            .add_service(v1::identity_server::IdentityServer::new(self.clone()))
            .add_service(v1::instances_server::InstancesServer::new(self.clone()))
            .add_service(self.load_balancers.clone().server())
            .add_service(self.routes.clone().server());
        Ok(Serving::spawn(endpoint.clone(), |stop| server.serve_with_incoming_shutdown(incoming, stop.cancelled_owned())))
    }
}

#[tonic::async_trait]
impl v1::identity_server::Identity for RawServer {
    async fn get_provider_info(
        &self,
        request: Request<v1::GetProviderInfoRequest>,
    ) -> Answer<Response<v1::GetProviderInfoResponse>> {
        self.info.call(request.into_inner()).await.map(Response::new)
    }

    type LeadStream = BoxStream<'static, Answer<v1::LeadResponse>>;

    async fn lead(&self, request: Request<Streaming<v1::LeadRequest>>) -> Answer<Response<Self::LeadStream>> {
        let script = self.lead.clone();
        let answers = request.into_inner().then(move |word| {
            let script = script.clone();
            async move { script.call(word?).await }
        });
        Ok(Response::new(answers.boxed()))
    }
}

#[tonic::async_trait]
impl v1::instances_server::Instances for RawServer {
    async fn batch_get_instances(
        &self,
        request: Request<v1::BatchGetInstancesRequest>,
    ) -> Answer<Response<v1::BatchGetInstancesResponse>> {
        self.batch.call(request.into_inner()).await.map(Response::new)
    }

    type WatchInstancesStream = BoxStream<'static, Answer<v1::WatchInstancesResponse>>;

    async fn watch_instances(&self, _: Request<v1::WatchInstancesRequest>) -> Answer<Response<Self::WatchInstancesStream>> {
        Ok(Response::new(stream::pending().boxed()))
    }

    async fn add_ssh_key_to_all_instances(
        &self,
        _: Request<v1::AddSshKeyToAllInstancesRequest>,
    ) -> Answer<Response<v1::AddSshKeyToAllInstancesResponse>> {
        Err(ProviderError::not_implemented("AddSSHKeyToAllInstances").into())
    }

    async fn get_current_node_name(
        &self,
        _: Request<v1::GetCurrentNodeNameRequest>,
    ) -> Answer<Response<v1::GetCurrentNodeNameResponse>> {
        Err(ProviderError::not_implemented("GetCurrentNodeName").into())
    }
}
