//! What the cloud has said of each node so far, within one leadership term. Pure: the time is an argument.
//!
//! Anything uncertain begins a not-found observation anew: another UID, providerID or cloud identity, a node that became Ready, an
//! answer that finds the machine. An error says nothing: it neither confirms an observation nor ends it.
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::model::instance::{Answer, Instance, InstanceState, Lookup};
use crate::model::node::{Node, Ready};
use crate::model::provider_info::ProviderInfo;

/// What an answer means for the node that was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// The machine is known and is not stopped.
    Alive,
    /// The machine is stopped.
    Stopped,
    /// The machine is deleted; its record is still known.
    Deleted,
    /// The machine is not known.
    NotFound,
    /// The machine is another provider's, is one of several, or has another providerID.
    Unclear,
}

/// An answer of this tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Latest {
    finding: Finding,
    observed_at: Timestamp,
}

/// A node that is not Ready and whose machine is gone, by one answer or more without one to the contrary.
#[derive(Clone, Debug)]
pub(super) struct Gone {
    pub uid: String,
    pub provider_id: String,
    /// Of all the answers.
    pub cloud_identity: Arc<str>,
    /// When the first answer arrived, by the local monotonic clock.
    pub first: Instant,
    /// How old the first answer's data was, by the provider's clock.
    pub first_observed_at: Timestamp,
    /// A second answer came, late enough and from newer data.
    pub confirmed: bool,
    /// The cloud has said that the machine was deleted.
    pub known_deleted: bool,
}

impl Gone {
    fn begin(node: &Node, provider_id: &str, answer: &Answer, now: Instant) -> Self {
        Self {
            uid: node.uid.clone(),
            provider_id: provider_id.to_owned(),
            cloud_identity: Arc::clone(&answer.cloud_identity),
            first: now,
            first_observed_at: answer.observed_at,
            confirmed: false,
            known_deleted: false,
        }
    }

    /// Whether it is about this object and this machine.
    pub fn is_of(&self, node: &Node) -> bool {
        self.uid == node.uid && node.provider_id.as_ref() == Some(&self.provider_id)
    }

    fn add(&mut self, answer: &Answer, now: Instant, confirmation: Duration) {
        let late_enough = now.saturating_duration_since(self.first) >= confirmation;
        self.confirmed |= late_enough && answer.observed_at > self.first_observed_at;
    }
}

/// A Ready node whose machine the cloud denies.
#[derive(Clone, Debug)]
struct Denied {
    uid: String,
    since: Instant,
}

/// All observations.
#[derive(Clone, Debug, Default)]
pub(super) struct Observations {
    gone: HashMap<String, Gone>,
    denied: HashMap<String, Denied>,
    latest: HashMap<String, Latest>,
}

impl Observations {
    /// Begins a tick: forgets the answers of the last one, and what was said of nodes that are Ready again, changed, gone, going or
    /// no longer managed.
    pub fn begin_tick(&mut self, nodes: &[Arc<Node>], provider: &ProviderInfo) {
        self.latest.clear();
        if self.is_empty() {
            return;
        }
        let managed = nodes.iter().filter(|node| provider.ownership(node).is_managed());
        let by_name: HashMap<_, _> = managed.map(|node| (node.name.as_str(), node)).collect();
        self.gone.retain(|name, gone| {
            let node = by_name.get(name.as_str());
            node.is_some_and(|node| gone.is_of(node) && node.ready != Ready::True && node.deleted_at.is_none())
        });
        self.denied.retain(|name, denied| {
            let node = by_name.get(name.as_str());
            node.is_some_and(|node| node.uid == denied.uid && node.ready == Ready::True)
        });
    }

    /// Takes an answer in.
    pub fn record(&mut self, node: &Node, answer: &Answer, now: Instant, confirmation: Duration) {
        let finding = classify(node, &answer.lookup);
        self.latest.insert(node.name.clone(), Latest { finding, observed_at: answer.observed_at });
        if node.ready == Ready::True {
            self.record_ready(node, finding, now);
            return;
        }
        match (finding, &node.provider_id) {
            (Finding::NotFound | Finding::Deleted, Some(id)) => self.record_gone(node, id, finding, answer, now, confirmation),
            _ => drop(self.gone.remove(&node.name)),
        }
    }

    fn record_ready(&mut self, node: &Node, finding: Finding, now: Instant) {
        self.gone.remove(&node.name);
        if !matches!(finding, Finding::NotFound | Finding::Deleted) {
            self.denied.remove(&node.name);
            return;
        }
        let begin = || Denied { uid: node.uid.clone(), since: now };
        let denied = self.denied.entry(node.name.clone()).or_insert_with(begin);
        if denied.uid != node.uid {
            *denied = begin();
        }
    }

    fn record_gone(&mut self, node: &Node, id: &str, finding: Finding, answer: &Answer, now: Instant, confirmation: Duration) {
        let begin = || Gone::begin(node, id, answer, now);
        let gone = self.gone.entry(node.name.clone()).or_insert_with(begin);
        if !gone.is_of(node) || gone.cloud_identity != answer.cloud_identity {
            *gone = begin();
        }
        gone.add(answer, now, confirmation);
        gone.known_deleted |= finding == Finding::Deleted;
    }

    /// Takes in that a node could not be looked up: what an earlier answer of this tick said does not count.
    pub fn record_failure(&mut self, node: &Node) {
        self.latest.remove(&node.name);
    }

    /// Forgets everything: the provider went away or became another.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether no machine is denied, and no look-up of this tick was answered.
    pub fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.denied.is_empty() && self.latest.is_empty()
    }

    /// What was said of a node in this tick; `None` if nothing was, or it could not be found out.
    pub fn latest(&self, name: &str) -> Option<Finding> {
        self.latest.get(name).map(|latest| latest.finding)
    }

    /// What was said of a node in this tick, if the data is not older than a moment of the provider's clock.
    pub fn latest_since(&self, name: &str, not_before: Timestamp) -> Option<Finding> {
        self.latest.get(name).filter(|latest| latest.observed_at >= not_before).map(|latest| latest.finding)
    }

    /// That the machine of a node that is not Ready is gone.
    pub fn gone(&self, name: &str) -> Option<&Gone> {
        self.gone.get(name)
    }

    /// Since when the cloud denies the machine of a Ready node.
    pub fn denied_since(&self, name: &str) -> Option<Instant> {
        self.denied.get(name).map(|denied| denied.since)
    }

    /// Whether this tick itself brought the answer that the machine is gone.
    pub fn is_fresh(&self, name: &str) -> bool {
        matches!(self.latest(name), Some(Finding::NotFound | Finding::Deleted))
    }

    /// When the earliest observation that still needs its second answer may get it.
    pub fn due(&self, now: Instant, confirmation: Duration) -> Option<Instant> {
        self.gone.values().filter(|gone| !gone.confirmed).map(|gone| gone.first + confirmation).filter(|due| *due > now).min()
    }
}

fn classify(node: &Node, lookup: &Lookup) -> Finding {
    match lookup {
        Lookup::NotFound => Finding::NotFound,
        Lookup::NotMine(_) | Lookup::Ambiguous(_) => Finding::Unclear,
        Lookup::Found(instance) if is_another(node, instance) => Finding::Unclear,
        Lookup::Found(instance) => match instance.state {
            InstanceState::Deleted => Finding::Deleted,
            InstanceState::Stopped => Finding::Stopped,
            InstanceState::Pending | InstanceState::Running => Finding::Alive,
        },
    }
}

/// Whether the answer is about a machine of another providerID than the node's.
fn is_another(node: &Node, instance: &Instance) -> bool {
    matches!((&node.provider_id, &instance.provider_id), (Some(of_node), Some(of_instance)) if of_node != of_instance)
}

#[cfg(test)]
mod tests;
