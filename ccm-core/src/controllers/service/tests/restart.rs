//! What a new process, or a new leader, does about load balancers that are there, and what is found behind its back later.
use serde_json::{Value, json};

use super::fixtures::{Reply, Verb, World, config, finished, node, refusal, service, with, without_plans};
use super::{SECOND, pass, settle, start, start_with, until};
use crate::config::services::Drift;
use crate::controllers::service::{Duration, ServiceConfig};
use crate::names::events;
use crate::provider::Outcome;

const MANY: usize = 50;

fn many() -> impl Iterator<Item = Value> {
    (0..MANY).map(|it| finished(&format!("s{it}")))
}

#[tokio::test(start_paused = true)]
async fn a_restart_on_an_unchanged_cluster_reads_and_changes_nothing() {
    let mut world = World::new(many(), [node("n1")]);
    let running = start(&world);
    pass(Duration::from_mins(5)).await;
    assert_eq!((world.cloud.count(Verb::Plan), world.cloud.mutations()), (MANY, 0));
    assert!(world.cloud.most_at_once() <= 8, "reading is mass work");
    assert!(world.server.calls().is_empty() && world.reasons().is_empty());
    running.stop().await;
    let running = start(&world);
    pass(Duration::from_mins(5)).await;
    assert_eq!((world.cloud.count(Verb::Plan), world.cloud.mutations()), (2 * MANY, 0));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_plans_a_restart_is_one_paced_call_each() {
    let world = World::new(many(), [node("n1")]);
    world.becomes(without_plans());
    let running = start(&world);
    pass(SECOND * 2).await;
    let soon = world.cloud.count(Verb::Ensure);
    assert!((15..=21).contains(&soon), "{soon} in two seconds");
    world.server.put_service(service("new"));
    let made = |name: &String| world.cloud.calls().iter().any(|call| call.name() == name);
    let waiting = (0..MANY).map(|it| format!("s{it}")).find(|name| !made(name)).unwrap();
    let changed = with(finished(&waiting), |it| it["metadata"]["annotations"]["changed"] = json!("by a user"));
    world.server.put_service(changed);
    settle().await;
    assert!(world.is_done("new"));
    assert!(made(&waiting), "what a user changed does not wait");
    pass(Duration::from_mins(5)).await;
    assert_eq!(world.cloud.mutations(), MANY + 1);
    let calls: Vec<_> =
        world.cloud.calls().into_iter().filter(|call| ![waiting.as_str(), "new"].contains(&call.name())).collect();
    assert!(calls.windows(2).all(|pair| pair[1].at - pair[0].at >= Duration::from_millis(99)));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_does_not_answer_plans_after_all_is_treated_as_one_without() {
    let world = World::new((0..5).map(|it| finished(&format!("s{it}"))), [node("n1")]);
    world.cloud.always(Verb::Plan, Some(Reply::Fail(refusal(Outcome::Unsupported, "UNIMPLEMENTED"))));
    let running = start(&world);
    pass(SECOND * 30).await;
    assert_eq!(world.cloud.mutations(), 5);
    assert!(world.cloud.count(Verb::Plan) <= 5);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_is_not_as_asked_is_made_so() {
    let world = World::new([finished("a"), finished("b")], [node("n1")]);
    world.cloud.reply(Verb::Plan, "a", [Reply::Changes("add n1")]);
    let running = start(&world);
    pass(SECOND * 30).await;
    assert_eq!(world.cloud.verbs("a"), [Verb::Plan, Verb::Ensure]);
    assert_eq!(world.cloud.verbs("b"), [Verb::Plan]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_address_that_changed_during_the_absence_is_written() {
    let lost = with(finished("a"), |it| it["status"]["loadBalancer"] = json!({ "ingress": [{ "ip": "203.0.113.9" }] }));
    let world = World::new([lost], [node("n1")]);
    let running = start(&world);
    pass(SECOND * 5).await;
    assert_eq!(world.server.service_writes("default/a"), ["PATCH status"]);
    assert_eq!(
        world.server.service("default/a").unwrap().status.ingress[0].address,
        super::fixtures::address("203.0.113.1").address
    );
    assert_eq!(world.cloud.mutations(), 0);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_another_process_had_begun_is_ended() {
    let held = with(service("held"), |it| it["metadata"]["finalizers"] = finished("x")["metadata"]["finalizers"].clone());
    let failing = with(finished("failing"), |it| it["status"]["conditions"][0]["status"] = json!("False"));
    let deleted = with(finished("deleted"), |it| it["metadata"]["deletionTimestamp"] = json!("2024-05-06T07:08:09Z"));
    let changed = with(finished("changed"), |it| it["spec"]["type"] = json!("ClusterIP"));
    let world = World::new([held, failing, deleted, changed], [node("n1")]);
    let running = start(&world);
    pass(SECOND * 5).await;
    assert_eq!(world.cloud.verbs("held"), [Verb::Ensure]);
    assert_eq!(world.cloud.verbs("failing"), [Verb::Ensure]);
    assert_eq!(world.cloud.verbs("deleted"), [Verb::Delete]);
    assert_eq!(world.cloud.verbs("changed"), [Verb::Delete]);
    assert!(world.is_done("held") && world.is_done("failing") && world.server.service("default/deleted").is_none());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_cannot_be_made_now_is_asked_for_again_and_nobody_is_told() {
    let mut world = World::new([finished("a")], [node("n1")]);
    let fails = Reply::Fail(refusal(Outcome::Retry { after: None }, "UNAVAILABLE"));
    world.cloud.reply(Verb::Plan, "a", [fails.clone(), fails]);
    let running = start(&world);
    pass(SECOND * 30).await;
    assert_eq!(world.cloud.verbs("a"), [Verb::Plan; 3]);
    assert!(world.reasons().is_empty() && world.server.calls().is_empty());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn every_load_balancer_is_compared_with_the_cloud_once_in_a_period() {
    let world = World::new((0..10).map(|it| finished(&format!("s{it}"))), [node("n1")]);
    let running = start(&world);
    pass(SECOND * 5).await;
    world.cloud.clear();
    pass(Duration::from_hours(2)).await;
    for it in 0..10 {
        let checks = world.cloud.verbs(&format!("s{it}")).len();
        assert!((1..=2).contains(&checks), "s{it} was compared {checks} times in two periods");
    }
    assert_eq!((world.cloud.mutations(), world.cloud.most_at_once()), (0, 1));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn drift_is_reported_or_repaired_or_not_looked_for() {
    for (drift, verbs, told) in [
        (Drift::Report, vec![Verb::Plan, Verb::Plan], 1),
        (Drift::Repair, vec![Verb::Plan, Verb::Plan, Verb::Ensure], 1),
        (Drift::Off, vec![Verb::Plan], 0),
    ] {
        let mut world = World::new([finished("a")], [node("n1")]);
        let running = start_with(&world, ServiceConfig { drift, drift_period: Duration::from_mins(10), ..config() });
        pass(SECOND).await;
        world.cloud.always(Verb::Plan, Some(Reply::Changes("remove the listener of port 81")));
        if drift == Drift::Off {
            pass(Duration::from_hours(1)).await;
        } else {
            until("drift is found", || world.metrics.drift_found.get() == 1).await;
        }
        world.cloud.always(Verb::Plan, None);
        settle().await;
        assert_eq!(world.cloud.verbs("a"), verbs, "{drift:?}");
        let notes = world.notes();
        let drifts: Vec<_> = notes.iter().filter(|note| note.reason == events::LOAD_BALANCER_DRIFT).collect();
        assert_eq!(drifts.len(), told, "{drift:?}");
        assert!(drifts.iter().all(|note| note.message.contains("remove the listener of port 81")));
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn reported_drift_is_told_once_until_it_is_mended() {
    let mut world = World::new([finished("a")], [node("n1")]);
    let running = start_with(&world, ServiceConfig { drift_period: Duration::from_mins(1), ..config() });
    pass(SECOND).await;
    let drifts = |world: &mut World| world.reasons().iter().filter(|it| *it == events::LOAD_BALANCER_DRIFT).count();
    world.cloud.always(Verb::Plan, Some(Reply::Changes("words")));
    until("it is found often", || world.metrics.drift_found.get() == 5).await;
    assert_eq!(drifts(&mut world), 1);
    world.cloud.always(Verb::Plan, None);
    let before = world.cloud.count(Verb::Plan);
    until("it is mended", || world.cloud.answered(Verb::Plan) > before).await;
    world.cloud.always(Verb::Plan, Some(Reply::Changes("words")));
    until("it is found anew", || world.metrics.drift_found.get() == 6).await;
    assert_eq!(drifts(&mut world), 1);
    assert_eq!(world.cloud.mutations(), 0);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_comes_during_a_check_is_applied_after_it() {
    let world = World::new([finished("a")], [node("n1")]);
    world.cloud.hold(Verb::Plan);
    let running = start(&world);
    until("a is looked at", || world.cloud.running() == 1).await;
    world.server.put_node(node("n2"));
    pass(SECOND * 2).await;
    world.cloud.release(Verb::Plan);
    pass(SECOND * 2).await;
    assert_eq!(world.cloud.verbs("a"), [Verb::Plan, Verb::Update]);
    assert_eq!(world.cloud.calls()[1].targets, ["n1", "n2"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_limits_a_restart_is_read_later_and_changed_never() {
    let world = World::new(many(), [node("n1")]);
    let limited = Reply::Fail(refusal(Outcome::Retry { after: Some(SECOND * 20) }, "RATE_LIMITED"));
    world.cloud.always(Verb::Plan, Some(limited));
    let running = start(&world);
    pass(SECOND * 15).await;
    assert!(world.cloud.calls().len() <= 8);
    world.cloud.always(Verb::Plan, None);
    pass(SECOND * 60).await;
    let all = (0..MANY).all(|it| world.cloud.verbs(&format!("s{it}")).contains(&Verb::Plan));
    assert_eq!((all, world.cloud.mutations()), (true, 0));
    running.stop().await;
}
