//! Load balancers over real sockets: what crosses, what each answer becomes, and how often a node set is sent.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::BTreeMap;
use std::time::Duration;

use ccm_provider_sdk::fake::{RawServer, Serving};
use jiff::Timestamp;
use tonic::Status;

use super::*;
use crate::model::load_balancer::{LoadBalancerStatus, Protocol};
use crate::model::node::{Address, AddressType, Condition, ConditionStatus, Taint};
use crate::model::service::{IpFamily, IpFamilyPolicy, ServicePort, SessionAffinity, TrafficPolicy};
use crate::model::target::Target;
use crate::provider::Outcome;
use crate::provider::scripted::scenario::{PATIENCE, Scenario, describe, refusal};

mod node_sets;
mod outcomes;
mod sdk;

pub fn target(name: &str) -> Target {
    let map = |key: &str| BTreeMap::from([(key.to_owned(), "v".to_owned())]);
    Target {
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        provider_id: Some(format!("fake://{name}")),
        labels: map("label"),
        annotations: map("annotation"),
        taints: vec![Taint { key: "t".to_owned(), value: None, effect: "NoExecute".to_owned(), time_added: None }],
        conditions: vec![Condition { kind: "Ready".to_owned(), status: ConditionStatus::True }],
        addresses: vec![Address { kind: AddressType::InternalIp, value: "10.0.0.1".to_owned() }],
        pod_cidrs: vec!["10.1.0.0/24".to_owned()],
        system_uuid: Some("uuid".to_owned()),
        zone: Some("z".to_owned()),
        region: None,
    }
}

pub fn targets(names: &[&str]) -> TargetSet {
    TargetSet::new(names.iter().map(|name| target(name)))
}

pub fn service(name: &str) -> Service {
    let port = ServicePort {
        name: "http".to_owned(),
        protocol: Protocol::Tcp,
        app_protocol: Some("http".to_owned()),
        port: 80,
        target_port: Some("web".to_owned()),
        node_port: Some(30080),
    };
    Service {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        resource_version: "1".to_owned(),
        generation: 3,
        created_at: Timestamp::UNIX_EPOCH,
        deleted_at: None,
        labels: BTreeMap::new(),
        annotations: BTreeMap::from([("example.com/size".to_owned(), "large".to_owned())]),
        finalizers: vec!["service.kubernetes.io/load-balancer-cleanup".to_owned()],
        is_load_balancer: true,
        load_balancer_class: None,
        ports: vec![port],
        ip_families: vec![IpFamily::V6, IpFamily::V4],
        ip_family_policy: Some(IpFamilyPolicy::RequireDualStack),
        external_traffic_policy: Some(TrafficPolicy::Local),
        internal_traffic_policy: None,
        session_affinity: Some(SessionAffinity::ClientIp),
        session_affinity_timeout_seconds: Some(60),
        load_balancer_source_ranges: vec!["10.0.0.0/8".to_owned()],
        load_balancer_ip: Some("192.0.2.9".to_owned()),
        health_check_node_port: Some(30081),
        allocate_load_balancer_node_ports: Some(false),
        external_ips: Vec::new(),
        cluster_ips: vec!["10.96.0.1".to_owned()],
        status: LoadBalancerStatus::default(),
        condition: None,
    }
}

/// Everything about load balancers, node sets included.
const ALL: &[v1::Capability] = &[
    v1::Capability::Lead,
    v1::Capability::LoadBalancers,
    v1::Capability::NodeSets,
    v1::Capability::PlanLoadBalancer,
    v1::Capability::ListLoadBalancers,
];
