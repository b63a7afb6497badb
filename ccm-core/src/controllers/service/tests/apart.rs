//! What one trouble leaves alone: targets of a Service that is refused, the cloud where drift is only reported, other Services'
//! work while some calls take their time.
use serde_json::json;

use super::fixtures::{
    Reply, Verb, World, config, ensured, finished, key, node, provider, refusal, service, with, without_plans,
};
use super::{SECOND, pass, settle, start, start_with, until};
use crate::controllers::service::{Duration, ServiceConfig};
use crate::model::load_balancer::{Ensured, Extras};
use crate::model::provider_info::ProviderInfo;
use crate::names::events;
use crate::provider::Outcome;
use crate::telemetry::health::Check;

fn refused() -> Reply {
    Reply::Fail(refusal(Outcome::Terminal, "USER_CONFIGURATION"))
}

fn away() -> Reply {
    Reply::Fail(refusal(Outcome::Retry { after: None }, "UNAVAILABLE"))
}

fn annotate(world: &World, name: &str, value: &str) {
    world.change(name, |service| service["metadata"]["annotations"]["fake/size"] = json!(value));
}

fn last_targets(world: &World, verb: Verb) -> Vec<String> {
    world.cloud.made(verb).pop().map(|call| call.targets).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn targets_of_a_service_that_is_refused_follow_the_nodes_and_stop_doing_so_twice() {
    let mut world = World::new([service("a")], [node("n1")]);
    let running = start(&world);
    until("a is done", || world.is_done("a")).await;
    world.cloud.always(Verb::Ensure, Some(refused()));
    annotate(&world, "a", "impossible");
    until("it is refused", || world.cloud.count(Verb::Ensure) == 2).await;
    world.server.put_node(node("n2"));
    until("it has the new node", || last_targets(&world, Verb::Update) == ["n1", "n2"]).await;
    pass(Duration::from_mins(10)).await;
    assert_eq!(world.cloud.count(Verb::Update), 1, "once for each change of the nodes");
    let refusals = world.cloud.count(Verb::Ensure);
    assert!((4..=20).contains(&refusals), "the pause goes on: {refusals} tries");
    assert!(!world.is_done("a"), "it is still not as asked");
    let said = world.reasons();
    assert_eq!(said.iter().filter(|it| *it == events::SYNC_LOAD_BALANCER_FAILED).count(), 1, "{said:?}");

    world.cloud.always(Verb::Ensure, None);
    annotate(&world, "a", "possible");
    until("a is done", || world.is_done("a")).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_update_that_fails_beside_a_refusal_is_tried_again_no_sooner_than_that() {
    let world = World::new([service("a")], [node("n1")]);
    let running = start(&world);
    until("a is done", || world.is_done("a")).await;
    world.cloud.always(Verb::Ensure, Some(refused()));
    world.cloud.always(Verb::Update, Some(away()));
    annotate(&world, "a", "impossible");
    until("it is refused", || world.cloud.count(Verb::Ensure) == 2).await;
    world.server.put_node(node("n2"));
    pass(Duration::from_mins(10)).await;
    let (ensures, updates) = (world.cloud.count(Verb::Ensure), world.cloud.count(Verb::Update));
    assert!(updates >= 2 && updates <= ensures, "{updates} updates, {ensures} ensures");
    world.cloud.always(Verb::Update, None);
    until("it has the new node", || world.cloud.answered(Verb::Update) > updates).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn targets_beside_a_refusal_heed_the_clouds_rate_limit() {
    const MANY: usize = 30;
    let world = World::new((0..MANY).map(|it| service(&format!("s{it}"))), [node("n1")]);
    let running = start(&world);
    until("all are done", || (0..MANY).all(|it| world.is_done(&format!("s{it}")))).await;
    world.cloud.always(Verb::Ensure, Some(refused()));
    (0..MANY).for_each(|it| annotate(&world, &format!("s{it}"), "impossible"));
    until("all are refused", || world.cloud.answered(Verb::Ensure) == 2 * MANY).await;
    world.cloud.always(Verb::Update, Some(Reply::Fail(refusal(Outcome::Retry { after: Some(SECOND) }, "RATE_LIMITED"))));
    world.server.put_node(node("n2"));
    until("the first are limited", || world.cloud.answered(Verb::Update) > 0).await;
    world.cloud.always(Verb::Update, None);
    pass(SECOND / 2).await;
    let limited = world.cloud.count(Verb::Update);
    assert!(limited <= 10, "{limited} calls although the cloud wanted peace");
    pass(SECOND * 2).await;
    assert_eq!(world.cloud.count(Verb::Update), MANY + limited, "and then all, without a pause of their own");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_is_away_is_left_alone_whatever_nodes_do() {
    let world = World::new([service("a")], [node("n1")]);
    let running = start(&world);
    until("a is done", || world.is_done("a")).await;
    let later = Outcome::Retry { after: Some(SECOND * 60) };
    world.cloud.always(Verb::Ensure, Some(Reply::Fail(refusal(later, "UNAVAILABLE"))));
    annotate(&world, "a", "other");
    until("it failed", || world.cloud.answered(Verb::Ensure) == 2).await;
    world.server.put_node(node("n2"));
    pass(SECOND * 50).await;
    assert_eq!(world.cloud.mutations(), 2);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn targets_beside_a_refusal_of_which_the_end_is_not_known_are_undone() {
    let world = World::new([service("a")], [node("n1")]);
    let running = start(&world);
    until("a is done", || world.is_done("a")).await;
    world.cloud.always(Verb::Ensure, Some(refused()));
    annotate(&world, "a", "impossible");
    until("it is refused", || world.cloud.count(Verb::Ensure) == 2).await;
    world.cloud.reply(Verb::Update, "a", [Reply::Busy(SECOND)]);
    world.server.put_node(node("n2"));
    until("the cloud has begun", || world.cloud.answered(Verb::Update) == 1).await;
    world.remove_node("n2");
    until("it is undone", || world.cloud.count(Verb::Update) == 2).await;
    assert_eq!(last_targets(&world, Verb::Update), ["n1"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_was_refused_before_a_restart_gets_the_present_targets() {
    let failing = with(finished("a"), |it| it["status"]["conditions"][0]["status"] = json!("False"));
    let world = World::new([failing], [node("n1")]);
    world.cloud.always(Verb::Ensure, Some(refused()));
    let running = start(&world);
    until("its targets are the present ones", || last_targets(&world, Verb::Update) == ["n1"]).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_is_refused_after_a_restart_is_told_and_targets_follow_the_nodes() {
    let mut world = World::new([finished("a")], [node("n1")]);
    world.cloud.always(Verb::Plan, Some(refused()));
    world.cloud.always(Verb::Ensure, Some(refused()));
    let running = start(&world);
    until("its targets are the present ones", || last_targets(&world, Verb::Update) == ["n1"]).await;
    let condition = world.server.service(&key("a")).unwrap().condition.unwrap();
    assert_eq!((condition.ready, condition.reason.as_str()), (false, "UserConfiguration"));
    assert!(world.reasons().contains(&events::SYNC_LOAD_BALANCER_FAILED.to_owned()));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_whose_plans_are_defective_is_asked_by_ensure_in_turn() {
    for (outcome, reason) in
        [(Outcome::Retry { after: None }, "INTERNAL"), (Outcome::Unknown, "UNKNOWN"), (Outcome::Unknown, "DEADLINE_EXCEEDED")]
    {
        let world = World::new((0..5).map(|it| finished(&format!("s{it}"))), [node("n1")]);
        world.cloud.always(Verb::Plan, Some(Reply::Fail(refusal(outcome, reason))));
        let running = start(&world);
        pass(Duration::from_mins(1)).await;
        assert_eq!(world.cloud.count(Verb::Ensure), 5, "{reason}");
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_that_are_refused_to_a_plan_are_told_in_readiness_and_cost_no_write() {
    let world = World::new([finished("a")], [node("n1")]);
    world.cloud.always(Verb::Plan, Some(Reply::Fail(refusal(Outcome::Terminal, "CREDENTIALS_INVALID"))));
    let running = start(&world);
    pass(Duration::from_mins(1)).await;
    assert!(world.health.checks().contains_key("cloud-credentials"));
    assert_eq!((world.cloud.mutations(), world.server.service_writes("default/a").len()), (0, 0));
    world.cloud.always(Verb::Plan, None);
    let well = || world.health.checks().get("cloud-credentials") == Some(&Check::Ok);
    until("it is looked at, and readiness is well", well).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_somebody_took_away_comes_back() {
    let world = World::new([service("a")], [node("n1")]);
    let running = start(&world);
    until("a is done", || world.is_done("a")).await;
    world.change("a", |service| service["metadata"]["finalizers"] = json!([]));
    until("it is held again", || world.server.service(&key("a")).unwrap().has_finalizer()).await;
    world.delete("a");
    until("a is gone", || world.server.service(&key("a")).is_none()).await;
    assert_eq!(world.cloud.count(Verb::Delete), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn drift_that_is_only_reported_changes_nothing_while_the_cloud_is_at_work() {
    let world = World::new([service("a")], [node("n1")]);
    world.cloud.always(Verb::Plan, Some(Reply::Busy(SECOND)));
    let running = start_with(&world, ServiceConfig { drift_period: Duration::from_mins(10), ..config() });
    until("a is done", || world.is_done("a")).await;
    until("it was looked at", || world.cloud.answered(Verb::Plan) > 1).await;
    settle().await;
    assert_eq!(world.cloud.mutations(), 1);
    assert!(world.is_done("a"));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_the_api_server_refuses_is_told_to_the_user() {
    let mut world = World::new([service("a")], []);
    for _ in 0..3 {
        world.server.before_write(|_| Some(403));
    }
    let running = start(&world);
    until("a is done", || world.is_done("a")).await;
    let told = world.notes().into_iter().filter(|note| note.reason == events::SYNC_LOAD_BALANCER_FAILED).collect::<Vec<_>>();
    assert_eq!(told.len(), 1, "{told:?}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_update_that_takes_its_time_is_asked_about_by_the_same_call_and_is_no_failure() {
    let mut world = World::new([service("a")], [node("n1")]);
    let running = start(&world);
    until("a is done", || world.is_done("a")).await;
    world.cloud.reply(Verb::Update, "a", [Reply::Busy(SECOND * 5), Reply::Busy(SECOND * 5)]);
    world.server.put_node(node("n2"));
    until("the update was begun", || world.cloud.count(Verb::Update) == 1).await;
    assert!(world.is_done("a"), "a mere update is nothing that a user waits for");
    // What was begun is undone by the same call, although these targets are the ones that were known.
    world.remove_node("n2");
    until("it was asked about until it ended", || world.cloud.count(Verb::Update) == 3).await;
    assert_eq!(last_targets(&world, Verb::Update), ["n1"]);
    pass(Duration::from_mins(1)).await;
    assert_eq!((world.cloud.count(Verb::Update), world.cloud.count(Verb::Ensure)), (3, 1));
    assert!(!world.reasons().contains(&events::UPDATE_LOAD_BALANCER_FAILED.to_owned()));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lead_stream_that_is_not_open_yet_is_nobodys_trouble() {
    let mut world = World::new([service("a")], []);
    world.cloud.reply(Verb::Ensure, "a", [Reply::Fail(refusal(Outcome::Retry { after: None }, "NOT_LEADING"))]);
    let running = start(&world);
    until("a is done", || world.is_done("a")).await;
    assert!(!world.reasons().contains(&events::SYNC_LOAD_BALANCER_FAILED.to_owned()));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nodes_that_change_during_the_round_after_a_restart_do_not_wait_for_its_end() {
    const MANY: usize = 300;
    let world = World::new((0..MANY).map(|it| finished(&format!("s{it}"))), [node("n1")]);
    world.becomes(without_plans());
    let running = start(&world);
    pass(SECOND * 2).await;
    assert!(world.cloud.mutations() < 30, "{} calls in 2 s", world.cloud.mutations());
    world.server.put_node(node("n2"));
    pass(SECOND * 2).await;
    let calls = world.cloud.calls();
    let with_both = calls.iter().filter(|call| call.targets == ["n1", "n2"]).count();
    assert_eq!(with_both, MANY);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_during_the_round_after_a_restart_makes_no_storm_when_it_ends() {
    const MANY: usize = 50;
    let world = World::new((0..MANY).map(|it| finished(&format!("s{it}"))), [node("n1")]);
    world.becomes(without_plans());
    world.cloud.always(Verb::Ensure, Some(away()));
    let running = start(&world);
    pass(SECOND * 30).await;
    world.cloud.always(Verb::Ensure, None);
    world.cloud.clear();
    let is_done = |name: usize| world.is_done(&format!("s{name}"));
    until("all are done", || (0..MANY).all(is_done)).await;
    let calls = world.cloud.calls();
    assert!(calls.windows(2).all(|pair| pair[1].at - pair[0].at >= Duration::from_millis(99)), "one after another");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn another_build_of_the_provider_is_asked_about_every_load_balancer() {
    let world = World::new([service("a")], [node("n1")]);
    let extras = Extras { annotations: [("fake/name".to_owned(), "a-1".to_owned())].into(), ..Extras::default() };
    world.cloud.always(Verb::Ensure, Some(Reply::Done(Ensured { extras, ..ensured() })));
    let running = start(&world);
    until("a is done", || world.is_done("a")).await;
    world.cloud.reply(Verb::Plan, "a", [Reply::Changes("another health check")]);
    world.becomes(ProviderInfo { version: "2".into(), ..provider() });
    until("it is made so", || world.cloud.count(Verb::Ensure) == 2).await;
    assert_eq!(world.cloud.verbs("a"), [Verb::Ensure, Verb::Plan, Verb::Ensure]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn creations_that_take_their_time_leave_room_for_targets_and_for_changes() {
    const MANY: usize = 40;
    let world = World::new([service("old")], [node("n1")]);
    let running = start(&world);
    until("old is done", || world.is_done("old")).await;
    world.cloud.hold(Verb::Ensure);
    (0..MANY).for_each(|it| world.server.put_service(service(&format!("new{it}"))));
    pass(SECOND).await;
    world.server.put_node(node("n2"));
    until("the old one has the new node", || last_targets(&world, Verb::Update) == ["n1", "n2"]).await;
    world.cloud.release(Verb::Ensure);
    running.stop().await;
}
