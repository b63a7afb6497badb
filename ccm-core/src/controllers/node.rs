//! The cloud-node-controller: initialises nodes that kubelet registered with the uninitialized taint, and keeps addresses and
//! its own labels right afterwards. It never deletes a node and never taints one.
//!
//! This file has the sources: what may have changed, and what is due for a node then. What a node needs is decided in
//! [`mod@decide`]; an initialised node that nothing is wrong with costs nothing but the periodic refresh. Which node is worked on
//! when is for the [`scheduler`](mod@super::scheduler) to say.
pub mod act;
pub mod decide;
pub mod observe;
pub mod status;
#[cfg(test)]
mod tests;
pub mod work;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Interval, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use self::decide::decide;
use self::observe::Observed;
use self::status::Status;
use self::work::{Ended, Worker, fingerprint};
use super::NodeContext;
use super::scheduler::drive::{Due, Keyed, drive, now};
use super::scheduler::outage::Outage;
use super::scheduler::retry::{Pause, Pauses, Retry};
use super::scheduler::{self, Answered, Key, Scheduler};
use super::written::Written;
use crate::model::provider_info::{Capability, ProviderInfo};
use crate::names;
use crate::provider::StateReceiver;
use crate::telemetry::health::Check;

/// What can be set about this controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// How often initialised nodes are refreshed from the cloud (`--node-status-update-frequency`); above zero.
    pub status_update_frequency: Duration,
    /// How many nodes may be written to at one time; at least 1.
    pub concurrent_writes: usize,
    /// Whether node-route-controller runs: then a node has no network until its routes exist.
    pub configures_routes: bool,
}

impl Default for NodeConfig {
    fn default() -> Self {
        Self { status_update_frequency: Duration::from_mins(5), concurrent_writes: 64, configures_routes: false }
    }
}

/// Runs until `shutdown`; then look-ups are dropped, and writes that have begun are waited for.
pub async fn run(ctx: NodeContext, config: NodeConfig, shutdown: CancellationToken) {
    let names = ctx.nodes.subscribe();
    if shutdown.run_until_cancelled(ctx.nodes.synced()).await.is_some() {
        drive(Controller::new(ctx, &config, names, shutdown.clone()), &shutdown).await;
    }
}

/// The first comes at a random time, so that a restart does not line up what other processes do.
fn refreshes(frequency: Duration) -> Interval {
    let mut interval = interval_at(tokio::time::Instant::now() + frequency.mul_f64(rand::random_range(0.0..1.0)), frequency);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// A node that waits for its initialisation is tried again within 15 s, unless the provider asks for more time.
const PAUSES: Pauses = Pauses {
    first: Duration::from_millis(500),
    longest: Duration::from_secs(15),
    first_terminal: Duration::from_mins(5),
    longest_terminal: Duration::from_mins(5),
};

/// Work that panicked is a defect of this process, and is repeated less often.
const AFTER_PANIC: Pauses = Pauses { longest: Duration::from_mins(2), ..PAUSES };

/// How urgent work on a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Priority {
    /// The node waits for its initialisation.
    Initialize,
    /// The node shows by itself what is to be fixed.
    Fix,
    /// The periodic refresh.
    Refresh,
}

impl scheduler::Priority for Priority {
    const ALL: &'static [Self] = &[Self::Initialize, Self::Fix, Self::Refresh];
}

struct Controller {
    worker: Arc<Worker>,
    names: mpsc::UnboundedReceiver<String>,
    states: StateReceiver,
    refreshes: Interval,
    /// The provider, while it can be used.
    provider: Option<Arc<ProviderInfo>>,
    /// The nodes whose periodic refresh is due.
    refresh: HashSet<Key>,
    retries: HashMap<Key, Retry>,
    written: Written,
    outage: Outage,
    /// Whether two rounds of look-ups were begun, and more than one is still in flight.
    is_full: bool,
    configures_routes: bool,
    /// Nodes to look at, besides those that are heard of.
    retry_now: Vec<Key>,
}

impl Controller {
    fn new(ctx: NodeContext, config: &NodeConfig, names: mpsc::UnboundedReceiver<String>, shutdown: CancellationToken) -> Self {
        let mut states = ctx.provider.clone();
        states.mark_changed();
        let status = Status::new(ctx.events.clone(), ctx.metrics.clone(), ctx.cloud.clone());
        let writes = Semaphore::new(config.concurrent_writes.max(1));
        Self {
            worker: Arc::new(Worker { ctx, status, writes, shutdown }),
            names,
            states,
            refreshes: refreshes(config.status_update_frequency),
            provider: None,
            refresh: HashSet::new(),
            retries: HashMap::new(),
            written: Written::default(),
            outage: Outage::new(now()),
            is_full: false,
            configures_routes: config.configures_routes,
            retry_now: Vec::new(),
        }
    }

    fn all(&self) -> Vec<Key> {
        self.worker.ctx.nodes.list().iter().map(|node| Key::from(node.name.as_str())).collect()
    }

    /// The nodes to look at because of another state of the provider.
    fn provider_changed(&mut self) -> Vec<Key> {
        let info = self.states.borrow_and_update().ready().cloned();
        if info == self.provider {
            return Vec::new();
        }
        self.provider = None;
        self.retries.clear();
        match info {
            None => tracing::info!("the provider is not ready: nodes wait"),
            Some(info) if !info.capabilities.contains(&Capability::Instances) => self.unsupported(),
            Some(info) => {
                self.worker.ctx.health.clear(names::controllers::NODE);
                self.provider = Some(info);
                return self.all();
            }
        }
        Vec::new()
    }

    fn unsupported(&self) {
        let message = "the provider does not serve Instances: no node is initialised; run a provider that has the capability, \
                       or leave cloud-node-controller out of --controllers";
        tracing::warn!(message);
        self.worker.ctx.health.set(names::controllers::NODE, Check::Warning(message.to_owned()));
    }

    fn refresh_all(&mut self) -> Vec<Key> {
        let all = self.all();
        self.refresh.extend(all.iter().cloned());
        all
    }

    /// What is known of a node that is there, and that the watch shows as it was last written.
    fn observe(&mut self, key: &Key) -> Option<Observed> {
        let Some(node) = self.worker.ctx.nodes.get(key) else {
            self.forget(key);
            return None;
        };
        if self.written.is_ahead_of(key, &node.resource_version) {
            return None;
        }
        let provider = Arc::clone(self.provider.as_ref()?);
        if !provider.ownership(&node).is_managed() {
            self.worker.status.forget(key);
        }
        let (configures_routes, refresh) = (self.configures_routes, self.refresh.contains(key));
        Some(Observed { node, provider, configures_routes, refresh, answer: None })
    }

    /// As many look-ups as the provider answers at one time, all batches full; 0 without a provider.
    fn round(&self) -> usize {
        let limits = self.provider.as_ref().map(|provider| provider.limits);
        limits.map_or(0, |limits| limits.max_batch_size.saturating_mul(limits.max_concurrent_instance_calls))
    }

    fn forget(&mut self, key: &Key) {
        self.refresh.remove(key);
        self.retries.remove(key);
        self.written.forget(key);
        self.worker.status.forget(key);
    }

    fn retry(&mut self, key: &Key, pause: Pause, made_with: u64, pauses: &Pauses) {
        self.retries.entry(Arc::clone(key)).or_default().again(pause, made_with, pauses, now());
    }

    /// A look-up was answered. After an outage all nodes in back-off are looked up again, together.
    fn answered(&mut self) {
        if self.outage.succeeded(now()) {
            let waiting = self.retries.iter_mut().filter_map(|(key, retry)| retry.retry_now().then(|| Arc::clone(key)));
            self.retry_now.extend(waiting);
            tracing::info!(nodes = self.retry_now.len(), "look-ups succeed again; retrying nodes in back-off");
        }
    }
}

impl Keyed for Controller {
    type Priority = Priority;
    type Work = Observed;
    type Outcome = Ended;

    async fn hear(&mut self) -> Vec<Key> {
        let mut names = Vec::new();
        tokio::select! {
            Ok(()) = self.states.changed() => self.provider_changed(),
            1.. = self.names.recv_many(&mut names, 1024) => names.into_iter().map(Key::from).collect(),
            _ = self.refreshes.tick() => self.refresh_all(),
        }
    }

    fn limit(&self) -> usize {
        let rounds = if self.is_full { 1 } else { 2 };
        self.round() * rounds
    }

    fn due(&mut self, key: &Key, now: std::time::Instant) -> Due<Priority, Observed> {
        let Some(observed) = self.observe(key) else { return Due::Nothing };
        let plan = decide(&observed);
        if plan.is_idle() {
            self.retries.remove(key);
            self.refresh.remove(key);
            return Due::Nothing;
        }
        if let Some(at) = self.retries.get(key).and_then(|retry| retry.not_before(fingerprint(&observed), now)) {
            return Due::NotBefore(at);
        }
        let priority = match (observed.node.is_uninitialized(), observed.refresh) {
            (true, _) => Priority::Initialize,
            (false, true) => Priority::Refresh,
            (false, false) => Priority::Fix,
        };
        Due::Now(priority, observed)
    }

    fn work(&self, observed: Observed) -> impl Future<Output = Ended> + Send + 'static {
        let worker = Arc::clone(&self.worker);
        async move { worker.work(observed).await }
    }

    fn ended(&mut self, key: &Key, ended: Option<Ended>, _now: std::time::Instant) -> Answered {
        self.refresh.remove(key);
        let Some(Ended { answered, written, again }) = ended else {
            let made_with = self.observe(key).map_or(0, |observed| fingerprint(&observed));
            self.retry(key, Pause::BackOff { at_least: None }, made_with, &AFTER_PANIC);
            return Answered::No;
        };
        written.into_iter().for_each(|version| self.written.note(key, version));
        match answered {
            Some(true) => self.answered(),
            Some(false) => self.outage.failed(),
            None => {}
        }
        match again {
            Some((pause, made_with)) => self.retry(key, pause, made_with, &PAUSES),
            None => drop(self.retries.remove(key)),
        }
        Answered::No
    }

    /// Two rounds are in flight at most, and look-ups begin a round at a time: while the answers of one are written, the next is
    /// looked up in full batches.
    fn turned(&mut self, scheduler: &mut Scheduler<Priority>, _now: std::time::Instant) {
        let running = scheduler.running_total();
        self.is_full = running > self.round() && (self.is_full || running >= 2 * self.round());
        self.retry_now.drain(..).for_each(|key| scheduler.name(key));
    }
}
