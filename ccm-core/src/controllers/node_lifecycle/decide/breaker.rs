//! The budget: how many nodes may be deleted because the cloud does not know their machines, where nothing marked them for
//! removal. Pure.
//!
//! The whole set is judged before the first deletion, and a set over its budget loses none: a provider that lies about many
//! nodes deletes not even as many as one that lies about few.
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use crate::cluster::state::{Cause, Deletion, Rule, Scope, State, Trip, within};
use crate::controllers::budget::part_of;
use crate::model::node::Node;

/// How many nodes make a cluster whose limit is the configured one; below it the limit is 1.
const SMALL_CLUSTER: usize = 10;
/// What may go within a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Budget {
    /// The window.
    pub window: Duration,
    /// The part of a zone's nodes, 0 to 1.
    pub zone_fraction: f64,
    /// The number of nodes of the cluster.
    pub limit: usize,
}

impl Budget {
    /// How many nodes of a zone that has so many.
    fn of_zone(&self, known: usize) -> usize {
        part_of(known, self.zone_fraction)
    }

    /// How many nodes of a cluster that has so many.
    fn of_cluster(&self, known: usize) -> usize {
        if known < SMALL_CLUSTER { self.limit.min(1) } else { self.limit }
    }
}

/// What is judged.
pub(super) struct Case<'a> {
    /// All nodes with a providerID of the provider's.
    pub nodes: &'a [&'a Node],
    /// Those of them that may go for mere absence: not Ready, and the machine was not known at least once.
    pub absent: &'a [&'a Node],
    /// The history and the breakers that are tripped.
    pub state: &'a State,
    /// The wall clock.
    pub now: Timestamp,
    /// What may go.
    pub budget: Budget,
}

/// The breakers that trip now. Which absent nodes they block follows from their scope.
pub(super) fn judge(case: &Case<'_>) -> Vec<Trip> {
    let mut trips = Vec::new();
    trips.extend(case.zone_trip(&trips));
    trips.extend(case.cluster_trip(&trips));
    trips
}

impl<'a> Case<'a> {
    /// The absent nodes that no breaker blocks, neither one that was tripped before nor a new one.
    fn judged(&self, new: &[Trip]) -> Vec<&'a Node> {
        let blocked = |node: &Node| self.state.trips.iter().chain(new).any(|trip| trip.blocks(node.zone(), Cause::Absent));
        self.absent.iter().copied().filter(|node| !blocked(node)).collect()
    }

    /// One zone over its budget trips that zone; several at a time are one breaker, and one release, for the cluster.
    fn zone_trip(&self, new: &[Trip]) -> Option<Trip> {
        let judged = self.judged(new);
        let mut zones: BTreeMap<&str, Vec<&Node>> = BTreeMap::new();
        for node in &judged {
            zones.entry(node.zone().unwrap_or_default()).or_default().push(node);
        }
        zones.retain(|zone, absent| self.used(absent, Some(zone)) + absent.len() > self.budget.of_zone(self.known(Some(zone))));
        let (zone, absent) = zones.pop_first()?;
        if !zones.is_empty() {
            let reason =
                format!("the machines of {} nodes are not known, more than {} zones may lose", judged.len(), zones.len() + 1);
            return Some(self.trip(Scope::Cluster, self.with_window(&reason), &judged));
        }
        let (known, most) = (self.known(Some(zone)), self.budget.of_zone(self.known(Some(zone))));
        let before = self.used(&absent, Some(zone));
        let reason = format!(
            "the machines of {} of {known} nodes of zone {zone:?} are not known and {before} were deleted before, where {most} may be",
            absent.len()
        );
        Some(self.trip(Scope::Zone(zone.to_owned()), self.with_window(&reason), &absent))
    }

    fn cluster_trip(&self, new: &[Trip]) -> Option<Trip> {
        let judged = self.judged(new);
        let (known, before) = (self.known(None), self.used(&judged, None));
        let most = self.budget.of_cluster(known);
        if judged.is_empty() || judged.len() + before <= most {
            return None;
        }
        let reason = format!(
            "the machines of {} of the cluster's {known} nodes are not known and {before} were deleted before, where {most} may be",
            judged.len()
        );
        Some(self.trip(Scope::Cluster, self.with_window(&reason), &judged))
    }

    fn with_window(&self, reason: &str) -> String {
        format!("{reason} within {}", humantime::format_duration(self.budget.window))
    }

    /// How many nodes there are, those included that were deleted for absence within the window; of one zone or of all.
    fn known(&self, zone: Option<&str>) -> usize {
        let present = self.nodes.iter().filter(|node| is_in(zone, node.zone())).count();
        let here: BTreeSet<_> = self.nodes.iter().map(|node| node.uid.as_str()).collect();
        present + self.counted(zone).filter(|deletion| !here.contains(deletion.uid.as_str())).count()
    }

    /// How much of the budget is used; the nodes judged now are not counted twice if an earlier DELETE of them failed.
    fn used(&self, judged: &[&Node], zone: Option<&str>) -> usize {
        let judged: BTreeSet<_> = judged.iter().map(|node| node.uid.as_str()).collect();
        self.counted(zone).filter(|deletion| !judged.contains(deletion.uid.as_str())).count()
    }

    fn counted(&self, zone: Option<&str>) -> impl Iterator<Item = &Deletion> {
        let history = self.state.deletions.iter().flatten();
        history.filter(move |deletion| {
            let counts = deletion.cause == Cause::Absent && within(deletion.at, self.now, self.budget.window);
            counts && is_in(zone, deletion.zone.as_deref())
        })
    }

    fn trip(&self, scope: Scope, reason: String, nodes: &[&Node]) -> Trip {
        let listed = nodes.iter().map(|node| (node.name.as_str(), node.uid.as_str()));
        Trip::new(Rule::Budget, scope, reason, listed, self.now)
    }
}

fn is_in(wanted: Option<&str>, zone: Option<&str>) -> bool {
    wanted.is_none_or(|wanted| wanted == zone.unwrap_or_default())
}

#[cfg(test)]
mod tests;
