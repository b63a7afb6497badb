//! What one Service's answer says of the others: a plan that is not implemented says nothing, a rate limit pauses all. After such a
//! pause deletions go first, and one call tries before others begin.
use std::sync::atomic::Ordering;

use serde_json::json;

use super::fixtures::{Reply, Verb, World, config, finished, key, node, provider, refusal, service};
use super::{SECOND, pass, settle, start, start_with, until};
use crate::controllers::service::{Duration, ServiceConfig};
use crate::model::provider_info::{Limits, ProviderInfo};
use crate::provider::Outcome;
use crate::telemetry::health::Check;

const READINESS: &str = "cloud-rate-limit-loadbalancers";

fn limited(after: Duration) -> Reply {
    Reply::Fail(refusal(Outcome::Retry { after: Some(after) }, "RATE_LIMITED"))
}

fn change(world: &World, name: &str) {
    world.change(name, |service| service["spec"]["ports"][0]["port"] = json!(81));
}

#[tokio::test(start_paused = true)]
async fn one_services_plan_that_is_not_implemented_stops_no_other_plan() {
    const MANY: usize = 50;
    let world = World::new((0..MANY).map(|it| finished(&format!("s{it}"))), [node("n1")]);
    (0..10).for_each(|_| {
        world.cloud.reply(Verb::Plan, "s3", [Reply::Fail(refusal(Outcome::Unsupported, "UNIMPLEMENTED"))]);
    });
    let running = start_with(&world, ServiceConfig { drift_period: Duration::from_mins(10), ..config() });
    pass(SECOND * 30).await;
    assert_eq!((world.cloud.count(Verb::Plan), world.cloud.mutations()), (MANY, 1));
    assert_eq!(world.cloud.verbs("s3"), [Verb::Plan, Verb::Ensure], "it alone is ensured");
    assert_eq!(world.identity.asked.load(Ordering::Relaxed), 1, "the provider may be another by now");
    pass(Duration::from_mins(30)).await;
    assert_eq!(world.cloud.verbs("s3"), [Verb::Plan, Verb::Ensure], "and not planned again");
    assert!(world.cloud.count(Verb::Plan) >= 3 * (MANY - 1), "drift of the others is looked for");
    assert_eq!(world.cloud.mutations(), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_returns_is_asked_for_plans_anew() {
    let world = World::new([finished("a")], [node("n1")]);
    world.cloud.reply(Verb::Plan, "a", [Reply::Fail(refusal(Outcome::Unsupported, "UNIMPLEMENTED"))]);
    let running = start(&world);
    until("it was ensured", || world.cloud.answered(Verb::Ensure) == 1).await;
    settle().await;
    world.becomes(ProviderInfo { version: "2".into(), ..provider() });
    until("it was planned", || world.cloud.answered(Verb::Plan) == 2).await;
    assert_eq!(world.cloud.verbs("a"), [Verb::Plan, Verb::Ensure, Verb::Plan]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_rate_limit_pause_one_call_tries_and_its_answer_lets_all_begin() {
    let world = World::new((0..20).map(|it| service(&format!("s{it}"))), []);
    world.cloud.always(Verb::Ensure, Some(limited(SECOND * 5)));
    let running = start(&world);
    settle().await;
    let together = world.cloud.calls().len();
    world.cloud.hold(Verb::Ensure);
    pass(SECOND * 10).await;
    assert_eq!(world.cloud.calls().len(), together + 1, "one tries");
    world.cloud.let_go(Verb::Ensure, 1);
    settle().await;
    assert_eq!(world.cloud.calls().len(), together + 1, "it was refused, and all pause again");
    pass(SECOND * 10).await;
    assert_eq!(world.cloud.calls().len(), together + 2);
    world.cloud.always(Verb::Ensure, None);
    world.cloud.release(Verb::Ensure);
    pass(SECOND / 10).await;
    assert!((0..20).all(|it| world.is_done(&format!("s{it}"))), "its answer lets all others begin");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_of_before_the_rate_limit_that_takes_long_keeps_nobody_waiting_for_it() {
    let world = World::new([service("slow")], []);
    world.cloud.hold(Verb::Ensure);
    let running = start(&world);
    until("a slow call runs", || world.cloud.running() == 1).await;
    world.server.put_service(finished("a"));
    world.cloud.reply(Verb::Delete, "a", [limited(SECOND)]);
    world.delete("a");
    until("a is gone", || world.server.service(&key("a")).is_none()).await;
    assert_eq!((world.cloud.count(Verb::Delete), world.cloud.running()), (2, 1));
    world.cloud.release(Verb::Ensure);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn deletions_go_first_after_a_rate_limit_pause_those_that_were_limited_included() {
    let names: Vec<_> = (0..8).map(|it| format!("s{it}")).collect();
    let world = World::new(names.iter().map(|name| finished(name)), [node("n1")]);
    world.becomes(ProviderInfo { limits: Limits { max_concurrent_load_balancer_calls: 2, ..Limits::default() }, ..provider() });
    let running = start(&world);
    until("all were seen", || world.cloud.answered(Verb::Plan) == names.len()).await;
    settle().await;
    world.cloud.clear();
    world.cloud.reply(Verb::Delete, "s6", [limited(SECOND * 20)]);
    world.delete("s6");
    until("the cloud is limited", || world.cloud.answered(Verb::Delete) == 1).await;
    for name in &names[..6] {
        change(&world, name);
        pass(SECOND).await;
    }
    world.delete("s7");
    pass(SECOND * 60).await;
    let order: Vec<_> = world.cloud.calls().into_iter().map(|call| (call.verb, call.service.name)).collect();
    assert!(order[1..3].iter().all(|(verb, _)| *verb == Verb::Delete), "{order:?}");
    assert_eq!(order.len(), 1 + names.len());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn readiness_names_a_rate_limit_pause_while_it_lasts() {
    let world = World::new([service("a")], []);
    world.cloud.reply(Verb::Ensure, "a", [limited(SECOND * 12)]);
    let running = start(&world);
    settle().await;
    let beginning = "the cloud limits the rate of calls to LoadBalancers: they pause for 12s, until ";
    let check = world.health.checks().get(READINESS).cloned();
    assert!(matches!(&check, Some(Check::Warning(message)) if message.starts_with(beginning)), "{check:?}");
    pass(SECOND * 11).await;
    assert!(world.health.checks().contains_key(READINESS));
    until("a is done", || world.is_done("a")).await;
    assert!(!world.health.checks().contains_key(READINESS));
    world.cloud.always(Verb::Ensure, Some(limited(SECOND * 12)));
    change(&world, "a");
    until("it pauses again", || world.health.checks().contains_key(READINESS)).await;
    let health = world.health.clone();
    running.stop().await;
    assert!(!health.checks().contains_key(READINESS), "it goes with the term");
}

#[tokio::test(start_paused = true)]
async fn another_provider_is_not_paused_by_the_limit_of_the_one_before() {
    let world = World::new([service("a")], []);
    world.cloud.reply(Verb::Ensure, "a", [limited(Duration::from_mins(5))]);
    let running = start(&world);
    settle().await;
    world.loses_the_provider();
    settle().await;
    world.becomes(ProviderInfo { version: "2".into(), ..provider() });
    settle().await;
    assert!(world.is_done("a"), "no time has passed");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_info_of_an_hour_counts_as_five_minutes() {
    let world = World::new([service("a")], []);
    world.cloud.reply(Verb::Ensure, "a", [limited(Duration::from_hours(1))]);
    let running = start(&world);
    pass(Duration::from_secs(299)).await;
    assert_eq!(world.cloud.calls().len(), 1);
    pass(SECOND * 2).await;
    assert!(world.is_done("a"));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_update_that_the_cloud_is_at_work_on_while_ensure_is_refused_is_asked_about_when_the_cloud_said() {
    let world = World::new([service("a")], [node("n1")]);
    let running = start(&world);
    until("a is done", || world.is_done("a")).await;
    world.cloud.always(Verb::Ensure, Some(Reply::Fail(refusal(Outcome::Terminal, "USER_CONFIGURATION"))));
    change(&world, "a");
    until("it is refused", || world.cloud.answered(Verb::Ensure) == 2).await;
    world.cloud.reply(Verb::Update, "a", [Reply::Busy(SECOND * 100)]);
    world.server.put_node(node("n2"));
    until("the update is done", || world.cloud.answered(Verb::Update) == 2).await;
    let updates = world.cloud.made(Verb::Update);
    assert_eq!((updates[1].at - updates[0].at).as_secs(), 100);
    let between = world.cloud.made(Verb::Ensure).into_iter().filter(|call| call.at > updates[0].at && call.at < updates[1].at);
    assert_eq!(between.count(), 0, "the Service is left to the cloud meanwhile");
    running.stop().await;
}
