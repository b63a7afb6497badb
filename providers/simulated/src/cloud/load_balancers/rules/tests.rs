//! Whose a name is, who gets which address, and what is refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use crate::cloud::load_balancers::model::{Listener, MAX_QPS, Protocol};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn wanted(service_uid: &str) -> Wanted {
    let target = |node: &str| Target { node: node.into(), provider_id: None };
    Wanted {
        mark: Mark {
            cluster_uid: "cluster".into(),
            service_uid: service_uid.into(),
            namespace: "default".into(),
            service: "web".into(),
        },
        ip_families: vec![Family::IPv4],
        publish: Publish::Ip,
        ip_mode: None,
        listeners: vec![Listener { port: 80, protocol: Protocol::Tcp, node_port: Some(30_000) }],
        targets: Targets::new(vec![target("node-2"), target("node-1"), target("node-2")]),
        max_qps: None,
    }
}

fn put(world: &mut LoadBalancers, name: &str, wanted: Wanted) -> Result<LoadBalancer, Failure> {
    let next = world.prepare(&Terms::default(), name, wanted, at(0))?;
    world.commit(next.clone());
    Ok(next)
}

#[test]
fn a_repeat_changes_nothing_but_the_number_of_mutations() {
    let mut world = LoadBalancers::default();
    let first = put(&mut world, "web", wanted("s")).unwrap();
    let again = put(&mut world, "web", wanted("s")).unwrap();
    assert_eq!((first.mutations, again.mutations), (1, 2));
    assert_eq!(again, LoadBalancer { mutations: 2, ..first.clone() });
    let nodes: Vec<_> = first.wanted.targets.0.iter().map(|target| target.node.as_str()).collect();
    assert_eq!(nodes, ["node-1", "node-2"]);
}

#[test]
fn a_second_family_comes_and_goes_and_the_first_address_stays() {
    let mut world = LoadBalancers::default();
    let single = put(&mut world, "web", wanted("s")).unwrap();
    let both = Wanted { ip_families: vec![Family::IPv6, Family::IPv4], ..wanted("s") };
    let dual = put(&mut world, "web", both).unwrap();
    assert!(dual.addresses[0].is_ipv6());
    assert_eq!(dual.addresses[1], single.addresses[0]);
    assert_eq!(put(&mut world, "web", wanted("s")).unwrap().addresses, single.addresses);
    assert_eq!(world.taken.len(), 1, "the other one is free again");
}

#[test]
fn somebody_elses_is_neither_changed_nor_removed() {
    let mut world = LoadBalancers::default();
    put(&mut world, "web", wanted("s")).unwrap();
    let mut other_cluster = wanted("s");
    other_cluster.mark.cluster_uid = "other".into();
    for foreign in [wanted("t"), other_cluster] {
        assert_eq!(world.may_remove("web", &foreign.mark).unwrap_err().code, FailureCode::NotOwned);
        let failure = put(&mut world, "web", foreign).unwrap_err();
        assert!(failure.code == FailureCode::NotOwned && failure.message.contains("default/web (UID s)"), "{failure}");
    }
    assert_eq!(world.may_remove("web", &wanted("s").mark), Ok(true));
    assert_eq!(world.may_remove("db", &wanted("s").mark), Ok(false));
}

#[test]
fn what_is_prepared_holds_its_address_and_its_place_until_it_is_abandoned() {
    let terms = Terms { max: Some(1), ..Terms::default() };
    let mut world = LoadBalancers::default();
    let first = world.prepare(&terms, "web", wanted("s"), at(0)).unwrap();
    assert_eq!(world.prepare(&terms, "db", wanted("t"), at(0)).unwrap_err().code, FailureCode::QuotaExceeded);
    assert!(world.all().is_empty(), "nobody sees it");
    world.abandon(&first);
    assert!(world.taken.is_empty());
    world.prepare(&terms, "db", wanted("t"), at(0)).unwrap();
}

#[test]
fn a_new_one_is_provisioned_once() {
    let terms = Terms { provisioning: Duration::from_secs(30), ..Terms::default() };
    let mut world = LoadBalancers::default();
    let first = world.prepare(&terms, "web", wanted("s"), at(0)).unwrap();
    assert_eq!([29, 30].map(|second| first.is_ready(at(second))), [false, true]);
    world.commit(first);
    let changed = world.prepare(&terms, "web", Wanted { max_qps: Some(5), ..wanted("s") }, at(100)).unwrap();
    assert!(changed.is_ready(at(100)));
}

#[test]
fn a_restart_knows_which_addresses_are_taken() {
    let mut world = LoadBalancers::default();
    let web = put(&mut world, "web", wanted("s")).unwrap();
    let mut restored = LoadBalancers::restore(world.all());
    assert_eq!(restored.all(), [web]);
    assert_eq!(restored.taken, world.taken);
    restored.remove("web");
    assert!(restored.taken.is_empty());
}

#[test]
fn equal_lists_of_targets_are_kept_once() {
    let mut world = LoadBalancers::default();
    let [web, db] = [("web", "s"), ("db", "t")].map(|(name, uid)| put(&mut world, name, wanted(uid)).unwrap());
    assert!(Arc::ptr_eq(&web.wanted.targets.0, &db.wanted.targets.0));
}

#[test]
fn an_edit_takes_targets_away_and_names_those_that_are_not_there() {
    let mut world = LoadBalancers::default();
    put(&mut world, "web", wanted("s")).unwrap();
    let remove = |node: &str| Edit::Change { remove_targets: vec![node.into()], max_qps: Some(7) };
    let edited = world.prepare_edit("web", &remove("node-1")).unwrap().unwrap();
    assert_eq!((edited.wanted.targets.0.len(), edited.wanted.max_qps, edited.mutations), (1, Some(7), 1));
    assert!(world.prepare_edit("web", &remove("node-9")).unwrap_err().message.contains("no target node-9"));
    assert!(world.prepare_edit("db", &remove("node-1")).unwrap_err().message.contains("no load balancer db"));
    assert_eq!(world.prepare_edit("web", &Edit::Remove {}), Ok(None));
}

#[test]
fn every_refusal_names_the_field() {
    let listener = |port, node_port| Listener { port, protocol: Protocol::Tcp, node_port };
    let good = wanted("s");
    let table = [
        ("", good.clone(), "name: \"\" is no name"),
        ("a_b", good.clone(), "name: \"a_b\" is no name"),
        ("web", wanted(""), "mark.serviceUid: is missing"),
        ("web", Wanted { ip_families: vec![], ..good.clone() }, "ipFamilies: must name"),
        ("web", Wanted { ip_families: vec![Family::IPv4; 2], ..good.clone() }, "ipFamilies: names one twice"),
        ("web", Wanted { listeners: vec![listener(0, None)], ..good.clone() }, "listeners[0]: a port"),
        ("web", Wanted { listeners: vec![listener(1, None); 2], ..good.clone() }, "listeners[1]: 1/TCP stands"),
        ("web", Wanted { max_qps: Some(0), ..good.clone() }, "maxQps: must be 1 to 1000000"),
        ("web", Wanted { max_qps: Some(MAX_QPS + 1), ..good }, "maxQps: must be 1 to 1000000"),
    ];
    for (name, wanted, expected) in table {
        let failure = put(&mut LoadBalancers::default(), name, wanted).unwrap_err();
        assert!(failure.code == FailureCode::Invalid && failure.message.starts_with(expected), "{failure}");
    }
}
