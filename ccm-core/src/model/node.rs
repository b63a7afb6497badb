//! A Kubernetes node, reduced to what the controllers use.
use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::names;

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
    /// `metadata.creationTimestamp`.
    pub created_at: Timestamp,
    /// `metadata.deletionTimestamp`.
    pub deleted_at: Option<Timestamp>,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`, without those that only other tools read.
    pub annotations: BTreeMap<String, String>,
    /// `spec.providerID`; never empty.
    pub provider_id: Option<String>,
    /// `spec.taints`.
    pub taints: Vec<Taint>,
    /// `spec.unschedulable`: cordoned.
    pub unschedulable: bool,
    /// The condition Ready.
    pub ready: Ready,
    /// `status.conditions`, without times and words.
    pub conditions: Vec<Condition>,
    /// The condition NetworkUnavailable.
    pub network_unavailable: NetworkUnavailable,
    /// `spec.podCIDRs`, in their order.
    pub pod_cidrs: Vec<String>,
    /// `status.addresses`.
    pub addresses: Vec<Address>,
    /// `status.nodeInfo.systemUUID`; never empty.
    pub system_uuid: Option<String>,
}

impl Node {
    /// Whether it still waits for a cloud controller to initialise it.
    pub fn is_uninitialized(&self) -> bool {
        self.has_taint(names::taints::UNINITIALIZED)
    }

    /// Whether a taint has this key.
    pub fn has_taint(&self, key: &str) -> bool {
        self.taints.iter().any(|taint| taint.key == key)
    }

    /// The failure zone by the node's own labels: GA, otherwise beta.
    pub fn zone(&self) -> Option<&str> {
        self.label([names::labels::ZONE, names::labels::ZONE_BETA])
    }

    /// The region by the node's own labels: GA, otherwise beta.
    pub fn region(&self) -> Option<&str> {
        self.label([names::labels::REGION, names::labels::REGION_BETA])
    }

    fn label(&self, keys: [&str; 2]) -> Option<&str> {
        keys.iter().find_map(|key| self.labels.get(*key)).map(String::as_str)
    }
}

/// The condition Ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// kubelet says so.
    True,
    /// kubelet says it is not.
    False,
    /// kubelet has not been heard of, or there is no such condition.
    Unknown,
}

/// The condition NetworkUnavailable, as far as it is about routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkUnavailable {
    /// There is no such condition.
    #[default]
    Absent,
    /// False, since every Pod CIDR has its route.
    RouteCreated,
    /// True, since a Pod CIDR has no route.
    NoRouteCreated,
    /// True, for another reason than routes.
    ForAnotherReason,
    /// Not True, for another reason than routes: a network plugin may have set it.
    NotForAnotherReason,
}

impl NetworkUnavailable {
    /// Whether it says of the routes what is to be said: that every Pod CIDR has its own, or that one has none.
    pub fn says(self, has_routes: bool) -> bool {
        self == if has_routes { Self::RouteCreated } else { Self::NoRouteCreated }
    }
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    /// Its type.
    pub kind: String,
    /// Whether it holds.
    pub status: ConditionStatus,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConditionStatus {
    /// It does.
    True,
    /// It does not.
    False,
    /// Nobody knows.
    Unknown,
}

/// A taint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Taint {
    /// The key.
    pub key: String,
    /// The value, if any.
    pub value: Option<String>,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
    /// When a `NoExecute` taint was added.
    pub time_added: Option<Timestamp>,
}

/// What an address is for, with Kubernetes' names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddressType {
    /// `Hostname`.
    Hostname,
    /// `InternalIP`.
    InternalIp,
    /// `ExternalIP`.
    ExternalIp,
    /// `InternalDNS`.
    InternalDns,
    /// `ExternalDNS`.
    ExternalDns,
}

impl AddressType {
    /// Every type.
    pub const ALL: [Self; 5] = [Self::Hostname, Self::InternalIp, Self::ExternalIp, Self::InternalDns, Self::ExternalDns];

    /// Kubernetes' name of it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hostname => "Hostname",
            Self::InternalIp => "InternalIP",
            Self::ExternalIp => "ExternalIP",
            Self::InternalDns => "InternalDNS",
            Self::ExternalDns => "ExternalDNS",
        }
    }

    /// The type of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// An address of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// What it is for.
    pub kind: AddressType,
    /// The address itself: an IP address or a DNS name.
    pub value: String,
}
