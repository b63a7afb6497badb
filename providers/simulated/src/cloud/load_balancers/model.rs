//! The words about load balancers: what one is, what it shall be, what is looked for. They are the JSON of the API and of the
//! files on disk too. Plain data: no clock, no I/O.
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The most queries a second that a load balancer can be told to let through.
pub const MAX_QPS: u32 = 1_000_000;

/// Whom a load balancer belongs to. The two UIDs decide, the names are for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Mark {
    /// The cluster.
    pub cluster_uid: String,
    /// The Service.
    pub service_uid: String,
    /// The Service's namespace.
    #[serde(default)]
    pub namespace: String,
    /// The Service's name.
    #[serde(default)]
    pub service: String,
}

impl Mark {
    /// Whether both are the same owner's.
    pub fn is_same_owner(&self, other: &Self) -> bool {
        (&self.cluster_uid, &self.service_uid) == (&other.cluster_uid, &other.service_uid)
    }
}

/// An address family, with the names Kubernetes uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Family {
    /// IPv4.
    IPv4,
    /// IPv6.
    IPv6,
}

impl Family {
    /// The family of an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::IPv4 } else { Self::IPv6 }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::IPv4 { "IPv4" } else { "IPv6" })
    }
}

/// How clients are told to reach a load balancer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Publish {
    /// By its addresses.
    #[default]
    Ip,
    /// By a DNS name.
    Hostname,
}

/// How traffic arrives at a target, with the names Kubernetes uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IpMode {
    /// With the load balancer's address as its destination.
    #[serde(rename = "VIP")]
    Vip,
    /// With the target's address as its destination.
    Proxy,
}

impl fmt::Display for IpMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Vip { "VIP" } else { "Proxy" })
    }
}

/// A transport protocol that this cloud balances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Tcp { "TCP" } else { "UDP" })
    }
}

/// A port that a load balancer listens on. Port and protocol tell one from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Listener {
    /// Where clients connect.
    pub port: u16,
    /// What they speak.
    pub protocol: Protocol,
    /// Where targets are reached; absent where Kubernetes allocated none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_port: Option<u16>,
}

/// A machine that a load balancer sends traffic to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Target {
    /// The name of its node.
    pub node: String,
    /// Which machine of that name, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
}

/// Targets, by name. Thousands of load balancers have the same thousands: they share one list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets(pub Arc<Vec<Target>>);

impl Targets {
    /// These targets, each name once.
    pub fn new(mut targets: Vec<Target>) -> Self {
        targets.sort();
        targets.dedup_by(|later, earlier| later.node == earlier.node);
        Self(Arc::new(targets))
    }
}

impl Serialize for Targets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Targets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::new)
    }
}

/// All that a load balancer shall be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Wanted {
    /// Whose it is.
    pub mark: Mark,
    /// The families that it has an address of, in their order.
    pub ip_families: Vec<Family>,
    /// How clients are told to reach it.
    #[serde(default)]
    pub publish: Publish,
    /// How its traffic arrives at targets; absent leaves that to Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_mode: Option<IpMode>,
    /// Its ports.
    pub listeners: Vec<Listener>,
    /// Its targets.
    pub targets: Targets,
    /// The most queries a second, 1 to [`MAX_QPS`]; absent means any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_qps: Option<u32>,
}

/// A load balancer, as the cloud keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancer {
    /// Its name: one in the cloud.
    pub name: String,
    /// What it was made to be.
    pub wanted: Wanted,
    /// An address for each family, in their order. No other load balancer has them.
    pub addresses: Vec<IpAddr>,
    /// Its DNS name, where that is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// From when on it works.
    pub ready_at: Timestamp,
    /// How often its owner has changed it, its creation included.
    pub mutations: u64,
}

impl LoadBalancer {
    /// Whether it works.
    pub fn is_ready(&self, now: Timestamp) -> bool {
        self.ready_at <= now
    }
}

/// Which load balancers are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Search {
    /// Those marked with this cluster.
    pub cluster_uid: String,
    /// Of them only those marked with this Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_uid: Option<String>,
    /// Besides them the one of this name, whosever it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub or_name: Option<String>,
    /// The Service in words, `NAMESPACE/NAME`: what the pattern of a fault is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<String>,
    /// Whether the caller is about to change what it finds: then it may be told to wait.
    #[serde(default)]
    pub to_change: bool,
}

impl Search {
    /// Whether this one is looked for.
    pub fn finds(&self, one: &LoadBalancer) -> bool {
        let mark = &one.wanted.mark;
        let service = self.service_uid.as_ref().is_none_or(|uid| *uid == mark.service_uid);
        (service && mark.cluster_uid == self.cluster_uid) || self.or_name.as_ref() == Some(&one.name)
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// The cloud is at work, and the caller shall not change anything now (fault `lb-in-progress`).
    #[serde(default)]
    pub at_work: bool,
    /// The load balancers, by name.
    pub load_balancers: Vec<LoadBalancer>,
}

/// A change behind the owner's back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "action", deny_unknown_fields)]
pub enum Edit {
    /// Change some of it.
    #[serde(rename_all = "camelCase")]
    Change {
        /// Targets that shall go.
        #[serde(default)]
        remove_targets: Vec<String>,
        /// Another maximum of queries a second.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_qps: Option<u32>,
    },
    /// Remove it.
    Remove {},
}
