//! The breaker: how many nodes may be deleted because the cloud does not know their machines, when nobody had said that they
//! would go. Pure.
//!
//! The whole set is judged before the first deletion, and a set over its budget loses none: a provider that lies about many
//! nodes deletes not even as many as one that lies about few.
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use crate::cluster::state::{Cause, Deletion, Scope, State, Trip, within};
use crate::model::node::Node;

/// How many nodes make a cluster whose limit is the configured one; below it the limit is 1.
const SMALL_CLUSTER: usize = 10;
/// A zone of so many nodes never loses all.
const NEVER_ALL_OF: usize = 3;
/// So many ready nodes whose machines are not known are a lie.
const READY_LIE: usize = 2;

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
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a part of a count"
        )]
        let part = (known as f64 * self.zone_fraction.clamp(0.0, 1.0)).floor() as usize;
        let all = if known >= NEVER_ALL_OF { known - 1 } else { known };
        part.max(1).min(all)
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
    /// Those of them that are not ready and whose machine was not known at least once; not those meant to go or released.
    pub absent: &'a [&'a Node],
    /// Those that are ready and whose machine is not known; not those meant to go.
    pub ready_absent: &'a [&'a Node],
    /// The history and the breakers that hold.
    pub state: &'a State,
    /// The wall clock.
    pub now: Timestamp,
    /// What may go.
    pub budget: Budget,
}

/// The judgement.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The names of the absent nodes that may go.
    pub allowed: BTreeSet<String>,
    /// The breakers that trip now.
    pub trips: Vec<Trip>,
}

/// Judges a set of absent nodes as a whole.
pub(super) fn judge(case: &Case<'_>) -> Verdict {
    let mut trips = Vec::new();
    trips.extend(case.ready_trip());
    trips.extend(case.zone_trip(&trips));
    trips.extend(case.cluster_trip(&trips));
    let allowed = case.judged(&trips).into_iter().map(|node| node.name.clone()).collect();
    Verdict { allowed, trips }
}

/// Whether a breaker holds a zone's nodes.
pub(super) fn holds(trips: &[Trip], zone: Option<&str>) -> bool {
    trips.iter().any(|trip| trip.scope.covers(zone))
}

impl<'a> Case<'a> {
    /// The absent nodes that no breaker holds, neither one that held before nor a new one.
    fn judged(&self, new: &[Trip]) -> Vec<&'a Node> {
        self.unheld(self.absent, new)
    }

    fn unheld(&self, nodes: &[&'a Node], new: &[Trip]) -> Vec<&'a Node> {
        let held = |zone| holds(&self.state.trips, zone) || holds(new, zone);
        nodes.iter().copied().filter(|node| !held(node.zone())).collect()
    }

    fn ready_trip(&self) -> Option<Trip> {
        let lied_about = self.unheld(self.ready_absent, &[]);
        if lied_about.len() < READY_LIE {
            return None;
        }
        let zones: BTreeSet<_> = lied_about.iter().map(|node| node.zone().unwrap_or_default()).collect();
        let scope = match zones.first() {
            Some(zone) if zones.len() == 1 => Scope::Zone((*zone).to_owned()),
            _ => Scope::Cluster,
        };
        let reason = format!("the provider says that the machines of {} Ready nodes do not exist", lied_about.len());
        let absent = self.judged(&[]).into_iter().filter(|node| scope.covers(node.zone()));
        let nodes: Vec<_> = lied_about.iter().copied().chain(absent).collect();
        Some(self.trip(scope, reason, &nodes))
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
        let place = match &scope {
            Scope::Cluster => "cluster".to_owned(),
            Scope::Zone(zone) if zone.is_empty() => "no-zone".to_owned(),
            Scope::Zone(zone) => format!("zone-{zone}"),
        };
        let id = format!("{place}-{}", self.now.strftime("%Y%m%d-%H%M%S"));
        let listed = nodes.iter().take(Trip::LISTED).map(|node| (node.name.clone(), node.uid.clone()));
        Trip { id, scope, reason, count: nodes.len(), nodes: listed.collect(), at: self.now }
    }
}

fn is_in(wanted: Option<&str>, zone: Option<&str>) -> bool {
    wanted.is_none_or(|wanted| wanted == zone.unwrap_or_default())
}

#[cfg(test)]
mod tests;
