//! What goes wrong, and who hears of it. How long it is left alone then is told in `pauses.rs`.
use serde_json::json;

use super::fixtures::{Reply, Verb, World, finished, key, node, provider, refusal, service, with};
use super::{SECOND, pass, settle, start, until};
use crate::cluster::events::EventType;
use crate::controllers::service::Duration;
use crate::model::provider_info::ProviderInfo;
use crate::model::service::Condition;
use crate::names::events;
use crate::provider::Outcome;

fn retry(after: Option<Duration>) -> Reply {
    Reply::Fail(refusal(Outcome::Retry { after }, "UNAVAILABLE"))
}

fn terminal() -> Reply {
    Reply::Fail(refusal(Outcome::Terminal, "USER_CONFIGURATION"))
}

fn condition(world: &World, name: &str) -> Option<Condition> {
    world.server.service(&key(name)).unwrap().condition
}

#[tokio::test(start_paused = true)]
async fn the_first_failure_of_a_new_service_is_already_in_its_condition() {
    let world = World::new([service("a")], []);
    world.cloud.always(Verb::Ensure, Some(terminal()));
    let running = start(&world);
    until("the cloud refused", || world.cloud.answered(Verb::Ensure) == 1).await;
    settle().await;
    let condition = condition(&world, "a").expect("the failure is told");
    assert_eq!((condition.ready, condition.reason.as_str()), (false, "UserConfiguration"));
    assert_eq!(condition.message, "scripted USER_CONFIGURATION");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_nobody_knows_is_asked_again() {
    for verb in [Verb::Ensure, Verb::Delete] {
        let world = World::new([service("a")], []);
        let running = start(&world);
        if verb == Verb::Delete {
            until("a is done", || world.is_done("a")).await;
        }
        world.cloud.reply(verb, "a", [Reply::Fail(refusal(Outcome::Unknown, "DEADLINE_EXCEEDED"))]);
        if verb == Verb::Delete {
            world.delete("a");
            until("a is gone", || world.server.service("default/a").is_none()).await;
        } else {
            until("a is done", || world.is_done("a")).await;
        }
        assert_eq!(world.cloud.count(verb), 2);
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_stays_as_long_as_the_deletion_fails() {
    let mut world = World::new([finished("a")], []);
    world.cloud.always(Verb::Delete, Some(retry(None)));
    let running = start(&world);
    settle().await;
    world.delete("a");
    pass(Duration::from_mins(5)).await;
    assert!(world.server.service("default/a").unwrap().has_finalizer());
    assert!(world.cloud.count(Verb::Delete) > 3);
    let condition = condition(&world, "a").unwrap();
    assert!(!condition.ready && condition.reason == "Unavailable");
    assert_eq!(world.reasons(), [events::DELETING_LOAD_BALANCER, events::SYNC_LOAD_BALANCER_FAILED]);
    world.cloud.always(Verb::Delete, None);
    until("a is gone", || world.server.service("default/a").is_none()).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_in_progress_is_asked_again_and_keeps_the_finalizer_until_it_is_done() {
    let world = World::new([finished("a"), finished("b")], []);
    let busy = || [Reply::Busy(SECOND * 10), Reply::Busy(SECOND * 10)];
    world.cloud.reply(Verb::Delete, "a", busy());
    world.cloud.reply(Verb::Delete, "b", busy());
    let running = start(&world);
    settle().await;
    world.delete("a");
    world.change("b", |service| service["spec"]["type"] = json!("NodePort"));
    pass(SECOND * 15).await;
    assert!(["a", "b"].iter().all(|name| world.server.service(&key(name)).unwrap().has_finalizer()));
    until("a is gone", || world.server.service("default/a").is_none()).await;
    until("b is free", || !world.server.service("default/b").unwrap().has_finalizer()).await;
    settle().await;
    let b = world.server.service("default/b").unwrap();
    assert!(b.condition.is_none() && b.status.ingress.is_empty());
    assert_eq!(world.cloud.count(Verb::Delete), 6);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_same_reason_is_told_once_and_again_after_it_was_mended() {
    let mut world = World::new([service("a")], []);
    world.cloud.reply(Verb::Ensure, "a", [retry(None), terminal(), retry(None)]);
    let running = start(&world);
    until("a is done", || world.is_done("a")).await;
    let warnings = |world: &mut World| {
        world
            .notes()
            .into_iter()
            .filter(|it| it.event_type == EventType::Warning && it.reason == events::SYNC_LOAD_BALANCER_FAILED)
            .count()
    };
    assert_eq!(warnings(&mut world), 2, "one for each reason");
    world.cloud.reply(Verb::Ensure, "a", [retry(None)]);
    world.change("a", |service| service["spec"]["ports"][0]["port"] = json!(81));
    until("it was tried again", || world.cloud.count(Verb::Ensure) == 6).await;
    assert_eq!(warnings(&mut world), 1, "it went wrong anew");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn targets_of_a_load_balancer_that_is_not_there_are_given_by_making_it() {
    let mut world = World::new([finished("a")], [node("n1")]);
    world.cloud.reply(Verb::Update, "a", [Reply::Fail(refusal(Outcome::Retry { after: None }, "CONFLICT"))]);
    let running = start(&world);
    settle().await;
    world.server.put_node(node("n2"));
    until("it was made", || world.cloud.answered(Verb::Ensure) == 1).await;
    settle().await;
    assert_eq!(world.cloud.verbs("a"), [Verb::Plan, Verb::Update, Verb::Ensure]);
    assert_eq!(world.cloud.calls()[2].targets, ["n1", "n2"]);
    assert!(!world.reasons().contains(&events::UPDATE_LOAD_BALANCER_FAILED.to_owned()));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_update_that_fails_is_told_and_mended_by_ensure() {
    let mut world = World::new([finished("a")], [node("n1")]);
    world.cloud.reply(Verb::Update, "a", [retry(None)]);
    let running = start(&world);
    settle().await;
    world.server.put_node(node("n2"));
    until("the update failed", || world.cloud.answered(Verb::Update) == 1).await;
    settle().await;
    assert!(!condition(&world, "a").unwrap().ready);
    assert_eq!(world.reasons(), [events::UPDATE_LOAD_BALANCER_FAILED]);
    assert_eq!(world.metrics.node_sync_errors.get(), 1);
    until("a is done", || world.is_done("a")).await;
    assert_eq!(world.cloud.made(Verb::Ensure)[0].targets, ["n1", "n2"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_refuses_what_it_said_it_serves_is_asked_who_it_is() {
    let world = World::new([service("a")], []);
    world.cloud.reply(Verb::Ensure, "a", [Reply::Fail(refusal(Outcome::Unsupported, "UNIMPLEMENTED"))]);
    let running = start(&world);
    until("a is done", || world.is_done("a")).await;
    assert_eq!(world.identity.asked.load(std::sync::atomic::Ordering::Relaxed), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_service_is_not_let_go_on_the_word_of_another_cloud() {
    let world = World::new([finished("a")], []);
    *world.identity.refusal.lock() = Some(refusal(Outcome::Retry { after: None }, "CLOUD_IDENTITY_CHANGED"));
    let running = start(&world);
    world.delete("a");
    until("the cloud has nothing of it", || world.cloud.answered(Verb::Delete) > 0).await;
    pass(30 * SECOND).await;
    assert!(world.server.service(&key("a")).unwrap().has_finalizer());
    *world.identity.refusal.lock() = None;
    until("a is gone", || world.server.service(&key("a")).is_none()).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_service_is_not_let_go_by_the_answer_of_the_cloud_before_one_that_was_accepted_meanwhile() {
    let mut world = World::new([finished("a")], []);
    world.cloud.hold(Verb::Delete);
    let running = start(&world);
    world.delete("a");
    until("the removal runs", || world.cloud.count(Verb::Delete) == 1).await;
    world.becomes(ProviderInfo { cloud_identity: "accepted meanwhile".to_owned(), ..provider() });
    world.cloud.release(Verb::Delete);
    pass(30 * SECOND).await;
    assert!(world.server.service(&key("a")).unwrap().has_finalizer());
    assert_eq!(world.server.service_writes(&key("a")), Vec::<&str>::new());
    assert_eq!(world.cloud.count(Verb::Delete), 1, "nothing is begun under the term of the first cloud");
    assert_eq!(world.reasons(), [events::DELETING_LOAD_BALANCER]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_write_is_repeated_and_costs_no_second_load_balancer() {
    let world = World::new([service("a")], []);
    for code in [Some(500), None, Some(503)] {
        world.server.before_write(move |_| code);
    }
    let running = start(&world);
    until("a is done", || world.is_done("a")).await;
    assert!(world.cloud.count(Verb::Ensure) <= 2);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn work_that_breaks_off_is_repeated() {
    let world = World::new([service("a")], []);
    // The scripted cloud panics where it is to plan and was not asked to.
    world.cloud.reply(Verb::Ensure, "a", [Reply::Changes("none")]);
    let running = start(&world);
    until("a is done", || world.is_done("a")).await;
    assert_eq!(world.cloud.count(Verb::Ensure), 2);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn only_a_deletion_that_is_done_lets_go_of_a_service() {
    let world = World::new([finished("a")], []);
    world.cloud.reply(Verb::Delete, "a", [Reply::Elsewhere]);
    let running = start(&world);
    settle().await;
    world.delete("a");
    until("the cloud answered", || world.cloud.answered(Verb::Delete) == 1).await;
    settle().await;
    assert!(world.server.service("default/a").unwrap().has_finalizer());
    until("a is gone", || world.server.service("default/a").is_none()).await;
    assert_eq!(world.cloud.count(Verb::Delete), 2);
    running.stop().await;
}

const PATH: &str = "/api/v1/namespaces/default/services/a";

#[tokio::test(start_paused = true)]
async fn what_was_made_for_a_service_that_vanished_under_our_new_finalizer_is_removed_again() {
    for refused in [false, true] {
        let world = World::new([service("a")], []);
        world.cloud.hold(Verb::Ensure);
        if refused {
            world.cloud.reply(Verb::Ensure, "a", [retry(None)]);
        }
        world.cloud.reply(Verb::Delete, "a", [retry(None), Reply::Busy(SECOND)]);
        let running = start(&world);
        until("the cloud is asked", || world.cloud.running() == 1).await;
        // The API server lets a deletion win that began before the finalizer came.
        world.server.remove(PATH);
        world.cloud.release(Verb::Ensure);
        until("it is removed", || world.cloud.answered(Verb::Delete) == 3).await;
        pass(SECOND * 600).await;
        assert_eq!(world.cloud.verbs("a"), [Verb::Ensure, Verb::Delete, Verb::Delete, Verb::Delete]);
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_just_absent_loses_nothing() {
    let held = with(finished("a"), |service| service["status"] = json!({}));
    let world = World::new([held], []);
    world.cloud.hold(Verb::Ensure);
    let running = start(&world);
    until("the cloud is asked", || world.cloud.running() == 1).await;
    world.server.remove(PATH);
    world.cloud.release(Verb::Ensure);
    pass(SECOND * 600).await;
    assert_eq!(world.cloud.verbs("a"), [Verb::Ensure]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_a_provider_that_has_gone_since_is_written_when_it_is_back() {
    let mut world = World::new([service("a")], [node("n")]);
    world.cloud.hold(Verb::Ensure);
    let running = start(&world);
    until("the cloud is at work", || world.cloud.running() == 1).await;
    world.loses_the_provider();
    world.cloud.release(Verb::Ensure);
    pass(10 * SECOND).await;
    assert!(!world.is_done("a"), "nothing is written while no provider is there");
    world.becomes(provider());
    until("a is done", || world.is_done("a")).await;
    pass(10 * SECOND).await;
    assert_eq!(world.cloud.count(Verb::Ensure), 1, "the answer counts");
    let told = world.notes();
    assert!(told.iter().all(|note| note.event_type == EventType::Normal), "{told:?}");
    assert_eq!(told.iter().filter(|note| note.reason == events::ENSURED_LOAD_BALANCER).count(), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_no_fault_of_the_service_and_is_retried_without_an_event() {
    let mut world = World::new([service("a")], [node("n")]);
    world.cloud.reply(Verb::Ensure, "a", [Reply::Fail(refusal(Outcome::Unknown, "CONNECTION_LOST"))]);
    let running = start(&world);
    until("the call was answered", || world.cloud.answered(Verb::Ensure) == 1).await;
    settle().await;
    assert_eq!(condition(&world, "a"), None);
    until("a is done", || world.is_done("a")).await;
    let told = world.notes();
    assert!(told.iter().all(|note| note.event_type == EventType::Normal), "{told:?}");
    running.stop().await;
}
