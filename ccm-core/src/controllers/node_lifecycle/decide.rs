//! Which nodes are looked up, tainted, deleted or kept. Pure: neither client nor clock.
//!
//! Nothing is deleted on doubt. Every deletion named here is confirmed once more against the provider's identity and the live object
//! by `act`.
pub(super) mod breaker;
mod closing;
mod evidence;
pub(super) mod recheck;
mod rules;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};

use self::evidence::Missing;
use self::rules::Rules;
use super::LifecycleConfig;
use super::marks::Marks;
use super::observations::{Finding, Observations};
use crate::cluster::state::{Cause, Rule, Scope, State, Trip};
use crate::model::node::{Node, Ready, Taint};
use crate::model::provider_info::ProviderInfo;
use crate::names;

/// What a decision leaves for the next one.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// Since when the reason of a tripped breaker is gone, by the breaker's id.
    quiet_since: HashMap<String, Instant>,
    /// The latest cross-check, while something depends on it.
    evidence: Option<Checked>,
}

/// How a cross-check went.
#[derive(Clone, Debug)]
struct Checked {
    at: Instant,
    /// What it did not let go; empty if it let everything go.
    blocks: Vec<Block>,
}

/// What a decision is made from.
#[derive(Clone, Copy)]
pub(super) struct Observed<'a> {
    /// All nodes.
    pub nodes: &'a [Arc<Node>],
    /// The provider, which can be used.
    pub provider: &'a ProviderInfo,
    /// What the cloud said.
    pub observations: &'a Observations,
    /// Which nodes were marked for removal while they were Ready.
    pub marks: &'a Marks,
    /// The history and the breakers; `None` if they cannot be read, which keeps every node.
    pub state: Option<&'a State>,
    /// Whether the nodes of [`to_cross_check`] were looked up in this tick.
    pub cross_checked: bool,
    /// What the last decision left.
    pub memory: &'a Memory,
    /// The monotonic clock.
    pub now: Instant,
    /// The wall clock.
    pub time: Timestamp,
    /// The settings.
    pub config: &'a LifecycleConfig,
}

impl Observed<'_> {
    /// Whether the node may be looked up, tainted and untainted.
    fn manages(&self, node: &Node) -> bool {
        self.provider.ownership(node).is_managed()
    }

    /// Whether the node counts: it may be deleted, and what the provider says of it is evidence.
    fn owns(&self, node: &Node) -> bool {
        self.provider.ownership(node).is_deletable()
    }
}

/// What to do.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Nodes that get the shutdown taint.
    pub taint: Vec<Arc<Node>>,
    /// Nodes that lose it.
    pub untaint: Vec<Arc<Node>>,
    /// Nodes to delete.
    pub deletions: Vec<Doomed>,
    /// More nodes have to be looked up before any can be deleted: look up [`to_cross_check`] and decide again.
    pub wants_cross_check: bool,
    /// Breakers that trip now.
    pub trips: Vec<Trip>,
    /// Breakers that close by themselves, by id.
    pub resets: Vec<String>,
    /// To be handed in at the next decision.
    pub memory: Memory,
    /// Why nodes that look gone are kept, besides the breakers.
    pub blocks: Vec<Block>,
}

/// A node to delete.
#[derive(Clone, Debug)]
pub(super) struct Doomed {
    /// The node, as it was decided upon.
    pub node: Arc<Node>,
    /// Why.
    pub cause: Cause,
    /// Of the cloud that said so.
    pub cloud_identity: Arc<str>,
}

/// Why nodes that look gone are kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Block {
    /// An earlier history was lost.
    #[error("the deletion history was lost, so the budget counts as spent until {0}")]
    BudgetSpent(Timestamp),
    /// The provider is another cloud than the accepted one.
    #[error("the provider's cloud is {found:?}, accepted is {accepted:?}")]
    Identity {
        /// What was accepted.
        accepted: String,
        /// What it is.
        found: String,
    },
    /// The second answer comes from the same data as the first.
    #[error("the provider answers from data that is not newer than {0}")]
    StaleData(Timestamp),
    /// The provider does not find enough of the other nodes' machines.
    #[error("{}", not_enough(*.rule, .missing))]
    Evidence {
        /// Whether finding them or their being alive is asked for.
        rule: Rule,
        /// Where, and how many.
        missing: Missing,
    },
    /// The provider denies the machines of Ready nodes.
    #[error("the provider denies the machines of {count} Ready nodes in {}", place(.scope))]
    ReadyDenied {
        /// How many.
        count: usize,
        /// Where.
        scope: Scope,
    },
}

fn not_enough(rule: Rule, missing: &Missing) -> String {
    let (share, place) = (missing.share, place(&missing.scope));
    let nodes = if missing.ready { "Ready nodes" } else { "nodes" };
    match rule {
        Rule::NotAlive => {
            format!(
                "the provider knows the machines of only {} of {} {nodes} in {place} as not deleted",
                share.alive, share.counted
            )
        }
        _ => format!("the provider found the machines of only {} of {} {nodes} in {place}", share.found, share.counted),
    }
}

fn place(scope: &Scope) -> String {
    match scope {
        Scope::Cluster => "the cluster".to_owned(),
        Scope::Zone(zone) => format!("zone {zone:?}"),
    }
}

/// The nodes to look up first: those whose machine may be stopped or gone, and those by which a breaker may close.
pub(super) fn to_look_up(observed: &Observed<'_>) -> Vec<Arc<Node>> {
    let trips = observed.state.map(|state| state.trips.as_slice()).unwrap_or_default();
    let listed = |node: &Node| trips.iter().any(|trip| trip.lists(&node.name, &node.uid));
    let suspect = |node: &Node| (listed(node) || observed.observations.denied_since(&node.name).is_some()) && observed.owns(node);
    let wanted = |node: &Node| (node.ready != Ready::True || suspect(node)) && is_examined(node, observed);
    observed.nodes.iter().filter(|node| wanted(node)).cloned().collect()
}

/// The Ready nodes that were not looked up in this tick: whether the provider finds them tells whether it is to be believed.
pub(super) fn to_cross_check(observed: &Observed<'_>) -> Vec<Arc<Node>> {
    let is_ready = |node: &Node| node.ready == Ready::True && observed.owns(node) && is_examined(node, observed);
    let unasked = |node: &Node| is_ready(node) && observed.observations.latest(&node.name).is_none();
    observed.nodes.iter().filter(|node| unasked(node)).cloned().collect()
}

/// Decides over all nodes at once.
pub(super) fn decide(observed: &Observed<'_>) -> Plan {
    let mut plan = Plan { taint: to_taint(observed), untaint: to_untaint(observed), ..Plan::default() };
    if let Some(state) = observed.state.filter(|state| !is_quiet(observed, state)) {
        Rules::new(observed, state).apply(&mut plan);
    }
    plan
}

/// Whether the rules have nothing to judge: no machine is denied, no breaker is tripped, and the cloud is the accepted one. In
/// a cluster at rest a tick then costs next to nothing.
fn is_quiet(observed: &Observed<'_>, state: &State) -> bool {
    let remembers = observed.memory.evidence.is_some() || !observed.memory.quiet_since.is_empty();
    let is_accepted = state.accepts(&observed.provider.cloud_identity);
    observed.observations.is_empty() && state.trips.is_empty() && !remembers && is_accepted
}

/// Whether a node carries the taint of a stopped machine.
pub(super) fn has_shutdown_taint(node: &Node) -> bool {
    node.taints.iter().any(is_shutdown_taint)
}

/// The taint of a stopped machine, matched as in Go by key and effect.
pub(super) fn is_shutdown_taint(taint: &Taint) -> bool {
    taint.key == names::taints::SHUTDOWN && taint.effect == "NoSchedule"
}

fn to_taint(observed: &Observed<'_>) -> Vec<Arc<Node>> {
    let stopped = |node: &Node| node.ready != Ready::True && observed.observations.latest(&node.name) == Some(Finding::Stopped);
    let wanted = |node: &Node| stopped(node) && !has_shutdown_taint(node) && observed.manages(node);
    observed.nodes.iter().filter(|node| wanted(node)).cloned().collect()
}

fn to_untaint(observed: &Observed<'_>) -> Vec<Arc<Node>> {
    let wanted = |node: &Node| node.ready == Ready::True && has_shutdown_taint(node) && observed.manages(node);
    observed.nodes.iter().filter(|node| node.deleted_at.is_none() && wanted(node)).cloned().collect()
}

/// Whether the lifecycle concerns itself with the node at all: a node that is joining is left to its initialisation.
fn is_examined(node: &Node, observed: &Observed<'_>) -> bool {
    let age = observed.time.duration_since(node.created_at).max(SignedDuration::ZERO);
    let joining = node.is_uninitialized() && age.unsigned_abs() < observed.config.uninitialized_grace;
    node.deleted_at.is_none() && !joining && observed.manages(node)
}

#[cfg(test)]
mod tests;
