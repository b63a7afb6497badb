//! Routes of the cloud's routing table, and the results of calls about them.
use std::time::Duration;

use ipnet::IpNet;
use jiff::Timestamp;

use super::node::Address;

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
