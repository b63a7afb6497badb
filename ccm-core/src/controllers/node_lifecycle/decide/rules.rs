//! The rules by which nodes are deleted or kept. Pure.
use std::sync::Arc;

use super::breaker::{self, Case};
use super::{Doomed, Hold, Observed, Plan, is_examined, is_ours, is_witness};
use crate::cluster::state::{Cause, State, Trip};
use crate::controllers::node_lifecycle::sightings::{Said, Sighting, is_marked};
use crate::model::node::{Node, Ready};

/// One decision.
pub(super) struct Rules<'a> {
    observed: &'a Observed<'a>,
    state: &'a State,
    ours: Vec<&'a Node>,
    /// Whether marks count: not where half of all nodes or more have one.
    marks_count: bool,
}

/// A node that is not ready and whose machine was gone at least once.
struct Candidate<'a> {
    node: &'a Arc<Node>,
    sighting: &'a Sighting,
    cause: Cause,
    /// Confirmed, and said again in this tick.
    may_go: bool,
}

impl<'a> Rules<'a> {
    pub fn new(observed: &'a Observed<'a>, state: &'a State) -> Self {
        let ours: Vec<_> = observed.nodes.iter().map(AsRef::as_ref).filter(|node| is_ours(node, observed.provider)).collect();
        let marked = ours.iter().filter(|node| is_marked(node)).count();
        let marks_count = marked * 2 < ours.len();
        Self { observed, state, ours, marks_count }
    }

    pub fn apply(&self, plan: &mut Plan) {
        self.let_breakers_close(plan);
        plan.holds.extend(self.stale_data());
        if let Some(hold) = self.another_identity() {
            plan.holds.push(hold);
            return;
        }
        let (absent, known): (Vec<_>, Vec<_>) =
            self.candidates().into_iter().partition(|candidate| candidate.cause == Cause::Absent);
        plan.deletions.extend(known.iter().filter(|candidate| candidate.may_go).map(Candidate::doomed));
        if absent.iter().any(|candidate| candidate.may_go) {
            self.judge(&absent, plan);
        }
    }

    fn candidates(&self) -> Vec<Candidate<'a>> {
        let sightings = self.observed.sightings;
        let seen = self.observed.nodes.iter().filter_map(|node| Some((node, sightings.gone(&node.name)?)));
        let kept = seen.filter(|(node, sighting)| {
            let same = node.uid == sighting.uid && node.provider_id.as_ref() == Some(&sighting.provider_id);
            same && node.ready != Ready::True && is_ours(node, self.observed.provider) && is_examined(node, self.observed)
        });
        kept.map(|(node, sighting)| {
            let may_go = sighting.confirmed && sightings.is_fresh(&node.name) && self.is_of_this_cloud(sighting);
            Candidate { node, sighting, cause: self.cause(node, sighting), may_go }
        })
        .collect()
    }

    fn is_of_this_cloud(&self, sighting: &Sighting) -> bool {
        *sighting.cloud_identity == *self.observed.provider.cloud_identity
    }

    /// Marks set after a breaker tripped are somebody's reaction to the lie, and don't count even after a restart.
    fn cause(&self, node: &Node, sighting: &Sighting) -> Cause {
        let listed = |trip: &Trip| trip.lists(&node.name, &node.uid);
        let released = self.state.releases.iter().any(|release| release.nodes.get(&node.name) == Some(&node.uid));
        if sighting.known_deleted {
            Cause::Deleted
        } else if released {
            Cause::Released
        } else if sighting.marked && self.marks_count && !self.state.trips.iter().any(listed) {
            Cause::MeantToGo
        } else {
            Cause::Absent
        }
    }

    fn judge(&self, candidates: &[Candidate<'a>], plan: &mut Plan) {
        let absent: Vec<_> = candidates.iter().map(|candidate| candidate.node.as_ref()).collect();
        let case = Case {
            nodes: &self.ours,
            absent: &absent,
            ready_absent: &self.ready_absent(),
            state: self.state,
            now: self.observed.time,
            budget: self.observed.config.budget(),
        };
        let verdict = breaker::judge(&case);
        plan.trips.extend(verdict.trips);
        let allowed = candidates.iter().filter(|candidate| candidate.may_go && verdict.allowed.contains(&candidate.node.name));
        let doomed: Vec<_> = allowed.map(Candidate::doomed).collect();
        if !doomed.is_empty() {
            self.admit(doomed, plan);
        }
    }

    /// The last questions before nodes go for mere absence: is the budget known, and does the provider find the ready ones?
    fn admit(&self, doomed: Vec<Doomed>, plan: &mut Plan) {
        let spent = self.state.budget_spent_until.filter(|until| *until > self.observed.time);
        if let Some(until) = spent {
            plan.holds.push(Hold::BudgetSpent(until));
        } else if !self.observed.witnessed {
            plan.wants_witnesses = true;
        } else if let Some(hold) = self.doubtful_witnesses() {
            plan.holds.push(hold);
        } else {
            plan.deletions.extend(doomed);
        }
    }

    fn ready_absent(&self) -> Vec<&'a Node> {
        let meant_to_go = |node: &Node| self.marks_count && is_marked(node);
        let absent = |node: &Node| self.observed.sightings.is_ready_absent(&node.name) && !meant_to_go(node);
        self.ours.iter().copied().filter(|node| is_witness(node, self.observed) && absent(node)).collect()
    }

    /// A provider that does not positively find half of the ready nodes is not believed about the others.
    fn doubtful_witnesses(&self) -> Option<Hold> {
        let meant_to_go = |node: &Node| self.marks_count && is_marked(node);
        let asked: Vec<_> = self.ours.iter().filter(|node| is_witness(node, self.observed) && !meant_to_go(node)).collect();
        let is_found = |node: &Node| matches!(self.observed.sightings.latest(&node.name), Some(Said::Alive | Said::Stopped));
        let found = asked.iter().filter(|node| is_found(node)).count();
        (found * 2 < asked.len()).then_some(Hold::Witnesses { found, asked: asked.len() })
    }

    fn stale_data(&self) -> Option<Hold> {
        let waiting = self.candidates().into_iter().filter(|candidate| {
            let age = self.observed.now.saturating_duration_since(candidate.sighting.first);
            !candidate.sighting.confirmed
                && age >= self.observed.config.confirmation
                && self.observed.sightings.is_fresh(&candidate.node.name)
        });
        waiting.map(|candidate| candidate.sighting.first_observed_at).min().map(Hold::StaleData)
    }

    fn another_identity(&self) -> Option<Hold> {
        let (accepted, found) = (self.state.accepted_identity.as_ref()?, &self.observed.provider.cloud_identity);
        (accepted != found).then(|| Hold::Identity { accepted: accepted.clone(), found: found.clone() })
    }

    /// A breaker closes by itself once its nodes were found, and none that it covers absent, for the time of a confirmation.
    fn let_breakers_close(&self, plan: &mut Plan) {
        let now = self.observed.now;
        for trip in self.state.trips.iter().filter(|trip| self.is_quiet(trip)) {
            let since = self.observed.quiet_since.get(&trip.id).copied().unwrap_or(now);
            if now.saturating_duration_since(since) >= self.observed.config.confirmation {
                plan.resets.push(trip.id.clone());
            } else {
                plan.quiet_since.insert(trip.id.clone(), since);
            }
        }
    }

    fn is_quiet(&self, trip: &Trip) -> bool {
        let sightings = self.observed.sightings;
        let covered = self.ours.iter().filter(|node| trip.scope.covers(node.zone()));
        let is_absent = |node: &Node| {
            let gone = sightings.gone(&node.name).is_some_and(|sighting| !sighting.known_deleted);
            gone || sightings.is_ready_absent(&node.name)
        };
        let is_known = |node: &Node| matches!(sightings.latest(&node.name), Some(Said::Alive | Said::Stopped | Said::Deleted));
        let mut covered = covered.filter(|node| node.deleted_at.is_none());
        covered.all(|node| !is_absent(node) && (!trip.lists(&node.name, &node.uid) || is_known(node)))
    }
}

impl Candidate<'_> {
    fn doomed(&self) -> Doomed {
        Doomed { node: Arc::clone(self.node), cause: self.cause, cloud_identity: Arc::clone(&self.sighting.cloud_identity) }
    }
}
