//! What a plan does to the API server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use serde_json::json;

use super::*;
use crate::cluster::scripted::Objects;
use crate::controllers::node::tests::fixtures::{World, machine, provider, tainted};
use crate::model::instance::Lookup;
use crate::model::node::NetworkUnavailable;
use crate::names::{annotations, labels, taints};

/// Where the API server has the node.
const A: &str = "/api/v1/nodes/a";

fn observed(world: &World, name: &str, answer: Lookup) -> Observed {
    let node = world.ctx.nodes.get(name).unwrap();
    Observed { node, provider: Arc::new(provider()), configures_routes: false, refresh: false, answer: Some(answer) }
}

async fn acted(world: &World, observed: Observed) -> Result<Acted, WriteError> {
    act(&world.ctx.writer, &world.ctx.metrics, observed).await
}

fn label(nodes: &mut Objects, key: &str, value: &str) {
    nodes.get_mut(A).unwrap()["metadata"]["labels"][key] = json!(value);
    nodes.get_mut(A).unwrap()["metadata"]["resourceVersion"] = json!("1000");
}

#[tokio::test]
async fn a_node_is_initialised_by_two_writes_and_the_addresses_come_before_the_taint_goes() {
    let world = World::new([tainted("a")]);
    let after = acted(&world, observed(&world, "a", machine("a"))).await.unwrap();
    assert_eq!(world.server.node_writes("a"), ["PATCH status", "PATCH"]);
    let node = world.server.node("a");
    assert_eq!(*after.node, node);
    assert!(!node.is_uninitialized() && after.plan.initializes);
    assert_eq!(node.provider_id.as_deref(), Some("fake://a"));
    assert_eq!(node.addresses.iter().map(|address| address.value.as_str()).collect::<Vec<_>>(), ["10.0.0.1", "a"]);
    assert_eq!((node.zone(), node.labels[labels::INSTANCE_TYPE_BETA].as_str()), (Some("zone-a"), "small"));
    assert!(node.annotations[annotations::APPLIED_LABELS].contains(r#""example.com/rack":"r1""#));
    assert_eq!((world.ctx.metrics.writes.get(), world.ctx.metrics.conflicts.get()), (2, 0));
}

#[tokio::test]
async fn where_routes_are_configured_the_first_write_also_says_that_there_is_none_yet() {
    let world = World::new([tainted("a")]);
    let observed = Observed { configures_routes: true, ..observed(&world, "a", machine("a")) };
    acted(&world, observed).await.unwrap();
    assert_eq!(world.server.node_writes("a"), ["PATCH status", "PATCH"]);
    let node = world.server.node("a");
    assert_eq!((node.network_unavailable, node.addresses.len()), (NetworkUnavailable::NoRouteCreated, 2));
}

#[tokio::test]
async fn a_route_that_is_created_meanwhile_is_not_denied() {
    let world = World::new([tainted("a")]);
    world.server.before_write(|nodes| {
        label(nodes, "x", "y");
        nodes.get_mut(A).unwrap()["status"]["conditions"] =
            json!([{ "type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated" }]);
        None
    });
    let observed = Observed { configures_routes: true, ..observed(&world, "a", machine("a")) };
    acted(&world, observed).await.unwrap();
    let node = world.server.node("a");
    assert_eq!((node.network_unavailable, node.is_uninitialized()), (NetworkUnavailable::RouteCreated, false));
}

#[tokio::test]
async fn addresses_that_are_right_are_not_written() {
    let mut node = tainted("a");
    node["status"]["addresses"] =
        json!([{ "type": "InternalIP", "address": "10.0.0.1" }, { "type": "Hostname", "address": "a" }]);
    let world = World::new([node]);
    acted(&world, observed(&world, "a", machine("a"))).await.unwrap();
    assert_eq!(world.server.node_writes("a"), ["PATCH"]);
}

#[tokio::test]
async fn a_conflict_is_decided_anew_from_a_fresh_reading_with_the_same_answer() {
    let world = World::new([tainted("a")]);
    world.server.before_write(|nodes| {
        label(nodes, "example.com/rack", "theirs");
        None
    });
    acted(&world, observed(&world, "a", machine("a"))).await.unwrap();
    let node = world.server.node("a");
    assert!(!node.is_uninitialized());
    assert_eq!(node.labels["example.com/rack"], "theirs", "a label that came meanwhile is not overwritten");
    assert!(!node.annotations[annotations::APPLIED_LABELS].contains("rack"));
    assert_eq!((world.ctx.metrics.writes.get(), world.ctx.metrics.conflicts.get()), (2, 1));
}

#[tokio::test]
async fn a_conflict_between_the_writes_repeats_only_the_second() {
    let world = World::new([tainted("a")]);
    world.server.before_write(|_| None);
    world.server.before_write(|nodes| {
        label(nodes, "x", "y");
        None
    });
    acted(&world, observed(&world, "a", machine("a"))).await.unwrap();
    assert_eq!(world.server.node_writes("a"), ["PATCH status", "PATCH", "PATCH"]);
    assert_eq!((world.ctx.metrics.writes.get(), world.ctx.metrics.conflicts.get()), (2, 1));
}

#[tokio::test]
async fn a_taint_that_came_meanwhile_stays() {
    let world = World::new([tainted("a")]);
    world.server.before_write(|_| None);
    world.server.before_write(|nodes| {
        label(nodes, "x", "y");
        let taints = nodes.get_mut(A).unwrap()["spec"]["taints"].as_array_mut().unwrap();
        taints.push(json!({ "key": "node.kubernetes.io/not-ready", "effect": "NoExecute" }));
        None
    });
    acted(&world, observed(&world, "a", machine("a"))).await.unwrap();
    let node = world.server.node("a");
    assert!(node.has_taint("node.kubernetes.io/not-ready") && !node.has_taint(taints::UNINITIALIZED));
}

#[tokio::test]
async fn a_node_that_somebody_else_initialised_meanwhile_is_left_alone() {
    let world = World::new([tainted("a")]);
    world.server.before_write(|nodes| {
        label(nodes, "x", "y");
        let node = nodes.get_mut(A).unwrap();
        node["spec"] = json!({ "providerID": "fake://a", "taints": [] });
        node["status"]["addresses"] =
            json!([{ "type": "InternalIP", "address": "10.0.0.1" }, { "type": "Hostname", "address": "a" }]);
        None
    });
    let after = acted(&world, observed(&world, "a", machine("a"))).await.unwrap();
    assert!(!after.plan.writes() && !after.plan.initializes);
    assert_eq!(world.ctx.metrics.writes.get(), 0);
}

#[tokio::test]
async fn a_new_node_of_the_same_name_gets_nothing_of_the_old_ones_answer() {
    let world = World::new([tainted("a")]);
    world.server.before_write(|nodes| {
        label(nodes, "x", "y");
        nodes.get_mut(A).unwrap()["metadata"]["uid"] = json!("another");
        None
    });
    assert!(matches!(acted(&world, observed(&world, "a", machine("a"))).await, Err(WriteError::Gone)));
    assert_eq!(world.server.node("a").provider_id, None);
}

#[tokio::test]
async fn a_node_that_never_stops_changing_is_given_up_for_now() {
    let world = World::new([tainted("a")]);
    (0..ATTEMPTS).for_each(|_| world.server.before_write(|_| Some(409)));
    assert!(matches!(acted(&world, observed(&world, "a", machine("a"))).await, Err(WriteError::Conflict)));
    assert_eq!(world.ctx.metrics.conflicts.get(), u64::from(ATTEMPTS));
}

#[tokio::test]
async fn a_plan_without_writes_asks_the_api_server_nothing() {
    let world = World::new([tainted("a")]);
    acted(&world, observed(&world, "a", Lookup::NotFound)).await.unwrap();
    acted(&world, observed(&world, "a", Lookup::NotMine(String::new()))).await.unwrap();
    assert!(world.server.calls().is_empty());
}
