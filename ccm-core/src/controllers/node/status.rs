//! Tells people what became of a node: events, each once, one log line for every node that was initialised, metrics.
use std::time::Instant;

use jiff::Timestamp;

use super::act::Acted;
use super::decide::{Discarded, NodeWarning, Plan};
use crate::cluster::events::{Event, EventType, Events};
use crate::cluster::patch::WriteError;
use crate::model::node::Node;
use crate::names::{events, labels};
use crate::provider::{Outcome, ProviderError};
use crate::telemetry::cloud_health::CloudHealth;
use crate::telemetry::event_dedup::EventDedup;
use crate::telemetry::log_budget::{Line, LogBudget};
use crate::telemetry::metrics::NodeMetrics;

/// Tells, and remembers what it told, so that a warning is made once for each node and not at every look-up.
pub struct Status {
    events: Events,
    metrics: NodeMetrics,
    cloud: CloudHealth,
    sent: EventDedup<NodeWarning>,
    lines: LogBudget,
}

impl Status {
    /// Nothing has been told yet.
    pub fn new(events: Events, metrics: NodeMetrics, cloud: CloudHealth) -> Self {
        Self { events, metrics, cloud, sent: EventDedup::default(), lines: LogBudget::default() }
    }

    /// What followed from an answer.
    pub fn acted(&self, acted: &Acted, now: Timestamp) {
        if acted.plan.initializes {
            self.initialized(&acted.node, &acted.plan.discarded, now);
        } else if acted.plan.writes() {
            tracing::info!(node = acted.node.name, changes = changes(&acted.plan), "a node was brought up to date");
        }
        for warning in &acted.plan.warnings {
            self.tell(&acted.node, warning);
        }
    }

    /// A look-up succeeded.
    pub fn looked_up(&self, node: &Node) {
        self.cloud.looked_up(&node.name, None);
    }

    /// A look-up failed. Readiness says so of any node. Only what a person must mend becomes an event, and only on a node that cannot be used without it.
    /// A provider whose answers make no sense (INTERNAL) is repeatedly asked, and must be mended all the same.
    pub fn lookup_failed(&self, node: &Node, error: &ProviderError) {
        tracing::debug!(node = node.name, reason = error.reason, error = error.message, "a look-up failed");
        self.cloud.looked_up(&node.name, Some(error));
        let needs_a_person = matches!(error.outcome, Outcome::Terminal | Outcome::Unsupported) || error.reason == "INTERNAL";
        if needs_a_person && node.is_uninitialized() {
            self.tell(node, &NodeWarning::new(events::CLOUD_LOOKUP_FAILED, error.to_string()));
        }
    }

    /// The API server refused a write for good.
    pub fn write_refused(&self, node: &Node, error: &WriteError) {
        let message = format!("The API server refuses what is to be written to the node, which is tried again slowly: {error}");
        self.tell(node, &NodeWarning::new(events::NODE_WRITE_REFUSED, message));
    }

    /// The node is gone, or no longer managed: no warning about it stays.
    pub fn forget(&self, name: &str) {
        self.sent.forget(name);
        self.cloud.forget(name);
    }

    fn initialized(&self, node: &Node, discarded: &[Discarded], now: Timestamp) {
        // What was wrong before is mended; should it go wrong again, that is news.
        self.forget(&node.name);
        let delay = now.duration_since(node.created_at).as_secs_f64().max(0.0);
        self.metrics.taint_removal_delay.observe(delay);
        self.metrics.initial_sync_delay.observe(delay);
        let (kind, zone, addresses) = (label(node, labels::INSTANCE_TYPE), label(node, labels::ZONE), addresses(node));
        let ms = now.duration_since(node.created_at).as_millis();
        let line = self.lines.ask(Instant::now());
        if let Line::WriteAfter(nodes) = line {
            tracing::info!(nodes, "more nodes were initialised without a line for each");
        }
        if line == Line::LeaveOut {
            tracing::debug!(node = node.name, "type" = kind, zone, addresses, ms, "a node was initialised");
        } else {
            tracing::info!(node = node.name, "type" = kind, zone, addresses, ms, "a node was initialised");
        }
        for Discarded { key, why } in discarded {
            tracing::warn!(node = node.name, label = key, why, "a label from the provider was not set");
        }
        let message = format!("The cloud's answer was applied: type {kind:?}, zone {zone:?}, addresses {addresses}");
        self.publish(node, EventType::Normal, NodeWarning::new(events::SYNCED, message));
    }

    fn tell(&self, node: &Node, warning: &NodeWarning) {
        if self.sent.is_new(&node.name, &node.uid, warning.clone()) {
            tracing::warn!(node = node.name, reason = warning.reason, "{}", warning.message);
            self.publish(node, NodeWarning::GRADE, warning.clone());
        }
    }

    fn publish(&self, node: &Node, event_type: EventType, warning: NodeWarning) {
        self.events.publish(Event { subject: node.into(), event_type, reason: warning.reason, message: warning.message });
    }
}

fn label<'node>(node: &'node Node, key: &str) -> &'node str {
    node.labels.get(key).map_or("", String::as_str)
}

fn addresses(node: &Node) -> String {
    node.addresses.iter().map(|address| address.value.as_str()).collect::<Vec<_>>().join(",")
}

fn changes(plan: &Plan) -> String {
    let addresses = plan.status.addresses.iter().map(|_| "addresses");
    addresses.chain(plan.patch.labels.keys().map(String::as_str)).collect::<Vec<_>>().join(",")
}
