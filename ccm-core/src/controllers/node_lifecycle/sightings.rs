//! What the cloud has said of each node so far, within one term of leadership. Pure: the time is an argument.
//!
//! Whatever is doubtful begins a sighting anew: another UID, providerID or cloud identity, a node that became ready, an answer
//! that finds the machine. An error says nothing: it neither confirms a sighting nor ends it.
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::model::instance::{Answer, Instance, InstanceState, Lookup};
use crate::model::node::{Node, Ready};
use crate::names;

/// What the latest answer in this tick was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// The machine is known and is not stopped.
    Alive,
    /// The machine is stopped.
    Stopped,
    /// The machine is deleted; its record is still known.
    Deleted,
    /// The machine is not known.
    Absent,
    /// Somebody else's, several, or a machine of another providerID.
    Unclear,
    /// It could not be found out.
    Failed,
}

/// A node that is not ready and whose machine is gone, by one answer or more without one to the contrary.
#[derive(Clone, Debug)]
pub(super) struct Sighting {
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
    /// It was cordoned, or cluster-autoscaler's, when the first answer came.
    pub marked: bool,
}

impl Sighting {
    fn begin(node: &Node, provider_id: &str, answer: &Answer, now: Instant) -> Self {
        Self {
            uid: node.uid.clone(),
            provider_id: provider_id.to_owned(),
            cloud_identity: Arc::clone(&answer.cloud_identity),
            first: now,
            first_observed_at: answer.observed_at,
            confirmed: false,
            known_deleted: false,
            marked: is_marked(node),
        }
    }

    fn is_of(&self, node: &Node) -> bool {
        self.uid == node.uid && node.provider_id.as_ref() == Some(&self.provider_id)
    }

    fn add(&mut self, answer: &Answer, now: Instant, confirmation: Duration) {
        let late_enough = now.saturating_duration_since(self.first) >= confirmation;
        self.confirmed |= late_enough && answer.observed_at > self.first_observed_at;
    }
}

/// Whether somebody has said that this node will go.
pub(super) fn is_marked(node: &Node) -> bool {
    node.unschedulable || node.has_taint(names::taints::TO_BE_DELETED)
}

/// All sightings.
#[derive(Clone, Debug, Default)]
pub(super) struct Sightings {
    gone: HashMap<String, Sighting>,
    /// Ready nodes of which the latest answer is that their machine is not known: UIDs by name.
    ready_absent: HashMap<String, String>,
    latest: HashMap<String, Said>,
}

impl Sightings {
    /// Begins a tick: forgets this tick's answers, and the sightings of nodes that are ready, changed, gone or going.
    pub fn begin_tick(&mut self, nodes: &[Arc<Node>]) {
        self.latest.clear();
        let by_name: HashMap<_, _> = nodes.iter().map(|node| (node.name.as_str(), node)).collect();
        self.gone.retain(|name, sighting| {
            let node = by_name.get(name.as_str());
            node.is_some_and(|node| sighting.is_of(node) && node.ready != Ready::True && node.deleted_at.is_none())
        });
        self.ready_absent.retain(|name, uid| {
            let node = by_name.get(name.as_str());
            node.is_some_and(|node| node.uid == *uid && node.ready == Ready::True)
        });
    }

    /// Takes an answer in.
    pub fn record(&mut self, node: &Node, answer: &Answer, now: Instant, confirmation: Duration) {
        let said = classify(node, &answer.lookup);
        self.latest.insert(node.name.clone(), said);
        if node.ready == Ready::True {
            self.record_ready(node, said);
            return;
        }
        match (said, &node.provider_id) {
            (Said::Absent | Said::Deleted, Some(id)) => self.record_gone(node, id, said, answer, now, confirmation),
            _ => drop(self.gone.remove(&node.name)),
        }
    }

    fn record_ready(&mut self, node: &Node, said: Said) {
        self.gone.remove(&node.name);
        match said {
            Said::Absent => drop(self.ready_absent.insert(node.name.clone(), node.uid.clone())),
            _ => drop(self.ready_absent.remove(&node.name)),
        }
    }

    fn record_gone(&mut self, node: &Node, id: &str, said: Said, answer: &Answer, now: Instant, confirmation: Duration) {
        let begin = || Sighting::begin(node, id, answer, now);
        let sighting = self.gone.entry(node.name.clone()).or_insert_with(begin);
        if !sighting.is_of(node) || sighting.cloud_identity != answer.cloud_identity {
            *sighting = begin();
        }
        sighting.add(answer, now, confirmation);
        sighting.known_deleted |= said == Said::Deleted;
    }

    /// Takes in that a node could not be looked up.
    pub fn record_failure(&mut self, node: &Node) {
        self.latest.insert(node.name.clone(), Said::Failed);
    }

    /// Forgets everything: the provider went away or became another.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// What was said of a node in this tick.
    pub fn latest(&self, name: &str) -> Option<Said> {
        self.latest.get(name).copied()
    }

    /// The sighting of a node.
    pub fn gone(&self, name: &str) -> Option<&Sighting> {
        self.gone.get(name)
    }

    /// Whether a ready node's machine was not known when last asked for.
    pub fn is_ready_absent(&self, name: &str) -> bool {
        self.ready_absent.contains_key(name)
    }

    /// Whether this tick itself brought the answer that the machine is gone.
    pub fn is_fresh(&self, name: &str) -> bool {
        matches!(self.latest(name), Some(Said::Absent | Said::Deleted))
    }

    /// When the earliest sighting that still needs its second answer may get it.
    pub fn due(&self, now: Instant, confirmation: Duration) -> Option<Instant> {
        self.gone
            .values()
            .filter(|sighting| !sighting.confirmed)
            .map(|sighting| sighting.first + confirmation)
            .filter(|due| *due > now)
            .min()
    }
}

fn classify(node: &Node, lookup: &Lookup) -> Said {
    match lookup {
        Lookup::NotFound => Said::Absent,
        Lookup::NotMine(_) | Lookup::Ambiguous(_) => Said::Unclear,
        Lookup::Found(instance) if is_another(node, instance) => Said::Unclear,
        Lookup::Found(instance) => match instance.state {
            InstanceState::Deleted => Said::Deleted,
            InstanceState::Stopped => Said::Stopped,
            InstanceState::Pending | InstanceState::Running => Said::Alive,
        },
    }
}

/// Whether the answer is about a machine of another providerID than the node's.
fn is_another(node: &Node, instance: &Instance) -> bool {
    matches!((&node.provider_id, &instance.provider_id), (Some(of_node), Some(of_instance)) if of_node != of_instance)
}

#[cfg(test)]
mod tests;
