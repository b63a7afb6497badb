//! Keeps the cloud's routes in step with the Pod CIDRs of the nodes (upstream's `node-route-controller`).
//!
//! The driver: it hears of nodes and of the provider, keeps what is believed of the table, and begins the calls that were decided. A
//! route that an existing node needs is only made or replaced. The routes of nodes that are gone are judged all together by
//! `decide::deletion`, on a list of the table and a list of the nodes that were both just read.
mod act;
mod begin;
mod claims;
mod conditions;
mod decide;
mod follow;
mod lists;
mod observe;
mod queue;
mod status;
mod table;
#[cfg(test)]
mod tests;
mod trouble;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use jiff::Timestamp;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use self::act::{Ended, Worker};
use self::begin::Running;
use self::claims::{Claimant, Claims};
use self::conditions::Conditions;
use self::decide::deletion::Budget;
use self::lists::Lists;
use self::queue::Queue;
use self::status::Status;
use self::table::Table;
use self::trouble::Troubles;
use super::scheduler::drive::{Tasks, now, sleep_until};
use super::scheduler::outage::Outage;
use super::scheduler::rate_limit::RateLimit;
use super::scheduler::rate_limit::report::RateLimitReport;
use crate::cluster::events::Events;
use crate::cluster::nodes::Nodes;
use crate::cluster::patch::NodeWriter;
use crate::cluster::state::TermStore;
use crate::model::provider_info::{Capability, ProviderInfo};
use crate::model::route::Route;
use crate::provider::{Identity, Routes, StateReceiver};
use crate::telemetry::cloud_health::CloudHealth;
use crate::telemetry::health::Health;
use crate::telemetry::metrics::routes::{Counts, RouteMetrics, Trigger};

/// How many nodes are looked at before other tasks get their turn.
const LOOKS: usize = 1024;
/// Nodes go in bursts: their routes are looked for so long after the last went,
const QUIET: Duration = Duration::from_secs(2);
/// and so long after the first.
const LONGEST: Duration = Duration::from_secs(10);

/// What the controller needs. A new one is made for every term of leadership.
pub struct RouteContext {
    /// The nodes.
    pub nodes: Nodes,
    /// The way to write to nodes.
    pub writer: NodeWriter,
    /// Where events go.
    pub events: Events,
    /// The provider's routes.
    pub routes: Arc<dyn Routes>,
    /// Who the provider is.
    pub identity: Arc<dyn Identity>,
    /// The provider's state.
    pub provider: StateReceiver,
    /// The state in the cluster, which events about all routes refer to.
    pub store: TermStore,
    /// What is counted.
    pub metrics: RouteMetrics,
    /// What readiness says.
    pub health: Health,
    /// What readiness says of the cloud.
    pub cloud: CloudHealth,
}

/// What can be set about this controller.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteConfig {
    /// The Pods' CIDRs: only inside them a route is ever deleted.
    pub cluster_cidrs: Vec<IpNet>,
    /// How often the table is listed.
    pub reconciliation_period: Duration,
    /// The time in which the budget for stale routes may be used once.
    pub deletion_window: Duration,
    /// The part of this cluster's routes, 0 to 1, that the budget is.
    pub deletion_fraction: f64,
}

/// Runs until `shutdown`; then no call begins, and those that change the cloud are waited for.
pub async fn run(ctx: RouteContext, config: RouteConfig, shutdown: CancellationToken) {
    let changes = ctx.nodes.subscribe();
    if shutdown.run_until_cancelled(ctx.nodes.synced()).await.is_none() {
        return;
    }
    let mut controller = Controller::new(ctx, config, changes, shutdown.clone());
    while !shutdown.is_cancelled() {
        if controller.turn(now()) {
            tokio::task::yield_now().await;
            continue;
        }
        shutdown.run_until_cancelled(controller.hear()).await;
    }
    while controller.tasks.next().await.is_some() {}
}

struct Controller {
    config: RouteConfig,
    nodes: Nodes,
    changes: UnboundedReceiver<String>,
    states: StateReceiver,
    worker: Arc<Worker>,
    status: Status,
    /// The provider, while it can be used.
    provider: Option<Arc<ProviderInfo>>,
    /// What it, or the last one, said of itself.
    described: Option<Arc<ProviderInfo>>,
    /// Until when nothing is changed because the provider has answered that it does not serve a call, although it says that it does.
    refused_until: Option<Instant>,
    /// Whether it was asked for another handshake because of that.
    asked: bool,
    claims: Claims,
    table: Table,
    /// Which cloud listed the table.
    listed_by: String,
    troubles: Troubles<IpNet>,
    queue: Queue,
    conditions: Conditions,
    lists: Lists,
    stale: StaleRoutes,
    /// The nodes to look at.
    dirty: BTreeSet<String>,
    limit: RateLimit,
    limit_report: RateLimitReport,
    outage: Outage,
    tasks: Tasks<Running, Ended>,
    calls: usize,
    /// When the write guard is asked again.
    guard_at: Option<Instant>,
}

/// How far the deletion of stale routes has got.
struct StaleRoutes {
    /// When this term saw all nodes for the first time.
    since: Timestamp,
    /// Until when an earlier term may have used the budget.
    used_up_until: Instant,
    /// When routes were removed on the budget.
    used: VecDeque<Instant>,
    /// When the first and the last node went whose routes have not been looked for.
    freed: Option<(Instant, Instant)>,
    examines: bool,
    /// Those that were judged and wait to be removed.
    waiting: VecDeque<Route>,
    /// Whether a removal comes before a creation.
    removes_next: bool,
}

impl StaleRoutes {
    fn new(window: Duration, now: Instant) -> Self {
        let (freed, used, waiting) = Default::default();
        Self { since: Timestamp::now(), used_up_until: now + window, used, freed, examines: false, waiting, removes_next: false }
    }

    fn freed(&mut self, now: Instant) {
        self.freed = Some((self.freed.map_or(now, |(first, _)| first), now));
    }

    fn due_at(&self) -> Option<Instant> {
        self.freed.map(|(first, last)| (last + QUIET).min(first + LONGEST))
    }

    fn used_within(&mut self, window: Duration, now: Instant) -> usize {
        self.used.retain(|at| now.saturating_duration_since(*at) < window);
        self.used.len()
    }
}

impl Controller {
    fn new(ctx: RouteContext, config: RouteConfig, changes: UnboundedReceiver<String>, shutdown: CancellationToken) -> Self {
        let RouteContext { nodes, writer, events, routes, identity, mut provider, store, metrics, health, cloud } = ctx;
        provider.mark_changed();
        let now = now();
        Self {
            nodes,
            changes,
            states: provider,
            worker: Arc::new(Worker { routes, identity, writer, store, shutdown }),
            status: Status::new(events, health, cloud.clone(), metrics),
            provider: None,
            described: None,
            refused_until: None,
            asked: false,
            claims: Claims::new(config.deletion_window),
            table: Table::default(),
            listed_by: String::new(),
            troubles: Troubles::default(),
            queue: Queue::default(),
            conditions: Conditions::default(),
            lists: Lists::new(config.reconciliation_period, now),
            stale: StaleRoutes::new(config.deletion_window, now),
            dirty: BTreeSet::new(),
            limit: RateLimit::default(),
            limit_report: RateLimitReport::new(cloud, "Routes"),
            outage: Outage::new(now),
            tasks: Tasks::default(),
            calls: 0,
            guard_at: None,
            config,
        }
    }

    /// Waits until something happens, and takes it in.
    async fn hear(&mut self) {
        let (mut names, wake_at) = (Vec::new(), self.wake_at(now()));
        tokio::select! {
            Ok(()) = self.states.changed() => self.provider_changed(now()),
            1.. = self.changes.recv_many(&mut names, LOOKS) => names.iter().for_each(|name| self.node_changed(name, now())),
            Some((running, ended)) = self.tasks.next() => self.ended(running, ended, now()),
            () = sleep_until(wake_at) => {}
        }
    }

    /// Decides and begins what is due. Says whether there is more to look at.
    fn turn(&mut self, now: Instant) -> bool {
        self.wake(now);
        self.look(now);
        self.begin(now);
        self.limit_report.report(self.limit.paused_until(now), now);
        if self.is_quiet() && self.status.ended() {
            self.count();
        }
        !self.dirty.is_empty()
    }

    /// Pauses that are over.
    fn wake(&mut self, now: Instant) {
        self.refused_until.take_if(|until| *until <= now);
        let destinations = self.troubles.take_due(now);
        self.retry(&destinations, now);
        self.dirty.extend(self.conditions.take_due(now));
        if self.stale.due_at().is_some_and(|at| at <= now) {
            self.stale.freed = None;
            self.lists.need(now);
        }
    }

    /// Something about these destinations is to be tried again.
    fn retry(&mut self, destinations: &[IpNet], now: Instant) {
        for destination in destinations {
            self.status.began(Trigger::Periodic);
            match self.claims.holder(destination) {
                Some(holder) => drop(self.dirty.insert(holder.node.name.clone())),
                None => self.stale.freed(now),
            }
        }
    }

    /// Whether nothing runs or waits but for a pause.
    fn is_quiet(&self) -> bool {
        let stale = self.stale.examines || !self.stale.waiting.is_empty();
        self.dirty.is_empty() && self.queue.is_empty() && self.queue.is_idle() && !stale && !self.lists.is_running()
    }

    fn wake_at(&self, now: Instant) -> Option<Instant> {
        let lists = self.provider.as_ref().and_then(|_| self.lists.due_at());
        let of_cloud = [self.queue.due_at(self.batch()), lists, self.limit.paused_until(now)];
        let others = [self.refused_until, self.troubles.due_at(), self.conditions.due_at(), self.stale.due_at(), self.guard_at];
        // What is due and has not begun waits for a place or for the provider.
        of_cloud.into_iter().chain(others).flatten().filter(|at| *at > now).min()
    }

    fn batch(&self) -> usize {
        self.provider.as_ref().map_or(1, |info| info.limits.max_batch_size.max(1))
    }

    /// A node came, changed or went.
    fn node_changed(&mut self, name: &str, now: Instant) {
        let Some(provider) = &self.described else { return };
        let node = self.nodes.get(name);
        let claimant = node.map(|node| Claimant::new(Arc::clone(&node), provider.ownership(&node)));
        let is_gone = claimant.is_none();
        let change = self.claims.see(name, claimant, now, Timestamp::now());
        if change.matters {
            self.status.began(Trigger::NodeChange);
        }
        for destination in &change.freed {
            self.queue.remove(destination);
            if self.table.has_ours(destination) || self.queue.is_busy(destination) {
                self.stale.freed(now);
            }
        }
        self.dirty.extend(change.rivals);
        self.dirty.insert(name.to_owned());
        if is_gone {
            self.conditions.forget(name);
            self.status.forget(name);
        }
    }

    /// The provider came, went, or says something else of itself.
    fn provider_changed(&mut self, now: Instant) {
        let info = self.states.borrow_and_update().ready().cloned();
        if self.provider == info {
            return;
        }
        self.provider.clone_from(&info);
        let Some(info) = info else { return };
        (self.refused_until, self.asked) = (None, false);
        let before = self.described.replace(Arc::clone(&info));
        if before.as_ref() == Some(&info) {
            let waiting = self.troubles.retry_now();
            return self.retry(&waiting, now);
        }
        let is_served = self.is_served();
        self.status.serves(is_served);
        self.troubles.end_pauses();
        self.lists.restart(now);
        let what = |info: &ProviderInfo| (info.name.clone(), info.version.clone(), info.cloud_identity.clone());
        if before.is_none_or(|before| what(&before) != what(&info)) {
            self.table = Table::default();
        }
        let names: BTreeSet<_> =
            self.nodes.list().iter().chain(self.claims.all().map(|it| &it.node)).map(|it| it.name.clone()).collect();
        names.iter().for_each(|name| self.node_changed(name, now));
    }

    /// Whether the provider can be called about routes.
    fn is_served(&self) -> bool {
        let serves = |info: &Arc<ProviderInfo>| info.capabilities.contains(&Capability::Routes);
        self.provider.as_ref().is_some_and(serves)
    }

    fn count(&self) {
        let wanted = self.claims.all().filter(|claimant| claimant.wants_routes()).map(|claimant| claimant.cidrs.len()).sum();
        let (ours, others) = self.table.count();
        let stale = self.stale_routes(&|_| false).count();
        self.status.metrics.count(Counts { wanted, ours, others, stale });
    }

    fn budget(&self) -> Budget {
        Budget { window: self.config.deletion_window, fraction: self.config.deletion_fraction }
    }
}
