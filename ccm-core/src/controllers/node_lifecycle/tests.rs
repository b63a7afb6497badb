//! The driver and its stages against an API server in memory and a scripted cloud, in paused time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod world;

use http::Method;
use serde_json::json;

use self::world::{MAP, NODES, World};
use super::fixtures::{IDENTITY, found, node, ready, tainted, unmanaged};
use super::*;
use crate::model::instance::{InstanceState, Lookup};
use crate::names::annotations::{APPLIED_LABELS, RELEASE_BREAKER, UNMANAGED};
use crate::names::taints::SHUTDOWN;
use crate::provider::{Outcome, ProviderError};
use crate::telemetry::health::Check;

/// 200 nodes in three zones, ready but for those that the cloud shall not find.
fn two_hundred(hidden: impl Fn(&Node) -> bool) -> World {
    let nodes = (0..200).map(|index| node(&format!("n{index:03}"), ["a", "b", "c"][index % 3]));
    let world = World::new(nodes.map(|node| if hidden(&node) { node } else { ready(node) }));
    for node in world.ctx.nodes.list().iter().filter(|node| hidden(node)) {
        world.cloud.answer(&node.name, Ok(Lookup::NotFound));
    }
    world
}

fn refused() -> ProviderError {
    ProviderError { outcome: Outcome::Terminal, reason: "CREDENTIALS_INVALID".to_owned(), message: "expired".to_owned() }
}

#[tokio::test(start_paused = true)]
async fn one_node_forgotten_among_two_hundred_is_deleted_in_time_and_by_its_preconditions() {
    let mut world = two_hundred(|node| node.name == "n007");
    let begun = Instant::now();
    world.run_for(Duration::from_secs(60)).await;
    let deletes = world.api.seen(&Method::DELETE, NODES);
    assert_eq!(deletes.len(), 1);
    assert_eq!(deletes[0].path, format!("{NODES}/n007"));
    assert!(deletes[0].body["preconditions"]["resourceVersion"].is_string());
    assert_eq!(deletes[0].body["preconditions"]["uid"], "uid-n007");
    let took = deletes[0].at - begun;
    assert!(took >= Duration::from_secs(30) && took <= Duration::from_secs(35), "and 5 s to be seen: {took:?}");
    assert_eq!(world.events("DeletingNode"), ["n007"]);
    assert_eq!(world.ctx.metrics.deletions.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_history_is_written_before_the_delete_in_one_write_for_all() {
    let gone = (0..20).map(|index| node(&format!("n{index}"), "a"));
    let mut world = World::new(gone.clone().chain([ready(node("r", "a"))]));
    gone.for_each(|node| world.cloud.answer(&node.name, Ok(found(InstanceState::Deleted))));
    world.run_for(Duration::from_secs(35)).await;
    let writes = world.api.writes();
    assert_eq!(writes[..2], [format!("PATCH {MAP}"), format!("PATCH {MAP}")], "the history is begun, and then written");
    assert!(writes[2..].iter().all(|write| write.starts_with(&format!("DELETE {NODES}/"))));
    assert_eq!(writes.len(), 22);
    assert!(world.data("deletions").contains("uid-n19"));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_ready_again_by_a_live_look_is_kept_and_not_recorded() {
    let mut world = World::new([node("n", "a")]);
    world.cloud.answer_all(Ok(Lookup::NotFound));
    world.put(&ready(node("n", "a")));
    world.run_for(Duration::from_secs(120)).await;
    assert!(world.api.seen(&Method::DELETE, NODES).is_empty());
    assert_eq!(world.data("deletions"), "[]");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_unmanaged_by_a_live_look_is_kept_and_one_whose_delete_meets_the_annotation_too() {
    for at_the_live_look in [true, false] {
        let mut world = World::new([node("n", "a")]);
        world.cloud.answer_all(Ok(Lookup::NotFound));
        if at_the_live_look {
            world.put(&unmanaged(node("n", "a")));
        } else {
            // The history is written first, and then the node is deleted.
            world.api.before_write(|_| None);
            world.api.before_write(|objects| {
                let metadata = &mut objects.get_mut(&format!("{NODES}/n")).unwrap()["metadata"];
                metadata["annotations"] = json!({ UNMANAGED: "true" });
                metadata["resourceVersion"] = json!("1000");
                None
            });
        }
        world.run_for(Duration::from_secs(120)).await;
        assert_eq!(world.api.count(NODES), 1, "{at_the_live_look}");
        assert_eq!(world.api.seen(&Method::DELETE, NODES).len(), usize::from(!at_the_live_look));
    }
}

#[tokio::test(start_paused = true)]
async fn a_delete_that_meets_a_changed_node_is_made_again_and_counted_once() {
    let mut world = World::new([node("n", "a")]);
    world.cloud.answer_all(Ok(Lookup::NotFound));
    world.api.fail_once(Method::DELETE, NODES, 409);
    world.run_for(Duration::from_secs(60)).await;
    assert_eq!(world.api.seen(&Method::DELETE, NODES).len(), 2);
    assert_eq!(world.data("deletions").matches("uid-n").count(), 1);
    assert_eq!(world.api.count(NODES), 0);
}

#[tokio::test(start_paused = true)]
async fn a_delete_that_is_refused_is_an_event() {
    let mut world = World::new([node("n", "a")]);
    world.cloud.answer_all(Ok(Lookup::NotFound));
    world.api.fail_once(Method::DELETE, NODES, 403);
    world.run_for(Duration::from_secs(32)).await;
    assert_eq!(world.events("DeletingNodeFailed"), ["n"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_deleted_while_the_history_cannot_be_written() {
    for code in [409, 403, 500] {
        let mut world = World::new([node("n", "a")]);
        world.cloud.answer_all(Ok(Lookup::NotFound));
        world.run_for(Duration::from_secs(20)).await;
        world.api.fail_once(Method::PATCH, MAP, code);
        world.run_for(Duration::from_secs(60)).await;
        let patches = world.api.seen(&Method::PATCH, MAP);
        let deletes = world.api.seen(&Method::DELETE, NODES);
        assert_eq!((patches.len(), deletes.len()), (3, 1), "{code}");
        assert!(deletes[0].at > patches[1].at, "{code}: after the write that succeeded");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_state_keeps_every_node_and_names_the_key() {
    let mut world = World::new([node("n", "a")]);
    world.cloud.answer_all(Ok(found(InstanceState::Deleted)));
    world.api.put(MAP, json!({ "metadata": { "name": "ccm-core-simulated", "uid": "m" }, "data": { "deletions": "oops" } }));
    world.run_for(Duration::from_secs(120)).await;
    assert_eq!(world.api.writes(), Vec::<String>::new());
    let Some(Check::Warning(message)) = world.check("node-deletion") else { panic!("not told") };
    assert!(message.contains("ccm-core-simulated") && message.contains("\"deletions\""), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_history_is_told_from_a_first_installation_by_the_nodes() {
    for (annotated, deleted) in [(false, 1), (true, 0)] {
        let mut node = node("n", "a");
        if annotated {
            node.annotations.insert(APPLIED_LABELS.to_owned(), "{}".to_owned());
        }
        let mut world = World::new([node]);
        world.cloud.answer_all(Ok(Lookup::NotFound));
        world.run_for(Duration::from_secs(60)).await;
        assert_eq!(world.api.seen(&Method::DELETE, NODES).len(), deleted);
        assert_eq!(world.data("budget-spent-until").is_empty(), !annotated);
    }
}

#[tokio::test(start_paused = true)]
async fn another_identity_right_before_the_delete_keeps_every_node() {
    let mut world = World::new([node("n", "a")]);
    world.cloud.answer_all(Ok(Lookup::NotFound));
    world.cloud.confirm_as(Ok("another"));
    world.run_for(Duration::from_secs(32)).await;
    assert_eq!(world.api.seen(&Method::DELETE, NODES).len(), 0);
    assert!(matches!(world.check("node-deletion"), Some(Check::Warning(text)) if text.contains("another")));
    world.cloud.confirm_as(Err(refused()));
    world.run_for(Duration::from_secs(60)).await;
    assert_eq!(world.api.seen(&Method::DELETE, NODES).len(), 0);
    world.cloud.confirm_as(Ok(IDENTITY));
    world.run_for(Duration::from_secs(60)).await;
    assert_eq!(world.api.seen(&Method::DELETE, NODES).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_the_lease_or_the_provider_nothing_is_asked_or_written() {
    for close in [World::lose_lease, World::lose_provider] {
        let mut world = World::new([node("n", "a"), ready(tainted(node("t", "a"), SHUTDOWN))]);
        world.cloud.answer_all(Ok(found(InstanceState::Deleted)));
        close(&mut world);
        world.run_for(Duration::from_secs(120)).await;
        assert_eq!((world.api.writes().len(), world.cloud.calls()), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn refused_credentials_and_failing_look_ups_show_in_readiness_until_they_end() {
    let mut world = World::new([node("n", "a")]);
    world.cloud.answer_all(Err(refused()));
    world.run_for(Duration::from_secs(60)).await;
    assert!(matches!(world.check("cloud-credentials"), Some(Check::Warning(text)) if text.contains("expired")));
    assert_eq!(world.events("NodeLookupsFailing").len(), 1, "told once");
    let away = ProviderError { outcome: Outcome::Unknown, reason: "UNAVAILABLE".to_owned(), message: "gone".to_owned() };
    world.cloud.answer_all(Err(away));
    world.run_for(Duration::from_secs(10)).await;
    assert_eq!(world.check("cloud-credentials"), Some(Check::Ok));
    assert!(matches!(world.check("cloud-look-ups"), Some(Check::Warning(text)) if text.contains("n: ")));
    world.cloud.answer_all(Ok(found(InstanceState::Running)));
    world.run_for(Duration::from_secs(10)).await;
    assert_eq!(world.check("cloud-look-ups"), Some(Check::Ok));
    assert_eq!(world.api.count(NODES), 1);
}

#[tokio::test(start_paused = true)]
async fn readiness_says_nothing_of_a_node_that_is_gone() {
    let mut world = World::new([node("n", "a")]);
    world.cloud.answer_all(Err(refused()));
    // The view of this run: another run has one of its own.
    let away = world.ctx.nodes.clone();
    let health = world.ctx.health.clone();
    let told = || matches!(health.checks().get("cloud-credentials"), Some(Check::Warning(_)));
    let node_goes = async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert!(told());
        away.hide("n");
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert!(!told());
    };
    tokio::join!(node_goes, world.run_on(Duration::from_secs(60)));
}

#[tokio::test(start_paused = true)]
async fn a_hidden_zone_trips_one_breaker_that_outlives_restarts_and_is_told_everywhere() {
    let mut world = two_hundred(|node| node.zone() == Some("a"));
    for _ in 0..5 {
        world.run_for(Duration::from_secs(90)).await;
    }
    assert_eq!(world.api.count(NODES), 200);
    let id = world.trip_id();
    let command = format!("kubectl -n kube-system annotate --overwrite configmap ccm-core-simulated {RELEASE_BREAKER}={id}");
    assert!(matches!(world.check("node-deletion-breaker"), Some(Check::Warning(text)) if text.contains(&command)));
    assert_eq!(world.ctx.metrics.breakers_tripped.get(), 1);
    let told = world.events("NodeDeletionBreakerTripped");
    assert_eq!(told.iter().filter(|name| name.starts_with("n0")).count(), 5, "on some of the nodes, once: {told:?}");
    assert_eq!(told.iter().filter(|name| *name == "ccm-core-simulated").count(), 5, "by each process");
}

#[tokio::test(start_paused = true)]
async fn an_operator_releases_a_breaker_by_its_id_only() {
    let mut world = two_hundred(|node| node.zone() == Some("a"));
    world.run_for(Duration::from_secs(60)).await;
    world.annotate_map(RELEASE_BREAKER, "zone-a-20000101-000000");
    world.run_for(Duration::from_secs(60)).await;
    assert_eq!(world.api.count(NODES), 200, "the id of an old trip does nothing");
    world.annotate_map(RELEASE_BREAKER, &world.trip_id());
    world.run_for(Duration::from_secs(60)).await;
    assert_eq!(world.api.count(NODES), 133);
    assert_eq!(world.events("NodeDeletionBreakerReleased"), ["ccm-core-simulated"]);
    assert_eq!((world.data("breakers"), world.ctx.metrics.breakers_tripped.get()), ("[]".to_owned(), 0));
    assert_eq!(world.check("node-deletion-breaker"), Some(Check::Ok));
    assert_eq!(world.api.object(MAP).unwrap()["metadata"]["annotations"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn a_breaker_that_cannot_be_written_down_deletes_nothing_else_either() {
    let mut world = two_hundred(|node| node.zone() == Some("a") || node.name == "n001");
    world.run_for(Duration::from_secs(20)).await;
    world.api.fail_once(Method::PATCH, MAP, 500);
    world.run_for(Duration::from_secs(60)).await;
    let patches = world.api.seen(&Method::PATCH, MAP);
    let deletes = world.api.seen(&Method::DELETE, NODES);
    assert_eq!(deletes.iter().map(|seen| seen.path.as_str()).collect::<Vec<_>>(), [format!("{NODES}/n001")]);
    assert!(deletes[0].at > patches[0].at);
}

#[tokio::test(start_paused = true)]
async fn a_breaker_closes_by_itself_when_the_lie_ends() {
    let mut world = two_hundred(|node| node.zone() == Some("a"));
    world.run_for(Duration::from_secs(60)).await;
    assert_eq!(world.ctx.metrics.breakers_tripped.get(), 1);
    world.cloud.answer_all(Ok(found(InstanceState::Running)));
    world.run_for(Duration::from_secs(60)).await;
    assert_eq!((world.ctx.metrics.breakers_tripped.get(), world.api.count(NODES)), (0, 200));
    assert_eq!(world.events("NodeDeletionBreakerReset"), ["ccm-core-simulated"]);
}

#[tokio::test(start_paused = true)]
async fn the_shutdown_taint_comes_and_goes_beside_the_others_also_after_a_conflict() {
    let other = tainted(node("stopped", "a"), "theirs");
    let mut world = World::new([other, ready(tainted(tainted(node("back", "a"), "theirs"), SHUTDOWN))]);
    world.cloud.answer_all(Ok(found(InstanceState::Stopped)));
    world.api.fail_once(Method::PATCH, NODES, 409);
    world.run_for(Duration::from_secs(4)).await;
    let taints = |name: &str| world.api.object(&format!("{NODES}/{name}")).unwrap()["spec"]["taints"].clone();
    let (theirs, ours) = (json!({ "key": "theirs", "effect": "NoSchedule" }), json!({ "key": SHUTDOWN, "effect": "NoSchedule" }));
    assert_eq!(taints("stopped"), json!([theirs, ours]));
    assert_eq!(taints("back"), json!([theirs]));
    assert_eq!(world.ctx.metrics.writes.get(), 2);
    assert!(world.ctx.metrics.conflicts.get() >= 1);
}
