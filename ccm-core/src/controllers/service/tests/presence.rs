//! The provider goes and returns, loses its capability and regains it; the lease is lost; the process ends.
use tokio_util::sync::CancellationToken;

use super::fixtures::{Reply, Verb, World, config, finished, node, provider, refusal, service};
use super::{SECOND, pass, settle, start, until};
use crate::cluster::nodes::Nodes;
use crate::cluster::presence::Presence;
use crate::controllers::service::{Duration, ServiceContext, run};
use crate::model::provider_info::ProviderInfo;
use crate::names::{self, events};
use crate::provider::Outcome;
use crate::telemetry::health::Check;

fn without_load_balancers() -> ProviderInfo {
    ProviderInfo { capabilities: [].into(), ..provider() }
}

#[tokio::test(start_paused = true)]
async fn nothing_begins_while_the_provider_is_away_and_all_is_due_when_it_returns() {
    let world = World::new([service("a"), finished("b")], [node("n1")]);
    world.loses_the_provider();
    let running = start(&world);
    settle().await;
    world.server.put_service(service("c"));
    world.delete("b");
    world.server.put_node(node("n2"));
    pass(Duration::from_mins(10)).await;
    assert!(world.cloud.calls().is_empty() && world.server.calls().is_empty());
    world.becomes(provider());
    until("a and c are done", || world.is_done("a") && world.is_done("c")).await;
    assert!(world.server.service("default/b").is_none());
    assert!(world.cloud.made(Verb::Ensure).iter().all(|call| call.targets == ["n1", "n2"]));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_returns_ends_every_pause() {
    let world = World::new([service("a")], []);
    let refused = refusal(Outcome::Terminal, "USER_CONFIGURATION");
    world.cloud.reply(Verb::Ensure, "a", [Reply::Fail(refused)]);
    let running = start(&world);
    settle().await;
    assert_eq!(world.cloud.count(Verb::Ensure), 1);
    world.loses_the_provider();
    settle().await;
    world.becomes(provider());
    settle().await;
    assert!(world.is_done("a"), "no time has passed");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_goes_and_returns_unchanged_is_not_asked_about_what_is_done() {
    let world = World::new([service("a")], [node("n1")]);
    let running = start(&world);
    until("a is done", || world.is_done("a")).await;
    world.loses_the_provider();
    pass(SECOND * 5).await;
    world.becomes(provider());
    pass(Duration::from_mins(5)).await;
    assert_eq!(world.cloud.calls().len(), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_capability_that_is_lost_tears_nothing_down_and_everything_goes_on_when_it_returns() {
    let mut world = World::new([finished("kept"), finished("deleted")], [node("n1")]);
    let running = start(&world);
    until("all were seen", || world.cloud.answered(Verb::Plan) == 2).await;
    settle().await;
    world.cloud.clear();
    world.becomes(without_load_balancers());
    settle().await;
    world.server.put_service(service("new"));
    world.delete("deleted");
    world.server.put_node(node("n2"));
    pass(Duration::from_hours(2)).await;
    assert!(world.cloud.calls().is_empty());
    assert!(world.server.service("default/deleted").unwrap().has_finalizer());
    assert!(!world.server.service("default/new").unwrap().has_finalizer());
    assert!(matches!(world.health.checks().get(names::controllers::SERVICE), Some(Check::Warning(_))));
    let mut told: Vec<_> = world.notes().into_iter().map(|note| (note.subject.name, note.reason)).collect();
    told.sort();
    let unsupported = |name: &str| (name.to_owned(), events::LOAD_BALANCERS_UNSUPPORTED.to_owned());
    assert_eq!(told, [unsupported("deleted"), unsupported("new")], "only those that want something");

    world.becomes(provider());
    until("new is done", || world.is_done("new")).await;
    until("deleted is gone", || world.server.service("default/deleted").is_none()).await;
    pass(SECOND * 5).await;
    assert_eq!(world.cloud.verbs("kept"), [Verb::Update]);
    assert!(world.health.checks().is_empty());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_the_lease_nothing_is_called_and_with_it_everything_is() {
    let world = World::new([service("a"), finished("b")], [node("n1")]);
    let term = world.term.send_replace(None);
    let running = start(&world);
    settle().await;
    world.delete("b");
    pass(Duration::from_mins(1)).await;
    assert_eq!(world.cloud.mutations(), 0);
    assert!(world.server.calls().is_empty());
    world.term.send_replace(term);
    until("a is done", || world.is_done("a")).await;
    until("b is gone", || world.server.service("default/b").is_none()).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_what_changes_the_cloud_and_for_the_writes_that_follow() {
    let world = World::new([service("a")], []);
    world.cloud.hold(Verb::Ensure);
    let running = start(&world);
    until("the cloud is asked", || world.cloud.running() == 1).await;
    world.server.put_service(service("b"));
    running.shutdown.cancel();
    pass(SECOND * 30).await;
    assert!(!running.task.is_finished());
    world.cloud.release(Verb::Ensure);
    running.stop().await;
    assert!(world.is_done("a"));
    assert!(world.cloud.verbs("b").len() <= 1);
}

#[tokio::test(start_paused = true)]
async fn shutdown_drops_plans_and_pauses() {
    let world = World::new([finished("a"), service("slow")], []);
    world.cloud.hold(Verb::Plan);
    world.cloud.reply(Verb::Ensure, "slow", [Reply::Busy(Duration::from_hours(1))]);
    let running = start(&world);
    until("a is looked at", || world.cloud.count(Verb::Plan) == 1).await;
    settle().await;
    running.stop().await;
    assert_eq!((world.cloud.running(), world.cloud.answered(Verb::Plan)), (0, 0));
    assert!(!world.is_done("slow"));
}

#[tokio::test(start_paused = true)]
async fn nothing_begins_before_the_first_lists_are_complete() {
    let world = World::new([service("a")], [node("n1")]);
    // Nobody runs the watch: its list is never complete.
    let (nodes, watch) = Nodes::watch(world.server.client(), Presence::default());
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(run(ServiceContext { nodes, ..world.context() }, config(), shutdown.clone()));
    pass(SECOND * 60).await;
    assert!(world.cloud.calls().is_empty() && world.server.calls().is_empty());
    shutdown.cancel();
    task.await.unwrap();
    drop(watch);
}
