//! Reports what becomes of routes: events, each failure once, log lines, metrics, readiness.
use std::time::{Duration, Instant};

use ipnet::IpNet;

use super::act::ExamineError;
use super::decide::deletion::Block;
use crate::cluster::events::{Event, EventType, Events, Subject};
use crate::model::node::Node;
use crate::names::{controllers, events};
use crate::provider::ProviderError;
use crate::telemetry::cloud_health::CloudHealth;
use crate::telemetry::event_dedup::EventDedup;
use crate::telemetry::health::{Check, Health};
use crate::telemetry::metrics::routes::{RouteMetrics, SyncOutcome, Trigger};

/// The check about the deletion of stale routes.
const DELETION: &str = "route-deletion";
/// The check about the list of the table.
const TABLE: &str = "route-table";
/// The RPC service, as what calls about the table are about.
const ROUTES: &str = "Routes";

/// Sends events, and remembers which were sent.
pub struct Status {
    events: Events,
    health: Health,
    cloud: CloudHealth,
    pub metrics: RouteMetrics,
    /// By the failure's reason.
    sent: EventDedup<String>,
    /// What the cluster's events are about.
    subject: Option<Subject>,
    tripped: bool,
    /// Whether the provider serves routes, as far as is known.
    serves: bool,
    /// The comparison that has not ended yet.
    sync: Option<Sync>,
}

struct Sync {
    trigger: Trigger,
    changed: bool,
    failed: bool,
}

impl Status {
    /// Nothing was sent yet.
    pub fn new(events: Events, health: Health, cloud: CloudHealth, metrics: RouteMetrics) -> Self {
        Self {
            events,
            health,
            cloud,
            metrics,
            sent: EventDedup::default(),
            subject: None,
            tripped: false,
            serves: true,
            sync: None,
        }
    }

    /// Whether the provider serves routes.
    pub fn serves(&mut self, serves: bool) {
        if serves == std::mem::replace(&mut self.serves, serves) {
            return;
        }
        if serves {
            return self.health.clear(controllers::ROUTE);
        }
        let message = "the provider does not serve routes: those that exist stay as they are; run a provider that has the \
                       capability, or set --configure-cloud-routes=false";
        tracing::warn!(message);
        self.health.set(controllers::ROUTE, Check::Warning(message.to_owned()));
    }

    /// A comparison of nodes and routes begins, unless one runs.
    pub fn began(&mut self, trigger: Trigger) {
        self.sync.get_or_insert(Sync { trigger, changed: false, failed: false });
    }

    /// A route was made or removed.
    pub fn changed(&mut self) {
        self.sync.iter_mut().for_each(|sync| sync.changed = true);
    }

    fn call_failed(&mut self) {
        self.sync.iter_mut().for_each(|sync| sync.failed = true);
    }

    /// All work has ended. Says whether that ended a comparison.
    pub fn ended(&mut self) -> bool {
        let Some(Sync { trigger, changed, failed }) = self.sync.take() else { return false };
        let outcome = match (failed, changed) {
            (true, _) => SyncOutcome::Error,
            (false, true) => SyncOutcome::Changed,
            (false, false) => SyncOutcome::Noop,
        };
        self.metrics.synced(trigger, outcome);
        true
    }

    /// The table was listed, or not.
    pub fn listed(&mut self, failure: Option<&ProviderError>) {
        self.cloud.called(ROUTES, failure);
        let Some(error) = failure else { return self.health.clear(TABLE) };
        self.call_failed();
        if error.is_absence() || error.is_rate_limit() {
            return;
        }
        let message = format!("the routes cannot be listed, and none is removed: {error}");
        tracing::warn!(reason = error.reason, "{message}");
        self.health.set(TABLE, Check::Warning(message));
    }

    /// A route was not made, for a reason that the node's events say once.
    pub fn failed(&mut self, node: &Node, destination: &IpNet, reason: &str, message: &str) {
        self.call_failed();
        tracing::debug!(node = node.name, %destination, reason, error = message, "a route could not be created");
        let text = format!("Could not create the route to {destination} for node {}: {message} ({reason})", node.name);
        self.once(node, reason, text);
    }

    /// An older node has the Pod CIDR.
    pub fn taken(&mut self, node: &Node, destination: &IpNet, by: &str) {
        let text = format!(
            "Could not create the route to {destination} for node {}: node {by} has the same Pod CIDR and is older",
            node.name
        );
        self.once(node, "taken", text);
    }

    fn once(&self, node: &Node, reason: &str, message: String) {
        if self.sent.is_new(&node.name, &node.uid, reason.to_owned()) {
            tracing::warn!(node = node.name, reason, "{message}");
            self.publish(node.into(), events::FAILED_TO_CREATE_ROUTE, EventType::Warning, message);
        }
    }

    /// A call failed that changes no route's standing.
    pub fn failed_call(&mut self, what: &str, destination: &IpNet, error: &str) {
        self.call_failed();
        tracing::warn!(%destination, error, "{what} failed; it is tried again after a pause");
    }

    /// The routes of a node are as they should be, or the node is gone: the next failure is new.
    pub fn forget(&self, node: &str) {
        self.sent.forget(node);
    }

    /// A route was made.
    pub fn made(&mut self, node: &str, destination: &IpNet) {
        self.changed();
        tracing::debug!(node, %destination, "route created");
    }

    /// A stale route was removed.
    pub fn removed(&mut self, destination: &IpNet, name: &str) {
        self.changed();
        self.metrics.deletions.inc();
        tracing::info!(%destination, name, "deleted a route of this cluster that led to no node's Pods");
    }

    /// Stale routes could not be judged.
    pub fn not_examined(&self, error: &ExamineError) {
        let message = format!("no route is deleted: {error}");
        tracing::warn!("{message}");
        self.health.set(DELETION, Check::Warning(message));
    }

    /// Stale routes were judged, or there is none.
    pub fn judged(&mut self, block: Option<&Block>, window: Duration, now: Instant, subject: Option<Subject>) {
        self.subject = subject.or_else(|| self.subject.take());
        match block {
            Some(Block::Tripped { candidates, used, most, ours }) => {
                let message = tripped(*candidates, *used, *most, *ours, window);
                if !std::mem::replace(&mut self.tripped, true) {
                    tracing::error!(candidates, most, "{message}");
                    self.note(events::ROUTE_DELETION_BREAKER_TRIPPED, EventType::Warning, message.clone());
                }
                self.health.set(DELETION, Check::Warning(message));
            }
            Some(Block::NewTerm { candidates, until }) => {
                let wait = humantime::format_duration(Duration::from_secs(until.saturating_duration_since(now).as_secs()));
                tracing::info!(candidates, "stale routes stay for {wait}: an earlier leadership term may have used the budget");
                self.reset();
            }
            None => self.reset(),
        }
        self.metrics.breaker_tripped.set(self.tripped.into());
    }

    fn reset(&mut self) {
        self.health.clear(DELETION);
        if std::mem::take(&mut self.tripped) {
            let message = "The breaker for stale routes reset by itself: they fit the budget, or are gone".to_owned();
            tracing::info!("{message}");
            self.note(events::ROUTE_DELETION_BREAKER_RESET, EventType::Normal, message);
        }
    }

    fn note(&self, reason: &str, event_type: EventType, message: String) {
        if let Some(subject) = self.subject.clone() {
            self.publish(subject, reason, event_type, message);
        }
    }

    fn publish(&self, subject: Subject, reason: &str, event_type: EventType, message: String) {
        self.events.publish(Event { subject, event_type, reason: reason.to_owned(), message });
    }
}

fn tripped(candidates: usize, used: usize, most: usize, ours: usize, window: Duration) -> String {
    let window = humantime::format_duration(window);
    format!(
        "The breaker for stale routes is tripped: {candidates} of this cluster's {ours} routes lead to no node's Pods and {used} were deleted \
         before, where {most} may be within {window}; none of them is deleted. It resets by itself when they fit the budget. If they are \
         really stale, delete them in the cloud, or start ccm-core with a greater --route-deletion-fraction"
    )
}
