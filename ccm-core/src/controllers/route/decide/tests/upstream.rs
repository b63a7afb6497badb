//! Upstream's cases of the route controller, v0.36 and v0.37, as data: which routes are made and which are removed. Its cases of the
//! condition are in `route/tests/conditions.rs`.
//!
//! These do not apply:
//! - "duplicate pod cidr" expects an error of its fake cloud; here a Pod CIDR that a node has twice is one route.
//! - "routes have no TargetNodeAddresses at the beginning" and "multicidr 2 nodes and few wrong routes" remove routes and make them again;
//!   here they are replaced, and a route that lists no address leads to a machine.
//! - "single cidr 2 nodes and an extra blackhole route in our range" also holds for a blackhole of an existing node, which is left alone here.
//! - A node without a Pod CIDR whose name is the target of a route gets the condition True; here the condition is left alone.
//! - The cases of the watch that concern a resync of its cache: here the table is listed by a timer. Which changes of a node matter is in
//!   `route/claims/tests.rs`.
use super::*;
use crate::controllers::route::decide::deletion::{Stale, candidates, is_inside};

const V4: [&str; 2] = ["10.120.0.0/24", "10.120.1.0/24"];
const V6: [&str; 2] = ["a00:100::/24", "a00:200::/24"];

fn upstream_node(name: &str, cidrs: &[&str], address: &str) -> Node {
    let addresses = vec![Address { kind: AddressType::InternalIp, value: address.to_owned() }];
    let pod_cidrs = cidrs.iter().map(ToString::to_string).collect();
    Node { name: name.to_owned(), uid: name.to_owned(), provider_id: None, addresses, pod_cidrs, ..node() }
}

fn route(target: &str, destination: &str) -> Route {
    let node_name = (!target.is_empty()).then(|| target.to_owned());
    Route { target: RouteTarget { node_name, ..RouteTarget::default() }, ..ours(target, destination) }
}

/// The destinations that are made and those that are removed.
fn reconciled(nodes: &[Node], routes: Vec<Route>) -> (Vec<String>, Vec<String>) {
    let claims = claims(nodes.iter().cloned().map(|node| (node, Ownership::Unclaimed)));
    let (table, troubles) = (table(routes), Troubles::default());
    let plans = nodes.iter().map(|node| {
        let claimant = claims.get(&node.name).unwrap();
        decide(&Observed { claimant, claims: &claims, table: &table, troubles: &troubles, is_busy: &|_| false }, Instant::now())
    });
    let made = plans.flat_map(|plan| plan.create).map(|route| route.destination.to_string()).collect();
    let cluster_cidrs = ["10.120.0.0/16", "a00::/8"].map(|cidr| cidr.parse().unwrap());
    let stale = Stale { table: &table, claims: &claims, cluster_cidrs: &cluster_cidrs, since: at(-1), waits: &|_| false };
    let mut removed: Vec<_> = candidates(&stale).routes.iter().map(|route| route.destination.to_string()).collect();
    removed.sort();
    (made, removed)
}

/// Name, nodes, routes; what is made, what is removed.
type Case<'a> = (&'a str, [Node; 2], Vec<Route>, &'a [&'a str], &'a [&'a str]);

#[test]
fn upstreams_cases_of_reconciliation() {
    let single = || [upstream_node("node-1", &V4[..1], "10.0.1.1"), upstream_node("node-2", &V4[1..], "10.0.2.1")];
    let dual = || [upstream_node("node-3", &[V4[0], V6[0]], "10.0.3.1"), upstream_node("node-4", &[V4[1], V6[1]], "10.0.4.1")];
    let all = || vec![route("node-3", V4[0]), route("node-4", V4[1]), route("node-3", V6[0]), route("node-4", V6[1])];
    let both = || vec![route("node-1", V4[0]), route("node-2", V4[1])];
    let and = |mut routes: Vec<Route>, more: Vec<Route>| {
        routes.extend(more);
        routes
    };
    let blackhole = |destination| Route { is_blackhole: true, ..to_address("10.0.100.1", route("", destination)) };
    let addressed = |routes: Vec<Route>| routes.into_iter().map(|route| to_address("10.0.13.1", route)).collect::<Vec<_>>();
    let without = [single()[0].clone(), Node { pod_cidrs: vec![], ..single()[1].clone() }];
    let everything = [V4[0], V6[0], V4[1], V6[1]];
    let cases: Vec<Case<'_>> = vec![
        ("routes have no addresses", dual(), all(), &[], &[]),
        ("addresses changed", dual(), addressed(all()), &everything, &[]),
        ("multicidr, no routes", dual(), vec![], &everything, &[]),
        ("multicidr, all routes", dual(), all(), &[], &[]),
        (
            "multicidr, wrong routes",
            dual(),
            vec![route("node-3", V4[1]), route("node-4", V4[0]), route("node-3", V6[1]), route("node-4", V6[0])],
            &everything,
            &[],
        ),
        ("multicidr, some routes", dual(), vec![route("node-3", V4[0]), route("node-4", V6[1])], &[V6[0], V4[1]], &[]),
        (
            "multicidr, too many routes",
            dual(),
            and(all(), vec![route("node-x", "10.120.2.0/24"), route("node-y", "a00:300::/24")]),
            &[],
            &["10.120.2.0/24", "a00:300::/24"],
        ),
        ("routes created", single(), both(), &[], &[]),
        ("addresses of nodes changed", single(), addressed(both()), &V4, &[]),
        ("one route created", single(), vec![route("node-1", V4[0])], &V4[1..], &[]),
        ("no routes", single(), vec![], &V4, &[]),
        (
            "too many routes",
            single(),
            and(both(), vec![route("node-3", "10.120.2.0/24"), route("node-4", "10.120.3.0/24")]),
            &[],
            &["10.120.2.0/24", "10.120.3.0/24"],
        ),
        (
            "one right and one wrong",
            single(),
            vec![route("node-1", V4[0]), route("node-3", "10.120.2.0/24")],
            &V4[1..],
            &["10.120.2.0/24"],
        ),
        ("a node without a Pod CIDR", without, vec![], &V4[..1], &[]),
        ("a blackhole in our range", single(), and(both(), vec![blackhole("10.120.2.0/24")]), &[], &["10.120.2.0/24"]),
        ("a blackhole elsewhere", single(), and(both(), vec![blackhole("10.1.2.0/24")]), &[], &[]),
    ];
    for (name, nodes, routes, made, removed) in cases {
        let strings = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(reconciled(&nodes, routes), (strings(made), strings(removed)), "{name}");
    }
    let twice = upstream_node("node-4", &[V4[1], V4[1]], "10.0.4.1");
    assert_eq!(reconciled(&[twice], vec![]).0, [V4[1]]);
}

#[test]
fn upstreams_cases_of_responsibility() {
    for (cluster, destination, expected) in [
        ("10.244.0.0/16", "10.244.0.0/24", true),
        ("10.244.0.0/16", "10.244.10.0/24", true),
        ("10.244.0.0/16", "10.244.255.0/24", true),
        ("10.244.0.0/14", "10.244.0.0/24", true),
        ("10.244.0.0/14", "10.247.255.0/24", true),
        ("a00:100::/10", "a00:100::/24", true),
        ("10.244.0.0/16", "10.224.0.0/24", false),
        ("10.244.0.0/16", "10.0.10.0/24", false),
        ("10.244.0.0/16", "10.255.255.0/24", false),
        ("10.244.0.0/14", "10.248.0.0/24", false),
        ("10.244.0.0/14", "10.243.255.0/24", false),
        ("a00:100::/10", "b00:100::/24", false),
        // Ours: upstream would remove a route that only overlaps.
        ("10.244.0.0/16", "10.244.0.0/15", false),
        ("10.244.0.0/16", "0.0.0.0/0", false),
    ] {
        assert_eq!(is_inside(&destination.parse().unwrap(), &[cluster.parse().unwrap()]), expected, "{cluster} {destination}");
    }
}
