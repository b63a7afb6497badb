//! The targets, kept up to date while a Service wants a load balancer. While none does, no node is looked at.
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Candidates, Targets};
use crate::cluster::nodes::Nodes;
use crate::model::provider_info::ProviderInfo;

/// Nodes that change together are one change if no more than this lies between them,
const QUIET: Duration = Duration::from_millis(100);
/// and if they keep changing, after this.
const RESTLESS: Duration = Duration::from_secs(1);

/// The targets.
pub struct TargetFeed {
    nodes: Nodes,
    provider: Option<Arc<ProviderInfo>>,
    candidates: Option<Candidates>,
    /// Whether a node has changed since `present` was made.
    outdated: bool,
    /// Those that a Service gets which is looked at now.
    present: Targets,
    /// Those that all Services were last looked at for.
    announced: Targets,
    /// When the first and the last of the nodes changed whose changes are yet to be given to all.
    changes: Option<(Instant, Instant)>,
}

impl TargetFeed {
    /// Nothing is wanted yet.
    pub fn new(nodes: Nodes) -> Self {
        let (present, announced) = (Targets::none(), Targets::none());
        Self { nodes, provider: None, candidates: None, outdated: false, present, announced, changes: None }
    }

    /// Another provider reads nodes from now on, or none.
    pub fn provider_changed(&mut self, provider: Option<Arc<ProviderInfo>>) {
        self.provider = provider;
        self.discard();
    }

    /// No Service wants a load balancer.
    pub fn unwanted(&mut self) {
        self.discard();
        self.present = Targets { additions: self.present.additions + 1, ..Targets::none() };
    }

    fn discard(&mut self) {
        (self.candidates, self.outdated, self.changes) = (None, false, None);
    }

    /// The targets that a Service gets now. The first call reads every node.
    pub fn present(&mut self, now: Instant) -> &Targets {
        if let (None, Some(provider)) = (&self.candidates, &self.provider) {
            self.candidates = Some(Candidates::new(self.nodes.list().iter().map(AsRef::as_ref), provider));
            self.outdated = true;
            self.refresh(now);
            self.announced = self.present.clone();
        }
        &self.present
    }

    /// A node has changed.
    pub fn node_changed(&mut self, name: &str, now: Instant) {
        let (Some(candidates), Some(provider)) = (&mut self.candidates, &self.provider) else { return };
        if candidates.see(name, self.nodes.get(name).as_deref(), provider) {
            self.outdated = true;
            self.changes.get_or_insert((now, now)).1 = now;
        }
    }

    /// Takes in what nodes have changed, without the wait by which changes are gathered; false if that was nothing.
    pub fn refresh(&mut self, now: Instant) -> bool {
        let Some(candidates) = self.candidates.as_mut().filter(|_| self.outdated) else { return false };
        self.present = candidates.targets(&self.present, now);
        self.outdated = false;
        true
    }

    /// When changes that were gathered are to be given to all.
    pub fn due_at(&self) -> Option<Instant> {
        self.changes.map(|(first, last)| (last + QUIET).min(first + RESTLESS))
    }

    /// Whether all Services are to be looked at, since changes were gathered and targets differ.
    pub fn announce(&mut self, now: Instant) -> bool {
        if self.due_at().is_none_or(|at| at > now) {
            return false;
        }
        self.changes = None;
        self.refresh(now);
        let differ = self.announced.candidates != self.present.candidates || self.announced.set != self.present.set;
        self.announced = self.present.clone();
        differ
    }
}
