//! Every difference there can be, and its words.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use jiff::Timestamp;

use super::*;
use crate::cloud::load_balancers::model::{Mark, Targets};

fn target(node: &str, id: Option<&str>) -> Target {
    Target { node: node.into(), provider_id: id.map(String::from) }
}

fn listener(port: u16, protocol: Protocol, node_port: u16) -> Listener {
    Listener { port, protocol, node_port: Some(node_port) }
}

fn base() -> Wanted {
    Wanted {
        mark: Mark::default(),
        ip_families: vec![Family::IPv4],
        publish: Publish::Ip,
        ip_mode: None,
        listeners: vec![listener(80, Protocol::Tcp, 30_000)],
        targets: Targets::new(vec![target("node-1", Some("sim://1")), target("node-2", None)]),
        max_qps: Some(10),
    }
}

fn there(wanted: Wanted) -> LoadBalancer {
    LoadBalancer {
        name: "web".into(),
        wanted,
        addresses: Vec::new(),
        hostname: None,
        ready_at: Timestamp::UNIX_EPOCH,
        mutations: 1,
    }
}

fn words(present: Option<&LoadBalancer>, wanted: &Wanted) -> Vec<String> {
    difference("web", present, wanted).iter().map(Change::to_string).collect()
}

#[test]
fn every_difference_is_said_in_words() {
    let two = vec![Family::IPv4, Family::IPv6];
    let targets = |targets| Wanted { targets: Targets::new(targets), ..base() };
    let table: Vec<(Wanted, Wanted, &[&str])> = vec![
        (base(), base(), &[]),
        (base(), Wanted { ip_families: two.clone(), ..base() }, &["add an IPv6 address"]),
        (Wanted { ip_families: two.clone(), ..base() }, base(), &["remove the IPv6 address"]),
        (
            Wanted { ip_families: two, ..base() },
            Wanted { ip_families: vec![Family::IPv6, Family::IPv4], ..base() },
            &["order addresses as IPv6, IPv4"],
        ),
        (base(), Wanted { publish: Publish::Hostname, ..base() }, &["publish a hostname in place of addresses"]),
        (Wanted { publish: Publish::Hostname, ..base() }, base(), &["publish addresses in place of a hostname"]),
        (base(), Wanted { ip_mode: Some(IpMode::Proxy), ..base() }, &["set IP mode to Proxy"]),
        (Wanted { ip_mode: Some(IpMode::Vip), ..base() }, base(), &["remove IP mode"]),
        (
            base(),
            Wanted { listeners: vec![listener(80, Protocol::Tcp, 30_001)], ..base() },
            &["change listener 80/TCP node port 30000 to 30001"],
        ),
        (
            base(),
            Wanted { listeners: vec![listener(80, Protocol::Udp, 30_000)], ..base() },
            &["add listener 80/UDP to node port 30000", "remove listener 80/TCP"],
        ),
        (
            base(),
            targets(vec![target("node-1", Some("sim://other")), target("node-7", None)]),
            &["replace target node-1 by another machine of that name", "remove target node-2", "add target node-7"],
        ),
        (base(), Wanted { max_qps: Some(50), ..base() }, &["set max QPS to 50"]),
        (base(), Wanted { max_qps: None, ..base() }, &["remove max QPS"]),
    ];
    for (present, wanted, expected) in table {
        assert_eq!(words(Some(&there(present)), &wanted), expected);
    }
}

#[test]
fn where_there_is_none_it_is_created_and_nothing_else_is_said() {
    assert_eq!(words(None, &base()), ["create load balancer web"]);
}

#[test]
fn the_order_of_ports_is_no_difference() {
    let both = [listener(80, Protocol::Tcp, 1), listener(80, Protocol::Udp, 2)];
    let present = there(Wanted { listeners: both.to_vec(), ..base() });
    let wanted = Wanted { listeners: both.into_iter().rev().collect(), ..base() };
    assert!(words(Some(&present), &wanted).is_empty());
}
