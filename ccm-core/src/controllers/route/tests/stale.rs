//! Routes of nodes that are gone: what removes them, and every false answer that must not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Method;
use jiff::Timestamp;

use super::world::{World, cidr, node, provider, route};
use crate::model::provider_info::ProviderInfo;
use crate::model::route::RouteTable;
use crate::provider::Outcome;
use crate::provider::scripted::routes::{error, foreign};

const WINDOW: Duration = Duration::from_mins(10);

async fn nodes(count: u32) -> World {
    World::started((0..count).map(node), (0..count).map(route)).await
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_shows_no_nodes_for_a_while_removes_nothing() {
    let world = nodes(20).await;
    (0..20).for_each(|number| world.nodes.hide(&format!("n{number}")));
    tokio::time::sleep(WINDOW * 3).await;
    world.api.nodes().into_iter().for_each(|node| world.nodes.show(node));
    world.settle().await;
    assert_eq!((world.deleted().len(), world.created().len(), world.routes().len()), (0, 0, 20));
}

#[tokio::test(start_paused = true)]
async fn an_api_server_without_nodes_trips_the_breaker_which_resets_when_they_are_back() {
    let mut world = nodes(20).await;
    (0..20).for_each(|number| world.remove(number));
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!((world.deleted().len(), world.routes().len()), (0, 20));
    let tripped = ("RouteDeletionBreakerTripped".to_owned(), "ccm-core-fake".to_owned());
    assert_eq!(world.events(), [tripped]);
    assert_eq!(world.metrics.breaker_tripped.get(), 1);
    assert!(world.warning("route-deletion").unwrap().contains("20 of this cluster's 20 routes"));
    (0..20).for_each(|number| world.api.put_node(node(number)));
    tokio::time::sleep(WINDOW).await;
    assert_eq!(world.events(), [("RouteDeletionBreakerReset".to_owned(), "ccm-core-fake".to_owned())]);
    assert_eq!((world.deleted().len(), world.metrics.breaker_tripped.get(), world.warning("route-deletion")), (0, 0, None));
}

#[tokio::test(start_paused = true)]
async fn nodes_that_this_term_saw_go_lose_their_routes_in_any_number_while_most_nodes_exist() {
    let world = nodes(20).await;
    (0..9).for_each(|number| world.remove(number));
    world.settle().await;
    assert_eq!((world.deleted().len(), world.routes().len()), (9, 11));
}

/// Most nodes went within a window: until it is over that may be a false answer.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_shrinks_to_less_than_half_waits_for_a_window() {
    let world = nodes(20).await;
    (0..15).for_each(|number| world.remove(number));
    let took = world.until("the routes to go", |world| world.routes().len() == 5).await;
    assert!(took + Duration::from_secs(30) >= WINDOW && took < WINDOW * 2, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn routes_of_nodes_that_no_term_saw_have_a_budget_which_a_new_term_has_spent() {
    let mut world = World::started((0..20).map(node), (0..23).map(route)).await;
    let took = world.until("the routes of unknown nodes to go", |world| world.deleted().len() == 3).await;
    assert!(took + Duration::from_mins(1) >= WINDOW, "the budget of the term before is unknown: {took:?}");
    assert_eq!(world.events().len(), 0);
    world.table.change(|routes| routes.extend((30..34).map(route)));
    world.until("the breaker to trip", |world| world.metrics.breaker_tripped.get() == 1).await;
    assert_eq!(world.deleted().len(), 3, "three of the four that may go in a window are used");
    let took = world.until("the next window", |world| world.deleted().len() > 3).await;
    assert!(took >= WINDOW / 3, "{took:?}");
    assert_eq!((world.deleted().len(), world.routes().len(), world.events().len()), (7, 20, 2));
    for _ in 0..5 {
        world.table.change(|routes| routes.extend((40..43).map(route)));
        world.stop().await;
        world.start().await;
        tokio::time::sleep(WINDOW / 2).await;
    }
    assert_eq!(world.deleted().len(), 7, "restarts do not refill it");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_lists_nothing_makes_routes_again_and_removes_none() {
    let world = nodes(20).await;
    let nothing = RouteTable { routes: Vec::new(), observed_at: None };
    world.table.list_always(Some(Ok(nothing)));
    world.remove(1);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!((world.deleted().len(), world.routes().len()), (0, 20));
    world.table.list_always(None);
    tokio::time::sleep(WINDOW).await;
    assert_eq!((world.deleted(), world.routes().len()), (vec![cidr(1)], 19));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_older_than_what_was_done_since_overrules_nothing() {
    let world = nodes(3).await;
    let before = Some(Timestamp::now());
    let old = RouteTable { routes: (0..3).map(route).collect(), observed_at: before };
    world.api.put_node(node(9));
    world.remove(1);
    world.settle().await;
    assert_eq!((world.created().concat().len(), world.deleted()), (1, vec![cidr(1)]));
    world.table.list_always(Some(Ok(old)));
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert_eq!((world.created().concat().len(), world.deleted().len()), (1, 1));
    world.remove(2);
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert_eq!(world.deleted().len(), 1, "the list is older than the disappearance of the node");
    world.table.list_always(None);
    tokio::time::sleep(Duration::from_mins(6)).await;
    assert_eq!(world.deleted().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_and_evidence_that_is_missing_remove_nothing() {
    let world = nodes(5).await;
    world.table.list_once(Err(error(Outcome::Terminal, "PERMISSION_MISSING")));
    world.remove(1);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(world.warning("route-table").unwrap().contains("cannot be listed"));
    world.api.fail_once(Method::GET, "/api/v1/nodes", 500);
    *world.who.instead.lock() = Some(Err(error(Outcome::Unknown, "DEADLINE_EXCEEDED")));
    world.settle().await;
    assert!(world.warning("route-deletion").unwrap().contains("identity could not be confirmed"));
    *world.who.instead.lock() = Some(Ok(ProviderInfo { cloud_identity: "another".into(), ..provider() }));
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert!(world.warning("route-deletion").unwrap().contains("\"another\" now"));
    *world.who.instead.lock() = None;
    assert_eq!(world.deleted().len(), 0);
    tokio::time::sleep(Duration::from_mins(6)).await;
    assert_eq!((world.deleted(), world.warning("route-deletion"), world.warning("route-table")), (vec![cidr(1)], None, None));
    assert!(world.who.asked.load(Ordering::Relaxed) > 2);
}

#[tokio::test(start_paused = true)]
async fn a_pod_cidr_that_a_new_node_has_got_is_not_freed_for_it() {
    let world = nodes(5).await;
    world.remove(1);
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.api.put_node(super::world::with(node(7), |node| node["spec"]["podCIDRs"] = serde_json::json!([cidr(1)])));
    world.settle().await;
    assert_eq!((world.deleted().len(), world.created().concat().len()), (0, 1));
    world.remove(7);
    world.settle().await;
    assert_eq!(world.deleted(), [cidr(1)]);
}

/// Between the list of nodes and the removal, and unseen by the watch, nothing can be known; before that it can.
#[tokio::test(start_paused = true)]
async fn a_node_that_only_the_api_server_knows_keeps_its_route() {
    let world = nodes(5).await;
    world.nodes.hide("n1");
    world.remove(2);
    world.settle().await;
    assert_eq!(world.deleted(), [cidr(2)]);
}

#[tokio::test(start_paused = true)]
async fn routes_of_others_are_there_after_a_day_of_nodes_that_come_and_go() {
    let others = ["10.200.0.0/24", "10.0.1.128/25", "192.168.0.0/24", "fd00:9::/64"].map(foreign);
    let world = World::started((0..10).map(node), (0..10).map(route).chain(others.clone())).await;
    for hour in 0..24 {
        world.remove(hour);
        world.api.put_node(node(hour + 10));
        tokio::time::sleep(Duration::from_hours(1)).await;
    }
    let routes = world.table.routes();
    assert!(others.iter().all(|other| routes.contains(other)));
    assert_eq!((routes.len(), world.deleted().len()), (14, 24));
}
