//! Every field finds its place, and what cannot be read is left out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use serde_json::{Value, json};

use super::*;
use crate::cluster::scripted::service_model;

/// One with everything, as an API server sends it.
fn full() -> Value {
    json!({
        "metadata": {
            "namespace": "shop", "name": "web", "uid": "u1", "resourceVersion": "7", "generation": 3,
            "creationTimestamp": "2024-01-01T00:00:00Z", "deletionTimestamp": "2024-01-02T00:00:00Z",
            "labels": { "l": "1" },
            "annotations": { "a": "2", "kubectl.kubernetes.io/last-applied-configuration": "{}" },
            "finalizers": [names::LOAD_BALANCER_FINALIZER],
        },
        "spec": {
            "type": "LoadBalancer", "loadBalancerClass": "example.com/internal",
            "ports": [
                { "name": "http", "port": 80, "targetPort": "web", "nodePort": 30080, "protocol": "TCP", "appProtocol": "h2" },
                { "name": "dns", "port": 53, "targetPort": 5353, "protocol": "UDP" },
            ],
            "ipFamilies": ["IPv6", "IPv4"], "ipFamilyPolicy": "RequireDualStack",
            "externalTrafficPolicy": "Local", "internalTrafficPolicy": "Cluster",
            "sessionAffinity": "ClientIP", "sessionAffinityConfig": { "clientIP": { "timeoutSeconds": 60 } },
            "loadBalancerSourceRanges": ["10.0.0.0/8"], "loadBalancerIP": "192.0.2.1",
            "healthCheckNodePort": 31000, "allocateLoadBalancerNodePorts": false,
            "externalIPs": ["198.51.100.1"], "clusterIP": "fd00::1", "clusterIPs": ["fd00::1", "10.96.0.1"],
        },
        "status": {
            "loadBalancer": { "ingress": [
                { "ip": "192.0.2.1", "ipMode": "Proxy", "ports": [{ "port": 80, "protocol": "TCP", "error": "Busy" }] },
                { "hostname": "lb.example.com" },
            ] },
            "conditions": [
                { "type": "Theirs", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2024-01-01T00:00:00Z" },
                {
                    "type": "LoadBalancerReady", "status": "True", "reason": "Ready", "message": "fine",
                    "lastTransitionTime": "2024-01-01T01:00:00Z", "observedGeneration": 2,
                },
            ],
        },
    })
}

#[test]
fn every_field_finds_its_place() {
    let service = service_model(&full());
    let http = ServicePort {
        name: "http".into(),
        protocol: Protocol::Tcp,
        app_protocol: Some("h2".into()),
        port: 80,
        target_port: Some("web".into()),
        node_port: Some(30080),
    };
    let dns = ServicePort {
        name: "dns".into(),
        protocol: Protocol::Udp,
        app_protocol: None,
        port: 53,
        target_port: Some("5353".into()),
        node_port: None,
    };
    let error = PortStatus { port: 80, protocol: Protocol::Tcp, error: Some("Busy".into()) };
    let ip = IngressAddress::Ip("192.0.2.1".parse().unwrap(), Some(IpMode::Proxy));
    let name = IngressAddress::Hostname("lb.example.com".into());
    let expected = Service {
        namespace: "shop".into(),
        name: "web".into(),
        uid: "u1".into(),
        resource_version: "7".into(),
        generation: 3,
        created_at: "2024-01-01T00:00:00Z".parse().unwrap(),
        deleted_at: Some("2024-01-02T00:00:00Z".parse().unwrap()),
        labels: [("l".to_owned(), "1".to_owned())].into(),
        annotations: [("a".to_owned(), "2".to_owned())].into(),
        finalizers: vec![names::LOAD_BALANCER_FINALIZER.into()],
        is_load_balancer: true,
        load_balancer_class: Some("example.com/internal".into()),
        ports: vec![http, dns],
        ip_families: vec![IpFamily::V6, IpFamily::V4],
        ip_family_policy: Some(IpFamilyPolicy::RequireDualStack),
        external_traffic_policy: Some(TrafficPolicy::Local),
        internal_traffic_policy: Some(TrafficPolicy::Cluster),
        session_affinity: Some(SessionAffinity::ClientIp),
        session_affinity_timeout_seconds: Some(60),
        load_balancer_source_ranges: vec!["10.0.0.0/8".into()],
        load_balancer_ip: Some("192.0.2.1".into()),
        health_check_node_port: Some(31000),
        allocate_load_balancer_node_ports: Some(false),
        external_ips: vec!["198.51.100.1".into()],
        cluster_ips: vec!["fd00::1".into(), "10.96.0.1".into()],
        status: LoadBalancerStatus {
            ingress: vec![Ingress { address: ip, ports: vec![error] }, Ingress { address: name, ports: vec![] }],
        },
        condition: Some(Condition {
            ready: true,
            reason: "Ready".into(),
            message: "fine".into(),
            observed_generation: 2,
            since: "2024-01-01T01:00:00Z".parse().unwrap(),
        }),
    };
    assert_eq!(service, expected);
}

#[test]
fn empty_is_the_same_as_absent() {
    let spec = json!({
        "type": "ClusterIP", "loadBalancerClass": "", "loadBalancerIP": "", "healthCheckNodePort": 0,
        "sessionAffinity": "None", "ports": [{ "port": 80, "nodePort": 0 }],
    });
    let service = service_model(&json!({ "metadata": { "namespace": "shop", "name": "web" }, "spec": spec }));
    assert!(!service.is_load_balancer && service.load_balancer_class.is_none() && service.load_balancer_ip.is_none());
    assert_eq!((service.health_check_node_port, service.ports[0].node_port), (None, None));
    assert_eq!((service.ports[0].protocol, service.session_affinity), (Protocol::Tcp, Some(SessionAffinity::None)));
    assert_eq!((service.status, service.condition, service.generation), (LoadBalancerStatus::default(), None, 0));
}

#[test]
fn addresses_that_cannot_be_read_are_left_out() {
    let ingress = json!([{}, { "ip": "", "hostname": "" }, { "ip": "ten" }, { "ip": "::1", "ipMode": "New" }, { "ip": "x", "hostname": "lb" }]);
    let mut service = full();
    service["status"]["loadBalancer"]["ingress"] = ingress;
    let addresses: Vec<_> = service_model(&service).status.ingress.into_iter().map(|entry| entry.address).collect();
    assert_eq!(addresses, [IngressAddress::Ip("::1".parse().unwrap(), None), IngressAddress::Hostname("lb".into())]);
}

#[test]
fn an_entry_with_an_ip_and_a_host_name_keeps_both() {
    let mut service = full();
    service["status"]["loadBalancer"]["ingress"] = json!([{ "ip": "192.0.2.1", "ipMode": "VIP", "hostname": "lb" }]);
    let address = service_model(&service).status.ingress.remove(0).address;
    assert_eq!(address, IngressAddress::IpAndHostname("192.0.2.1".parse().unwrap(), Some(IpMode::Vip), "lb".into()));
}
