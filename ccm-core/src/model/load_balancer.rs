//! Load balancers, and the results of calls about them.
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use super::instance::Warning;

/// A transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

/// `status.loadBalancer`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadBalancerStatus {
    /// The addresses, in their order.
    pub ingress: Vec<Ingress>,
}

/// One address of a load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ingress {
    /// The address.
    pub address: IngressAddress,
    /// The state of each port.
    pub ports: Vec<PortStatus>,
}

/// Where clients reach a load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IngressAddress {
    /// An IP address, and how its traffic arrives at nodes; `None` leaves that to Kubernetes, whose default is VIP.
    Ip(IpAddr, Option<IpMode>),
    /// A DNS name.
    Hostname(String),
    /// Both, for one place.
    IpAndHostname(IpAddr, Option<IpMode>, String),
}

impl IngressAddress {
    /// From what was given of either; none: neither was.
    pub fn of(ip: Option<(IpAddr, Option<IpMode>)>, hostname: Option<String>) -> Option<Self> {
        match (ip, hostname) {
            (Some((ip, mode)), Some(name)) => Some(Self::IpAndHostname(ip, mode, name)),
            (Some((ip, mode)), None) => Some(Self::Ip(ip, mode)),
            (None, name) => name.map(Self::Hostname),
        }
    }

    /// The IP address and how its traffic arrives.
    pub fn ip(&self) -> Option<(IpAddr, Option<IpMode>)> {
        match self {
            Self::Ip(ip, mode) | Self::IpAndHostname(ip, mode, _) => Some((*ip, *mode)),
            Self::Hostname(_) => None,
        }
    }

    /// The DNS name.
    pub fn hostname(&self) -> Option<&str> {
        match self {
            Self::Hostname(name) | Self::IpAndHostname(_, _, name) => Some(name),
            Self::Ip(..) => None,
        }
    }
}

/// How traffic arrives at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpMode {
    /// With the load balancer's address as its destination.
    Vip,
    /// With the node's or the Pod's address as its destination.
    Proxy,
}

/// The state of one port of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortStatus {
    /// The Service's port.
    pub port: u16,
    /// Its protocol.
    pub protocol: Protocol,
    /// Why it does not work, in Kubernetes' form for such words.
    pub error: Option<String>,
}

/// The result of a call that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress<T> {
    /// The load balancer is in the desired state.
    Done(T),
    /// The cloud is still working on it; the same call, repeated after `poll_after`, returns the progress.
    InProgress {
        /// When to repeat the call.
        poll_after: Duration,
        /// What the cloud is doing; may be empty.
        message: String,
    },
    /// Another controller creates the load balancers of such Services; the provider's message for the log.
    ImplementedElsewhere(String),
}

/// A load balancer that works.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ensured {
    /// What becomes `status.loadBalancer`.
    pub status: LoadBalancerStatus,
    /// What the provider adds.
    pub extras: Extras,
}

/// What a provider adds to an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// Things the user should know, those included that were wrong in the answer itself.
    pub warnings: Vec<Warning>,
    /// Annotations for the Service; only those that the provider declared.
    pub annotations: BTreeMap<String, String>,
}

/// What Ensure would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Planned {
    /// Nothing; this is the present load balancer.
    AsAsked(Ensured),
    /// These changes, in words; never empty.
    Changes(Vec<String>),
}

/// A load balancer in the cloud that has this cluster's ownership tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedLoadBalancer {
    /// Its name in the cloud.
    pub name: String,
    /// The UID of the Service in the tag.
    pub service_uid: Option<String>,
    /// That Service's namespace, if the tag has it.
    pub service_namespace: Option<String>,
    /// That Service's name, if the tag has it.
    pub service_name: Option<String>,
    /// Its addresses.
    pub status: LoadBalancerStatus,
}
