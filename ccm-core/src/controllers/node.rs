//! The cloud-node-controller: initialises nodes that kubelet registered with the uninitialized taint, and keeps addresses and
//! its own labels right afterwards. It never deletes a node and never taints one.
//!
//! This file is the driver: it hears of nodes, and starts work at those that need some. What they need is decided in
//! [`mod@decide`]; an initialised node that nothing is wrong with costs nothing but the periodic refresh.
pub mod act;
pub mod decide;
pub mod observe;
pub mod status;
#[cfg(test)]
mod tests;
pub mod work;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use self::decide::decide;
use self::observe::Observed;
use self::status::Status;
use self::work::{Outcome, Worker};
use super::NodeContext;
use super::queue::{Cause, Pause, Pauses, Queue};
use super::written::Written;
use crate::model::instance::NodeQuery;
use crate::model::provider_info::{Capability, ProviderInfo};
use crate::names;
use crate::telemetry::health::Check;

/// What can be set about this controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// How often initialised nodes are refreshed from the cloud (Go's `--node-status-update-frequency`); above zero.
    pub status_update_frequency: Duration,
    /// How many nodes may be written to at one time; at least 1.
    pub concurrent_writes: usize,
}

impl Default for NodeConfig {
    fn default() -> Self {
        Self { status_update_frequency: Duration::from_mins(5), concurrent_writes: 64 }
    }
}

/// Runs until `shutdown`; then look-ups are dropped, and writes that have begun are waited for.
pub async fn run(ctx: NodeContext, config: NodeConfig, shutdown: CancellationToken) {
    let names = ctx.nodes.subscribe();
    if shutdown.run_until_cancelled(ctx.nodes.synced()).await.is_some() {
        Driver::new(ctx, &config, shutdown).run(names, refreshes(config.status_update_frequency)).await;
    }
}

/// The first comes at a random time, so that a restart does not line up what other processes do.
fn refreshes(frequency: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + frequency.mul_f64(rand::random_range(0.0..1.0)), frequency);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

const PAUSES: Pauses = Pauses {
    first: Duration::from_millis(500),
    longest: Duration::from_mins(2),
    slow: Duration::from_mins(5),
    slowest: Duration::from_mins(5),
};

struct Driver {
    worker: Arc<Worker>,
    queue: Queue,
    tasks: JoinSet<Outcome>,
    names: HashMap<Id, String>,
    written: Written,
    /// The provider, while it can be used. Otherwise nodes only gather in the queue.
    provider: Option<Arc<ProviderInfo>>,
}

impl Driver {
    fn new(ctx: NodeContext, config: &NodeConfig, shutdown: CancellationToken) -> Self {
        let status = Status::new(ctx.events.clone(), ctx.metrics.clone(), ctx.cloud.clone());
        let writes = Semaphore::new(config.concurrent_writes.max(1));
        Self {
            worker: Arc::new(Worker { ctx, status, writes, shutdown }),
            queue: Queue::new(PAUSES),
            tasks: JoinSet::new(),
            names: HashMap::new(),
            written: Written::default(),
            provider: None,
        }
    }

    async fn run(mut self, mut names: mpsc::UnboundedReceiver<String>, mut refresh: Interval) {
        let worker = Arc::clone(&self.worker);
        let mut provider = worker.ctx.provider.clone();
        provider.mark_changed();
        let mut changed = Vec::new();
        loop {
            self.begin_ready();
            tokio::select! {
                () = worker.shutdown.cancelled() => break,
                Ok(()) = provider.changed() => {
                    let info = provider.borrow_and_update().ready().cloned();
                    self.provider_changed(info);
                }
                1.. = names.recv_many(&mut changed, 1024) => {
                    changed.drain(..).for_each(|name| self.queue.add(name, Cause::Changed));
                }
                Some(name) = self.queue.next_due() => self.queue.add(name, Cause::Due),
                Some(ended) = self.tasks.join_next_with_id() => self.ended(ended),
                _ = refresh.tick() => self.add_all(Cause::Refresh),
            }
        }
        while self.tasks.join_next().await.is_some() {}
    }

    fn add_all(&mut self, cause: Cause) {
        self.worker.ctx.nodes.list().iter().for_each(|node| self.queue.add(node.name.clone(), cause));
    }

    fn provider_changed(&mut self, info: Option<Arc<ProviderInfo>>) {
        if info == self.provider {
            return;
        }
        match &info {
            None => tracing::info!("the provider is not ready: nodes wait"),
            Some(info) if !info.capabilities.contains(&Capability::Instances) => return self.unsupported(),
            Some(_) => {
                self.worker.ctx.health.clear(names::controllers::NODE);
                self.add_all(Cause::Due);
            }
        }
        self.provider = info;
    }

    fn unsupported(&mut self) {
        self.provider = None;
        let message = "the provider does not serve Instances: no node is initialised; run a provider that has the capability, \
                       or leave cloud-node-controller out of --controllers";
        tracing::warn!(message);
        self.worker.ctx.health.set(names::controllers::NODE, Check::Warning(message.to_owned()));
    }

    fn begin_ready(&mut self) {
        let Some(provider) = self.provider.clone() else { return };
        for (name, cause) in self.queue.take_ready() {
            self.begin(name, cause, &provider);
        }
    }

    fn begin(&mut self, name: String, cause: Cause, provider: &Arc<ProviderInfo>) {
        let Some(node) = self.worker.ctx.nodes.get(&name) else { return self.forget(&name) };
        if self.written.is_ahead_of(&name, &node.resource_version) {
            return;
        }
        if !provider.ownership(&node).is_managed() {
            self.worker.status.forget(&name);
        }
        let observed = Observed { node, provider: Arc::clone(provider), refresh: cause == Cause::Refresh, answer: None };
        if decide(&observed).is_idle() {
            self.queue.forget(&name);
        } else if self.queue.begin(&name, cause, fingerprint(&observed)) {
            let worker = Arc::clone(&self.worker);
            let task = self.tasks.spawn(async move { worker.work(observed).await });
            self.names.insert(task.id(), name);
        }
    }

    fn ended(&mut self, ended: Result<(Id, Outcome), JoinError>) {
        let (id, outcome) = ended.unwrap_or_else(|error| {
            tracing::error!(%error, "work at a node broke off; it is repeated");
            (error.id(), Outcome::Again(Pause::BackOff { at_least: None }))
        });
        let Some(name) = self.names.remove(&id) else { return };
        match outcome {
            Outcome::Done { written } => {
                written.into_iter().for_each(|version| self.written.note(&name, version));
                self.queue.finish(&name);
            }
            Outcome::Again(pause) => self.retry(&name, pause),
            Outcome::Unsupported => {
                self.retry(&name, Pause::Slow);
                self.unsupported();
            }
        }
    }

    fn retry(&mut self, name: &str, pause: Pause) {
        let pause = self.queue.retry(name, pause);
        tracing::debug!(node = name, ?pause, "a node is looked at again");
    }

    fn forget(&mut self, name: &str) {
        self.queue.forget(name);
        self.written.forget(name);
        self.worker.status.forget(name);
    }
}

/// What an answer, and what follows from it, depends on. Heartbeats and conditions are not in it.
fn fingerprint(observed: &Observed) -> u64 {
    let node = &observed.node;
    let query = NodeQuery::about(node, &observed.provider);
    let own = [names::annotations::PROVIDED_NODE_IP, names::annotations::APPLIED_LABELS].map(|key| node.annotations.get(key));
    let mut hasher = DefaultHasher::new();
    (&node.uid, node.is_uninitialized(), &node.labels, own).hash(&mut hasher);
    (query.provider_id, query.system_uuid, query.addresses, query.annotations).hash(&mut hasher);
    hasher.finish()
}
