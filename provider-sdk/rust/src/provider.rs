//! The traits a provider implements: one per part of Go's `cloudprovider.Interface`, each part optional. What a provider
//! serves, its capabilities included, is derived from which parts are there.
use std::sync::Arc;

use async_trait::async_trait;
use ccm_proto::v1;
use futures::stream::BoxStream;

use crate::context::{CallContext, LeaderContext};
use crate::error::ProviderError;

/// What every method returns. An error means "could not find out" or "could not be done", never "is not there".
pub type Result<T, E = ProviderError> = std::result::Result<T, E>;

/// A cloud provider. Mirrors `cloudprovider.Interface`: a part that is `None` is not served.
pub trait Provider: Send + Sync + 'static {
    /// Who the provider is. Asked at every handshake, so it may change while the process runs (a rotated account).
    fn describe(&self) -> Description;

    /// Machines (Go's `InstancesV2` and `Instances`).
    fn instances(&self) -> Option<Arc<dyn Instances>> {
        None
    }

    /// Failure zones (Go's `Zones`).
    fn zones(&self) -> Option<Arc<dyn Zones>> {
        None
    }

    /// Load balancers (Go's `LoadBalancer`).
    fn load_balancers(&self) -> Option<Arc<dyn LoadBalancers>> {
        None
    }

    /// Routes (Go's `Routes`).
    fn routes(&self) -> Option<Arc<dyn Routes>> {
        None
    }

    /// Clusters (Go's `Clusters`).
    fn clusters(&self) -> Option<Arc<dyn Clusters>> {
        None
    }

    /// Volumes (Go's `PVLabeler`).
    fn volumes(&self) -> Option<Arc<dyn Volumes>> {
        None
    }

    /// The core behind this socket has become the leader: start background work (Go's `Initialize`), and stop it when
    /// `leader.lost()` completes.
    fn lead(&self, leader: LeaderContext) {
        drop(leader);
    }
}

/// Who a provider is; see `ProviderInfo` in the contract for the meaning of each field.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// The provider's permanent name, as in `--cloud-provider`.
    pub name: String,
    /// The provider's own version.
    pub version: String,
    /// The prefixes of `spec.providerID` that are this provider's, such as `aws://`.
    pub provider_id_prefixes: Vec<String>,
    /// Endpoint and account, in any stable form.
    pub cloud_identity: String,
    /// The provider's own id of the cluster, where it has one.
    pub cluster_id: Option<String>,
    /// What the provider can take at once.
    pub limits: v1::ProviderLimits,
    /// Keys or prefixes (`example.com/*`) of node labels that the provider reads.
    pub node_labels: Vec<String>,
    /// Keys or prefixes of node annotations that the provider reads.
    pub node_annotations: Vec<String>,
    /// Types of node conditions that the provider reads.
    pub node_conditions: Vec<String>,
    /// Keys or prefixes of node taints that the provider reads.
    pub node_taints: Vec<String>,
    /// Prefixes of the Service annotations that the provider writes.
    pub service_annotation_prefixes: Vec<String>,
}

/// What the cloud says of one machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup {
    /// The machine is known.
    Found(v1::Instance),
    /// The cloud was asked and does not know the machine. A node may be deleted for this.
    NotFound,
    /// The machine is none of this provider's; the word is for the log.
    NotMine(String),
    /// Several machines fit: their ids.
    Ambiguous(Vec<String>),
}

/// One answer of a batch.
#[derive(Debug)]
pub struct LookupResult {
    /// When the cloud's data behind the answer was read; `None` means "during this call".
    pub observed_at: Option<std::time::SystemTime>,
    /// The answer, or why there is none.
    pub outcome: Result<Lookup>,
}

impl From<Result<Lookup>> for LookupResult {
    fn from(outcome: Result<Lookup>) -> Self {
        Self { observed_at: None, outcome }
    }
}

/// Machines. One method makes a provider: batches, limits and deadlines are the SDK's.
#[async_trait]
pub trait Instances: Send + Sync + 'static {
    /// Looks up one machine.
    async fn get_instance(&self, ctx: &CallContext, query: &v1::InstanceQuery) -> Result<Lookup>;

    /// How many `get_instance` calls the SDK makes at once for one batch, for providers without a batch of their own.
    fn look_up_concurrency(&self) -> usize {
        16
    }

    /// Looks up several machines: one result for each query, in the same order. Override it where the cloud has a batched
    /// call or a cheap list; otherwise the SDK calls `get_instance` for each.
    async fn batch_get_instances(&self, ctx: &CallContext, queries: &[v1::InstanceQuery]) -> Result<Vec<LookupResult>> {
        crate::batch::each(self, ctx, queries).await
    }

    /// The last look at a batch's response before it is sent, for providers that exist to test a core: it may become what no
    /// honest provider would answer. The context is that of the batch.
    fn revise(&self, _ctx: &CallContext, _response: &mut v1::BatchGetInstancesResponse) {}

    /// Whether the optional methods below are served.
    fn optional(&self) -> OptionalInstanceMethods {
        OptionalInstanceMethods::default()
    }

    /// Machines whose state changed, for a core that then looks sooner. Today's core opens the stream and does not act on it yet.
    async fn watch_instances(&self, _ctx: &CallContext) -> Result<BoxStream<'static, Result<v1::WatchInstancesResponse>>> {
        Err(ProviderError::not_implemented("WatchInstances"))
    }

    /// Makes a public key a login for a user on every machine.
    async fn add_ssh_key_to_all_instances(&self, _ctx: &CallContext, _user: &str, _key_data: &[u8]) -> Result<()> {
        Err(ProviderError::not_implemented("AddSSHKeyToAllInstances"))
    }

    /// The node that the provider runs on.
    async fn current_node_name(&self, _ctx: &CallContext, _hostname: &str) -> Result<String> {
        Err(ProviderError::not_implemented("GetCurrentNodeName"))
    }
}

/// Which optional methods of [`Instances`] are served.
#[derive(Clone, Copy, Debug, Default)]
pub struct OptionalInstanceMethods {
    /// `watch_instances` is.
    pub watch: bool,
    /// `add_ssh_key_to_all_instances` is.
    pub add_ssh_key: bool,
    /// `current_node_name` is.
    pub current_node_name: bool,
}

/// Failure zones.
#[async_trait]
pub trait Zones: Send + Sync + 'static {
    /// The zone of a machine or of the provider itself; `None` where the cloud does not know the machine.
    async fn get_zone(&self, ctx: &CallContext, target: ZoneTarget) -> Result<Option<v1::Zone>>;
}

/// Whose zone is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZoneTarget {
    /// The machine with this providerID.
    ProviderId(String),
    /// The machine of this node.
    NodeName(String),
    /// The provider's own machine.
    Own,
}

/// Work that is done, or that goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress<T> {
    /// It is as was asked.
    Done(T),
    /// The cloud is at work on it.
    InProgress(v1::InProgress),
    /// Another controller does this (load balancers only).
    ImplementedElsewhere(String),
}

/// Load balancers. No two mutating calls for one service run at once: the SDK sees to it.
#[async_trait]
pub trait LoadBalancers: Send + Sync + 'static {
    /// The status of the service's load balancer; `None` where the cloud has none.
    async fn get(&self, ctx: &CallContext, service: &v1::Service) -> Result<Option<Progress<v1::LoadBalancerStatus>>>;

    /// The name that the service's load balancer has or would have.
    fn name(&self, _cluster: &v1::ClusterRef, service: &v1::Service) -> String {
        default_load_balancer_name(&service.uid)
    }

    /// Makes the load balancer be as asked.
    async fn ensure(
        &self,
        ctx: &CallContext,
        service: &v1::Service,
        nodes: &[v1::Node],
    ) -> Result<Progress<v1::LoadBalancerReady>>;

    /// Makes the targets be these nodes.
    async fn update(
        &self,
        ctx: &CallContext,
        service: &v1::Service,
        nodes: &[v1::Node],
    ) -> Result<Progress<v1::LoadBalancerUpdated>>;

    /// Removes the load balancer; nothing to remove is a success.
    async fn ensure_deleted(&self, ctx: &CallContext, service: &v1::Service) -> Result<Progress<()>>;

    /// Whether the optional methods below are served.
    fn optional(&self) -> OptionalLoadBalancerMethods {
        OptionalLoadBalancerMethods::default()
    }

    /// The changes that `ensure` would make, making none. Where `ensure` works out a difference before it changes anything,
    /// this is the same difference in words: [`planned`](crate::plan::planned) makes the answer of it.
    async fn plan(
        &self,
        _ctx: &CallContext,
        _service: &v1::Service,
        _nodes: &[v1::Node],
    ) -> Result<Progress<v1::LoadBalancerPlan>> {
        Err(ProviderError::not_implemented("PlanLoadBalancer"))
    }

    /// A node set has arrived, and the SDK keeps it. Nothing needs to be done about it.
    fn node_set_put(&self) {}

    /// Every load balancer that is marked as this cluster's.
    async fn list(&self, _ctx: &CallContext) -> Result<Vec<v1::OwnedLoadBalancer>> {
        Err(ProviderError::not_implemented("ListLoadBalancers"))
    }
}

/// Which optional methods of [`LoadBalancers`] are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionalLoadBalancerMethods {
    /// `plan` is.
    pub plan: bool,
    /// `list` is.
    pub list: bool,
    /// PutNodeSet is; the SDK does it. Without it the core sends the nodes with every call.
    pub node_sets: bool,
}

impl Default for OptionalLoadBalancerMethods {
    /// Node sets cost a provider nothing; the rest needs work of its own.
    fn default() -> Self {
        Self { plan: false, list: false, node_sets: true }
    }
}

/// Go's `DefaultLoadBalancerName`: `a` and the UID without dashes, cut to 32 characters.
pub fn default_load_balancer_name(uid: &str) -> String {
    std::iter::once('a').chain(uid.chars().filter(|c| *c != '-')).take(32).collect()
}

/// Routes. No two mutating calls for one destination run at once.
#[async_trait]
pub trait Routes: Send + Sync + 'static {
    /// Every route of the table that this cluster uses.
    async fn list(&self, ctx: &CallContext) -> Result<Vec<v1::Route>>;

    /// Makes a route as described.
    async fn create(&self, ctx: &CallContext, name_hint: &str, route: &v1::Route) -> Result<Progress<()>>;

    /// Removes a route, as it came from `list`.
    async fn delete(&self, ctx: &CallContext, route: &v1::Route) -> Result<Progress<()>>;
}

/// Clusters.
#[async_trait]
pub trait Clusters: Send + Sync + 'static {
    /// The names of the clusters that the account has.
    async fn list(&self, ctx: &CallContext) -> Result<Vec<String>>;

    /// The address of a cluster's control plane; `None` where the cloud does not know the cluster.
    async fn master(&self, ctx: &CallContext, cluster_name: &str) -> Result<Option<String>>;
}

/// What the cloud says of a volume.
#[derive(Clone, Debug, PartialEq)]
pub enum VolumeLookup {
    /// Its labels.
    Found(std::collections::HashMap<String, String>),
    /// The cloud does not know the disk (Go's `DiskNotFound`).
    NotFound,
    /// The volume is none of this provider's.
    NotMine,
}

/// Volumes.
#[async_trait]
pub trait Volumes: Send + Sync + 'static {
    /// Zone, region and other labels of a volume.
    async fn get_volume_labels(&self, ctx: &CallContext, volume: &v1::GetVolumeLabelsRequest) -> Result<VolumeLookup>;
}
