//! Which nodes load balancers may send traffic to, and whether that has changed. The rules are Go's. Pure: time is an argument.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::model::node::Node;
use crate::model::provider_info::ProviderInfo;
use crate::model::target::{Target, TargetSet};
use crate::names::{labels, taints};

#[cfg(test)]
mod tests;

/// For how long there must have been no target before a load balancer loses its last one.
pub const EMPTY_FOR: Duration = Duration::from_secs(30);

/// Whether a node is a target now.
pub fn is_eligible(node: &Node) -> bool {
    node.deleted_at.is_none() && is_included(node) && !node.has_taint(taints::TO_BE_DELETED)
}

/// Whether nobody excluded the node by its label. A value that is no boolean excludes it, as in Go.
pub fn is_included(node: &Node) -> bool {
    let excluded = node.labels.get(labels::EXCLUDE_FROM_LOAD_BALANCERS).map(String::as_str);
    matches!(excluded, None | Some("0" | "f" | "F" | "false" | "FALSE" | "False"))
}

/// The targets at one time. Clones share them.
#[derive(Clone, Debug)]
pub struct Targets {
    /// What has to change before load balancers are given other targets. It covers nodes that are about to go: those are
    /// left out whenever something else is applied, and are no reason by themselves, so that their connections can drain.
    pub trigger: Arc<str>,
    /// The targets.
    pub set: TargetSet,
    /// Since when there is none.
    pub empty_since: Option<Instant>,
}

impl Targets {
    /// How long an empty set has yet to stay empty before it is believed.
    pub fn doubt(&self, now: Instant) -> Option<Duration> {
        let since = self.empty_since?;
        EMPTY_FOR.checked_sub(now.saturating_duration_since(since)).filter(|left| !left.is_zero())
    }
}

/// Every included node that is not left unmanaged, reduced to what the provider reads.
#[derive(Debug, Default)]
pub struct Roster {
    entries: BTreeMap<String, Entry>,
    empty_since: Option<Instant>,
}

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    target: Target,
    eligible: bool,
}

impl Roster {
    /// A roster of these nodes.
    pub fn new<'node>(nodes: impl IntoIterator<Item = &'node Node>, provider: &ProviderInfo) -> Self {
        let mut roster = Self::default();
        for node in nodes {
            roster.see(&node.name, Some(node), provider);
        }
        roster
    }

    /// Takes a node as it is now, or that it is gone; says whether that changes anything.
    pub fn see(&mut self, name: &str, node: Option<&Node>, provider: &ProviderInfo) -> bool {
        let node = node.filter(|node| is_included(node) && provider.ownership(node).is_target());
        let Some(node) = node else { return self.entries.remove(name).is_some() };
        let entry = Entry { target: Target::of(node, provider), eligible: is_eligible(node) };
        if self.entries.get(name) == Some(&entry) {
            return false;
        }
        self.entries.insert(name.to_owned(), entry);
        true
    }

    /// The targets as they are now.
    pub fn targets(&mut self, now: Instant) -> Targets {
        let set = TargetSet::new(self.entries.values().filter(|entry| entry.eligible).map(|entry| entry.target.clone()));
        let trigger = if self.entries.values().all(|entry| entry.eligible) {
            Arc::clone(set.hash())
        } else {
            Arc::clone(TargetSet::new(self.entries.values().map(|entry| entry.target.clone())).hash())
        };
        self.empty_since = set.is_empty().then(|| self.empty_since.unwrap_or(now));
        Targets { trigger, set, empty_since: self.empty_since }
    }
}
