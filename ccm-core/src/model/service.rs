//! A Kubernetes Service, with all that providers read of it. Plain data, without decisions.
use std::collections::BTreeMap;

use jiff::Timestamp;

use super::load_balancer::{LoadBalancerStatus, Protocol};
use crate::names;

/// A Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
    /// `metadata.generation`; 0 where the API server does not count it.
    pub generation: i64,
    /// `metadata.creationTimestamp`.
    pub created_at: Timestamp,
    /// `metadata.deletionTimestamp`.
    pub deleted_at: Option<Timestamp>,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`, without those that only other tools read.
    pub annotations: BTreeMap<String, String>,
    /// `metadata.finalizers`.
    pub finalizers: Vec<String>,
    /// Whether `spec.type` is `LoadBalancer`.
    pub is_load_balancer: bool,
    /// `spec.loadBalancerClass`; never empty.
    pub load_balancer_class: Option<String>,
    /// `spec.ports`, in their order.
    pub ports: Vec<ServicePort>,
    /// `spec.ipFamilies`, the primary one first.
    pub ip_families: Vec<IpFamily>,
    /// `spec.ipFamilyPolicy`.
    pub ip_family_policy: Option<IpFamilyPolicy>,
    /// `spec.externalTrafficPolicy`.
    pub external_traffic_policy: Option<TrafficPolicy>,
    /// `spec.internalTrafficPolicy`.
    pub internal_traffic_policy: Option<TrafficPolicy>,
    /// `spec.sessionAffinity`.
    pub session_affinity: Option<SessionAffinity>,
    /// `spec.sessionAffinityConfig.clientIP.timeoutSeconds`.
    pub session_affinity_timeout_seconds: Option<u32>,
    /// `spec.loadBalancerSourceRanges`.
    pub load_balancer_source_ranges: Vec<String>,
    /// `spec.loadBalancerIP`; never empty.
    pub load_balancer_ip: Option<String>,
    /// `spec.healthCheckNodePort`.
    pub health_check_node_port: Option<u16>,
    /// `spec.allocateLoadBalancerNodePorts`.
    pub allocate_load_balancer_node_ports: Option<bool>,
    /// `spec.externalIPs`.
    pub external_ips: Vec<String>,
    /// `spec.clusterIPs`, the primary one first.
    pub cluster_ips: Vec<String>,
    /// `status.loadBalancer`.
    pub status: LoadBalancerStatus,
    /// ccm-core's entry of `status.conditions`.
    pub condition: Option<Condition>,
}

impl Service {
    /// `NAMESPACE/NAME`, as queues and logs have it.
    pub fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Whether it has the finalizer that keeps it until its load balancer is removed.
    pub fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|it| it == names::LOAD_BALANCER_FINALIZER)
    }
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServicePort {
    /// The name; empty where it has none.
    pub name: String,
    /// The protocol.
    pub protocol: Protocol,
    /// The application protocol that the user names.
    pub app_protocol: Option<String>,
    /// The port that clients use.
    pub port: u16,
    /// The port of the Pods: a number or a name.
    pub target_port: Option<String>,
    /// The port on each node; `None` if none was allocated.
    pub node_port: Option<u16>,
}

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IpFamily {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// One family or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IpFamilyPolicy {
    /// `SingleStack`.
    SingleStack,
    /// `PreferDualStack`.
    PreferDualStack,
    /// `RequireDualStack`.
    RequireDualStack,
}

/// Which endpoints traffic may go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrafficPolicy {
    /// Those of any node.
    Cluster,
    /// Those of the node that received it.
    Local,
}

/// Whether a client sticks to a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionAffinity {
    /// It does not.
    None,
    /// By its address.
    ClientIp,
}

/// The Service condition [`names::LOAD_BALANCER_READY`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Whether the load balancer is in the desired state.
    pub ready: bool,
    /// A word in CamelCase.
    pub reason: String,
    /// The provider's words.
    pub message: String,
    /// `metadata.generation` of the Service that it refers to.
    pub observed_generation: i64,
    /// When `ready` last changed.
    pub since: Timestamp,
}
