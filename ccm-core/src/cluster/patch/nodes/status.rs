//! What a patch of a node's status looks like.
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::model::node::Address;
use crate::names::network_unavailable as network;

/// What changes of a node's status, in one write; absent means "as it is".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeStatusPatch {
    /// The whole list of addresses.
    pub addresses: Option<Vec<Address>>,
    /// The condition `NetworkUnavailable`.
    pub network: Option<NetworkCondition>,
}

impl NodeStatusPatch {
    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What becomes of the condition `NetworkUnavailable`. Reasons and messages are upstream's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkCondition {
    /// True: the node has just joined.
    NoRouteYet,
    /// True: a Pod CIDR has no route.
    NoRoute,
    /// False: every Pod CIDR has its route.
    RouteCreated,
}

impl NetworkCondition {
    fn body(self, now: Timestamp) -> Value {
        let (status, reason, message) = match self {
            Self::NoRouteYet => ("True", network::NO_ROUTE_CREATED, "Node created without a route"),
            Self::NoRoute => ("True", network::NO_ROUTE_CREATED, "RouteController failed to create a route"),
            Self::RouteCreated => ("False", network::ROUTE_CREATED, "RouteController created a route"),
        };
        let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        json!({
            "type": network::TYPE,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        })
    }
}

/// `status` in a strategic merge patch, which merges conditions by their type.
pub(super) fn body(patch: &NodeStatusPatch, now: Timestamp) -> Value {
    let mut status = Map::new();
    if let Some(addresses) = &patch.addresses {
        status.insert("addresses".into(), addresses_body(addresses));
    }
    if let Some(network) = patch.network {
        status.insert("conditions".into(), json!([network.body(now)]));
    }
    status.into()
}

/// A strategic merge would merge addresses by their type and mix up two of one type: the list is replaced as a whole.
fn addresses_body(addresses: &[Address]) -> Value {
    let replace = json!({ "$patch": "replace" });
    let entries = addresses.iter().map(|address| json!({ "type": address.kind.as_str(), "address": address.value }));
    std::iter::once(replace).chain(entries).collect()
}
