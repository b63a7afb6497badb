//! The items of a batch of routes, checked before anything begins. A refusal names the field.
use std::collections::HashSet;

use ccm_proto::v1;
use tonic::Code;

use super::change::Verb;
use crate::error::ProviderError;
use crate::provider::Result;
use crate::routes::{NewRoute, destination};
use crate::rpc::{nonempty, required};

/// An item of either batch.
pub(super) struct Item {
    pub(super) key: String,
    pub(super) name_hint: String,
    pub(super) route: Option<v1::Route>,
}

/// The keys and routes of a batch that keeps the contract. Each destination is without host bits, so that two spellings of one
/// destination are one thing.
pub(super) fn checked(verb: Verb, items: Vec<Item>, limit: u32) -> Result<Vec<(String, NewRoute)>> {
    if items.is_empty() {
        return Err(ProviderError::invalid_request("items", "at least one is required"));
    }
    if items.len() > limit as usize {
        let message = format!("items: {} are more than the {limit} that one batch may have", items.len());
        return Err(ProviderError::new(Code::InvalidArgument, v1::ErrorReason::BatchTooLarge, message));
    }
    let mut keys = HashSet::new();
    let check = |(at, item): (usize, Item)| {
        let field = format!("items[{at}].key");
        if !keys.insert(nonempty(&field, &item.key)?.to_owned()) {
            return Err(ProviderError::invalid_request(&field, format!("{} comes twice", item.key)));
        }
        let route = checked_route(verb, &format!("items[{at}].route"), item.route)?;
        Ok((item.key, NewRoute { name_hint: item.name_hint, route }))
    };
    items.into_iter().enumerate().map(check).collect()
}

fn checked_route(verb: Verb, field: &str, route: Option<v1::Route>) -> Result<v1::Route> {
    let route = required(field, route)?;
    nonempty(&format!("{field}.destination_cidr"), &route.destination_cidr)?;
    if verb == Verb::Create {
        nonempty(&format!("{field}.target_node_name"), &route.target_node_name)?;
    }
    let destination =
        destination(&route).map_err(|error| ProviderError { message: format!("{field}.{}", error.message), ..error })?;
    Ok(v1::Route { destination_cidr: destination.to_string(), ..route })
}
