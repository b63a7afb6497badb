//! Who goes first, and how many at once.
use serde_json::json;

use super::fixtures::{Reply, Verb, World, config, finished, key, node, provider, refusal, service};
use super::{SECOND, pass, settle, start, start_with, until};
use crate::controllers::service::{Duration, ServiceConfig};
use crate::model::provider_info::{Limits, ProviderInfo};
use crate::provider::Outcome;

const MANY: usize = 100;

fn limited_to(max_concurrent_load_balancer_calls: usize) -> ProviderInfo {
    ProviderInfo { limits: Limits { max_concurrent_load_balancer_calls, ..Limits::default() }, ..provider() }
}

fn many() -> impl Iterator<Item = serde_json::Value> {
    (0..MANY).map(|it| finished(&format!("s{it}")))
}

/// One of the many whose targets were not updated yet.
fn waiting(world: &World) -> String {
    let busy: Vec<_> = world.cloud.made(Verb::Update).iter().map(|call| call.name().to_owned()).collect();
    (0..MANY).map(|it| format!("s{it}")).find(|name| !busy.contains(name)).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_new_service_and_a_deleted_one_go_before_a_hundred_updates() {
    let world = World::new(many(), [node("n1")]);
    world.becomes(limited_to(8));
    let running = start(&world);
    until("all were seen", || world.cloud.count(Verb::Plan) == MANY).await;
    world.cloud.hold(Verb::Update);
    world.server.put_node(node("n2"));
    until("updates run", || world.cloud.running() > 0).await;
    pass(SECOND).await;
    assert_eq!(world.cloud.running(), 6, "mass work leaves a quarter of the places");
    let deleted = waiting(&world);
    world.server.put_service(service("new"));
    world.delete(&deleted);
    settle().await;
    assert!(world.is_done("new"));
    assert!(world.server.service(&key(&deleted)).is_none());
    assert_eq!(world.cloud.answered(Verb::Update), 0);
    world.cloud.release(Verb::Update);
    until("all have their targets", || world.cloud.count(Verb::Update) == MANY - 1).await;
    assert!(world.cloud.most_at_once() <= 8);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_new_service_does_not_wait_for_a_hundred_updates_that_failed() {
    let world = World::new(many(), [node("n1")]);
    world.becomes(limited_to(8));
    let running = start(&world);
    until("all were seen", || world.cloud.count(Verb::Plan) == MANY).await;
    let fails = || Reply::Fail(refusal(Outcome::Retry { after: None }, "UNAVAILABLE"));
    world.cloud.always(Verb::Update, Some(fails()));
    world.cloud.hold(Verb::Ensure);
    world.server.put_node(node("n2"));
    until("all updates failed", || world.cloud.answered(Verb::Update) == MANY).await;
    pass(SECOND * 5).await;
    assert_eq!(world.cloud.running(), 5, "what is repeated leaves a quarter to changes, and one place to targets");
    world.server.put_service(service("new"));
    settle().await;
    assert_eq!(world.cloud.verbs("new"), [Verb::Ensure]);
    world.cloud.release(Verb::Ensure);
    until("all have their targets", || (0..MANY).all(|it| world.is_done(&format!("s{it}")))).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn as_many_run_at_once_as_the_provider_takes_or_the_operator_wishes_but_for_the_one_place_of_targets() {
    for (takes, wish, want) in [(8, None, 7), (8, Some(3), 2), (2, Some(10), 2), (8, Some(0), 1)] {
        let world = World::new((0..20).map(|it| service(&format!("s{it}"))), []);
        world.becomes(limited_to(takes));
        world.cloud.hold(Verb::Ensure);
        let running = start_with(&world, ServiceConfig { concurrent_syncs: wish, ..config() });
        until("they run", || world.cloud.running() == want).await;
        pass(SECOND).await;
        assert_eq!(world.cloud.count(Verb::Ensure), want);
        world.cloud.release(Verb::Ensure);
        until("all are done", || (0..20).all(|it| world.is_done(&format!("s{it}")))).await;
        assert_eq!(world.cloud.most_at_once(), want);
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_of_a_service_that_waits_for_its_targets_goes_first() {
    let world = World::new(many(), [node("n1")]);
    world.becomes(limited_to(4));
    let running = start(&world);
    until("all were seen", || world.cloud.count(Verb::Plan) == MANY).await;
    world.cloud.hold(Verb::Update);
    world.server.put_node(node("n2"));
    until("updates run", || world.cloud.running() == 3).await;
    let waiting = waiting(&world);
    world.change(&waiting, |service| service["spec"]["ports"][0]["port"] = json!(81));
    settle().await;
    let ensured = world.cloud.made(Verb::Ensure);
    assert_eq!((ensured.len(), ensured[0].name()), (1, waiting.as_str()));
    assert_eq!(ensured[0].targets, ["n1", "n2"]);
    world.cloud.release(Verb::Update);
    until("the others have their targets", || world.cloud.answered(Verb::Update) == MANY - 1).await;
    pass(SECOND * 5).await;
    assert!(!world.cloud.verbs(&waiting).contains(&Verb::Update), "it has got them already");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nodes_that_change_nothing_are_not_counted_as_a_slow_sync() {
    let world = World::new([], [node("n1")]);
    let running = start(&world);
    settle().await;
    world.server.put_node(node("n2"));
    pass(Duration::from_hours(2)).await;
    world.server.put_service(service("a"));
    until("a is done", || world.is_done("a")).await;
    let mut registry = prometheus_client::registry::Registry::default();
    registry.register("latency", "of syncs", world.metrics.node_sync_latency.clone());
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let sum = text.lines().find_map(|line| line.strip_prefix("latency_sum ")).unwrap();
    assert!(sum.parse::<f64>().unwrap() < 10.0, "{sum} seconds");
    running.stop().await;
}
