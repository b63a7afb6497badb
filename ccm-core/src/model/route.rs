//! Routes of the cloud's routing table, and the results of calls about them.
use std::time::Duration;

use ipnet::IpNet;
use jiff::Timestamp;

use super::node::{Address, Node};

/// The table of the cluster, as one complete list returned it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteTable {
    /// Every route, in the provider's order; a destination may come several times.
    pub routes: Vec<Route>,
    /// When the cloud's data was read, if the provider says so.
    pub observed_at: Option<Timestamp>,
}

/// A route that the provider listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Its name in the cloud; may be empty, and identifies nothing.
    pub name: String,
    /// What it leads to.
    pub target: RouteTarget,
    /// The CIDR that is routed, without host bits.
    pub destination: IpNet,
    /// Whether the cloud drops the packets.
    pub is_blackhole: bool,
    /// Whether this cluster made it. Any other route is never replaced or deleted.
    pub is_ours: bool,
}

/// What a listed route leads to. Everything may be unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteTarget {
    /// The name of the node; never empty.
    pub node_name: Option<String>,
    /// `spec.providerID` of the node; never empty.
    pub provider_id: Option<String>,
    /// The addresses that the route leads to; empty if it leads to a machine.
    pub addresses: Vec<Address>,
    /// The target in the cloud's words, for people; may be empty.
    pub description: String,
}

impl RouteTarget {
    /// Whether this is the node's machine: by providerID where both have one, otherwise by name; and every address that is known
    /// of the target must be the node's.
    pub fn is(&self, node: &Node) -> bool {
        let is_named = match (&self.provider_id, &node.provider_id) {
            (Some(listed), Some(id)) => listed == id,
            _ => self.node_name.as_deref() == Some(node.name.as_str()),
        };
        is_named && self.addresses.iter().all(|listed| node.addresses.iter().any(|address| address.value == listed.value))
    }
}

/// A route that is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedRoute {
    /// The CIDR to route.
    pub destination: IpNet,
    /// `metadata.name` of the node.
    pub node_name: String,
    /// `metadata.uid` of the node, from which the provider may build a name.
    pub node_uid: String,
    /// `spec.providerID` of the node.
    pub provider_id: Option<String>,
    /// `status.addresses` of the node.
    pub addresses: Vec<Address>,
}

/// What a call did about one route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteOutcome {
    /// The route is as requested.
    Done,
    /// The cloud has not finished; repeat the same call after this time.
    InProgress(Duration),
    /// The cloud does not know the machine that the route is to lead to.
    TargetNotFound,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::scripted::model;
    use crate::model::node::AddressType;

    #[test]
    fn a_target_is_a_node_by_provider_id_then_by_name_and_never_with_an_address_of_another_machine() {
        // listed name, listed providerID, listed address, the node's providerID, is it the node
        let cases = [
            (Some("a"), None, None, None, true),
            (Some("a"), None, None, Some("sim://1"), true),
            (Some("a"), Some("sim://1"), None, None, true),
            (Some("b"), Some("sim://1"), None, Some("sim://1"), true),
            (None, Some("sim://1"), None, Some("sim://1"), true),
            (Some("a"), Some("sim://2"), None, Some("sim://1"), false),
            (None, Some("sim://1"), None, None, false),
            (Some("b"), None, None, Some("sim://1"), false),
            (None, None, None, Some("sim://1"), false),
            (Some("a"), None, Some("10.0.0.1"), None, true),
            (Some("a"), None, Some("10.0.0.9"), None, false),
            (Some("a"), Some("sim://1"), Some("10.0.0.9"), Some("sim://1"), false),
            (None, None, Some("10.0.0.1"), None, false),
        ];
        for (name, listed_id, address, id, expected) in cases {
            let node = model(&json!({
                "metadata": { "name": "a", "uid": "u" },
                "spec": { "providerID": id },
                "status": { "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }] },
            }));
            let address = address.map(|value| Address { kind: AddressType::ExternalIp, value: value.to_owned() });
            let target = RouteTarget {
                node_name: name.map(str::to_owned),
                provider_id: listed_id.map(str::to_owned),
                addresses: address.into_iter().collect(),
                description: String::new(),
            };
            assert_eq!(target.is(&node), expected, "{target:?} and {id:?}");
        }
    }
}
