//! Which routes of nodes that are gone are removed. Pure.
//!
//! All candidates are judged together before the first is removed: a set over its budget loses none.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use jiff::Timestamp;

use crate::controllers::budget::part_of;
use crate::controllers::route::claims::{Cidrs, Claims};
use crate::controllers::route::table::Table;
use crate::model::route::Route;

/// Where stale routes are looked for.
pub(in crate::controllers::route) struct Stale<'a> {
    /// The cloud's table.
    pub table: &'a Table,
    /// The nodes, as the watch shows them.
    pub claims: &'a Claims,
    /// `--cluster-cidr`.
    pub cluster_cidrs: &'a [IpNet],
    /// When this term saw all nodes for the first time.
    pub since: Timestamp,
    /// Whether a call about a destination runs, or a pause lasts.
    pub waits: &'a dyn Fn(&IpNet) -> bool,
}

/// What was found.
#[derive(Debug, Default, PartialEq)]
pub(in crate::controllers::route) struct Candidates {
    /// One route for each destination.
    pub routes: Vec<Route>,
    /// There are more, for which a pause lasts or a newer list is needed.
    pub has_waiting: bool,
}

/// The routes of this cluster inside the cluster's CIDRs of which no node that the watch shows has an address.
pub(in crate::controllers::route) fn candidates(stale: &Stale<'_>) -> Candidates {
    let (existing, mut found, mut seen) = (stale.claims.cidrs(), Candidates::default(), HashSet::new());
    let Some(read_at) = stale.table.read_at() else { return found };
    let routes = stale.table.listed().filter(|route| stale.is_deletable(route));
    for route in routes.filter(|route| !existing.overlaps(&route.destination)) {
        let destination = route.destination.trunc();
        let free_since = stale.claims.gone_since(&destination).unwrap_or(stale.since).max(stale.since);
        if read_at < free_since || (stale.waits)(&destination) {
            found.has_waiting = true;
        } else if seen.insert(destination) {
            found.routes.push(route.clone());
        }
    }
    found
}

impl Stale<'_> {
    fn is_deletable(&self, route: &Route) -> bool {
        route.is_ours && is_inside(&route.destination, self.cluster_cidrs)
    }

    /// The number of routes of this cluster inside its CIDRs of which no node that the watch shows has an address.
    pub fn count(&self) -> usize {
        let existing = self.claims.cidrs();
        let ours = self.table.listed().filter(|route| self.is_deletable(route));
        ours.filter(|route| !existing.overlaps(&route.destination)).count()
    }

    /// The number of destinations of this cluster's routes inside its CIDRs.
    pub fn ours(&self) -> usize {
        let ours = self.table.listed().filter(|route| self.is_deletable(route));
        ours.map(|route| route.destination.trunc()).collect::<HashSet<_>>().len()
    }
}

/// Whether all of a destination lies within one of the cluster's CIDRs.
pub(in crate::controllers::route) fn is_inside(destination: &IpNet, cluster_cidrs: &[IpNet]) -> bool {
    cluster_cidrs.iter().any(|cidr| cidr.contains(destination))
}

/// All nodes, as the API server listed them past every cache, unmanaged and foreign ones included.
#[derive(Debug, Default)]
pub(in crate::controllers::route) struct Live {
    /// Their names.
    pub names: HashSet<String>,
    /// Their Pod CIDRs.
    pub cidrs: Cidrs,
}

/// How many routes of nodes that this term has not seen go may be removed within a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::controllers::route) struct Budget {
    /// The window.
    pub window: Duration,
    /// The part of this cluster's routes, 0 to 1.
    pub fraction: f64,
}

impl Budget {
    /// Of so many routes.
    fn of(&self, routes: usize) -> usize {
        part_of(routes, self.fraction)
    }
}

/// What is judged.
pub(in crate::controllers::route) struct Case<'a> {
    /// The candidates.
    pub candidates: Vec<Route>,
    /// The nodes past every cache.
    pub live: &'a Live,
    /// The names of the nodes that the watch shows, or showed within the window.
    pub seen: &'a HashSet<&'a str>,
    /// Whether this term saw a node with this Pod CIDR go.
    pub saw_go: &'a dyn Fn(&IpNet) -> bool,
    /// The number of this cluster's routes in the list.
    pub ours: usize,
    /// What may be removed.
    pub budget: Budget,
    /// How many were removed within the window on the budget.
    pub used: usize,
    /// The budget counts as used until then: an earlier term may have used it.
    pub used_up_until: Option<Instant>,
}

/// What is removed, and why the others are not.
#[derive(Debug, Default, PartialEq)]
pub(in crate::controllers::route) struct Judgement {
    /// The routes to remove.
    pub delete: Vec<Route>,
    /// How many of them use the budget.
    pub on_budget: usize,
    /// Why the others stay.
    pub block: Option<Block>,
}

/// Why stale routes stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::controllers::route) enum Block {
    /// There are more than the budget allows: the breaker is tripped.
    Tripped {
        /// The number of candidates.
        candidates: usize,
        /// How many were removed within the window.
        used: usize,
        /// How many may be removed within a window.
        most: usize,
        /// The number of this cluster's routes.
        ours: usize,
    },
    /// The term is younger than a window.
    NewTerm {
        /// The number of candidates.
        candidates: usize,
        /// Until when.
        until: Instant,
    },
}

/// Judges all candidates at once.
pub(in crate::controllers::route) fn judge(case: Case<'_>, now: Instant) -> Judgement {
    let (live, is_plausible) = (case.live, most_nodes_exist(&case));
    let gone = case.candidates.into_iter().filter(|route| !live.cidrs.overlaps(&route.destination));
    let (free, mut limited): (Vec<_>, Vec<_>) = gone.partition(|route| is_plausible && (case.saw_go)(&route.destination.trunc()));
    let known = case.ours + case.used;
    let (candidates, most) = (limited.len(), case.budget.of(known));
    let block = match case.used_up_until.filter(|until| *until > now) {
        _ if candidates == 0 => None,
        _ if candidates + case.used > most => Some(Block::Tripped { candidates, used: case.used, most, ours: known }),
        Some(until) => Some(Block::NewTerm { candidates, until }),
        None => None,
    };
    if block.is_some() {
        limited.clear();
    }
    let on_budget = limited.len();
    Judgement { delete: free.into_iter().chain(limited).collect(), on_budget, block }
}

/// Whether more than half of the nodes that were seen within the window still exist: otherwise nodes are not just being replaced.
fn most_nodes_exist(case: &Case<'_>) -> bool {
    let exist = case.seen.iter().filter(|name| case.live.names.contains(**name)).count();
    exist * 2 > case.seen.len()
}
