//! Nodes come, go and change, and load balancers follow.
use serde_json::{Value, json};

use super::fixtures::{Verb, World, finished, node, provider, service, with};
use super::{SECOND, pass, settle, start, until};
use crate::controllers::service::Duration;
use crate::model::provider_info::{KeySelector, ProviderInfo};
use crate::names::{events, labels, taints};

fn not_ready(name: &str) -> Value {
    with(node(name), |it| it["status"]["conditions"][0]["status"] = json!("False"))
}

fn going(name: &str) -> Value {
    with(node(name), |it| it["spec"]["taints"] = json!([{ "key": taints::TO_BE_DELETED, "effect": "NoSchedule" }]))
}

fn updates(world: &World) -> Vec<Vec<String>> {
    world.cloud.made(Verb::Update).into_iter().map(|call| call.targets).collect()
}

/// A world whose Services are as asked.
async fn settled(services: usize, nodes: impl IntoIterator<Item = Value>) -> (World, super::Running) {
    let world = World::new((0..services).map(|it| finished(&format!("s{it}"))), nodes);
    let running = start(&world);
    until("all were seen", || world.cloud.answered(Verb::Plan) == services).await;
    settle().await;
    world.cloud.clear();
    (world, running)
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_nodes_is_one_round() {
    let (world, running) = settled(3, [node("n0")]).await;
    for it in 1..40 {
        world.server.put_node(node(&format!("n{it}")));
        pass(Duration::from_millis(20)).await;
    }
    pass(SECOND * 2).await;
    assert_eq!(world.cloud.calls().len(), 3);
    assert!(updates(&world).iter().all(|targets| targets.len() == 40));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nodes_that_never_come_to_rest_are_applied_now_and_then() {
    let (world, running) = settled(1, [node("n0")]).await;
    for it in 1..100 {
        world.server.put_node(node(&format!("n{it}")));
        pass(Duration::from_millis(50)).await;
    }
    let rounds = world.cloud.count(Verb::Update);
    assert!((3..=8).contains(&rounds), "{rounds} rounds in 5 seconds");
    pass(SECOND * 2).await;
    assert_eq!(updates(&world).last().unwrap().len(), 100);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_matters_to_no_target_is_no_call() {
    let (world, running) = settled(3, [node("n1"), node("n2")]).await;
    let harmless: [Value; 5] = [
        not_ready("n2"),
        node("n2"),
        with(node("n2"), |it| it["metadata"]["labels"] = json!({ "team": "red" })),
        with(node("n2"), |it| it["spec"]["taints"] = json!([{ "key": "other", "effect": "NoExecute" }])),
        with(node("n2"), |it| it["metadata"]["annotations"] = json!({ "volumes": "17" })),
    ];
    for change in harmless {
        world.server.put_node(change);
        pass(SECOND * 2).await;
    }
    let excluded = with(node("n3"), |it| {
        it["metadata"]["labels"] = json!({ labels::EXCLUDE_FROM_LOAD_BALANCERS: "" });
    });
    world.server.put_node(excluded);
    pass(Duration::from_mins(5)).await;
    assert!(world.cloud.calls().is_empty() && world.server.calls().iter().all(|call| call.method == "GET"));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_label_that_the_provider_asked_for_is_a_change_of_the_targets() {
    let (world, running) = settled(2, [node("n1")]).await;
    world.becomes(ProviderInfo { node_labels: KeySelector::new(["pool".to_owned()]), ..provider() });
    pass(SECOND * 5).await;
    let before = world.cloud.mutations();
    world.server.put_node(with(node("n1"), |it| it["metadata"]["labels"] = json!({ "pool": "a" })));
    pass(SECOND * 5).await;
    assert_eq!(world.cloud.mutations() - before, 2);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_changes_during_an_update_is_applied_after_it() {
    let (world, running) = settled(2, [node("n1")]).await;
    world.cloud.hold(Verb::Update);
    world.server.put_node(node("n2"));
    until("updates run", || world.cloud.running() == 2).await;
    world.server.put_node(node("n3"));
    pass(SECOND * 5).await;
    assert_eq!(world.cloud.count(Verb::Update), 2);
    world.cloud.release(Verb::Update);
    pass(SECOND * 5).await;
    let updates = updates(&world);
    assert_eq!(updates[..2], [["n1", "n2"], ["n1", "n2"]]);
    assert_eq!(updates[2..], [["n1", "n2", "n3"], ["n1", "n2", "n3"]]);
    running.stop().await;
}

/// Go's `TestSlowNodeSync`: a slow round must not take away what a Service got meanwhile.
#[tokio::test(start_paused = true)]
async fn a_slow_round_takes_no_target_away_that_came_meanwhile() {
    let (world, running) = settled(2, [node("n1")]).await;
    world.becomes(ProviderInfo {
        limits: crate::model::provider_info::Limits { max_concurrent_load_balancer_calls: 2, ..Default::default() },
        ..provider()
    });
    world.cloud.hold(Verb::Update);
    world.server.put_node(node("n2"));
    until("one update runs", || world.cloud.running() == 1).await;
    let slow = world.cloud.calls()[0].name().to_owned();
    let other = if slow == "s0" { "s1" } else { "s0" };
    world.server.put_node(node("n3"));
    pass(SECOND * 2).await;
    world.change(other, |service| service["spec"]["ports"][0]["port"] = json!(81));
    pass(SECOND).await;
    assert_eq!(world.cloud.made(Verb::Ensure)[0].targets, ["n1", "n2", "n3"]);
    world.cloud.release(Verb::Update);
    pass(SECOND * 5).await;
    assert_eq!(world.cloud.verbs(other), [Verb::Ensure], "it has all targets already");
    assert_eq!(updates(&world), [vec!["n1", "n2"], vec!["n1", "n2", "n3"]]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_about_to_go_drains_until_something_else_changes() {
    let (world, running) = settled(1, [node("n1"), node("n2")]).await;
    world.server.put_node(going("n2"));
    pass(Duration::from_mins(5)).await;
    assert!(world.cloud.calls().is_empty());
    world.server.put_node(node("n3"));
    pass(SECOND * 2).await;
    assert_eq!(updates(&world), [["n1", "n3"]]);
    world.remove_node("n2");
    pass(SECOND * 2).await;
    assert_eq!(updates(&world).len(), 1, "it was left out already");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stays_after_all_is_a_target_again_where_it_was_left_out() {
    let (world, running) = settled(1, [node("n1"), going("n2")]).await;
    world.server.put_service(service("new"));
    pass(SECOND * 2).await;
    assert_eq!(world.cloud.made(Verb::Ensure)[0].targets, ["n1"]);
    world.server.put_node(node("n2"));
    pass(SECOND * 2).await;
    assert_eq!(updates(&world), [["n1", "n2"], ["n1", "n2"]]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_last_target_goes_only_when_there_was_none_for_half_a_minute() {
    let (mut world, running) = settled(1, [node("n1")]).await;
    world.remove_node("n1");
    pass(SECOND * 29).await;
    assert!(world.cloud.calls().is_empty());
    world.server.put_node(node("n1"));
    pass(SECOND * 60).await;
    assert!(world.cloud.calls().is_empty(), "it was a flicker");
    world.remove_node("n1");
    pass(SECOND * 29).await;
    assert!(world.cloud.calls().is_empty());
    pass(SECOND * 3).await;
    assert_eq!(updates(&world), [Vec::<String>::new()]);
    assert_eq!(world.reasons(), [events::UNAVAILABLE_LOAD_BALANCER]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_change_while_all_nodes_seem_gone_keeps_the_targets() {
    let (world, running) = settled(1, [node("n1")]).await;
    world.remove_node("n1");
    pass(SECOND * 2).await;
    world.change("s0", |service| service["spec"]["ports"][0]["port"] = json!(81));
    pass(SECOND * 2).await;
    assert_eq!(world.cloud.made(Verb::Ensure)[0].targets, ["n1"]);
    pass(SECOND * 60).await;
    assert_eq!(updates(&world), [Vec::<String>::new()]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_without_nodes_takes_no_target_away_and_a_new_service_does_not_wait() {
    let world = World::new([finished("a"), service("new")], []);
    let running = start(&world);
    pass(SECOND * 29).await;
    assert!(world.cloud.verbs("a").is_empty());
    assert!(world.is_done("new"));
    world.server.put_node(node("n1"));
    pass(SECOND * 3).await;
    assert_eq!(world.cloud.made(Verb::Plan)[0].targets, ["n1"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_made_right_after_a_node_has_joined_gets_that_node_at_once() {
    let (mut world, running) = settled(1, [node("n0")]).await;
    world.server.put_node(node("n1"));
    settle().await;
    world.server.put_service(service("new"));
    until("both were given the node", || world.cloud.count(Verb::Ensure) == 1 && world.cloud.count(Verb::Update) == 1).await;
    pass(SECOND * 2).await;
    let ensured = world.cloud.made(Verb::Ensure);
    assert_eq!((ensured.len(), ensured[0].targets.as_slice()), (1, &["n0".to_owned(), "n1".to_owned()][..]));
    assert_eq!(updates(&world), [["n0", "n1"]], "the other one is updated in its time");
    assert!(!world.reasons().contains(&events::UNAVAILABLE_LOAD_BALANCER.to_owned()));
    running.stop().await;
}
