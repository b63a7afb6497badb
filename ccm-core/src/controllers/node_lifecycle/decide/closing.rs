//! When a tripped breaker closes by itself. Pure.
use super::Plan;
use super::evidence::Evidence;
use super::rules::Rules;
use crate::cluster::state::{Rule, Trip};
use crate::controllers::node_lifecycle::observations::Finding;
use crate::model::node::Node;

/// Whether the reason of a breaker is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Now {
    Gone,
    There,
    /// This tick did not ask what would tell.
    Unknown,
}

impl Rules<'_> {
    /// A breaker closes once its reason has been gone for the time of a confirmation. `evidence` is that of this tick, if it was
    /// asked for.
    pub(super) fn let_breakers_close(&self, evidence: Option<&Evidence>, plan: &mut Plan) {
        let now = self.observed.now;
        for trip in &self.state.trips {
            let since = self.observed.memory.quiet_since.get(&trip.id).copied();
            match (self.reason_now(trip, evidence), since) {
                (Now::There, _) | (Now::Unknown, None) => {}
                (Now::Gone, Some(since)) if now.saturating_duration_since(since) >= self.observed.config.confirmation => {
                    plan.resets.push(trip.id.clone());
                }
                (Now::Gone | Now::Unknown, since) => {
                    plan.memory.quiet_since.insert(trip.id.clone(), since.unwrap_or(now));
                }
            }
        }
    }

    fn reason_now(&self, trip: &Trip, evidence: Option<&Evidence>) -> Now {
        let gone = match (trip.rule, evidence) {
            (Rule::Budget | Rule::ReadyDenied, _) => self.all_are_found(trip),
            (Rule::NotFound, Some(evidence)) => evidence.suffices_for_absence(&trip.scope),
            (Rule::NotAlive, Some(evidence)) => evidence.missing_for_deleted().is_none(),
            (Rule::NotFound | Rule::NotAlive, None) => return Now::Unknown,
        };
        if gone { Now::Gone } else { Now::There }
    }

    /// Whether no node in the breaker's scope is absent, and those that it lists are known. Planned removals don't keep it tripped.
    fn all_are_found(&self, trip: &Trip) -> bool {
        let observations = self.observed.observations;
        let is_absent = |node: &Node| {
            let gone = observations.gone(&node.name).is_some_and(|gone| !gone.known_deleted);
            gone || observations.denied_since(&node.name).is_some()
        };
        let is_known =
            |node: &Node| matches!(observations.latest(&node.name), Some(Finding::Alive | Finding::Stopped | Finding::Deleted));
        let concerns = |node: &Node| trip.scope.covers(node.zone()) && node.deleted_at.is_none() && !self.is_planned(node);
        let mut concerned = self.ours.iter().filter(|node| concerns(node));
        concerned.all(|node| !is_absent(node) && (!trip.lists(&node.name, &node.uid) || is_known(node)))
    }
}
