//! Routes come with nodes, are replaced with them, and cost nothing while nothing changes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::world::{World, cidr, node, provider, route, with};
use crate::model::provider_info::ProviderInfo;
use crate::provider::ProviderState;
use crate::provider::scripted::routes::{Call, foreign};
use crate::telemetry::metrics::routes::{SyncOutcome, Trigger};

#[tokio::test(start_paused = true)]
async fn nodes_that_join_together_get_their_routes_in_full_batches_and_their_conditions() {
    let world = World::started([], []).await;
    for number in 0..250 {
        world.api.put_node(with(node(number), |node| {
            node["spec"]["podCIDRs"] = json!([cidr(number), format!("fd00:0:0:{number:x}::/64")]);
        }));
    }
    world.settle().await;
    assert_eq!(world.created().iter().map(Vec::len).collect::<Vec<_>>(), [100; 5]);
    assert_eq!((world.routes().len(), world.table.lists(), world.writes()), (500, 1, 250));
    assert!((0..250).all(|number| world.is_available(number)));
    assert_eq!(world.metrics.syncs(Trigger::NodeChange, SyncOutcome::Changed), 1);
}

#[tokio::test(start_paused = true)]
async fn an_idle_hour_and_a_restart_cost_a_few_lists_and_nothing_else() {
    let nodes = (0..50).map(|number| {
        with(node(number), |node| {
            node["status"]["conditions"] = json!([{ "type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated" }]);
        })
    });
    let routes = (0..50).map(route).chain([foreign("10.0.200.0/24"), foreign("172.16.0.0/16")]);
    let mut world = World::started(nodes, routes).await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!((10..=15).contains(&world.table.lists()), "{}", world.table.lists());
    let before = world.table.lists();
    world.stop().await;
    world.start().await;
    world.settle().await;
    assert_eq!(world.table.lists(), before + 1);
    assert!(world.table.calls().iter().all(|call| *call == Call::List));
    assert_eq!((world.writes(), world.events()), (0, Vec::new()));
    assert!(world.metrics.syncs(Trigger::Periodic, SyncOutcome::Noop) > 10);
}

#[tokio::test(start_paused = true)]
async fn the_route_of_a_node_that_is_gone_goes_and_those_of_others_stay() {
    let others = ["10.0.3.0/24", "10.9.0.0/24", "192.168.0.0/24"].map(foreign);
    let outside = with(node(4), |node| node["spec"]["podCIDRs"] = json!(["172.20.4.0/24"]));
    let world =
        World::started([node(1), node(2), node(5), node(6), outside], [route(1), route(2), route(6)].into_iter().chain(others))
            .await;
    assert_eq!(world.created().concat().len(), 2, "a route outside of --cluster-cidr is made, too");
    world.remove(2);
    world.remove(4);
    world.settle().await;
    assert_eq!(world.deleted(), [cidr(2)], "and stays when its node is gone");
    assert_eq!(world.routes().len(), 7);
    assert_eq!(world.table.lists(), 2, "the table was listed before");
    assert_eq!(world.metrics.deletions.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_machine_under_the_same_name_gets_the_route_by_one_replacement() {
    let world = World::started([node(1), node(2), node(3)], [route(1), route(2), route(3)]).await;
    world.remove(1);
    world.api.put_node(with(node(1), |node| {
        node["metadata"]["uid"] = json!("another");
        node["spec"]["providerID"] = json!("fake://m");
    }));
    world.settle().await;
    assert_eq!((world.created().concat().len(), world.deleted().len()), (1, 0));
    assert!(world.table.routes().iter().any(|route| route.target.provider_id.as_deref() == Some("fake://m")));
    world.change(1, |node| node["spec"]["podCIDRs"] = json!([cidr(9)]));
    world.settle().await;
    assert_eq!((world.created().concat().len(), world.deleted()), (2, vec![cidr(1)]));
    assert!(world.is_available(1));
}

#[tokio::test(start_paused = true)]
async fn a_node_waits_for_its_machine_and_keeps_its_route_while_it_is_being_deleted() {
    let waiting = with(node(1), |node| {
        node["spec"]["providerID"] = json!(null);
        node["spec"]["taints"] = json!([{ "key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule" }]);
    });
    let world = World::started([waiting], []).await;
    assert_eq!((world.created().len(), world.writes()), (0, 0));
    world.change(1, |node| node["spec"]["providerID"] = json!("fake://n1"));
    world.settle().await;
    assert_eq!(world.routes(), ["10.0.1.0/24 n1"]);
    world.change(1, |node| {
        node["metadata"]["deletionTimestamp"] = json!("2024-05-06T07:08:09Z");
        node["metadata"]["finalizers"] = json!(["example.com/wait"]);
    });
    tokio::time::sleep(Duration::from_mins(20)).await;
    assert_eq!((world.routes().len(), world.deleted().len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn foreign_and_unmanaged_nodes_get_no_routes_and_lose_none() {
    let of_others = with(node(1), |node| node["spec"]["providerID"] = json!("other://n1"));
    let unmanaged = with(node(2), |node| node["metadata"]["annotations"] = json!({ "ccm-core.dev/unmanaged": "true" }));
    let bare = with(node(3), |node| node["spec"]["providerID"] = json!(null));
    let world = World::started([of_others, unmanaged, bare, node(4), node(5)], [route(1), route(4)]).await;
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert_eq!(world.routes(), ["10.0.1.0/24 n1", "10.0.3.0/24 n3", "10.0.4.0/24 n4", "10.0.5.0/24 n5"]);
    assert_eq!((world.deleted().len(), world.condition(1), world.condition(2)), (0, None, None));
    assert!(world.is_available(3), "a node without providerID is this provider's to serve");
}

#[tokio::test(start_paused = true)]
async fn of_two_nodes_with_one_pod_cidr_the_older_has_the_route_until_it_is_gone() {
    let twin = with(node(2), |node| {
        node["spec"]["podCIDRs"] = json!([cidr(1)]);
        node["metadata"]["creationTimestamp"] = json!("2024-02-01T00:00:00Z");
    });
    let mut world = World::started([node(1), twin], []).await;
    assert_eq!(world.routes(), ["10.0.1.0/24 n1"]);
    assert_eq!(world.condition(2), Some(("True".into(), "NoRouteCreated".into())));
    assert_eq!(world.events(), [("FailedToCreateRoute".into(), "n2".into())]);
    world.remove(1);
    world.settle().await;
    assert_eq!((world.routes(), world.deleted().len()), (vec!["10.0.1.0/24 n2".to_owned()], 0));
    assert!(world.is_available(2));
}

#[tokio::test(start_paused = true)]
async fn without_the_capability_nothing_happens_and_readiness_says_so() {
    let without = ProviderInfo { capabilities: [].into(), ..provider() };
    let mut world = World::new([node(1), node(2)], [route(2)]);
    world.provider.send_replace(ProviderState::Ready(Arc::new(without)));
    world.start().await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!((world.table.calls().len(), world.writes()), (0, 0));
    assert!(world.warning("node-route-controller").unwrap().contains("does not serve routes"));
    world.provider.send_replace(ProviderState::Ready(Arc::new(provider())));
    world.settle().await;
    assert_eq!((world.routes().len(), world.warning("node-route-controller")), (2, None));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_runs_at_the_end_of_a_term_is_waited_for() {
    let mut world = World::started([], []).await;
    world.table.pause(true);
    world.api.put_node(node(1));
    world.table.until(|calls| matches!(calls.last(), Some(Call::Create(7, _)))).await;
    let table = world.table.clone();
    let (stopped, ()) = tokio::join!(tokio::time::timeout(Duration::from_mins(1), world.stop()), async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        table.pause(false);
    });
    assert!(stopped.is_ok());
    assert_eq!(world.routes().len(), 1);
}
