//! The table of decisions about one node's routes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod upstream;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::cluster::scripted::model;
use crate::controllers::route::trouble::Failure;
use crate::model::node::{Address, AddressType};
use crate::model::ownership::Ownership;
use crate::model::route::{RouteTable, RouteTarget};
use crate::provider::scripted::routes::{foreign, ours};

const CIDR: &str = "10.0.1.0/24";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn node() -> Node {
    model(&json!({
        "metadata": { "name": "a", "uid": "uid-a", "creationTimestamp": "2024-01-01T00:00:00Z" },
        "spec": { "providerID": "fake://a", "podCIDRs": [CIDR] },
        "status": { "addresses": [{ "type": "InternalIP", "address": "192.168.0.1" }] },
    }))
}

fn table(routes: impl IntoIterator<Item = Route>) -> Table {
    let mut table = Table::default();
    table.list(RouteTable { routes: routes.into_iter().collect(), observed_at: None }, at(0));
    table
}

fn claims(nodes: impl IntoIterator<Item = (Node, Ownership)>) -> Claims {
    let mut claims = Claims::new(Duration::from_mins(10));
    for (node, ownership) in nodes {
        let name = node.name.clone();
        claims.see(&name, Some(Claimant::new(Arc::new(node), ownership)), Instant::now(), at(0));
    }
    claims
}

/// The plan for node `a` among `claims`, with nothing running.
fn plan(claims: &Claims, table: &Table, troubles: &Troubles<IpNet>, now: Instant) -> Plan {
    let claimant = claims.get("a").expect("node a");
    decide(&Observed { claimant, claims, table, troubles, is_busy: &|_| false }, now)
}

fn plan_for(node: Node, routes: impl IntoIterator<Item = Route>) -> Plan {
    plan(&claims([(node, Ownership::Ours)]), &table(routes), &Troubles::default(), Instant::now())
}

fn creates(node: Node, routes: impl IntoIterator<Item = Route>) -> Vec<String> {
    plan_for(node, routes).create.iter().map(|route| route.destination.to_string()).collect()
}

fn to_address(address: &str, route: Route) -> Route {
    let addresses = vec![Address { kind: AddressType::InternalIp, value: address.to_owned() }];
    Route { target: RouteTarget { addresses, ..route.target.clone() }, ..route }
}

#[test]
fn a_route_is_made_unless_a_listed_one_leads_to_the_node() {
    let unresolved = || Route { is_ours: true, ..foreign(CIDR) };
    let blackhole = |route: Route| Route { is_blackhole: true, ..route };
    let of_others = |route: Route| Route { is_ours: false, ..route };
    // name, what is listed, whether it is made
    let cases = [
        ("nothing", vec![], true),
        ("ours", vec![ours("a", CIDR)], false),
        ("ours to another node", vec![ours("b", CIDR)], true),
        ("ours to something unknown", vec![unresolved()], true),
        ("ours with host bits", vec![ours("a", "10.0.1.7/24")], false),
        ("ours to a part", vec![ours("a", "10.0.1.0/25")], true),
        ("a blackhole of ours to the node", vec![blackhole(ours("a", CIDR))], false),
        ("a blackhole of ours to another", vec![blackhole(ours("b", CIDR))], true),
        ("of others to the node", vec![of_others(ours("a", CIDR))], false),
        ("of others elsewhere: the provider refuses", vec![foreign(CIDR)], true),
        ("of others elsewhere, and ours", vec![foreign(CIDR), ours("a", CIDR)], false),
        ("twice ours", vec![ours("a", CIDR), ours("a", CIDR)], false),
        ("ours, and ours elsewhere", vec![ours("a", CIDR), ours("b", CIDR)], true),
        ("to an address of the node", vec![to_address("192.168.0.1", ours("a", CIDR))], false),
        ("to an address that it does not have", vec![to_address("192.168.0.9", ours("a", CIDR))], true),
    ];
    for (name, listed, made) in cases {
        assert_eq!(!creates(node(), listed).is_empty(), made, "{name}");
    }
}

#[test]
fn what_a_call_has_made_counts_until_a_newer_list() {
    let claims = claims([(node(), Ownership::Ours)]);
    let create = |table: &Table| plan(&claims, table, &Troubles::default(), Instant::now()).create.len();
    let (made, destination) = (wanted(&node(), CIDR.parse().unwrap()), CIDR.parse().unwrap());
    let mut table = table([]);
    table.made(made.clone(), at(10));
    assert_eq!(create(&table), 0);
    let empty = |time| RouteTable { routes: Vec::new(), observed_at: Some(at(time)) };
    table.list(empty(9), at(20));
    assert_eq!(create(&table), 0, "the list was read before");
    table.list(empty(11), at(21));
    assert_eq!(create(&table), 1);
    table.list(empty(9), at(22));
    assert_eq!(create(&table), 0, "an old list again");
    table.removed(destination, at(30));
    assert_eq!(create(&table), 1);
    table.made(made, at(31));
    table.unsettle(&destination);
    assert_eq!(create(&table), 1, "nothing is known but the list");
}

#[test]
fn addresses_of_what_a_call_has_made_count_unless_lists_show_none() {
    let moved = Node { addresses: vec![Address { kind: AddressType::InternalIp, value: "192.168.0.2".into() }], ..node() };
    for (listed, made) in
        [(vec![], 1), (vec![to_address("192.168.7.7", ours("b", "10.0.2.0/24"))], 1), (vec![ours("b", "10.0.2.0/24")], 0)]
    {
        let mut table = table(listed);
        table.made(wanted(&node(), CIDR.parse().unwrap()), at(10));
        let claims = claims([(moved.clone(), Ownership::Ours)]);
        assert_eq!(plan(&claims, &table, &Troubles::default(), Instant::now()).create.len(), made);
    }
}

#[test]
fn which_nodes_are_to_have_routes() {
    let taint = crate::model::node::Taint {
        key: crate::names::taints::UNINITIALIZED.into(),
        value: None,
        effect: "NoSchedule".into(),
        time_added: None,
    };
    let nameless = || Node { provider_id: None, ..node() };
    let cases = [
        ("ours", node(), Ownership::Ours, 1),
        ("no providerID, and nothing to wait for", nameless(), Ownership::Unclaimed, 1),
        ("not initialised", Node { taints: vec![taint.clone()], ..nameless() }, Ownership::Unclaimed, 0),
        ("tainted with a providerID", Node { taints: vec![taint], ..node() }, Ownership::Ours, 1),
        ("foreign", node(), Ownership::Foreign, 0),
        ("unmanaged", node(), Ownership::Unmanaged, 0),
        ("being deleted", Node { deleted_at: Some(at(0)), ..node() }, Ownership::Ours, 1),
        ("without Pod CIDRs", Node { pod_cidrs: vec![], ..node() }, Ownership::Ours, 0),
        ("with a Pod CIDR that is none", Node { pod_cidrs: vec!["x".into()], ..node() }, Ownership::Ours, 0),
        ("dual stack", Node { pod_cidrs: vec![CIDR.into(), "fd00::/64".into()], ..node() }, Ownership::Ours, 2),
    ];
    for (name, node, ownership, count) in cases {
        let plan = plan(&claims([(node, ownership)]), &table([]), &Troubles::default(), Instant::now());
        assert_eq!((plan.create.len(), plan.routes_are_made), (count, None), "{name}");
    }
    let unlisted = plan(&claims([(node(), Ownership::Ours)]), &Table::default(), &Troubles::default(), Instant::now());
    assert_eq!(unlisted, Plan::default(), "before the first list nothing is known");
}

#[test]
fn of_two_nodes_with_one_pod_cidr_the_older_has_it_whoever_it_belongs_to() {
    let older = |ownership| (Node { name: "b".into(), created_at: at(-100_000_000), ..node() }, ownership);
    let younger = |ownership| (Node { name: "b".into(), created_at: at(100_000_000), ..node() }, ownership);
    for (other, taken) in [
        (older(Ownership::Ours), true),
        (older(Ownership::Foreign), true),
        (older(Ownership::Unmanaged), true),
        (younger(Ownership::Ours), false),
        (younger(Ownership::Foreign), false),
    ] {
        let plan = plan(&claims([(node(), Ownership::Ours), other]), &table([]), &Troubles::default(), Instant::now());
        assert_eq!((plan.taken.len(), plan.create.len()), (usize::from(taken), usize::from(!taken)));
        assert_eq!(plan.routes_are_made, taken.then_some(false));
    }
}

/// What failed last, and what the condition says then.
#[test]
fn the_condition_is_false_only_with_every_route_and_true_only_for_what_does_not_pass_by_itself() {
    let dual = Node { pod_cidrs: vec![CIDR.into(), "10.0.2.0/24".into()], ..node() };
    let (claims, now) = (claims([(dual.clone(), Ownership::Ours)]), Instant::now());
    let first = ours("a", CIDR);
    let second = ours("a", "10.0.2.0/24");
    let with = fingerprint(&wanted(&dual, second.destination));
    let cases = [
        (vec![], Some(None)),
        (vec![Failure::Terminal], Some(Some(false))),
        (vec![Failure::TargetNotFound], Some(Some(false))),
        (vec![Failure::InProgress(Duration::from_secs(5))], Some(None)),
        (vec![Failure::RateLimited(None)], Some(None)),
        (vec![Failure::Absent; 5], Some(None)),
        (vec![Failure::Unsupported], Some(None)),
        (vec![Failure::Unknown; 2], Some(None)),
        (vec![Failure::Unknown; 3], Some(Some(false))),
        (vec![Failure::Retry(None); 2], Some(None)),
        (vec![Failure::Retry(None), Failure::Conflict(None), Failure::Retry(None)], Some(Some(false))),
    ];
    for (failures, expected) in cases {
        let mut troubles = Troubles::default();
        failures.iter().for_each(|failure| troubles.failed(second.destination, *failure, with, now));
        let found = plan(&claims, &table([first.clone()]), &troubles, now).routes_are_made;
        assert_eq!(Some(found), expected, "{failures:?}");
        let both = plan(&claims, &table([first.clone(), second.clone()]), &troubles, now);
        assert_eq!((both.routes_are_made, both.create.len()), (Some(true), 0), "{failures:?}");
        let other = Troubles::default();
        assert_eq!(plan(&claims, &table([first.clone()]), &other, now).create.len(), 1);
    }
}

#[test]
fn a_route_waits_for_its_pause_and_for_a_call_that_runs_unless_the_node_has_changed() {
    let claims_of = |node| claims([(node, Ownership::Ours)]);
    let (claims, table, now) = (claims_of(node()), table([]), Instant::now());
    let (destination, mut troubles) = (CIDR.parse().unwrap(), Troubles::default());
    troubles.failed(destination, Failure::TargetNotFound, fingerprint(&wanted(&node(), destination)), now);
    assert_eq!(plan(&claims, &table, &troubles, now).create.len(), 0);
    assert_eq!(plan(&claims, &table, &troubles, now + Duration::from_secs(2)).create.len(), 1);
    for changed in [
        Node { provider_id: Some("fake://b".into()), ..node() },
        Node { uid: "another".into(), ..node() },
        Node { addresses: vec![], ..node() },
    ] {
        let changed = claims_of(changed);
        assert_eq!(plan(&changed, &table, &troubles, now).create.len(), 1);
    }
    let claimant = claims.get("a").unwrap();
    let busy = Observed { claimant, claims: &claims, table: &table, troubles: &Troubles::default(), is_busy: &|_| true };
    assert_eq!(decide(&busy, now), Plan::default());
}
