//! The rules by which nodes are deleted or kept. Pure. In this order: the accepted cloud, Ready nodes whose machines are denied,
//! the budget, tripped breakers, a lost history, and the evidence that the provider finds others.
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::breaker::{self, Case};
use super::evidence::{ENOUGH, Evidence, Missing};
use super::{Block, Checked, Doomed, Observed, Plan, is_examined};
use crate::cluster::state::{Cause, Release, Rule, Scope, State, Trip, within};
use crate::controllers::node_lifecycle::marks::is_marked;
use crate::controllers::node_lifecycle::observations::Gone;
use crate::model::node::{Node, Ready};

/// How long after its last sign of life a node is Ready at most, by kube-controller-manager's defaults, and some more. A node that
/// is Ready for longer has a machine.
const READY_OUTLIVES: Duration = Duration::from_secs(60);
/// So many Ready nodes whose machines are denied are a lie. One can be the first that the cluster notices last.
const READY_LIE: usize = 2;

/// One decision.
pub(super) struct Rules<'a> {
    pub(super) observed: &'a Observed<'a>,
    pub(super) state: &'a State,
    pub(super) ours: Vec<&'a Node>,
    /// The nodes with a mark that counts, by name.
    planned: HashSet<&'a str>,
}

/// A node that is not Ready and whose machine was gone at least once.
struct Candidate<'a> {
    node: &'a Arc<Node>,
    gone: &'a Gone,
    cause: Cause,
    /// Confirmed, and said again in this tick.
    may_go: bool,
}

impl<'a> Rules<'a> {
    pub fn new(observed: &'a Observed<'a>, state: &'a State) -> Self {
        let ours: Vec<_> = observed.nodes.iter().map(AsRef::as_ref).filter(|node| observed.owns(node)).collect();
        let planned = planned(observed, state, &ours);
        Self { observed, state, ours, planned }
    }

    pub fn apply(&self, plan: &mut Plan) {
        let candidates = self.candidates();
        plan.blocks.extend(self.stale_data(&candidates));
        if let Some(block) = self.another_identity() {
            plan.blocks.push(block);
            return;
        }
        let denied = self.ready_denied(&candidates, plan);
        self.judge_budget(&candidates, plan);
        let free: Vec<_> = candidates.iter().filter(|candidate| candidate.may_go).collect();
        let free = free.into_iter().filter(|candidate| !self.is_blocked(candidate, denied.as_ref(), plan)).collect();
        let unspent = self.without_spent_budget(free, plan);
        self.check_evidence(&unspent, newest_first_answer(&candidates), plan);
    }

    fn candidates(&self) -> Vec<Candidate<'a>> {
        let observations = self.observed.observations;
        let seen = self.observed.nodes.iter().filter_map(|node| Some((node, observations.gone(&node.name)?)));
        let kept = seen.filter(|(node, gone)| {
            gone.is_of(node) && node.ready != Ready::True && self.observed.owns(node) && is_examined(node, self.observed)
        });
        kept.map(|(node, gone)| {
            let may_go = gone.confirmed && observations.is_fresh(&node.name) && self.is_of_this_cloud(gone);
            Candidate { node, gone, cause: self.cause(node, gone), may_go }
        })
        .collect()
    }

    fn is_of_this_cloud(&self, gone: &Gone) -> bool {
        *gone.cloud_identity == *self.observed.provider.cloud_identity
    }

    fn cause(&self, node: &Node, gone: &Gone) -> Cause {
        if self.is_released(node) {
            Cause::Released
        } else if gone.known_deleted {
            Cause::Deleted
        } else if self.is_planned(node) {
            Cause::Planned
        } else {
            Cause::Absent
        }
    }

    fn is_released(&self, node: &Node) -> bool {
        let holds = |release: &&Release| within(release.at, self.observed.time, self.observed.config.window);
        self.state.releases.iter().filter(holds).any(|release| release.nodes.get(&node.name) == Some(&node.uid))
    }

    /// Whether the node bears a mark that counts.
    pub(super) fn is_planned(&self, node: &Node) -> bool {
        self.planned.contains(node.name.as_str())
    }

    /// The nodes by which the provider is tried: initialised, not marked for removal, not being deleted.
    pub(super) fn counted(&self) -> impl Iterator<Item = &'a Node> {
        self.ours.iter().copied().filter(move |node| is_settled(node) && !self.is_planned(node))
    }

    /// Two Ready nodes or more whose machines the provider denies block everything in their scope at once. A breaker trips when
    /// they are still Ready after the time that a node can outlive its machine.
    fn ready_denied(&self, candidates: &[Candidate<'a>], plan: &mut Plan) -> Option<Scope> {
        let denied = self.denied();
        let scope = scope_of(denied.iter().map(|(node, _)| *node)).filter(|_| denied.len() >= READY_LIE)?;
        let lasting = |(_, since): &&(&Node, Instant)| self.observed.now.saturating_duration_since(*since) >= READY_OUTLIVES;
        let lasting: Vec<_> = denied.iter().filter(lasting).map(|(node, _)| *node).collect();
        if lasting.len() >= READY_LIE {
            plan.trips.extend(self.ready_denied_trip(&lasting, candidates));
        }
        plan.blocks.push(Block::ReadyDenied { count: denied.len(), scope: scope.clone() });
        Some(scope)
    }

    /// The Ready nodes whose machines are denied and that no breaker of this rule covers yet. A planned removal may be Ready for
    /// a while, and an operator may have said that the provider is right.
    fn denied(&self) -> Vec<(&'a Node, Instant)> {
        let expected = |node: &Node| self.is_planned(node) || self.is_released(node) || !is_examined(node, self.observed);
        let ready = self.ours.iter().copied().filter(|node| node.ready == Ready::True && !expected(node));
        ready.filter_map(|node| Some((node, self.observed.observations.denied_since(&node.name)?))).collect()
    }

    fn ready_denied_trip(&self, lasting: &[&Node], candidates: &[Candidate<'a>]) -> Option<Trip> {
        let scope = scope_of(lasting.iter().copied())?;
        let is_covered = |trip: &Trip| trip.rule == Rule::ReadyDenied && (trip.scope == Scope::Cluster || trip.scope == scope);
        if self.state.trips.iter().any(is_covered) {
            return None;
        }
        let reason = format!("the provider denies the machines of {} Ready nodes", lasting.len());
        let blocked = candidates.iter().map(|candidate| candidate.node.as_ref()).filter(|node| scope.covers(node.zone()));
        let nodes: Vec<_> = lasting.iter().copied().chain(blocked).collect();
        Some(self.trip(Rule::ReadyDenied, scope, reason, nodes))
    }

    fn judge_budget(&self, candidates: &[Candidate<'a>], plan: &mut Plan) {
        let absent: Vec<_> = candidates.iter().filter(|candidate| candidate.cause == Cause::Absent).collect();
        if !absent.iter().any(|candidate| candidate.may_go) {
            return;
        }
        let absent: Vec<_> = absent.iter().map(|candidate| candidate.node.as_ref()).collect();
        let case = Case {
            nodes: &self.ours,
            absent: &absent,
            state: self.state,
            now: self.observed.time,
            budget: self.observed.config.budget(),
        };
        plan.trips.extend(breaker::judge(&case));
    }

    fn is_blocked(&self, candidate: &Candidate<'a>, denied: Option<&Scope>, plan: &Plan) -> bool {
        let (zone, cause) = (candidate.node.zone(), candidate.cause);
        let denied = denied.is_some_and(|scope| Rule::ReadyDenied.blocks(cause) && scope.covers(zone));
        denied || self.state.trips.iter().chain(&plan.trips).any(|trip| trip.blocks(zone, cause))
    }

    /// A history that was lost could have been full, so nothing goes for absence until it would be empty again.
    fn without_spent_budget<'c>(&self, free: Vec<&'c Candidate<'a>>, plan: &mut Plan) -> Vec<&'c Candidate<'a>> {
        let Some(until) = self.state.budget_spent_until.filter(|until| *until > self.observed.time) else { return free };
        let (absent, other): (Vec<_>, Vec<_>) =
            free.into_iter().partition(|candidate| matches!(candidate.cause, Cause::Absent | Cause::Planned));
        if !absent.is_empty() {
            plan.blocks.push(Block::BudgetSpent(until));
        }
        other
    }

    /// The last question before nodes go: does the provider find others? It is asked in the tick of the deletion itself, and
    /// after it failed once per confirmation. What fails twice trips a breaker.
    fn check_evidence(&self, free: &[&Candidate<'a>], not_before: Option<Timestamp>, plan: &mut Plan) {
        let (released, checked): (Vec<&Candidate<'a>>, Vec<_>) =
            free.iter().copied().partition(|candidate| candidate.cause == Cause::Released);
        plan.deletions.extend(released.into_iter().map(Candidate::doomed));
        let is_watched = self.state.trips.iter().any(|trip| matches!(trip.rule, Rule::NotFound | Rule::NotAlive));
        let last = &self.observed.memory.evidence;
        if checked.is_empty() && !is_watched {
            self.let_breakers_close(None, plan);
            plan.memory.evidence = last.clone().filter(|last| self.is_remembered(last));
        } else if self.observed.cross_checked {
            let evidence = Evidence::of(self.counted(), self.observed.observations, not_before);
            self.let_breakers_close(Some(&evidence), plan);
            self.approve(&checked, &evidence, plan);
        } else if last.as_ref().is_some_and(|last| self.is_recent(last) && (checked.is_empty() || !last.blocks.is_empty())) {
            self.let_breakers_close(None, plan);
            plan.memory.evidence.clone_from(last);
            plan.blocks.extend(last.iter().flat_map(|last| last.blocks.clone()));
        } else {
            plan.wants_cross_check = true;
        }
    }

    /// A candidate whose look-up fails in one tick is no reason to begin anew.
    fn is_remembered(&self, last: &Checked) -> bool {
        self.observed.now.saturating_duration_since(last.at) < self.observed.config.confirmation * 3
    }

    fn is_recent(&self, last: &Checked) -> bool {
        self.observed.now.saturating_duration_since(last.at) < self.observed.config.confirmation
    }

    fn approve(&self, checked: &[&Candidate<'a>], evidence: &Evidence, plan: &mut Plan) {
        let mut failing: Vec<(&Candidate<'a>, Rule, Missing)> = Vec::new();
        for candidate in checked {
            let (rule, missing) = match candidate.cause {
                Cause::Deleted => (Rule::NotAlive, evidence.missing_for_deleted()),
                _ => (Rule::NotFound, evidence.missing_for_absence(candidate.node.zone())),
            };
            match missing {
                None => plan.deletions.push(candidate.doomed()),
                Some(missing) => failing.push((candidate, rule, missing)),
            }
        }
        let failed_before = self.observed.memory.evidence.as_ref().is_some_and(|last| !last.blocks.is_empty());
        if failed_before {
            plan.trips.extend([Rule::NotFound, Rule::NotAlive].into_iter().filter_map(|rule| self.evidence_trip(rule, &failing)));
        }
        let mut blocks: Vec<Block> = Vec::new();
        for block in failing.into_iter().map(|(_, rule, missing)| Block::Evidence { rule, missing }) {
            if !blocks.contains(&block) {
                blocks.push(block);
            }
        }
        plan.memory.evidence = Some(Checked { at: self.observed.now, blocks: blocks.clone() });
        plan.blocks.extend(blocks);
    }

    fn evidence_trip(&self, rule: Rule, failing: &[(&Candidate<'a>, Rule, Missing)]) -> Option<Trip> {
        let failing: Vec<_> = failing.iter().filter(|(_, failed, _)| *failed == rule).collect();
        let scopes: BTreeSet<_> = failing.iter().map(|(_, _, missing)| &missing.scope).collect();
        let (_, _, first) = failing.first()?;
        let scope = if scopes.len() == 1 { first.scope.clone() } else { Scope::Cluster };
        let reason = Block::Evidence { rule, missing: first.clone() }.to_string();
        Some(self.trip(rule, scope, reason, failing.iter().map(|(candidate, _, _)| candidate.node.as_ref())))
    }

    fn trip<'n>(&self, rule: Rule, scope: Scope, reason: String, nodes: impl IntoIterator<Item = &'n Node>) -> Trip {
        let listed = nodes.into_iter().map(|node| (node.name.as_str(), node.uid.as_str()));
        Trip::new(rule, scope, reason, listed, self.observed.time)
    }

    fn stale_data(&self, candidates: &[Candidate<'a>]) -> Option<Block> {
        let waiting = candidates.iter().filter(|candidate| {
            let age = self.observed.now.saturating_duration_since(candidate.gone.first);
            !candidate.gone.confirmed
                && age >= self.observed.config.confirmation
                && self.observed.observations.is_fresh(&candidate.node.name)
        });
        waiting.map(|candidate| candidate.gone.first_observed_at).min().map(Block::StaleData)
    }

    fn another_identity(&self) -> Option<Block> {
        let (accepted, found) = (self.state.accepted_identity.as_ref()?, &self.observed.provider.cloud_identity);
        (accepted != found).then(|| Block::Identity { accepted: accepted.clone(), found: found.clone() })
    }
}

/// The marks that count: seen while the node was Ready, on fewer than half of the provider's settled nodes at this moment, with
/// others left by which the provider can be tried, and not set after a breaker listed the node, which would be somebody's reaction
/// to a lie.
fn planned<'a>(observed: &Observed<'_>, state: &State, ours: &[&'a Node]) -> HashSet<&'a str> {
    let known: Vec<_> = ours.iter().copied().filter(|node| is_settled(node)).collect();
    let unmarked = known.iter().filter(|node| !is_marked(node)).count();
    if unmarked < ENOUGH || unmarked * 2 <= known.len() {
        return HashSet::new();
    }
    let reaction = |node: &Node, seen| state.trips.iter().any(|trip| trip.lists(&node.name, &node.uid) && trip.at < seen);
    let counts = |node: &Node| observed.marks.seen_at(node).is_some_and(|seen| !reaction(node, seen));
    ours.iter().filter(|node| counts(node)).map(|node| node.name.as_str()).collect()
}

/// Initialised, and not being deleted.
fn is_settled(node: &Node) -> bool {
    !node.is_uninitialized() && node.deleted_at.is_none()
}

/// Evidence must not come from data older than the first answer about any node that it is for.
fn newest_first_answer(candidates: &[Candidate<'_>]) -> Option<Timestamp> {
    candidates.iter().filter(|candidate| candidate.may_go).map(|candidate| candidate.gone.first_observed_at).max()
}

/// The zone that all nodes are in, or the cluster; none for no node.
fn scope_of<'n>(nodes: impl Iterator<Item = &'n Node>) -> Option<Scope> {
    let zones: BTreeSet<_> = nodes.map(|node| node.zone().unwrap_or_default()).collect();
    match zones.first() {
        Some(zone) if zones.len() == 1 => Some(Scope::Zone((*zone).to_owned())),
        Some(_) => Some(Scope::Cluster),
        None => None,
    }
}

impl Candidate<'_> {
    fn doomed(&self) -> Doomed {
        Doomed { node: Arc::clone(self.node), cause: self.cause, cloud_identity: Arc::clone(&self.gone.cloud_identity) }
    }
}
