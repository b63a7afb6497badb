//! A Service as the contract has it. It has everything of the model except resourceVersion and ccm-core's
//! condition, which are of no use to a provider.
use ccm_proto::v1;
use jiff::Timestamp;

use crate::model::load_balancer::{Ingress, IpMode, LoadBalancerStatus, PortStatus, Protocol};
use crate::model::service::{IpFamily, IpFamilyPolicy, Service, ServicePort, SessionAffinity, TrafficPolicy};

/// One Service.
pub fn service(service: &Service) -> v1::Service {
    v1::Service {
        namespace: service.namespace.clone(),
        name: service.name.clone(),
        uid: service.uid.clone(),
        labels: service.labels.clone().into_iter().collect(),
        annotations: service.annotations.clone().into_iter().collect(),
        finalizers: service.finalizers.clone(),
        times: Some(v1::ObjectTimes { created_at: Some(time(service.created_at)), deleted_at: service.deleted_at.map(time) }),
        generation: service.generation,
        ports: service.ports.iter().map(port).collect(),
        ip_families: service.ip_families.iter().map(|it| family(*it).into()).collect(),
        ip_family_policy: service.ip_family_policy.map_or(0, |it| family_policy(it).into()),
        external_traffic_policy: service.external_traffic_policy.map_or(0, |it| traffic_policy(it).into()),
        internal_traffic_policy: service.internal_traffic_policy.map_or(0, |it| traffic_policy(it).into()),
        session_affinity: service.session_affinity.map_or(0, |it| affinity(it).into()),
        session_affinity_timeout_seconds: service.session_affinity_timeout_seconds,
        load_balancer_source_ranges: service.load_balancer_source_ranges.clone(),
        load_balancer_class: service.load_balancer_class.clone(),
        load_balancer_ip: service.load_balancer_ip.clone(),
        health_check_node_port: service.health_check_node_port.map(u32::from),
        allocate_load_balancer_node_ports: service.allocate_load_balancer_node_ports,
        external_ips: service.external_ips.clone(),
        cluster_ips: service.cluster_ips.clone(),
        status: Some(status(&service.status)),
    }
}

fn time(time: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp { seconds: time.as_second(), nanos: time.subsec_nanosecond() }
}

fn port(port: &ServicePort) -> v1::ServicePort {
    v1::ServicePort {
        name: port.name.clone(),
        protocol: protocol(port.protocol).into(),
        app_protocol: port.app_protocol.clone(),
        port: port.port.into(),
        target_port: port.target_port.clone().unwrap_or_default(),
        node_port: port.node_port.map(u32::from),
    }
}

const fn protocol(protocol: Protocol) -> v1::Protocol {
    match protocol {
        Protocol::Tcp => v1::Protocol::Tcp,
        Protocol::Udp => v1::Protocol::Udp,
        Protocol::Sctp => v1::Protocol::Sctp,
    }
}

const fn family(family: IpFamily) -> v1::IpFamily {
    match family {
        IpFamily::V4 => v1::IpFamily::Ipv4,
        IpFamily::V6 => v1::IpFamily::Ipv6,
    }
}

const fn family_policy(policy: IpFamilyPolicy) -> v1::IpFamilyPolicy {
    match policy {
        IpFamilyPolicy::SingleStack => v1::IpFamilyPolicy::SingleStack,
        IpFamilyPolicy::PreferDualStack => v1::IpFamilyPolicy::PreferDualStack,
        IpFamilyPolicy::RequireDualStack => v1::IpFamilyPolicy::RequireDualStack,
    }
}

const fn traffic_policy(policy: TrafficPolicy) -> v1::TrafficPolicy {
    match policy {
        TrafficPolicy::Cluster => v1::TrafficPolicy::Cluster,
        TrafficPolicy::Local => v1::TrafficPolicy::Local,
    }
}

const fn affinity(affinity: SessionAffinity) -> v1::SessionAffinity {
    match affinity {
        SessionAffinity::None => v1::SessionAffinity::None,
        SessionAffinity::ClientIp => v1::SessionAffinity::ClientIp,
    }
}

fn status(status: &LoadBalancerStatus) -> v1::LoadBalancerStatus {
    v1::LoadBalancerStatus { ingress: status.ingress.iter().map(ingress).collect() }
}

fn ingress(ingress: &Ingress) -> v1::LoadBalancerIngress {
    let ip = ingress.address.ip();
    let mode = match ip.and_then(|(_, mode)| mode) {
        None => v1::LoadBalancerIpMode::Unspecified,
        Some(IpMode::Vip) => v1::LoadBalancerIpMode::Vip,
        Some(IpMode::Proxy) => v1::LoadBalancerIpMode::Proxy,
    };
    v1::LoadBalancerIngress {
        ip: ip.map(|(ip, _)| ip.to_string()),
        hostname: ingress.address.hostname().map(str::to_owned),
        ip_mode: mode.into(),
        ports: ingress.ports.iter().map(port_status).collect(),
    }
}

fn port_status(port: &PortStatus) -> v1::PortStatus {
    v1::PortStatus { port: port.port.into(), protocol: protocol(port.protocol).into(), error: port.error.clone() }
}
