//! Malformed and contradictory answers about load balancers, one row each.
#![allow(clippy::unwrap_used, clippy::panic)]
use std::time::Duration;

use super::*;
use crate::model::instance::Warning;

fn info() -> ProviderInfo {
    ProviderInfo { service_annotation_prefixes: vec!["example.com/".to_owned()], ..ProviderInfo::default() }
}

fn ip(text: &str) -> v1::LoadBalancerIngress {
    v1::LoadBalancerIngress { ip: Some(text.to_owned()), ..Default::default() }
}

fn host(text: &str) -> v1::LoadBalancerIngress {
    v1::LoadBalancerIngress { hostname: Some(text.to_owned()), ..Default::default() }
}

fn wire(ingress: Vec<v1::LoadBalancerIngress>) -> v1::LoadBalancerReady {
    v1::LoadBalancerReady { status: Some(v1::LoadBalancerStatus { ingress }), ..Default::default() }
}

fn ensure(outcome: EnsureOutcome) -> Result<Progress<Ensured>, ProviderError> {
    ensured(v1::EnsureLoadBalancerResponse { outcome: Some(outcome) }, &info())
}

fn read(ready: v1::LoadBalancerReady) -> Ensured {
    match ensure(EnsureOutcome::Ready(ready)).unwrap() {
        Progress::Done(ensured) => ensured,
        other => panic!("{other:?}"),
    }
}

fn messages(warnings: &[Warning]) -> Vec<&str> {
    warnings.iter().map(|it| it.message.as_str()).collect()
}

#[test]
fn an_answer_without_its_essentials_is_an_error_that_names_the_field() {
    let plan = |plan| planned(v1::PlanLoadBalancerResponse { outcome: Some(PlanOutcome::Plan(plan)) }, &info()).map(drop);
    let list = |names: &[&str]| {
        let load_balancers = names.iter().map(|it| v1::OwnedLoadBalancer { name: (*it).to_owned(), ..Default::default() });
        owned(vec![
            v1::ListLoadBalancersResponse::default(),
            v1::ListLoadBalancersResponse { load_balancers: load_balancers.collect() },
        ])
    };
    for (expected, result) in [
        ("outcome: is missing", ensured(v1::EnsureLoadBalancerResponse { outcome: None }, &info()).map(drop)),
        ("outcome: is missing", updated(v1::UpdateLoadBalancerResponse { outcome: None }, &info()).map(drop)),
        ("outcome: is missing", deleted(v1::EnsureLoadBalancerDeletedResponse { outcome: None }).map(drop)),
        ("outcome: is missing", planned(v1::PlanLoadBalancerResponse { outcome: None }, &info()).map(drop)),
        ("ready.status: is missing", ensure(EnsureOutcome::Ready(v1::LoadBalancerReady::default())).map(drop)),
        (
            "ready.status.ingress: not one of 2 can be used (ready.status.ingress[0].ip: \"nonsense\" is not an IP address",
            ensure(EnsureOutcome::Ready(wire(vec![ip("nonsense"), host("")]))).map(drop),
        ),
        ("ready.status.ingress: is empty", ensure(EnsureOutcome::Ready(wire(vec![]))).map(drop)),
        (
            "plan.status.ingress: is empty",
            plan(v1::LoadBalancerPlan { status: Some(v1::LoadBalancerStatus::default()), ..Default::default() }),
        ),
        ("plan.status: is missing", plan(v1::LoadBalancerPlan::default())),
        ("load_balancers[1].name: is missing", list(&["lb", ""]).map(drop)),
    ] {
        let error = result.unwrap_err();
        assert_eq!(error.reason, "INTERNAL", "{expected}");
        assert!(error.message.contains(expected), "\"{}\" does not say \"{expected}\"", error.message);
    }
}

#[test]
fn an_entry_may_have_an_ip_and_a_host_name_for_one_place() {
    let both = |ip: &str, name: &str| v1::LoadBalancerIngress { ip: Some(ip.to_owned()), ..host(name) };
    let read = read(wire(vec![
        v1::LoadBalancerIngress { ip_mode: 2, ..both("192.0.2.1", "LB.example.com.") },
        both("192.0.2.2", "no name"),
        both("no ip", "lb.example.com"),
    ]));
    let addresses: Vec<_> = read.status.ingress.iter().map(|it| it.address.clone()).collect();
    assert_eq!(
        addresses,
        [
            IngressAddress::IpAndHostname("192.0.2.1".parse().unwrap(), Some(IpMode::Proxy), "lb.example.com".to_owned()),
            IngressAddress::Ip("192.0.2.2".parse().unwrap(), None),
            IngressAddress::Hostname("lb.example.com".to_owned()),
        ]
    );
    assert_eq!(messages(&read.extras.warnings).len(), 2, "what is wrong is left out alone");
}

#[test]
fn useless_parts_are_left_out_with_a_warning_and_the_rest_stays() {
    let port = |port, protocol: v1::Protocol, error: Option<&str>| v1::PortStatus {
        port,
        protocol: protocol.into(),
        error: error.map(str::to_owned),
    };
    let ports = vec![
        port(80, v1::Protocol::Tcp, None),
        port(0, v1::Protocol::Tcp, None),
        port(65536, v1::Protocol::Tcp, None),
        port(53, v1::Protocol::Unspecified, None),
        port(443, v1::Protocol::Udp, Some("example.com/Full")),
        port(444, v1::Protocol::Udp, Some("it is full")),
    ];
    let read = read(wire(vec![
        v1::LoadBalancerIngress { ports, ip_mode: 2, ..ip("192.0.2.1") },
        v1::LoadBalancerIngress { ip_mode: 9, ..ip("2001:db8::1") },
        v1::LoadBalancerIngress { ip_mode: 1, ..host("LB.example.com.") },
        ip("192.0.2"),
        host(""),
        v1::LoadBalancerIngress::default(),
    ]));
    let addresses: Vec<_> = read.status.ingress.iter().map(|it| it.address.clone()).collect();
    assert_eq!(
        addresses,
        [
            IngressAddress::Ip("192.0.2.1".parse().unwrap(), Some(IpMode::Proxy)),
            IngressAddress::Ip("2001:db8::1".parse().unwrap(), None),
            IngressAddress::Hostname("lb.example.com".to_owned()),
        ]
    );
    assert_eq!(
        read.status.ingress[0].ports,
        [
            PortStatus { port: 80, protocol: Protocol::Tcp, error: None },
            PortStatus { port: 443, protocol: Protocol::Udp, error: Some("example.com/Full".to_owned()) },
        ]
    );
    assert!(read.extras.warnings.iter().all(|it| it.reason == "InvalidProviderAnswer"));
    let messages = messages(&read.extras.warnings);
    for expected in [
        "ready.status.ingress[0].ports[1].port: 0 is not a port; left out",
        "ready.status.ingress[0].ports[2].port: 65536 is not a port",
        "ready.status.ingress[0].ports[3].protocol: is not set",
        "ready.status.ingress[0].ports[5].error: \"it is full\" is not a word in CamelCase",
        "ready.status.ingress[1].ip_mode: is not one",
        "ready.status.ingress[2].ip_mode: is for ip only",
        "ready.status.ingress[3].ip: \"192.0.2\" is not an IP address",
        "ready.status.ingress[4].hostname: \"\" is not a DNS name",
        "ready.status.ingress[5]: has neither ip nor hostname",
    ] {
        assert!(messages.iter().any(|it| it.starts_with(expected)), "{expected} is missing in {messages:#?}");
    }
    assert_eq!(messages.len(), 9);
}

#[test]
fn a_provider_writes_only_the_annotations_that_it_declared() {
    let annotations: HashMap<_, _> = [
        ("example.com/name", "lb-1".to_owned()),
        ("example.com/bad key", String::new()),
        ("example.com/long", "x".repeat(20_000)),
        ("other.example.com/name", String::new()),
        ("ccm-core.dev/load-balancer-class", String::new()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    let info = ProviderInfo {
        service_annotation_prefixes: vec!["example.com/".to_owned(), "ccm-core.dev/".to_owned()],
        ..ProviderInfo::default()
    };
    let own = v1::Warning { reason: "Deprecated".to_owned(), message: "old".to_owned() };
    let done = v1::LoadBalancerUpdated { warnings: vec![own], annotations };
    let answer = updated(v1::UpdateLoadBalancerResponse { outcome: Some(UpdateOutcome::Updated(done)) }, &info).unwrap();
    let Progress::Done(extras) = answer else { panic!("{answer:?}") };
    assert_eq!(extras.annotations, BTreeMap::from([("example.com/name".to_owned(), "lb-1".to_owned())]));
    let messages = messages(&extras.warnings);
    assert_eq!(
        messages,
        [
            "updated.annotations: \"ccm-core.dev/load-balancer-class\" is the core's own; left out",
            "updated.annotations: \"example.com/bad key\" is not an annotation's key; left out",
            "updated.annotations: \"example.com/long\" has a value of more than 16 KiB; left out",
            "updated.annotations: \"other.example.com/name\" begins with none of the declared service_annotation_prefixes; left out",
            "old",
        ]
    );
}

#[test]
fn when_to_poll_again_is_kept_within_reason() {
    let after = |poll_after: Option<prost_types::Duration>| {
        let progress = v1::InProgress { poll_after, message: "listener".to_owned() };
        match ensure(EnsureOutcome::InProgress(progress)).unwrap() {
            Progress::InProgress { poll_after, message } if message == "listener" => poll_after,
            other => panic!("{other:?}"),
        }
    };
    let said = |seconds, nanos| Some(prost_types::Duration { seconds, nanos });
    assert_eq!(after(None), Duration::from_secs(5));
    assert_eq!(after(said(2, 0)), Duration::from_secs(2));
    assert_eq!(after(said(0, 0)), Duration::from_millis(100));
    assert_eq!(after(said(-7, 0)), Duration::from_secs(5));
    assert_eq!(after(said(i64::MAX, 0)), Duration::from_hours(1));
}
