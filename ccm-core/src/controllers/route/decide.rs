//! Which routes a node needs, and what its condition says of them. Pure: neither client nor clock.
//!
//! A route is made or replaced here, and never removed: `deletion` decides about the routes of nodes that are gone.
pub(super) mod deletion;
#[cfg(test)]
mod tests;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use ipnet::IpNet;

use super::claims::{Claimant, Claims};
use super::table::Table;
use super::trouble::Troubles;
use crate::model::node::Node;
use crate::model::route::{Route, WantedRoute};

/// What a decision about a node is made from.
#[derive(Clone, Copy)]
pub(super) struct Observed<'a> {
    /// The node.
    pub claimant: &'a Claimant,
    /// All nodes.
    pub claims: &'a Claims,
    /// The cloud's table.
    pub table: &'a Table,
    /// What failed.
    pub troubles: &'a Troubles<IpNet>,
    /// Whether a call about a destination runs.
    pub is_busy: &'a dyn Fn(&IpNet) -> bool,
}

/// What to do about a node.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// The routes to make or to replace.
    pub create: Vec<WantedRoute>,
    /// What the condition is to say; `None`: it stays as it is.
    pub routes_are_made: Option<bool>,
    /// Pod CIDRs that an older node has, too, and its name.
    pub taken: Vec<(IpNet, String)>,
    /// Routes that are as they should be.
    pub satisfied: Vec<IpNet>,
}

/// How it stands with one route.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Satisfied,
    /// It is being made, or its call has not ended yet.
    Pending,
    /// It could not be made.
    Failed,
}

/// Decides about one node.
pub(super) fn decide(observed: &Observed<'_>, now: Instant) -> Plan {
    let mut plan = Plan::default();
    if !observed.claimant.wants_routes() || observed.table.read_at().is_none() {
        return plan;
    }
    let cidrs = observed.claimant.cidrs.iter();
    let standings: Vec<_> = cidrs.map(|cidr| one(observed, *cidr, now, &mut plan)).collect();
    plan.routes_are_made = match standings.as_slice() {
        [] => None,
        all if all.iter().all(|standing| *standing == Standing::Satisfied) => Some(true),
        all if all.contains(&Standing::Failed) => Some(false),
        _ => None,
    };
    plan
}

fn one(observed: &Observed<'_>, cidr: IpNet, now: Instant, plan: &mut Plan) -> Standing {
    let Observed { claimant, claims, table, troubles, is_busy } = *observed;
    if let Some(holder) = claims.holder(&cidr).filter(|holder| holder.node.name != claimant.node.name) {
        plan.taken.push((cidr, holder.node.name.clone()));
        return Standing::Failed;
    }
    if is_satisfied(&claimant.node, table.routes(&cidr)) {
        plan.satisfied.push(cidr);
        return Standing::Satisfied;
    }
    let wanted = wanted(&claimant.node, cidr);
    let with = fingerprint(&wanted);
    if !is_busy(&cidr) && troubles.not_before(&cidr, with, now).is_none() {
        plan.create.push(wanted);
    }
    if troubles.has_failed(&cidr, with) { Standing::Failed } else { Standing::Pending }
}

/// The route of a node to a Pod CIDR.
pub(super) fn wanted(node: &Node, destination: IpNet) -> WantedRoute {
    WantedRoute {
        destination,
        node_name: node.name.clone(),
        node_uid: node.uid.clone(),
        provider_id: node.provider_id.clone(),
        addresses: node.addresses.clone(),
    }
}

/// What a pause after a failure is bound to: a node that has changed is tried at once.
pub(super) fn fingerprint(wanted: &WantedRoute) -> u64 {
    let WantedRoute { destination, node_name, node_uid, provider_id, addresses } = wanted;
    let mut hasher = DefaultHasher::new();
    (destination, node_name, node_uid, provider_id, addresses).hash(&mut hasher);
    hasher.finish()
}

/// Whether these routes of one destination are as they should be. A blackhole is: its machine is stopped. So is a route of others
/// that leads to the node. A route of this cluster beside it that leads elsewhere is left to `CreateRoutes`.
pub(super) fn is_satisfied(node: &Node, routes: &[Route]) -> bool {
    let leads_there = |route: &Route| route.target.is(node);
    routes.iter().any(leads_there) && routes.iter().all(|route| !route.is_ours || leads_there(route))
}
