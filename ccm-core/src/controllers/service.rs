//! The service-lb-controller: gives Services of type LoadBalancer their load balancers, keeps these in the desired state, and removes
//! them when a Service says that it is done. It never removes anything because something is absent.
//!
//! This file is the driver: it hears of Services, nodes and the provider, and names the Services to look at. Every reason to look at a
//! Service leads to the same decision in [`mod@decide`]; the [`scheduler`](super::scheduler) says when the call is made, and
//! `memory` has the table of what follows from its outcome.
pub mod act;
pub mod decide;
mod memory;
pub mod observe;
mod priority;
pub mod status;
pub mod targets;
#[cfg(test)]
mod tests;
pub mod work;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use self::decide::{Classes, Ownership, Purpose, Step, decide, ownership};
use self::memory::{Attempt, Call, Failure, Memory, Outcome};
use self::observe::Observed;
use self::priority::Priority;
use self::status::Status;
use self::targets::Targets;
use self::targets::feed::TargetFeed;
use self::work::{Ended, Job, Worker};
use super::scheduler::drive::{Due, Keyed, drive, now, sleep_until};
use super::scheduler::outage::Outage;
use super::scheduler::rate_limit::report::RateLimitReport;
use super::scheduler::retry::Pauses;
use super::scheduler::{Answered, Key, Scheduler};
use super::written::Written;
use crate::cluster::events::Events;
use crate::cluster::nodes::Nodes;
use crate::cluster::patch::ServiceWriter;
use crate::cluster::services::Services;
use crate::config::services::Drift;
use crate::model::provider_info::{Capability, ProviderInfo};
use crate::model::service::Service;
use crate::names;
use crate::provider::{Identity, LoadBalancers, StateReceiver};
use crate::telemetry::cloud_health::CloudHealth;
use crate::telemetry::health::{Check, Health};
use crate::telemetry::metrics::ServiceMetrics;

const PAUSES: Pauses = Pauses {
    first: Duration::from_secs(1),
    longest: Duration::from_mins(5),
    first_terminal: Duration::from_secs(15),
    longest_terminal: Duration::from_mins(5),
};
/// How many changes are taken in at once.
const BATCH: usize = 1024;

/// What the controller needs. A new one is made for every term of leadership.
pub struct ServiceContext {
    /// The Services.
    pub services: Services,
    /// The nodes.
    pub nodes: Nodes,
    /// The way to write to Services.
    pub writer: ServiceWriter,
    /// Where events go.
    pub events: Events,
    /// The provider's load balancers.
    pub load_balancers: Arc<dyn LoadBalancers>,
    /// Who the provider is.
    pub identity: Arc<dyn Identity>,
    /// The provider's state.
    pub provider: StateReceiver,
    /// What is counted.
    pub metrics: ServiceMetrics,
    /// What readiness says.
    pub health: Health,
    /// What readiness says of the cloud.
    pub cloud: CloudHealth,
}

/// What can be set about this controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceConfig {
    /// How many Services are worked on at one time, at most; `None`: as many as the provider takes.
    pub concurrent_syncs: Option<usize>,
    /// The classes that are served.
    pub classes: Classes,
    /// What is done about drift.
    pub drift: Drift,
    /// Within which time every load balancer is compared with the cloud once.
    pub drift_period: Duration,
}

/// Runs until `shutdown`; then plans are dropped, and calls that change the cloud are waited for.
pub async fn run(ctx: ServiceContext, config: ServiceConfig, shutdown: CancellationToken) {
    let changes = Changes { services: ctx.services.subscribe(), nodes: ctx.nodes.subscribe() };
    let synced = async { tokio::join!(ctx.services.synced(), ctx.nodes.synced()) };
    if shutdown.run_until_cancelled(synced).await.is_some() {
        drive(Controller::new(ctx, config, changes, shutdown.clone()), &shutdown).await;
    }
}

/// A random time within the period.
fn spread(period: Duration, now: Instant) -> Instant {
    now + period.mul_f64(rand::random_range(0.1..1.0))
}

/// What the watches tell, by key.
struct Changes {
    services: UnboundedReceiver<String>,
    nodes: UnboundedReceiver<String>,
}

struct Controller {
    config: ServiceConfig,
    classes: Arc<Classes>,
    services: Services,
    changes: Changes,
    states: StateReceiver,
    health: Health,
    worker: Arc<Worker>,
    /// The provider, while it can be used.
    provider: Option<Arc<ProviderInfo>>,
    /// What it, or the last one, said of itself.
    described: Option<Arc<ProviderInfo>>,
    memory: HashMap<Key, Memory>,
    written: Written,
    targets: TargetFeed,
    outage: Outage,
    rate_limit: RateLimitReport,
    /// Since when load balancers are being given other targets.
    sync_began: Option<Instant>,
    /// The Services to look at again, since an outage is over.
    recovered: Vec<Key>,
    /// Whether another provider was connected since the last turn.
    reconnected: bool,
}

impl Controller {
    fn new(ctx: ServiceContext, config: ServiceConfig, changes: Changes, shutdown: CancellationToken) -> Self {
        let worker = Worker {
            writer: ctx.writer,
            load_balancers: ctx.load_balancers,
            identity: ctx.identity,
            status: Status::new(ctx.events, ctx.metrics.clone(), ctx.cloud.clone()),
            metrics: ctx.metrics,
            shutdown,
        };
        let mut states = ctx.provider;
        states.mark_changed();
        Self {
            classes: Arc::new(config.classes.clone()),
            config,
            services: ctx.services,
            changes,
            states,
            rate_limit: RateLimitReport::new(ctx.cloud, "LoadBalancers"),
            health: ctx.health,
            worker: Arc::new(worker),
            provider: None,
            described: None,
            memory: HashMap::new(),
            written: Written::default(),
            targets: TargetFeed::new(ctx.nodes),
            outage: Outage::new(now()),
            sync_began: None,
            recovered: Vec::new(),
            reconnected: false,
        }
    }

    fn all(&self) -> Vec<Key> {
        self.services.list().iter().map(|service| Key::from(service.key())).collect()
    }

    /// The provider came, went, or says something else of itself. What it refused before it may do now.
    fn provider_changed(&mut self) -> Vec<Key> {
        let info = self.states.borrow_and_update().ready().cloned();
        if self.provider == info {
            return Vec::new();
        }
        self.provider.clone_from(&info);
        self.targets.provider_changed(info.clone());
        let Some(info) = info else {
            tracing::info!("the provider is not ready: Services wait");
            return Vec::new();
        };
        self.report_capability(&info);
        self.end_pauses();
        if let Some(before) = self.described.replace(Arc::clone(&info)).filter(|before| *before != info) {
            self.verify_all((&before.name, &before.version) != (&info.name, &info.version));
        }
        self.reconnected = true;
        self.all()
    }

    /// Checks are spread anew: those of a time without provider are not made all at once.
    fn end_pauses(&mut self) {
        let (period, now) = (self.config.drift_period, now());
        for memory in self.memory.values_mut() {
            memory.end_pauses();
            memory.check_at = memory.check_at.map(|_| spread(period, now));
        }
    }

    fn report_capability(&self, info: &ProviderInfo) {
        if info.capabilities.contains(&Capability::LoadBalancers) {
            return self.health.clear(names::controllers::SERVICE);
        }
        let message = "the provider does not serve load balancers: those that exist stay as they are; run a provider that has \
                       the capability, or leave service-lb-controller out of --controllers";
        tracing::warn!(message);
        self.health.set(names::controllers::SERVICE, Check::Warning(message.to_owned()));
    }

    fn verify_all(&mut self, another_build: bool) {
        for (key, memory) in &mut self.memory {
            memory.verify(self.services.get(key).as_deref(), another_build);
        }
    }

    /// When a load balancer is compared with the cloud for the first time: at a random time, so that neither the Services of one
    /// provider nor those of several clusters line up. Later checks follow after one period each.
    fn first_check(&self, now: Instant) -> Option<Instant> {
        (self.config.drift != Drift::Off).then(|| spread(self.config.drift_period, now))
    }

    /// Changes of nodes were gathered. Where they change the targets, every Service is looked at.
    fn give_targets(&mut self, now: Instant) -> Vec<Key> {
        if !self.services.list().iter().any(|service| self.is_wanted(service)) {
            self.targets.unwanted();
        }
        if !self.targets.announce(now) {
            return Vec::new();
        }
        tracing::debug!(targets = self.targets.present(now).set.targets().len(), "the targets of load balancers have changed");
        self.sync_began.get_or_insert(now);
        self.all()
    }

    fn is_wanted(&self, service: &Service) -> bool {
        ownership(service, &self.classes) == Ownership::Wanted
    }

    /// What is known of a Service, unless it is gone, the watch is behind our own writes, or there is no provider.
    fn observe(&mut self, key: &Key, now: Instant) -> Option<Observed> {
        let provider = self.provider.clone()?;
        let Some(service) = self.services.get(key) else {
            self.forget(key);
            return None;
        };
        if self.written.is_ahead_of(key, &service.resource_version) {
            return None;
        }
        let wanted = self.is_wanted(&service) && provider.capabilities.contains(&Capability::LoadBalancers);
        let check_at = self.first_check(now);
        let memory = self.memory.entry(Arc::clone(key)).or_default();
        if memory.uid != service.uid {
            *memory = Memory { check_at, ..Memory::new(&service) };
        }
        let targets = if wanted { self.targets.present(now).clone() } else { Targets::none() };
        if wanted {
            memory.see_targets(&targets);
        }
        let (memory, classes) = (memory.clone(), Arc::clone(&self.classes));
        Some(Observed { service, provider, classes, targets, memory, drift: self.config.drift })
    }

    fn job(&mut self, key: &Key, observed: Observed, attempt: Attempt) -> Job {
        self.memory.entry(Arc::clone(key)).and_modify(|memory| memory.attempt = Some(attempt.clone()));
        Job { service: observed.service, attempt, definition: observed.memory.definition, drift: observed.drift }
    }

    /// The cloud is back: what failed while it was away is not left to its pauses.
    fn recover(&mut self) {
        let waiting = self.memory.iter_mut().filter(|(_, memory)| memory.attempt.is_none());
        self.recovered = waiting.filter_map(|(key, memory)| memory.retry_now().then(|| Arc::clone(key))).collect();
        tracing::info!(services = self.recovered.len(), "cloud API recovered; retrying Services in back-off");
    }

    fn forget(&mut self, key: &Key) {
        if let Some(Memory { uid, .. }) = self.memory.remove(key).filter(Memory::has_load_balancer) {
            let service = &**key;
            tracing::warn!(
                service,
                uid,
                "a Service vanished without its load balancer, which `ccm-core load-balancers --unclaimed` lists"
            );
        }
        self.written.forget(key);
        self.worker.status.forget(key);
    }
}

impl Keyed for Controller {
    type Priority = Priority;
    type Work = Job;
    type Outcome = Ended;

    async fn hear(&mut self) -> Vec<Key> {
        let (mut services, mut nodes) = (Vec::new(), Vec::new());
        tokio::select! {
            Ok(()) = self.states.changed() => self.provider_changed(),
            1.. = self.changes.services.recv_many(&mut services, BATCH) => services.into_iter().map(Key::from).collect(),
            1.. = self.changes.nodes.recv_many(&mut nodes, BATCH) => {
                nodes.iter().for_each(|name| self.targets.node_changed(name, now()));
                Vec::new()
            }
            () = sleep_until(self.targets.due_at()) => self.give_targets(now()),
        }
    }

    fn limit(&self) -> usize {
        let takes = self.provider.as_ref().map_or(0, |info| info.limits.max_concurrent_load_balancer_calls.max(1));
        self.config.concurrent_syncs.map_or(takes, |wish| wish.max(1).min(takes))
    }

    fn due(&mut self, key: &Key, now: Instant) -> Due<Priority, Job> {
        let Some(observed) = self.observe(key, now) else { return Due::Nothing };
        let step = decide(&observed, now);
        match (&step, step.priority(), Attempt::of(&observed, &step)) {
            // What a user made or changed gets the targets as they are, without the wait by which changes of nodes are gathered.
            (_, Some(Priority::Change), _) if self.targets.refresh(now) => self.due(key, now),
            (_, Some(priority), Some(attempt)) => Due::Now(priority, self.job(key, observed, attempt)),
            (Step::NotBefore(at), ..) => Due::NotBefore(*at),
            (Step::LeftUnmanaged(why), ..) => {
                self.worker.status.left_unmanaged(&observed.service, why);
                Due::Nothing
            }
            _ => Due::Nothing,
        }
    }

    fn work(&self, job: Job) -> impl Future<Output = Ended> + Send + 'static {
        let worker = Arc::clone(&self.worker);
        async move { worker.work(job).await }
    }

    fn ended(&mut self, key: &Key, ended: Option<Ended>, now: Instant) -> Answered {
        let Ended { outcome, written } = ended.unwrap_or(Ended::of(Outcome::Failed(Failure::Panicked)));
        written.into_iter().for_each(|version| self.written.note(key, version));
        if let Some(memory) = self.memory.get_mut(key)
            && let Some(attempt) = memory.attempt.take()
        {
            *memory = std::mem::take(memory).after(&attempt, outcome, now);
            if attempt.call == Call::Plan(Purpose::Drift) {
                memory.check_at = Some(now + self.config.drift_period);
            }
        }
        match outcome {
            Outcome::Failed(failure) if failure.may_pass() => self.outage.failed(),
            Outcome::Failed(_) | Outcome::InProgress(_) => {}
            _ if self.outage.succeeded(now) => self.recover(),
            _ => {}
        }
        outcome.answered()
    }

    fn turned(&mut self, scheduler: &mut Scheduler<Priority>, now: Instant) {
        self.recovered.drain(..).for_each(|key| scheduler.name(key));
        if std::mem::take(&mut self.reconnected) {
            scheduler.forget_rate_limit();
        }
        self.rate_limit.report(scheduler.paused_until(now), now);
        if !scheduler.has_named()
            && !scheduler.is_busy(Priority::Targets)
            && let Some(began) = self.sync_began.take_if(|_| self.provider.is_some())
        {
            self.worker.metrics.node_sync_latency.observe(now.saturating_duration_since(began).as_secs_f64());
        }
    }
}
