//! The service-lb-controller: gives Services of type LoadBalancer their load balancers, keeps these as asked, and removes them
//! when a Service says that it is done. It never removes anything because something is absent.
//!
//! This file is the driver: it hears of Services and nodes, and starts a step for each Service that needs one. Every reason to
//! look at a Service, a change, a node, a pause that ended, a check, leads to the same decision in [`mod@decide`].
pub mod act;
pub mod decide;
pub mod lanes;
mod memory;
pub mod observe;
pub mod status;
pub mod targets;
#[cfg(test)]
mod tests;
mod timing;
pub mod work;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use self::decide::{Classes, Lane, Step, decide, fingerprint, seen};
use self::lanes::Lanes;
use self::memory::Memory;
use self::observe::{Known, Observed, Turn};
use self::status::Status;
use self::targets::{Roster, Targets};
use self::timing::Timing;
use self::work::{Ended, Next, Worker};
use super::queue::{Cause, Pause, Pauses, Queue};
use super::written::Written;
use crate::cluster::events::Events;
use crate::cluster::nodes::Nodes;
use crate::cluster::patch::ServiceWriter;
use crate::cluster::services::Services;
use crate::config::services::Drift;
use crate::model::provider_info::{Capability, ProviderInfo};
use crate::names;
use crate::provider::{Identity, LoadBalancers, StateReceiver};
use crate::telemetry::cloud_health::CloudHealth;
use crate::telemetry::health::{Check, Health};
use crate::telemetry::metrics::ServiceMetrics;

const PAUSES: Pauses = Pauses {
    first: Duration::from_secs(1),
    longest: Duration::from_mins(5),
    slow: Duration::from_secs(15),
    slowest: Duration::from_mins(5),
};

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
    /// How the provider stands.
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
    /// How many Services are worked at, at most; `None`: as many as the provider takes.
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
    let (services, nodes) = (ctx.services.subscribe(), ctx.nodes.subscribe());
    let synced = async { tokio::join!(ctx.services.synced(), ctx.nodes.synced()) };
    if shutdown.run_until_cancelled(synced).await.is_some() {
        Driver::new(ctx, config, shutdown).run(services, nodes).await;
    }
}

struct Driver {
    config: ServiceConfig,
    classes: Arc<Classes>,
    services: Services,
    nodes: Nodes,
    states: StateReceiver,
    health: Health,
    worker: Arc<Worker>,
    queue: Queue,
    lanes: Lanes,
    tasks: JoinSet<Ended>,
    running: HashMap<Id, (String, Lane)>,
    written: Written,
    memory: HashMap<String, Memory>,
    timing: Timing,
    roster: Roster,
    /// The provider, while it can be used. Otherwise Services only gather in the queue.
    provider: Option<Provider>,
    /// What it, or the last one, said of itself.
    described: Option<Arc<ProviderInfo>>,
}

struct Provider {
    info: Arc<ProviderInfo>,
    /// Those that a Service gets which is looked at now.
    targets: Targets,
    /// Those that all Services were last looked at for.
    announced: Targets,
    /// Whether it answers plans, as far as it has not shown otherwise.
    plans: bool,
}

impl Driver {
    fn new(ctx: ServiceContext, config: ServiceConfig, shutdown: CancellationToken) -> Self {
        let worker = Worker {
            writer: ctx.writer,
            load_balancers: ctx.load_balancers,
            identity: ctx.identity,
            status: Status::new(ctx.events, ctx.metrics.clone(), ctx.cloud),
            metrics: ctx.metrics,
            shutdown,
        };
        Self {
            classes: Arc::new(config.classes.clone()),
            timing: Timing::new(Some(config.drift_period).filter(|_| config.drift != Drift::Off), now()),
            config,
            services: ctx.services,
            nodes: ctx.nodes,
            states: ctx.provider,
            health: ctx.health,
            worker: Arc::new(worker),
            queue: Queue::new(PAUSES),
            lanes: Lanes::default(),
            tasks: JoinSet::new(),
            running: HashMap::new(),
            written: Written::default(),
            memory: HashMap::new(),
            roster: Roster::default(),
            provider: None,
            described: None,
        }
    }

    async fn run(mut self, mut services: mpsc::UnboundedReceiver<String>, mut nodes: mpsc::UnboundedReceiver<String>) {
        let worker = Arc::clone(&self.worker);
        let mut states = self.states.clone();
        states.mark_changed();
        let (mut changed, mut seen_nodes) = (Vec::new(), Vec::new());
        loop {
            self.sort();
            self.begin();
            self.measure();
            let wake = self.timing.next(self.lanes.is_busy(Lane::Paced), now()).map(tokio::time::Instant::from_std);
            tokio::select! {
                () = worker.shutdown.cancelled() => break,
                Ok(()) = states.changed() => {
                    let info = states.borrow_and_update().ready().cloned();
                    self.provider_changed(info);
                }
                1.. = services.recv_many(&mut changed, 1024) => {
                    changed.drain(..).for_each(|key| self.queue.add(key, Cause::Changed));
                }
                1.. = nodes.recv_many(&mut seen_nodes, 1024) => seen_nodes.drain(..).for_each(|name| self.node_changed(&name)),
                Some(key) = self.queue.next_due() => self.queue.add(key, Cause::Due),
                Some(ended) = self.tasks.join_next_with_id() => self.ended(ended),
                () = sleep_until(wake) => self.woken(now()),
            }
        }
        while self.tasks.join_next().await.is_some() {}
    }

    fn add_all(&mut self, cause: Cause) {
        self.services.list().iter().for_each(|service| self.queue.add(service.key(), cause));
    }

    fn provider_changed(&mut self, info: Option<Arc<ProviderInfo>>) {
        if self.provider.as_ref().map(|provider| &provider.info) == info.as_ref() {
            return;
        }
        let Some(info) = info else {
            tracing::info!("the provider is not ready: Services wait");
            self.provider = None;
            return;
        };
        self.roster = Roster::new(self.nodes.list().iter().map(AsRef::as_ref), &info);
        let targets = self.targets(now());
        let plans = info.capabilities.contains(&Capability::PlanLoadBalancer);
        if info.capabilities.contains(&Capability::LoadBalancers) {
            self.health.clear(names::controllers::SERVICE);
        } else {
            let message = "the provider does not serve load balancers: those that exist stay as they are; run a provider that has \
                           the capability, or leave service-lb-controller out of --controllers";
            tracing::warn!(message);
            self.health.set(names::controllers::SERVICE, Check::Warning(message.to_owned()));
        }
        if let Some(described) = self.described.replace(Arc::clone(&info)).filter(|described| *described != info) {
            let same_build = (&described.name, &described.version) == (&info.name, &info.version);
            self.doubt(!same_build);
        }
        self.provider = Some(Provider { info, announced: targets.clone(), targets, plans });
        self.timing.calm_is_over();
        self.add_all(Cause::Due);
    }

    /// What another provider left to others this one may make itself. And another build may make load balancers otherwise: it is
    /// asked about all, as after a restart.
    fn doubt(&mut self, all: bool) {
        for (key, memory) in &mut self.memory {
            let service = self.services.get(key);
            match &memory.known {
                Known::Elsewhere(_) => {}
                // What was written for it since is no change of the user's.
                Known::Applied(applied) if all => {
                    let same = service.filter(|service| applied.fingerprint == fingerprint(service));
                    memory.seen = same.map_or(memory.seen, |service| seen(&service));
                }
                _ => continue,
            }
            memory.known = Known::Nothing;
            memory.trigger = None;
        }
    }

    fn node_changed(&mut self, name: &str) {
        let Some(provider) = &self.provider else { return };
        if self.roster.see(name, self.nodes.get(name).as_deref(), &provider.info) {
            self.timing.nodes_changed(now());
        }
    }

    /// A Service that a user made or changed gets the targets as they are, without the wait by which changes of nodes are gathered.
    fn refresh_targets(&mut self, now: Instant) {
        if self.timing.nodes_are_waiting() {
            let targets = self.targets(now);
            if let Some(provider) = &mut self.provider {
                provider.targets = targets;
            }
        }
    }

    fn targets(&mut self, now: Instant) -> Targets {
        let targets = self.roster.targets(now);
        self.timing.doubt(targets.doubt(now).map(|left| now + left));
        targets
    }

    /// A time has come.
    fn woken(&mut self, now: Instant) {
        if self.timing.nodes_are_due(now) {
            let targets = self.targets(now);
            let Some(provider) = &mut self.provider else { return };
            let news = provider.announced.trigger != targets.trigger || provider.announced.set != targets.set;
            provider.announced = targets.clone();
            provider.targets = targets;
            if news {
                tracing::debug!(targets = provider.targets.set.targets().len(), "the targets of load balancers have changed");
                self.timing.sync_began(now);
                self.add_all(Cause::Changed);
            }
        }
        if self.timing.doubt_is_over(now) {
            self.add_all(Cause::Changed);
        }
        if let Some(key) = self.timing.next_check(now, || self.memory.keys().cloned().collect()) {
            if let Some(memory) = self.memory.get_mut(&key) {
                memory.check_due = true;
            }
            self.queue.add(key, Cause::Refresh);
        }
    }

    /// Sees what those need that were named, and puts them into their lanes.
    fn sort(&mut self) {
        if self.provider.is_none() {
            return;
        }
        for (key, cause) in self.queue.take_ready() {
            let cause = self.lanes.cause(&key).map_or(cause, |before| before.max(cause));
            let Some(observed) = self.observe(&key, cause) else { continue };
            let step = decide(&observed, now());
            match step.lane() {
                Some(lane) => self.lanes.add(key, lane, cause),
                None => self.idle(&key, &observed, &step),
            }
        }
    }

    fn idle(&mut self, key: &str, observed: &Observed, step: &Step) {
        self.lanes.remove(key);
        match step {
            Step::Frozen(why) => self.worker.status.frozen(&observed.service, why),
            Step::Rest => {}
            Step::Wait(_) => tracing::debug!(service = key, "there is no target; its load balancer keeps the last ones for now"),
            _ => self.queue.forget(key),
        }
    }

    /// What is known of a Service, unless it is gone or the watch is behind our own writes.
    fn observe(&mut self, key: &str, cause: Cause) -> Option<Observed> {
        let provider = self.provider.as_ref()?;
        let Some(service) = self.services.get(key) else {
            self.forget(key);
            return None;
        };
        if self.written.is_ahead_of(key, &service.resource_version) {
            return None;
        }
        let memory = self.memory.entry(key.to_owned()).or_default();
        if memory.uid != service.uid {
            *memory = Memory { uid: service.uid.clone(), seen: seen(&service), ..Memory::default() };
        }
        let trigger = memory.trigger.get_or_insert_with(|| Arc::clone(&provider.targets.trigger));
        let now = seen(&service);
        Some(Observed {
            service,
            provider: Arc::clone(&provider.info),
            classes: Arc::clone(&self.classes),
            targets: provider.targets.clone(),
            known: memory.known.clone(),
            changed: memory.seen != now,
            nodes_changed: *trigger != provider.targets.trigger,
            turn: match memory.check_due {
                _ if self.queue.is_pausing(key, cause, now) => Turn::Pause,
                true => Turn::Check,
                false => Turn::Usual,
            },
            plans: provider.plans,
            drift: self.config.drift,
        })
    }

    /// Begins as much as the provider takes.
    fn begin(&mut self) {
        let now = now();
        let Some(provider) = &self.provider else { return };
        if self.timing.is_calm(now) {
            return;
        }
        let takes = provider.info.limits.max_concurrent_load_balancer_calls;
        let limit = self.config.concurrent_syncs.map_or(takes, |wish| wish.min(takes)).max(1);
        while let Some((key, lane, cause)) = self.lanes.next(limit, self.timing.paced_is_due(now)) {
            if lane == Lane::Change {
                self.refresh_targets(now);
            }
            let Some(observed) = self.observe(&key, cause) else { continue };
            let step = decide(&observed, now);
            match step.lane() {
                None => self.idle(&key, &observed, &step),
                Some(other) if other != lane => self.lanes.add(key, other, cause),
                Some(_) if observed.turn == Turn::Pause => {
                    self.queue.begin_beside(&key);
                    self.start(key, lane, observed, step, now);
                }
                Some(_) if self.queue.begin(&key, cause, seen(&observed.service)) => self.start(key, lane, observed, step, now),
                Some(_) => {}
            }
        }
    }

    fn start(&mut self, key: String, lane: Lane, observed: Observed, step: Step, now: Instant) {
        if lane == Lane::Paced {
            self.timing.paced(now);
        }
        if let Some(memory) = self.memory.get_mut(&key) {
            memory.seen = seen(&observed.service);
        }
        self.lanes.began(lane);
        let worker = Arc::clone(&self.worker);
        let task = self.tasks.spawn(async move { worker.work(observed, step).await });
        self.running.insert(task.id(), (key, lane));
    }

    fn ended(&mut self, ended: Result<(Id, Ended), JoinError>) {
        let (id, ended) = match ended {
            Ok((id, ended)) => (id, Some(ended)),
            Err(error) => {
                tracing::error!(%error, "work at a Service broke off; it is repeated");
                (error.id(), None)
            }
        };
        let Some((key, lane)) = self.running.remove(&id) else { return };
        self.lanes.ended(lane);
        let again = Next::Again(Pause::BackOff { at_least: None });
        let ended = ended.unwrap_or(Ended { known: Known::Doubt, next: again, written: None });
        ended.written.into_iter().for_each(|version| self.written.note(&key, version));
        if let Some(memory) = self.memory.get_mut(&key) {
            memory.learn(ended.known, ended.next, lane);
        }
        self.follow(&key, ended.next);
    }

    /// Whether all have the targets that were to be given to them.
    fn measure(&mut self) {
        if self.provider.is_some()
            && !self.lanes.is_busy(Lane::Targets)
            && let Some(took) = self.timing.sync_ended(now())
        {
            self.worker.metrics.node_sync_latency.observe(took.as_secs_f64());
        }
    }

    fn follow(&mut self, key: &str, next: Next) {
        match next {
            Next::Nothing => {
                self.queue.finish(key);
                if self.timing.all_is_well(now()) {
                    tracing::info!("the cloud is of use again: whoever waited for that is looked at now");
                    self.queue.hurry();
                }
            }
            Next::Resume => self.queue.finish_beside(key),
            Next::ResumeCalm(after) => {
                self.calm(after);
                self.queue.finish_beside(key);
                self.queue.add(key.to_owned(), Cause::Changed);
            }
            Next::Decide => {
                self.queue.finish(key);
                self.queue.add(key.to_owned(), Cause::Due);
            }
            Next::NoPlans => {
                if let Some(provider) = &mut self.provider {
                    provider.plans = false;
                }
                self.queue.finish(key);
                self.queue.add(key.to_owned(), Cause::Due);
            }
            Next::Again(pause) => {
                if matches!(pause, Pause::BackOff { .. }) {
                    self.timing.trouble();
                }
                self.queue.retry(key, pause);
                // What the nodes have done meanwhile does not wait with it.
                self.queue.add(key.to_owned(), Cause::Changed);
            }
            Next::Calm(after) => {
                let calm = self.calm(after);
                self.queue.retry(key, Pause::Exactly(calm));
            }
        }
    }

    /// The cloud limits the rate of calls: all wait, for so long.
    fn calm(&mut self, after: Option<Duration>) -> Duration {
        let (news, calm) = (!self.timing.is_calm(now()), self.timing.calm(after, now()));
        if news {
            tracing::warn!(?calm, "the cloud limits the rate of calls: work on load balancers waits");
        }
        calm
    }

    fn forget(&mut self, key: &str) {
        self.queue.forget(key);
        self.lanes.remove(key);
        if let Some(Memory { uid, .. }) = self.memory.remove(key).filter(Memory::has_load_balancer) {
            tracing::warn!(
                service = key,
                uid,
                "a Service vanished without its load balancer, which `ccm-core load-balancers --unclaimed` lists"
            );
        }
        self.written.forget(key);
        self.worker.status.forget(key);
    }
}

/// By tokio's clock, by which pauses are slept.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

async fn sleep_until(time: Option<tokio::time::Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
