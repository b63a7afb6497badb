//! Routes, both ways. What is of no use in a list is left out, and reported: a list that has such a route is complete all the same.
use std::collections::HashSet;

use ccm_proto::v1;
use ipnet::IpNet;
use jiff::Timestamp;
use parking_lot::Mutex;
use v1::route_result::Outcome;

use super::instance::address_type;
use super::results::matched;
use super::{address, invalid, observed_at, poll_after};
use crate::model::node::Address;
use crate::model::route::{Route, RouteOutcome, RouteTable, RouteTarget, WantedRoute};
use crate::provider::{ProviderError, classify};

#[cfg(test)]
mod tests;

/// The most texts that are remembered as reported.
const MAX_REPORTED: usize = 1000;

/// What lists had that is of no use; each text is logged once.
#[derive(Debug, Default)]
pub struct LeftOut(Mutex<HashSet<String>>);

impl LeftOut {
    /// Whether the text was not reported before.
    fn report(&self, path: &str, text: &str, what: &str) -> bool {
        let mut reported = self.0.lock();
        let is_new = reported.len() < MAX_REPORTED && reported.insert(text.to_owned());
        if is_new {
            let text = classify::shorten(text);
            tracing::warn!(field = path, text, "a listed route has a part that {what}; ccm-core leaves it out");
        }
        is_new
    }
}

/// The item of CreateRoutes for a route; its key is its place in the batch.
pub fn creation((key, route): (usize, &WantedRoute)) -> v1::CreateRouteItem {
    let wire = v1::Route {
        target_node_name: route.node_name.clone(),
        target_provider_id: route.provider_id.clone(),
        destination_cidr: route.destination.to_string(),
        target_addresses: route.addresses.iter().map(address).collect(),
        ..v1::Route::default()
    };
    v1::CreateRouteItem { key: key.to_string(), name_hint: route.node_uid.clone(), route: Some(wire) }
}

/// The item of DeleteRoutes for a listed route; its key is its place in the batch.
pub fn deletion((key, route): (usize, &Route)) -> v1::DeleteRouteItem {
    let owner = if route.is_ours { v1::RouteOwner::ThisCluster } else { v1::RouteOwner::Other };
    let target = &route.target;
    let wire = v1::Route {
        name: route.name.clone(),
        target_node_name: target.node_name.clone().unwrap_or_default(),
        target_provider_id: target.provider_id.clone(),
        destination_cidr: route.destination.to_string(),
        target_addresses: target.addresses.iter().map(address).collect(),
        blackhole: route.is_blackhole,
        owner: owner.into(),
        target_description: target.description.clone(),
    };
    v1::DeleteRouteItem { key: key.to_string(), route: Some(wire) }
}

/// The messages of ListRoutes, all of them.
pub fn route_table(
    messages: Vec<v1::ListRoutesResponse>,
    now: Timestamp,
    left_out: &LeftOut,
) -> Result<RouteTable, ProviderError> {
    let times = messages.iter().filter_map(|message| message.observed_at);
    let times: Vec<_> = times.map(|time| observed_at("observed_at", time, now)).collect::<Result<_, _>>()?;
    let wire = messages.into_iter().flat_map(|message| message.routes).enumerate();
    let mut routes: Vec<_> = wire.filter_map(|(index, wire)| route(&format!("routes[{index}]"), wire, left_out)).collect();
    routes.shrink_to_fit();
    Ok(RouteTable { routes, observed_at: times.into_iter().min() })
}

fn route(path: &str, wire: v1::Route, left_out: &LeftOut) -> Option<Route> {
    let Ok(destination) = wire.destination_cidr.parse::<IpNet>() else {
        left_out.report(&format!("{path}.destination_cidr"), &wire.destination_cidr, "is no CIDR");
        return None;
    };
    let is_ours = wire.owner() == v1::RouteOwner::ThisCluster;
    let addresses = wire.target_addresses.into_iter().enumerate();
    let target = RouteTarget {
        node_name: Some(wire.target_node_name).filter(|name| !name.is_empty()),
        provider_id: wire.target_provider_id.filter(|id| !id.is_empty()),
        addresses: addresses.filter_map(|(index, it)| target_address(path, index, it, left_out)).collect(),
        description: wire.target_description,
    };
    Some(Route { name: wire.name, target, destination: destination.trunc(), is_blackhole: wire.blackhole, is_ours })
}

fn target_address(path: &str, index: usize, wire: v1::NodeAddress, left_out: &LeftOut) -> Option<Address> {
    let Some(kind) = address_type(&wire) else {
        let field = format!("{path}.target_addresses[{index}].type");
        left_out.report(&field, &wire.address, "has no type, or none that this core knows");
        return None;
    };
    Some(Address { kind, value: wire.address })
}

/// The results of a batch of so many items, in the items' order.
pub fn route_results(items: usize, results: Vec<v1::RouteResult>) -> Vec<Result<RouteOutcome, ProviderError>> {
    let keys = (0..items).map(|key| key.to_string());
    let matched = matched(keys, results, "key", |result| std::mem::take(&mut result.key));
    matched.into_iter().map(|result| result.and_then(|(index, result)| outcome(index, result))).collect()
}

fn outcome(index: usize, result: v1::RouteResult) -> Result<RouteOutcome, ProviderError> {
    match result.outcome {
        Some(Outcome::Done(_)) => Ok(RouteOutcome::Done),
        Some(Outcome::InProgress(it)) => Ok(RouteOutcome::InProgress(poll_after(&it))),
        Some(Outcome::TargetNotFound(_)) => Ok(RouteOutcome::TargetNotFound),
        Some(Outcome::Error(error)) => Err(classify::item(&error)),
        None => Err(invalid(&format!("results[{index}]"), "has no outcome, or none that this core knows")),
    }
}
