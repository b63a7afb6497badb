//! A Service, from what the API server sends to the model. What cannot be read is left out, never guessed.
#[cfg(test)]
mod tests;

use jiff::Timestamp;

use super::annotations;
use crate::cluster::wire::service as wire;
use crate::model::load_balancer::{Ingress, IngressAddress, IpMode, LoadBalancerStatus, PortStatus, Protocol};
use crate::model::service::{Condition, IpFamily, IpFamilyPolicy, Service, ServicePort, SessionAffinity, TrafficPolicy};
use crate::names;

/// A Service as the API server sent it.
pub fn service(service: wire::Service) -> Service {
    let wire::Service { metadata, spec, status } = service;
    let spec = spec.unwrap_or_default();
    let status = status.unwrap_or_default();
    Service {
        namespace: metadata.namespace.unwrap_or_default(),
        name: metadata.name,
        uid: metadata.uid.unwrap_or_default(),
        resource_version: metadata.resource_version.unwrap_or_default(),
        generation: metadata.generation.unwrap_or_default(),
        created_at: metadata.creation_timestamp.unwrap_or(Timestamp::UNIX_EPOCH),
        deleted_at: metadata.deletion_timestamp,
        labels: metadata.labels.unwrap_or_default(),
        annotations: annotations(metadata.annotations),
        finalizers: metadata.finalizers.unwrap_or_default(),
        is_load_balancer: spec.kind.as_deref() == Some("LoadBalancer"),
        load_balancer_class: spec.load_balancer_class.filter(|class| !class.is_empty()),
        ports: spec.ports.unwrap_or_default().into_iter().filter_map(port).collect(),
        ip_families: spec.ip_families.unwrap_or_default().iter().filter_map(|family| ip_family(family)).collect(),
        ip_family_policy: spec.ip_family_policy.as_deref().and_then(ip_family_policy),
        external_traffic_policy: spec.external_traffic_policy.as_deref().and_then(traffic_policy),
        internal_traffic_policy: spec.internal_traffic_policy.as_deref().and_then(traffic_policy),
        session_affinity: spec.session_affinity.as_deref().and_then(session_affinity),
        session_affinity_timeout_seconds: spec.session_affinity_config.and_then(affinity_timeout),
        load_balancer_source_ranges: spec.load_balancer_source_ranges.unwrap_or_default(),
        load_balancer_ip: spec.load_balancer_ip.filter(|ip| !ip.is_empty()),
        health_check_node_port: spec.health_check_node_port.and_then(port_number),
        allocate_load_balancer_node_ports: spec.allocate_load_balancer_node_ports,
        external_ips: spec.external_ips.unwrap_or_default(),
        cluster_ips: spec.cluster_ips.unwrap_or_default(),
        status: load_balancer(status.load_balancer.unwrap_or_default()),
        condition: status.conditions.unwrap_or_default().into_iter().find_map(condition),
    }
}

fn port(port: wire::ServiceEntry) -> Option<ServicePort> {
    Some(ServicePort {
        name: port.name.unwrap_or_default(),
        // Without one it is TCP.
        protocol: port.protocol.map_or(Some(Protocol::Tcp), |name| protocol(&name))?,
        app_protocol: port.app_protocol,
        port: port_number(port.port)?,
        target_port: port.target_port.map(|target| match target {
            wire::TargetPort::Number(number) => number.to_string(),
            wire::TargetPort::Name(name) => name,
        }),
        node_port: port.node_port.and_then(port_number),
    })
}

/// Kubernetes has 0 for "none".
fn port_number(number: i32) -> Option<u16> {
    u16::try_from(number).ok().filter(|number| *number != 0)
}

fn protocol(name: &str) -> Option<Protocol> {
    match name {
        "TCP" => Some(Protocol::Tcp),
        "UDP" => Some(Protocol::Udp),
        "SCTP" => Some(Protocol::Sctp),
        _ => None,
    }
}

fn ip_family(name: &str) -> Option<IpFamily> {
    match name {
        "IPv4" => Some(IpFamily::V4),
        "IPv6" => Some(IpFamily::V6),
        _ => None,
    }
}

fn ip_family_policy(name: &str) -> Option<IpFamilyPolicy> {
    match name {
        "SingleStack" => Some(IpFamilyPolicy::SingleStack),
        "PreferDualStack" => Some(IpFamilyPolicy::PreferDualStack),
        "RequireDualStack" => Some(IpFamilyPolicy::RequireDualStack),
        _ => None,
    }
}

fn traffic_policy(name: &str) -> Option<TrafficPolicy> {
    match name {
        "Cluster" => Some(TrafficPolicy::Cluster),
        "Local" => Some(TrafficPolicy::Local),
        _ => None,
    }
}

fn session_affinity(name: &str) -> Option<SessionAffinity> {
    match name {
        "None" => Some(SessionAffinity::None),
        "ClientIP" => Some(SessionAffinity::ClientIp),
        _ => None,
    }
}

fn affinity_timeout(config: wire::SessionAffinityConfig) -> Option<u32> {
    config.client_ip?.timeout_seconds.and_then(|seconds| u32::try_from(seconds).ok())
}

fn load_balancer(status: wire::LoadBalancer) -> LoadBalancerStatus {
    LoadBalancerStatus { ingress: status.ingress.unwrap_or_default().into_iter().filter_map(ingress).collect() }
}

fn ingress(ingress: wire::Ingress) -> Option<Ingress> {
    let mode = ingress.ip_mode.as_deref().and_then(|mode| match mode {
        "VIP" => Some(IpMode::Vip),
        "Proxy" => Some(IpMode::Proxy),
        _ => None,
    });
    let ip = ingress.ip.and_then(|ip| ip.parse().ok()).map(|ip| (ip, mode));
    let hostname = ingress.hostname.filter(|name| !name.is_empty());
    let ports = ingress.ports.unwrap_or_default().into_iter().filter_map(port_status).collect();
    Some(Ingress { address: IngressAddress::of(ip, hostname)?, ports })
}

fn port_status(status: wire::PortStatus) -> Option<PortStatus> {
    Some(PortStatus { port: port_number(status.port)?, protocol: protocol(&status.protocol)?, error: status.error })
}

/// Ours, not another's.
fn condition(condition: wire::Condition) -> Option<Condition> {
    (condition.kind == names::LOAD_BALANCER_READY).then(|| Condition {
        ready: condition.status == "True",
        reason: condition.reason.unwrap_or_default(),
        message: condition.message.unwrap_or_default(),
        observed_generation: condition.observed_generation.unwrap_or_default(),
        since: condition.last_transition_time.unwrap_or(Timestamp::UNIX_EPOCH),
    })
}
