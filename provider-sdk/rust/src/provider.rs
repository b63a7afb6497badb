//! A provider as a whole: who it is and which parts it has, and the smaller ones of these parts. Every part is optional, and
//! mirrors one of Go's `cloudprovider.Interface`; the larger ones are in `instances`, `load_balancers`
//! and `routes`.
use std::sync::Arc;

use async_trait::async_trait;
use ccm_proto::v1;

use crate::context::{CallContext, LeaderContext};
use crate::error::ProviderError;
use crate::parts::Parts;

/// What every method returns. An error means "could not find out" or "could not be done", never "is not there".
pub type Result<T, E = ProviderError> = std::result::Result<T, E>;

/// A cloud provider. Mirrors `cloudprovider.Interface`: who it is, and the [`Parts`] that it has.
pub trait Provider: Send + Sync + 'static {
    /// Who the provider is. Asked at every handshake, so it may change while the process runs (a rotated account).
    fn describe(&self) -> Description;

    /// What the provider serves: `Parts::new().instances(self)`. Asked at every handshake and every call, so it may change
    /// while the process runs; it only clones `Arc`s.
    fn parts(self: Arc<Self>) -> Parts;

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
