//! What goes wrong: refusals and their pauses, a cloud that takes its time, limits, and who hears of it.
use serde_json::json;

use super::fixtures::{Reply, Verb, World, finished, key, node, refusal, service};
use super::{SECOND, pass, settle, start, until};
use crate::cluster::events::Grade;
use crate::controllers::service::Duration;
use crate::model::service::Condition;
use crate::names::events;
use crate::provider::Outcome;

fn retry(after: Option<Duration>) -> Reply {
    Reply::Fail(refusal(Outcome::Retry { after }, "UNAVAILABLE"))
}

fn terminal() -> Reply {
    Reply::Fail(refusal(Outcome::Terminal, "USER_CONFIGURATION"))
}

fn limited(after: Option<Duration>) -> Reply {
    Reply::Fail(refusal(Outcome::Retry { after }, "RATE_LIMITED"))
}

fn condition(world: &World, name: &str) -> Option<Condition> {
    world.server.service(&key(name)).unwrap().condition
}

/// The seconds between the calls of a verb.
fn gaps(world: &World, verb: Verb) -> Vec<f64> {
    let calls = world.cloud.made(verb);
    calls.windows(2).map(|pair| (pair[1].at - pair[0].at).as_secs_f64()).collect()
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
async fn our_own_writes_cut_no_pause_short() {
    for reply in [terminal(), retry(Some(SECOND * 30)), Reply::Busy(SECOND * 30)] {
        let world = World::new([service("a")], []);
        world.cloud.always(Verb::Ensure, Some(reply.clone()));
        let running = start(&world);
        pass(SECOND * 7).await;
        assert_eq!(world.cloud.count(Verb::Ensure), 1, "{reply:?}");
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_only_a_user_can_mend_is_told_once_tried_slowly_and_at_once_when_it_is_mended() {
    let mut world = World::new([service("a")], []);
    world.cloud.always(Verb::Ensure, Some(terminal()));
    let running = start(&world);
    pass(Duration::from_mins(3)).await;
    let tries = world.cloud.count(Verb::Ensure);
    assert!((3..=10).contains(&tries), "{tries} in 3 minutes");
    assert!(gaps(&world, Verb::Ensure).iter().all(|gap| *gap >= 7.5), "{:?}", gaps(&world, Verb::Ensure));
    assert_eq!(world.reasons(), [events::ENSURING_LOAD_BALANCER, events::SYNC_LOAD_BALANCER_FAILED]);

    world.cloud.always(Verb::Ensure, None);
    world.change("a", |service| service["metadata"]["annotations"]["fake/size"] = json!("small"));
    settle().await;
    assert!(world.is_done("a"), "no time has passed");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_may_mend_itself_is_tried_after_growing_pauses() {
    let world = World::new([service("a")], []);
    world.cloud.always(Verb::Ensure, Some(retry(None)));
    let running = start(&world);
    pass(Duration::from_mins(30)).await;
    let gaps = gaps(&world, Verb::Ensure);
    for (doubling, gap) in gaps.iter().enumerate() {
        let usual = 2_f64.powi(i32::try_from(doubling).unwrap()).min(300.0);
        assert!((usual * 0.5 - 0.2..=usual * 1.5 + 0.2).contains(gap), "pause {doubling}: {gap}");
    }
    assert!(gaps.len() > 7, "{gaps:?}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nobody_comes_back_before_the_provider_wants_it() {
    let world = World::new([service("a")], []);
    world.cloud.always(Verb::Ensure, Some(retry(Some(SECOND * 42))));
    let running = start(&world);
    pass(Duration::from_mins(5)).await;
    assert!(gaps(&world, Verb::Ensure).iter().all(|gap| (42.0..=84.2).contains(gap)), "{:?}", gaps(&world, Verb::Ensure));
    assert!(world.cloud.count(Verb::Ensure) > 2);
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
async fn a_cloud_at_work_frees_the_worker_and_is_asked_again_when_it_said() {
    let mut world = World::new([service("slow")], []);
    world.becomes(crate::model::provider_info::ProviderInfo {
        limits: crate::model::provider_info::Limits { max_concurrent_load_balancer_calls: 1, ..Default::default() },
        ..super::fixtures::provider()
    });
    world.cloud.reply(Verb::Ensure, "slow", [Reply::Busy(SECOND * 20), Reply::Busy(SECOND * 5)]);
    let running = start(&world);
    settle().await;
    let waiting = condition(&world, "slow").expect("it says that it waits");
    assert_eq!((waiting.ready, waiting.reason.as_str(), waiting.message.as_str()), (false, "InProgress", "still at work"));
    world.server.put_service(service("quick"));
    settle().await;
    assert!(world.is_done("quick"), "the only place is free");
    until("slow is done", || world.is_done("slow")).await;
    let calls = world.cloud.made(Verb::Ensure);
    let at: Vec<_> = calls.iter().filter(|it| it.name() == "slow").map(|it| (it.at - calls[0].at).as_secs()).collect();
    assert_eq!(at, [0, 20, 25]);
    let ensuring =
        world.notes().into_iter().filter(|it| it.reason == events::ENSURING_LOAD_BALANCER && it.subject.name == "slow");
    assert_eq!(ensuring.count(), 1, "polls are no news");
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
async fn a_limit_of_the_account_leaves_everybody_in_peace() {
    let world = World::new([service("a")], []);
    world.cloud.reply(Verb::Ensure, "a", [limited(Some(SECOND * 30))]);
    let running = start(&world);
    settle().await;
    world.server.put_service(service("b"));
    world.change("a", |service| service["spec"]["ports"][0]["port"] = json!(81));
    pass(SECOND * 29).await;
    assert_eq!(world.cloud.calls().len(), 1);
    pass(SECOND * 2).await;
    assert!(world.is_done("a") && world.is_done("b"));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_limit_without_a_time_is_respected_longer_each_time_and_by_a_burst_just_once() {
    let world = World::new((0..5).map(|it| service(&format!("s{it}"))), []);
    world.cloud.always(Verb::Ensure, Some(limited(None)));
    let running = start(&world);
    settle().await;
    assert_eq!(world.cloud.calls().len(), 5, "those that run at once are refused at once");
    pass(SECOND + Duration::from_millis(200)).await;
    assert!(world.cloud.calls().len() > 5, "five refusals at once are one");
    pass(Duration::from_mins(10)).await;
    world.cloud.clear();
    pass(Duration::from_mins(5)).await;
    assert!((4..=6 * 5).contains(&world.cloud.calls().len()), "{}", world.cloud.calls().len());
    world.cloud.always(Verb::Ensure, None);
    until("all are done", || (0..5).all(|it| world.is_done(&format!("s{it}")))).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_no_time_is_no_invitation_to_hurry() {
    let world = World::new([service("a")], []);
    world.cloud.always(Verb::Ensure, Some(limited(Some(Duration::ZERO))));
    let running = start(&world);
    pass(SECOND * 10).await;
    assert!(world.cloud.calls().len() <= 110, "{} calls in ten seconds", world.cloud.calls().len());
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
            .filter(|it| it.grade == Grade::Warning && it.reason == events::SYNC_LOAD_BALANCER_FAILED)
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
    assert_eq!(world.identity.0.load(std::sync::atomic::Ordering::Relaxed), 1);
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
