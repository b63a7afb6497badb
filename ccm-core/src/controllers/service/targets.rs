//! Which nodes load balancers may send traffic to, and whether that has changed. The rules are upstream's. Pure: time is an argument.
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::model::node::Node;
use crate::model::provider_info::ProviderInfo;
use crate::model::target::{Target, TargetSet};
use crate::names::{labels, taints};

pub mod feed;
#[cfg(test)]
mod tests;

/// For how long there must have been no target before a load balancer loses its last one.
pub const EMPTY_TARGET_GRACE: Duration = Duration::from_secs(30);

/// Whether a node is a target now.
pub fn is_eligible(node: &Node) -> bool {
    node.deleted_at.is_none() && is_included(node) && !node.has_taint(taints::TO_BE_DELETED)
}

/// Whether no label excludes the node. A value that is no boolean excludes it, as upstream.
pub fn is_included(node: &Node) -> bool {
    let excluded = node.labels.get(labels::EXCLUDE_FROM_LOAD_BALANCERS).map(String::as_str);
    matches!(excluded, None | Some("0" | "f" | "F" | "false" | "FALSE" | "False"))
}

/// The targets at one time. Clones share them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets {
    /// The hash of all candidates, which include nodes that are about to go. Such a node is left out whenever something else is
    /// applied, and is no reason by itself to apply anything, so that its connections can drain.
    pub candidates: Arc<str>,
    /// The targets.
    pub set: TargetSet,
    /// How many times a node has entered the set. Comparing two of these tells without a look at the nodes whether one was added.
    pub additions: u64,
    /// Since when there is none.
    pub empty_since: Option<Instant>,
}

impl Targets {
    /// No targets, while none were asked for.
    pub fn none() -> Self {
        Self { candidates: Arc::from(""), set: TargetSet::new([]), additions: 0, empty_since: None }
    }

    /// Until when an empty set takes no load balancer its targets: a watch that shows no node may be wrong.
    pub fn empty_target_grace(&self, now: Instant) -> Option<Instant> {
        self.empty_since.map(|since| since + EMPTY_TARGET_GRACE).filter(|until| *until > now)
    }

    /// What the pause of an attempt with these targets is bound to.
    pub fn retry_key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.set.hash().hash(&mut hasher);
        hasher.finish()
    }

    /// Whether a load balancer that was given `had` is to be given these: where candidates came, went or changed, or where a node that
    /// was left out because it was about to go has stayed after all.
    pub fn replace(&self, had: &Self) -> bool {
        self.set != had.set && (self.candidates != had.candidates || self.additions != had.additions)
    }
}

/// Every included node that is not left unmanaged, reduced to what the provider reads.
#[derive(Debug, Default)]
pub struct Candidates {
    entries: BTreeMap<String, Entry>,
    empty_since: Option<Instant>,
}

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    target: Target,
    eligible: bool,
}

impl Candidates {
    /// The candidates among these nodes.
    pub fn new<'node>(nodes: impl IntoIterator<Item = &'node Node>, provider: &ProviderInfo) -> Self {
        let mut candidates = Self::default();
        for node in nodes {
            candidates.see(&node.name, Some(node), provider);
        }
        candidates
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

    /// The targets as they are now, where they were `before`.
    pub fn targets(&mut self, before: &Targets, now: Instant) -> Targets {
        let set = TargetSet::new(self.entries.values().filter(|entry| entry.eligible).map(|entry| entry.target.clone()));
        let candidates = if self.entries.values().all(|entry| entry.eligible) {
            Arc::clone(set.hash())
        } else {
            Arc::clone(TargetSet::new(self.entries.values().map(|entry| entry.target.clone())).hash())
        };
        self.empty_since = set.is_empty().then(|| self.empty_since.unwrap_or(now));
        let additions = before.additions + u64::from(!before.set.contains(&set));
        Targets { candidates, set, additions, empty_since: self.empty_since }
    }
}
