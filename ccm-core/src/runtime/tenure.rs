//! What happens between gaining the lease and losing it: the epoch is stored, the cloud's identity accepted, the controllers
//! run, and stop before the lease is another's.
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Parts;
use super::cloud_health::CloudHealth;
use super::leader_election::Leading;
use super::metrics::ControllerMetrics;
use crate::cluster::events::Events;
use crate::cluster::gate::Gate;
use crate::cluster::nodes::Nodes;
use crate::cluster::patch::{NodeWriter, ServiceWriter};
use crate::cluster::services::Services;
use crate::cluster::state::{StateError, StateStore};
use crate::controllers::NodeContext;
use crate::controllers::node::{self, NodeConfig};
use crate::controllers::node_lifecycle::{self, LifecycleConfig};
use crate::controllers::service::decide::Classes;
use crate::controllers::service::{self, ServiceConfig, ServiceContext};
use crate::model::provider_info::ProviderInfo;
use crate::model::term::Term;
use crate::names;
use crate::provider::session::Handle;
use crate::provider::{Identity, Instances};

/// How long until a state that could not be read or written is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// Serves one term after another.
pub(super) struct Tenures {
    parts: Parts,
    handle: Handle,
    instances: Arc<dyn Instances>,
    term: watch::Sender<Option<Term>>,
    gate: Gate,
}

impl Tenures {
    /// `term` is what the gate and the Lead stream follow.
    pub(super) fn new(parts: Parts, handle: Handle, instances: Arc<dyn Instances>, term: watch::Sender<Option<Term>>) -> Self {
        let gate = Gate::new(term.subscribe(), handle.state());
        Self { parts, handle, instances, term, gate }
    }

    /// Until `shutdown`; on return the controllers have stopped and nothing more is written.
    pub(super) async fn serve(&self, mut leading: watch::Receiver<Option<Leading>>, shutdown: &CancellationToken) {
        while !shutdown.is_cancelled() {
            let gained = tokio::select! {
                () = shutdown.cancelled() => return,
                gained = leading.wait_for(Option::is_some) => gained.ok().and_then(|leading| leading.clone()),
            };
            let Some(gained) = gained else { return };
            self.tenure(&gained, &mut leading, shutdown).await;
        }
    }

    async fn tenure(&self, gained: &Leading, leading: &mut watch::Receiver<Option<Leading>>, shutdown: &CancellationToken) {
        let prepared = tokio::select! {
            prepared = self.prepare(gained) => prepared,
            () = lost(leading.clone()) => return,
            () = shutdown.cancelled() => return,
        };
        tracing::info!(epoch = prepared.epoch, state = prepared.store.name(), "leading");
        self.publish(prepared.epoch, gained);
        let stop = CancellationToken::new();
        let before = self.parts.health.checks();
        let mut tasks = self.controllers(prepared.store, &stop);
        tokio::select! {
            () = self.follow(prepared.epoch, gained.transitions, leading) => {
                self.term.send_replace(None);
                tracing::warn!("the lease is lost; the controllers stop");
            }
            () = shutdown.cancelled() => {
                stop.cancel();
                self.finish(&mut tasks).await;
                self.term.send_replace(None);
            }
        }
        stop.cancel();
        tasks.shutdown().await;
        // What the controllers said is the next leader's to say.
        self.parts.health.keep(&before);
        self.parts.metrics.nodes.breakers_tripped.set(0);
    }

    /// Tries until it succeeds: without a stored epoch nothing may be changed.
    async fn prepare(&self, gained: &Leading) -> Prepared {
        let mut provider = self.handle.state();
        loop {
            let ready = provider.wait_for(|state| state.ready().is_some()).await.ok().and_then(|state| state.ready().cloned());
            if let Some(info) = ready {
                let store = StateStore::new(self.parts.client.clone(), &info.name);
                match self.accept(&store, &info, gained).await {
                    Ok(Some(epoch)) => return Prepared { store, epoch },
                    Ok(None) => drop(self.handle.confirm().await),
                    Err(error) => tracing::warn!(%error, "the term cannot begin; trying again"),
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The epoch, or none where another cloud was accepted since the handshake.
    async fn accept(&self, store: &StateStore, info: &ProviderInfo, gained: &Leading) -> Result<Option<u64>, StateError> {
        let found = &info.cloud_identity;
        if self.parts.config.provider.accept_cloud_identity.as_ref() == Some(found) {
            store.accept_identity(found).await?;
        } else if store.accepted_identity_or(found).await? != *found {
            return Ok(None);
        }
        store.next_epoch(gained.transitions).await.map(Some)
    }

    fn publish(&self, epoch: u64, leading: &Leading) {
        self.term.send_replace(Some(leading.term(epoch)));
    }

    /// Passes each renewal on; returns when the lease is lost, or was another's meanwhile.
    async fn follow(&self, epoch: u64, transitions: u64, leading: &mut watch::Receiver<Option<Leading>>) {
        while leading.changed().await.is_ok() {
            match &*leading.borrow_and_update() {
                Some(renewed) if renewed.transitions == transitions => self.publish(epoch, renewed),
                _ => return,
            }
        }
    }

    async fn finish(&self, tasks: &mut JoinSet<()>) {
        let grace = self.parts.config.leader_election.shutdown_grace;
        let all = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, all).await.is_err() {
            tracing::warn!(?grace, "running work did not end within --shutdown-grace");
        }
    }

    fn controllers(&self, store: StateStore, stop: &CancellationToken) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        let (nodes, watch) = Nodes::watch(self.parts.clients.watches.clone());
        assist(&mut tasks, stop, watch);
        let cloud = CloudHealth::new(self.parts.health.clone());
        // First, so that it knows a first installation from one whose nodes carry our annotation already.
        if self.parts.config.controllers.runs(names::controllers::NODE_LIFECYCLE) {
            let context = self.context(names::controllers::NODE_LIFECYCLE, &nodes, &cloud, &mut tasks, stop);
            let lifecycle = node_lifecycle::run(context, store, self.lifecycle_config(), stop.clone());
            self.spawn(&mut tasks, "cloud-node-lifecycle", lifecycle);
        }
        if self.parts.config.controllers.runs(names::controllers::NODE) {
            let context = self.context(names::controllers::NODE, &nodes, &cloud, &mut tasks, stop);
            self.spawn(&mut tasks, "cloud-node", node::run(context, self.node_config(), stop.clone()));
        }
        if self.parts.config.controllers.runs(names::controllers::SERVICE) {
            let context = self.service_context(&nodes, &cloud, &mut tasks, stop);
            self.spawn(&mut tasks, "service", service::run(context, self.service_config(), stop.clone()));
        }
        tasks
    }

    /// Runs a controller, and says so under the name that Go's metric has for it.
    fn spawn(&self, tasks: &mut JoinSet<()>, metric: &'static str, controller: impl Future<Output = ()> + Send + 'static) {
        let running = Running::new(self.parts.metrics.controllers.clone(), metric);
        tasks.spawn(async move {
            controller.await;
            drop(running);
        });
    }

    fn context(
        &self,
        controller: &str,
        nodes: &Nodes,
        cloud: &CloudHealth,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) -> NodeContext {
        let client = self.parts.client.clone();
        let (events, writer) = Events::start(client.clone(), controller, &self.parts.identity);
        assist(tasks, stop, writer);
        NodeContext {
            nodes: nodes.clone(),
            writer: NodeWriter::new(client, self.gate.clone()),
            events,
            instances: Arc::clone(&self.instances),
            identity: Arc::new(self.handle.clone()),
            provider: self.handle.state(),
            metrics: self.parts.metrics.nodes.clone(),
            health: self.parts.health.clone(),
            cloud: cloud.clone(),
        }
    }

    fn service_context(
        &self,
        nodes: &Nodes,
        cloud: &CloudHealth,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) -> ServiceContext {
        let client = self.parts.client.clone();
        let (events, writer) = Events::start(client.clone(), names::SERVICE_EVENT_SOURCE, &self.parts.identity);
        assist(tasks, stop, writer);
        let (services, watch) = Services::watch(self.parts.clients.watches.clone());
        assist(tasks, stop, watch);
        ServiceContext {
            services,
            nodes: nodes.clone(),
            writer: ServiceWriter::new(client, self.gate.clone()),
            events,
            load_balancers: Arc::new(self.handle.load_balancers()),
            identity: Arc::new(self.handle.clone()),
            provider: self.handle.state(),
            metrics: self.parts.metrics.services.clone(),
            health: self.parts.health.clone(),
            cloud: cloud.clone(),
        }
    }

    fn service_config(&self) -> ServiceConfig {
        let services = &self.parts.config.services;
        ServiceConfig {
            concurrent_syncs: services.concurrent_syncs,
            classes: Classes { listed: services.classes.clone(), default: services.serve_default_class },
            drift: services.drift,
            drift_period: services.drift_period,
        }
    }

    fn node_config(&self) -> NodeConfig {
        let nodes = &self.parts.config.nodes;
        NodeConfig { status_update_frequency: nodes.status_update_frequency, concurrent_writes: nodes.concurrent_syncs }
    }

    fn lifecycle_config(&self) -> LifecycleConfig {
        let deletion = &self.parts.config.deletion;
        LifecycleConfig {
            monitor_period: self.parts.config.nodes.monitor_period,
            confirmation: deletion.confirmation,
            window: deletion.window,
            zone_fraction: deletion.zone_fraction,
            limit: deletion.limit as usize,
            uninitialized_grace: deletion.uninitialized_grace,
        }
    }
}

/// Runs what serves the controllers, until they are told to stop.
fn assist(tasks: &mut JoinSet<()>, stop: &CancellationToken, task: impl Future<Output = ()> + Send + 'static) {
    let stop = stop.clone();
    tasks.spawn(async move {
        stop.run_until_cancelled(task).await;
    });
}

/// Counts a controller as running until it is dropped, however it ends.
struct Running {
    metrics: ControllerMetrics,
    name: &'static str,
}

impl Running {
    fn new(metrics: ControllerMetrics, name: &'static str) -> Self {
        metrics.set_running(name, true);
        Self { metrics, name }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.metrics.set_running(self.name, false);
    }
}

/// What a term begins with.
struct Prepared {
    store: StateStore,
    epoch: u64,
}

async fn lost(mut leading: watch::Receiver<Option<Leading>>) {
    drop(leading.wait_for(Option::is_none).await);
}
