//! Pauses: what cuts them short, and what does not.
use serde_json::json;

use super::fixtures::{Reply, Verb, World, ensured, node, refusal, service};
use super::{SECOND, pass, settle, start, until};
use crate::controllers::service::Duration;
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

/// The seconds between the calls of a verb.
fn gaps(world: &World, verb: Verb) -> Vec<f64> {
    let calls = world.cloud.made(verb);
    calls.windows(2).map(|pair| (pair[1].at - pair[0].at).as_secs_f64()).collect()
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
async fn a_cloud_at_work_frees_the_worker_and_is_asked_again_when_it_said() {
    let mut world = World::new([service("slow")], []);
    world.becomes(crate::model::provider_info::ProviderInfo {
        limits: crate::model::provider_info::Limits { max_concurrent_load_balancer_calls: 1, ..Default::default() },
        ..super::fixtures::provider()
    });
    world.cloud.reply(Verb::Ensure, "slow", [Reply::Busy(SECOND * 20), Reply::Busy(SECOND * 5)]);
    let running = start(&world);
    settle().await;
    let waiting = world.server.service("default/slow").unwrap().condition.expect("it says that it waits");
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
async fn a_bare_resource_exhausted_is_one_services_matter() {
    let world = World::new([service("a")], []);
    world.cloud.reply(
        Verb::Ensure,
        "a",
        [Reply::Fail(refusal(Outcome::Retry { after: Some(SECOND * 30) }, "RESOURCE_EXHAUSTED"))],
    );
    let running = start(&world);
    settle().await;
    world.server.put_service(service("b"));
    settle().await;
    assert!(world.is_done("b") && !world.is_done("a"), "it may be a message that is too large");
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
async fn a_limit_of_no_time_is_a_short_pause_all_the_same() {
    let world = World::new([service("a")], []);
    world.cloud.always(Verb::Ensure, Some(limited(Some(Duration::ZERO))));
    let running = start(&world);
    pass(SECOND * 10).await;
    assert!(world.cloud.calls().len() <= 110, "{} calls in ten seconds", world.cloud.calls().len());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn who_is_deleted_or_of_another_type_waits_for_no_pause() {
    for reply in [terminal(), retry(Some(SECOND * 600)), Reply::Busy(SECOND * 600)] {
        let world = World::new([service("deleted"), service("changed")], []);
        world.cloud.always(Verb::Ensure, Some(reply));
        let running = start(&world);
        until("both are tried", || world.cloud.answered(Verb::Ensure) == 2).await;
        world.delete("deleted");
        world.change("changed", |service| service["spec"]["type"] = json!("ClusterIP"));
        pass(SECOND).await;
        assert!(world.server.service("default/deleted").is_none());
        assert!(!world.server.service("default/changed").unwrap().has_finalizer());
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_cut_no_pause_short_and_are_in_the_next_call() {
    let world = World::new([service("a")], [node("n1")]);
    world.cloud.reply(Verb::Ensure, "a", [Reply::Busy(SECOND * 60)]);
    let running = start(&world);
    pass(SECOND * 10).await;
    world.server.put_node(node("n2"));
    until("a is done", || world.is_done("a")).await;
    let calls = world.cloud.calls();
    assert_eq!((calls.len(), (calls[1].at - calls[0].at).as_secs()), (2, 60));
    assert_eq!(calls[1].targets, ["n1", "n2"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_outage_is_the_end_of_every_pause_that_it_caused() {
    let world = World::new((0..30).map(|it| service(&format!("s{it}"))), [node("n1")]);
    world.cloud.always(Verb::Ensure, Some(retry(None)));
    let running = start(&world);
    pass(Duration::from_mins(20)).await;
    world.cloud.always(Verb::Ensure, None);
    until("the first success", || (0..30).any(|it| world.is_done(&format!("s{it}")))).await;
    pass(SECOND).await;
    assert!((0..30).all(|it| world.is_done(&format!("s{it}"))), "without it each would have waited up to minutes");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn where_some_succeed_all_along_the_others_wait_for_themselves() {
    let world = World::new((0..5).map(|it| service(&format!("s{it}"))), [node("n1")]);
    world.cloud.always(Verb::Ensure, Some(retry(None)));
    let running = start(&world);
    pass(Duration::from_mins(2)).await;
    let tries = world.cloud.count(Verb::Ensure);
    for it in 0..30 {
        world.cloud.reply(Verb::Ensure, &format!("fine{it}"), [Reply::Done(ensured())]);
        world.server.put_service(service(&format!("fine{it}")));
        pass(SECOND * 4).await;
    }
    let more = world.cloud.count(Verb::Ensure) - tries - 30;
    assert!(more <= 15, "{more} tries of five Services in two minutes");
    running.stop().await;
}
