//! A provider behind the SDK's server whose parts are scripts.
use std::sync::Arc;

use async_trait::async_trait;
use ccm_proto::v1;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use tokio::sync::broadcast;
use tokio_stream::wrappers::BroadcastStream;

use super::{FakeRoutes, Script, status_of};
use crate::context::{CallContext, LeaderContext};
use crate::error::ProviderError;
use crate::instances::{AddSshKeys, Instances, Lookup, WatchInstances, WithoutCurrentNodeName};
use crate::load_balancers::{ListLoadBalancers, LoadBalancers, PlanLoadBalancers};
use crate::parts::Parts;
use crate::provider::{Description, Progress, Provider, Result, VolumeLookup, Volumes, ZoneTarget, Zones};

/// A provider named `fake` with providerIDs `fake://NAME`. Clones share everything.
#[derive(Clone)]
pub struct FakeProvider {
    /// What the next handshake is told; see [`describe_as`](Self::describe_as).
    pub description: Arc<Mutex<Description>>,
    /// Every leadership so far; see [`leaders`](Self::leaders).
    pub leaderships: Arc<Mutex<Vec<LeaderContext>>>,
    /// Machines; `None` means that the part is not served. Change the parts before the provider is served.
    pub instances: Option<FakeInstances>,
    /// Failure zones.
    pub zones: Option<FakeZones>,
    /// Load balancers.
    pub load_balancers: Option<FakeLoadBalancers>,
    /// Routes.
    pub routes: Option<FakeRoutes>,
    /// Volumes.
    pub volumes: Option<FakeVolumes>,
}

impl Default for FakeProvider {
    /// Serves instances, and says of each that it runs.
    fn default() -> Self {
        let instances = Some(FakeInstances::default());
        Self { instances, ..Self::bare() }
    }
}

impl FakeProvider {
    /// Serves no part at all.
    pub fn bare() -> Self {
        let description = Description {
            name: "fake".into(),
            version: "0".into(),
            provider_id_prefixes: vec!["fake://".into()],
            cloud_identity: "fake".into(),
            cluster_id: Some("fake".into()),
            ..Description::default()
        };
        Self {
            description: Arc::new(Mutex::new(description)),
            leaderships: Arc::default(),
            instances: None,
            zones: None,
            load_balancers: None,
            routes: None,
            volumes: None,
        }
    }

    /// Serves every part that can be faked.
    pub fn whole() -> Self {
        Self {
            zones: Some(FakeZones::default()),
            load_balancers: Some(FakeLoadBalancers::default()),
            routes: Some(FakeRoutes::default()),
            volumes: Some(FakeVolumes::default()),
            ..Self::default()
        }
    }

    /// Changes what the next handshake is told.
    pub fn describe_as(&self, change: impl FnOnce(&mut Description)) {
        change(&mut self.description.lock());
    }

    /// Every leadership so far.
    pub fn leaders(&self) -> Vec<LeaderContext> {
        self.leaderships.lock().clone()
    }
}

/// A machine named `name` that runs: `fake://NAME`.
pub(super) fn running(name: &str) -> v1::Instance {
    let state = v1::InstanceState::Running.into();
    v1::Instance { provider_id: format!("fake://{name}"), state, ..v1::Instance::default() }
}

/// What is not scripted is not served.
fn hide_unless(scripted: bool, parts: Parts, capability: v1::Capability) -> Parts {
    if scripted { parts } else { parts.hide(capability) }
}

impl Provider for FakeProvider {
    fn describe(&self) -> Description {
        self.description.lock().clone()
    }
    fn parts(self: Arc<Self>) -> Parts {
        let mut parts = Parts::new();
        if let Some(part) = &self.instances {
            parts = part.serve_with(parts);
        }
        if let Some(part) = &self.load_balancers {
            parts = part.serve_with(parts);
        }
        if let Some(part) = &self.zones {
            parts = parts.zones(Arc::new(part.clone()));
        }
        if let Some(part) = &self.routes {
            parts = part.serve_with(parts);
        }
        if let Some(part) = &self.volumes {
            parts = parts.volumes(Arc::new(part.clone()));
        }
        parts
    }
    fn lead(&self, leader: LeaderContext) {
        self.leaderships.lock().push(leader);
    }
}

/// Answers to whole batches.
pub type BatchScript = Script<Vec<v1::InstanceQuery>, Result<Vec<Result<Lookup>>>>;
/// Answers to users and their keys.
pub type KeyScript = Script<(String, Vec<u8>), Result<()>>;
/// Answers to plans of a service and its nodes.
pub type PlanScript = Script<(v1::Service, Vec<v1::Node>), Result<Progress<v1::LoadBalancerPlan>>>;

/// Machines, one at a time unless `batch` is set.
#[derive(Clone)]
pub struct FakeInstances {
    /// Answers each look-up.
    pub get: Script<v1::InstanceQuery, Result<Lookup>>,
    /// Answers whole batches instead.
    pub batch: Option<BatchScript>,
    /// Puts a key (user and key) on all machines; `None` means that it is not served.
    pub add_ssh_key: Option<KeyScript>,
    /// What is sent here reaches every open watch; `None` means that watching is not served.
    pub watch: Option<broadcast::Sender<v1::WatchInstancesResponse>>,
}

impl Default for FakeInstances {
    fn default() -> Self {
        let get = Script::new(|query: v1::InstanceQuery| Ok(Lookup::found(running(&query.node_name))));
        Self { get, batch: None, add_ssh_key: None, watch: None }
    }
}

impl FakeInstances {
    fn serve_with(&self, parts: Parts) -> Parts {
        let parts = parts.instances(Arc::new(self.clone()));
        let parts = hide_unless(self.watch.is_some(), parts, v1::Capability::WatchInstances);
        hide_unless(self.add_ssh_key.is_some(), parts, v1::Capability::AddSshKey)
    }
}

impl WithoutCurrentNodeName for FakeInstances {}

#[async_trait]
impl Instances for FakeInstances {
    async fn get_instance(&self, _: &CallContext, query: &v1::InstanceQuery) -> Result<Lookup> {
        self.get.call(query.clone()).await
    }
    async fn batch_get_instances(&self, ctx: &CallContext, queries: &[v1::InstanceQuery]) -> Result<Vec<Result<Lookup>>> {
        match &self.batch {
            Some(batch) => batch.call(queries.to_vec()).await,
            None => crate::batch::each(self, ctx, queries).await,
        }
    }
}

#[async_trait]
impl WatchInstances for FakeInstances {
    async fn watch_instances(&self, _: &CallContext) -> Result<BoxStream<'static, Result<v1::WatchInstancesResponse>>> {
        let watch = self.watch.as_ref().ok_or_else(|| ProviderError::not_implemented("WatchInstances"))?;
        let changes = BroadcastStream::new(watch.subscribe());
        Ok(changes.map(|change| change.map_err(|_| ProviderError::internal("the watch fell behind"))).boxed())
    }
}

#[async_trait]
impl AddSshKeys for FakeInstances {
    async fn add_ssh_key_to_all_instances(&self, _: &CallContext, user: &str, key_data: &[u8]) -> Result<()> {
        match &self.add_ssh_key {
            Some(script) => script.call((user.to_owned(), key_data.to_vec())).await,
            None => Err(ProviderError::not_implemented("AddSSHKeyToAllInstances")),
        }
    }
}

/// Zones; unknown unless scripted.
#[derive(Clone)]
pub struct FakeZones {
    /// Answers each question.
    pub get: Script<ZoneTarget, Result<Option<v1::Zone>>>,
}

impl Default for FakeZones {
    fn default() -> Self {
        Self { get: Script::new(|_| Ok(None)) }
    }
}

#[async_trait]
impl Zones for FakeZones {
    async fn get_zone(&self, _: &CallContext, target: ZoneTarget) -> Result<Option<v1::Zone>> {
        self.get.call(target).await
    }
}

/// Answers to lists.
pub type ListScript = Script<(), Result<Vec<v1::OwnedLoadBalancer>>>;

/// Load balancers: every mutation is done at once unless scripted.
#[derive(Clone)]
pub struct FakeLoadBalancers {
    /// Answers `get`.
    pub get: Script<v1::Service, Result<Option<Progress<v1::LoadBalancerStatus>>>>,
    /// Answers `ensure`.
    pub ensure: Script<(v1::Service, Vec<v1::Node>), Result<Progress<v1::LoadBalancerReady>>>,
    /// Answers `update`.
    pub update: Script<(v1::Service, Vec<v1::Node>), Result<Progress<v1::LoadBalancerUpdated>>>,
    /// Answers `ensure_deleted`.
    pub delete: Script<v1::Service, Result<Progress<()>>>,
    /// Answers `plan`; `None` means that it is not served.
    pub plan: Option<PlanScript>,
    /// Answers `list`; `None` means that it is not served.
    pub list: Option<ListScript>,
    /// Whether node sets are taken by PutNodeSet.
    pub node_sets: bool,
}

impl Default for FakeLoadBalancers {
    fn default() -> Self {
        Self {
            get: Script::new(|_| Ok(None)),
            ensure: Script::new(|_| {
                let status = Some(status_of("192.0.2.1"));
                Ok(Progress::Done(v1::LoadBalancerReady { status, ..v1::LoadBalancerReady::default() }))
            }),
            update: Script::new(|_| Ok(Progress::Done(v1::LoadBalancerUpdated::default()))),
            delete: Script::new(|_| Ok(Progress::Done(()))),
            plan: None,
            list: None,
            node_sets: true,
        }
    }
}

impl FakeLoadBalancers {
    fn serve_with(&self, parts: Parts) -> Parts {
        let parts = parts.load_balancers(Arc::new(self.clone()));
        let parts = hide_unless(self.node_sets, parts, v1::Capability::NodeSets);
        let parts = hide_unless(self.plan.is_some(), parts, v1::Capability::PlanLoadBalancer);
        hide_unless(self.list.is_some(), parts, v1::Capability::ListLoadBalancers)
    }
}

#[async_trait]
impl LoadBalancers for FakeLoadBalancers {
    async fn get(&self, _: &CallContext, service: &v1::Service) -> Result<Option<Progress<v1::LoadBalancerStatus>>> {
        self.get.call(service.clone()).await
    }
    async fn ensure(
        &self,
        _: &CallContext,
        service: &v1::Service,
        nodes: &[v1::Node],
    ) -> Result<Progress<v1::LoadBalancerReady>> {
        self.ensure.call((service.clone(), nodes.to_vec())).await
    }
    async fn update(
        &self,
        _: &CallContext,
        service: &v1::Service,
        nodes: &[v1::Node],
    ) -> Result<Progress<v1::LoadBalancerUpdated>> {
        self.update.call((service.clone(), nodes.to_vec())).await
    }
    async fn ensure_deleted(&self, _: &CallContext, service: &v1::Service) -> Result<Progress<()>> {
        self.delete.call(service.clone()).await
    }
}

#[async_trait]
impl PlanLoadBalancers for FakeLoadBalancers {
    async fn plan(&self, _: &CallContext, service: &v1::Service, nodes: &[v1::Node]) -> Result<Progress<v1::LoadBalancerPlan>> {
        match &self.plan {
            Some(script) => script.call((service.clone(), nodes.to_vec())).await,
            None => Err(ProviderError::not_implemented("PlanLoadBalancer")),
        }
    }
}

#[async_trait]
impl ListLoadBalancers for FakeLoadBalancers {
    async fn list(&self, _: &CallContext) -> Result<Vec<v1::OwnedLoadBalancer>> {
        match &self.list {
            Some(script) => script.call(()).await,
            None => Err(ProviderError::not_implemented("ListLoadBalancers")),
        }
    }
}

/// Volumes; unknown unless scripted.
#[derive(Clone)]
pub struct FakeVolumes {
    /// Answers each question.
    pub get: Script<v1::GetVolumeLabelsRequest, Result<VolumeLookup>>,
}

impl Default for FakeVolumes {
    fn default() -> Self {
        Self { get: Script::new(|_| Ok(VolumeLookup::NotFound)) }
    }
}

#[async_trait]
impl Volumes for FakeVolumes {
    async fn get_volume_labels(&self, _: &CallContext, volume: &v1::GetVolumeLabelsRequest) -> Result<VolumeLookup> {
        self.get.call(volume.clone()).await
    }
}
