//! Calls that fail, and what follows.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;

use super::world::{World, cidr, node, provider, route};
use crate::model::route::RouteOutcome;
use crate::provider::scripted::routes::{Call, Reply, error, foreign};
use crate::provider::{Outcome, ProviderState};

fn failed_event(number: u32) -> (String, String) {
    ("FailedToCreateRoute".to_owned(), format!("n{number}"))
}

fn without_routes() -> (String, String) {
    ("True".to_owned(), "NoRouteCreated".to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_lasts_is_one_event_and_a_condition_and_is_retried_slowly() {
    let mut world = World::started([node(1)], [foreign(&cidr(1))]).await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!((world.events(), world.condition(1)), (vec![failed_event(1)], Some(without_routes())));
    let tries = world.created().len();
    assert!((12..30).contains(&tries), "{tries}");
    world.table.change(Vec::clear);
    tokio::time::sleep(Duration::from_mins(6)).await;
    assert!(world.is_available(1));
    assert_eq!(world.writes(), 2);
    world.table.change(|routes| routes[0] = foreign(&cidr(1)));
    tokio::time::sleep(Duration::from_mins(6)).await;
    assert_eq!(world.events(), [failed_event(1)], "a new failure is a new event");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_the_cloud_does_not_know_is_tried_again_when_the_node_changes() {
    let mut world = World::new([node(1)], []);
    (0..50).for_each(|_| world.table.reply(&cidr(1), Reply::Instead(Ok(RouteOutcome::TargetNotFound))));
    world.start().await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    let tries = world.created().len();
    assert!((5..20).contains(&tries), "{tries}");
    assert_eq!((world.events(), world.condition(1)), (vec![failed_event(1)], Some(without_routes())));
    world.change(1, |node| node["status"]["addresses"] = json!([{ "type": "InternalIP", "address": "192.168.9.9" }]));
    // Sooner than the first pause of what follows.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(world.created().len(), tries + 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_of_which_nothing_is_known_is_followed_by_a_list_and_not_repeated_where_it_worked() {
    let mut world = World::new([node(1), node(2)], []);
    let lost = || error(Outcome::Unknown, "DEADLINE_EXCEEDED");
    world.table.reply(&cidr(1), Reply::AfterDoing(Err(lost())));
    world.table.reply(&cidr(2), Reply::Instead(Err(lost())));
    world.start().await;
    world.settle().await;
    assert_eq!(world.routes(), ["10.0.1.0/24 n1", "10.0.2.0/24 n2"]);
    assert!(world.table.lists() >= 2 && world.is_available(1) && world.is_available(2));
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_followed_by_a_list() {
    let world = World::started([node(1), node(2), node(3)], [route(1), route(2), route(3)]).await;
    world.table.reply(&cidr(1), Reply::Instead(Err(error(Outcome::Retry { after: None }, "CONFLICT"))));
    world.remove(1);
    world.settle().await;
    assert_eq!((world.deleted(), world.routes().len()), (vec![cidr(1), cidr(1)], 2));
    assert!(world.table.lists() >= 3);
}

#[tokio::test(start_paused = true)]
async fn a_route_that_takes_long_is_asked_for_again_after_the_time_that_the_provider_says() {
    let mut world = World::new([node(1)], []);
    (0..3).for_each(|_| world.table.reply(&cidr(1), Reply::Instead(Ok(RouteOutcome::InProgress(Duration::from_secs(20))))));
    world.start().await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!((world.created().len(), world.condition(1), world.events().len()), (3, None, 0));
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!((world.created().len(), world.is_available(1)), (4, true));
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_pauses_every_call_and_then_one_probes() {
    let world = World::started([], []).await;
    let limited = || error(Outcome::Retry { after: Some(Duration::from_mins(2)) }, "RATE_LIMITED");
    (0..100).for_each(|number| world.table.reply(&cidr(number), Reply::Instead(Err(limited()))));
    world.table.pause(true);
    (0..400).for_each(|number| world.api.put_node(node(number)));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(world.created().len(), 4, "as many as the provider takes");
    world.table.pause(false);
    tokio::time::sleep(Duration::from_secs(110)).await;
    assert_eq!((world.created().len(), world.routes().len()), (4, 300));
    assert!(world.warning("cloud-rate-limit-routes").is_some());
    assert!(world.condition(0).is_none(), "nothing is wrong with these routes");
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!((world.created().len(), world.routes().len(), world.warning("cloud-rate-limit-routes")), (5, 400, None));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_answers_unimplemented_is_asked_who_it_is_once_and_nothing_is_removed() {
    let mut world = World::new([node(1), node(2), node(3)], [route(1), route(2)]);
    (0..100).for_each(|_| world.table.reply(&cidr(3), Reply::Instead(Err(error(Outcome::Unsupported, "UNIMPLEMENTED")))));
    world.start().await;
    world.settle().await;
    world.remove(2);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(world.warning("node-route-controller").unwrap().contains("does not serve routes"));
    let asked = world.who.asked.load(Ordering::Relaxed);
    assert_eq!((asked, world.created().len()), (1, 1));
    assert_eq!(world.condition(3), None);
}

#[tokio::test(start_paused = true)]
async fn while_the_provider_is_away_nothing_is_called_and_afterwards_all_goes_on_at_once() {
    let mut world = World::started([node(1)], []).await;
    let away = || ProviderState::Disconnected { since: std::time::Instant::now(), message: String::new() };
    world.table.reply(&cidr(2), Reply::Instead(Err(error(Outcome::Unknown, "CONNECTION_LOST"))));
    world.table.pause(true);
    world.api.put_node(node(2));
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.provider.send_replace(away());
    world.table.pause(false);
    world.api.put_node(node(3));
    tokio::time::sleep(Duration::from_mins(10)).await;
    let calls = world.table.calls().len();
    assert_eq!((world.routes().len(), world.events().len(), world.condition(2)), (1, 0, None));
    world.provider.send_replace(ProviderState::Ready(Arc::new(provider())));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(world.routes().len(), 3);
    assert!(world.table.calls().len() > calls && world.is_available(2));
}

#[tokio::test(start_paused = true)]
async fn without_the_lease_no_route_changes() {
    let world = World::started([node(1)], []).await;
    let term = world.term.send_replace(None);
    world.api.put_node(node(2));
    world.remove(1);
    world.settle().await;
    assert_eq!(world.routes(), ["10.0.1.0/24 n1"]);
    world.term.send_replace(term);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(world.routes().contains(&"10.0.2.0/24 n2".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn failures_that_pass_leave_the_condition_of_a_node_that_has_it() {
    let world = World::started([node(1)], []).await;
    let away = || error(Outcome::Retry { after: None }, "CLOUD_UNAVAILABLE");
    (0..2).for_each(|_| world.table.reply(&cidr(1), Reply::Instead(Err(away()))));
    world.table.change(Vec::clear);
    tokio::time::sleep(Duration::from_mins(7)).await;
    assert_eq!((world.routes().len(), world.writes()), (1, 1));
    (0..9).for_each(|_| world.table.reply(&cidr(1), Reply::Instead(Err(away()))));
    world.table.change(Vec::clear);
    world.table.until(|calls| calls.iter().filter(|call| matches!(call, Call::Create(..))).count() > 7).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.condition(1), Some(without_routes()));
}
