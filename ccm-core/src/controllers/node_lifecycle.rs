//! Taints nodes whose machine is stopped, and deletes nodes whose machine is gone (Go's `cloud-node-lifecycle`).
//!
//! The driver: at every tick it looks at all nodes together, observes, decides over the whole set, and acts. It decides nothing
//! itself. IT CANNOT DELETE YOUR CLUSTER: each rule is in `decide`, and `act` asks again before every DELETE.
mod act;
mod decide;
mod marks;
mod observations;
mod observe;
mod status;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::act::ActError;
use self::decide::breaker::Budget;
use self::decide::{Memory, Observed, Plan};
use self::marks::Marks;
use self::observations::Observations;
use self::status::Status;
use super::NodeContext;
use crate::cluster::state::{State, StateError, TermStore};
use crate::model::node::Node;
use crate::model::provider_info::ProviderInfo;
use crate::names;

/// How soon a tick that lost a race for the state is repeated.
const SOON: Duration = Duration::from_secs(1);

/// A tick of which no part ends for so long stands still. Every request that it waits for has a deadline, and thousands may
/// miss theirs while the API server or the provider is away.
const STANDSTILL: Duration = Duration::from_mins(15);

/// The settings, with the flags that they come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LifecycleConfig {
    /// How often the nodes are looked at: `--node-monitor-period`.
    pub monitor_period: Duration,
    /// How long after the first answer that a machine is gone the second one counts: `--node-deletion-confirmation`.
    pub confirmation: Duration,
    /// The time in which the budget may be used once: `--node-deletion-window`.
    pub window: Duration,
    /// The part of a zone's nodes, 0 to 1, that may be deleted for mere absence: `--node-deletion-zone-fraction`.
    pub zone_fraction: f64,
    /// The number of a cluster's nodes that may be deleted for mere absence: `--node-deletion-limit`.
    pub limit: usize,
    /// How old a node with the uninitialized taint is before it can be deleted: `--uninitialized-node-grace`.
    pub uninitialized_grace: Duration,
}

impl Default for LifecycleConfig {
    fn default() -> Self {
        Self {
            monitor_period: Duration::from_secs(5),
            confirmation: Duration::from_secs(30),
            window: Duration::from_mins(10),
            zone_fraction: 0.2,
            limit: 10,
            uninitialized_grace: Duration::from_mins(15),
        }
    }
}

impl LifecycleConfig {
    fn budget(&self) -> Budget {
        Budget { window: self.window, zone_fraction: self.zone_fraction, limit: self.limit }
    }
}

/// Runs for one term of leadership, until `shutdown`. What it has begun to write it finishes.
pub async fn run(ctx: NodeContext, store: TermStore, config: LifecycleConfig, shutdown: CancellationToken) {
    if shutdown.run_until_cancelled(ctx.nodes.synced()).await.is_none() {
        return;
    }
    let mut lifecycle = Lifecycle::new(ctx, store, config);
    let mut changes = lifecycle.ctx.nodes.subscribe();
    loop {
        let begun = Instant::now();
        let turn = lifecycle.ctx.health.liveness().turn(names::controllers::NODE_LIFECYCLE, STANDSTILL);
        lifecycle.tick(&shutdown).await;
        drop(turn);
        let next = lifecycle.next_tick(begun);
        if shutdown.run_until_cancelled(lifecycle.watch_marks(&mut changes, next)).await.is_none() {
            return;
        }
    }
}

struct Lifecycle {
    ctx: NodeContext,
    store: TermStore,
    config: LifecycleConfig,
    observations: Observations,
    marks: Marks,
    memory: Memory,
    /// As it is in the cluster; `None` if that has to be found out.
    state: Option<State>,
    /// The last tick lost a race and is to be repeated soon.
    repeat: bool,
    status: Status,
}

impl Lifecycle {
    fn new(ctx: NodeContext, store: TermStore, config: LifecycleConfig) -> Self {
        let status = Status::new(&ctx, store.name());
        let (observations, marks, memory) = Default::default();
        Self { ctx, store, config, observations, marks, memory, state: None, repeat: false, status }
    }

    /// Until then, takes in each change of a node as it comes: a node may be cordoned and go within one period.
    async fn watch_marks(&mut self, changes: &mut mpsc::UnboundedReceiver<String>, until: Instant) {
        let over = tokio::time::sleep_until(until);
        tokio::pin!(over);
        loop {
            let name = tokio::select! {
                biased;
                Some(name) = changes.recv() => name,
                () = &mut over => return,
            };
            if let Some(node) = self.ctx.nodes.get(&name) {
                self.marks.see(&node, Timestamp::now());
            }
        }
    }

    /// A period after the last tick, or as soon as a not-found observation can be confirmed.
    fn next_tick(&self, begun: Instant) -> Instant {
        let now = Instant::now();
        let period = if self.repeat { now + SOON } else { begun + self.config.monitor_period };
        let due = self.observations.due(now.into_std(), self.config.confirmation).map(Instant::from_std);
        due.map_or(period, |due| due.min(period)).max(now)
    }

    async fn tick(&mut self, shutdown: &CancellationToken) {
        self.repeat = false;
        let Ok(permit) = self.ctx.writer.gate().check() else {
            // A provider that was away, or is another, has to say everything twice again.
            self.observations.clear();
            self.memory = Memory::default();
            return;
        };
        let nodes = self.ctx.nodes.list();
        self.marks.see_all(&nodes, Timestamp::now());
        if let Err(error) = self.refresh_state(&nodes, &permit.provider).await {
            self.status.state_unreadable(&error);
            self.lose_state(&error);
        }
        self.goes_on();
        self.observations.begin_tick(&nodes, &permit.provider);
        if let Some(plan) = self.observe(&nodes, &permit.provider, shutdown).await {
            self.goes_on();
            self.act(plan).await;
            self.status.ticked();
        }
    }

    fn goes_on(&self) {
        act::goes_on(&self.ctx);
    }

    /// Looks up and decides; a second time with the Ready nodes looked up as well where a deletion depends on them. `None` at shutdown.
    async fn observe(&mut self, nodes: &[Arc<Node>], provider: &ProviderInfo, shutdown: &CancellationToken) -> Option<Plan> {
        let first = decide::to_look_up(&self.observed(nodes, provider, false));
        shutdown.run_until_cancelled(self.look_up(first, provider)).await?;
        let plan = decide::decide(&self.observed(nodes, provider, false));
        if !plan.wants_cross_check {
            return Some(plan);
        }
        let second = decide::to_cross_check(&self.observed(nodes, provider, false));
        shutdown.run_until_cancelled(self.look_up(second, provider)).await?;
        Some(decide::decide(&self.observed(nodes, provider, true)))
    }

    async fn look_up(&mut self, nodes: Vec<Arc<Node>>, provider: &ProviderInfo) {
        let answers = observe::look_up(&*self.ctx.instances, nodes, provider).await;
        self.status.look_ups(&answers);
        let now = Instant::now().into_std();
        for (node, answer) in &answers {
            match answer {
                Ok(answer) => self.observations.record(node, answer, now, self.config.confirmation),
                Err(_) => self.observations.record_failure(node),
            }
        }
    }

    fn observed<'a>(&'a self, nodes: &'a [Arc<Node>], provider: &'a ProviderInfo, cross_checked: bool) -> Observed<'a> {
        Observed {
            nodes,
            provider,
            observations: &self.observations,
            marks: &self.marks,
            state: self.state.as_ref(),
            cross_checked,
            memory: &self.memory,
            now: Instant::now().into_std(),
            time: Timestamp::now(),
            config: &self.config,
        }
    }

    /// Reads the state where it is not known, or where an operator may have released a breaker or accepted another cloud, and
    /// begins what has to be begun.
    async fn refresh_state(&mut self, nodes: &[Arc<Node>], provider: &ProviderInfo) -> Result<(), StateError> {
        if self.state.as_ref().is_some_and(|state| state.trips.is_empty() && state.accepts(&provider.cloud_identity)) {
            return Ok(());
        }
        let mut state = self.store.load().await?;
        let now = Timestamp::now();
        if state.deletions.is_none() {
            let annotated = nodes.iter().any(|node| node.annotations.contains_key(names::annotations::APPLIED_LABELS));
            let first_install = !annotated && !self.store.worked_before();
            state.begin_history(first_install, now, self.config.window);
            self.save(&mut state).await?;
        }
        if let Some(trip) = state.take_release(now) {
            self.save(&mut state).await?;
            self.status.released(&state, &trip);
        }
        self.status.breakers(&state);
        self.state = Some(state);
        Ok(())
    }

    async fn save(&self, state: &mut State) -> Result<(), StateError> {
        state.prune(Timestamp::now(), self.config.window);
        self.store.save(state).await
    }

    fn lose_state(&mut self, error: &StateError) {
        self.state = None;
        self.repeat = matches!(error, StateError::Conflict);
    }

    async fn act(&mut self, mut plan: Plan) {
        act::taint(&self.ctx, std::mem::take(&mut plan.taint), std::mem::take(&mut plan.untaint)).await;
        let blocks = std::mem::take(&mut plan.blocks);
        let Some(mut state) = self.state.take() else { return };
        let result = self.change(&mut state, plan).await;
        self.status.outcome(&state, &blocks, result.as_ref().err());
        match result {
            Ok(()) => self.state = Some(state),
            Err(ActError::State(error)) => self.lose_state(&error),
            Err(ActError::Identity { .. }) => self.observations.clear(),
            Err(ActError::Closed(_) | ActError::Confirm(_)) => {}
        }
    }

    /// Breakers first: while one that trips is not written down, nothing is deleted.
    async fn change(&mut self, state: &mut State, plan: Plan) -> Result<(), ActError> {
        if !plan.trips.is_empty() || !plan.resets.is_empty() {
            self.ctx.writer.gate().check()?;
            let (closed, tripped) = state.trips.drain(..).partition(|trip| plan.resets.contains(&trip.id));
            state.trips = tripped;
            state.trips.extend(plan.trips.iter().cloned());
            self.save(state).await?;
            self.status.changed(state, &plan.trips, &closed);
        }
        self.memory = plan.memory;
        if plan.deletions.is_empty() {
            return Ok(());
        }
        act::delete(&self.ctx, &self.store, state, plan.deletions, self.config.window).await
    }
}

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;
