//! The cases of Go's controller about one Service: `TestSyncLoadBalancerIfNeeded`, `TestProcessServiceCreateOrUpdate` (with its
//! errors of the API server), `TestProcessServiceDeletion`, `TestServiceQueueDelay`, `TestAddFinalizer`, `TestRemoveFinalizer`
//! and `TestPatchStatus`.
use serde_json::{Value, json};

use super::fixtures::{Reply, Verb, World, address, finished, refusal, service, with};
use super::{SECOND, pass, settle, start, until};
use crate::controllers::service::Duration;
use crate::controllers::service::act::{Write, act};
use crate::model::load_balancer::{Ensured, Extras, LoadBalancerStatus};
use crate::names;
use crate::provider::Outcome;

struct Case {
    name: &'static str,
    service: Value,
    calls: &'static [Verb],
    /// How many writes Go makes.
    go_writes: usize,
    /// How many we make, if that is another number, and why.
    ours: Option<(usize, &'static str)>,
}

fn typed(kind: &str) -> Value {
    with(service("s"), |it| it["spec"]["type"] = json!(kind))
}

fn of_protocol(protocol: &str) -> Value {
    with(service("s"), |it| it["spec"]["ports"][0]["protocol"] = json!(protocol))
}

fn held(service: Value) -> Value {
    with(service, |it| it["metadata"]["finalizers"] = json!([names::LOAD_BALANCER_FINALIZER]))
}

fn with_address(service: Value) -> Value {
    with(service, |it| it["status"] = json!({ "loadBalancer": { "ingress": [{ "ip": "8.8.8.8" }] } }))
}

fn deleted(service: Value) -> Value {
    with(service, |it| it["metadata"]["deletionTimestamp"] = json!("2024-05-06T07:08:09Z"))
}

fn sync_cases() -> Vec<Case> {
    let class = with(service("s"), |it| it["spec"]["loadBalancerClass"] = json!("custom-loadbalancer"));
    let wanted = |name, service| Case { name, service, calls: &[Verb::Ensure], go_writes: 2, ours: None };
    let nothing = |name, service| Case { name, service, calls: &[], go_writes: 0, ours: None };
    vec![
        nothing("service doesn't want LB", typed("ClusterIP")),
        wanted("udp service that wants LB", of_protocol("UDP")),
        wanted("tcp service that wants LB", of_protocol("TCP")),
        wanted("sctp service that wants LB", of_protocol("SCTP")),
        nothing("service specifies loadBalancerClass", class),
        Case {
            name: "service with finalizer that no longer wants LB",
            service: held(with_address(typed("ClusterIP"))),
            calls: &[Verb::Delete],
            go_writes: 2,
            ours: None,
        },
        Case {
            name: "service that needs cleanup",
            service: deleted(held(with_address(service("s")))),
            calls: &[Verb::Delete],
            go_writes: 2,
            ours: Some((1, "the status of a Service that vanishes with the next write helps nobody")),
        },
        Case {
            name: "service with finalizer that wants LB",
            service: held(service("s")),
            calls: &[Verb::Ensure],
            go_writes: 1,
            ours: None,
        },
    ]
}

#[tokio::test(start_paused = true)]
async fn a_service_gets_the_calls_and_the_writes_that_go_makes() {
    for Case { name, service, calls, go_writes, ours } in sync_cases() {
        let world = World::new([service], []);
        let running = start(&world);
        pass(SECOND * 5).await;
        assert_eq!(world.cloud.verbs("s"), calls, "{name}");
        let (want, why) = ours.unwrap_or((go_writes, "as in Go"));
        assert_eq!(world.server.service_writes("default/s").len(), want, "{name}: {why}");
        running.stop().await;
    }
}

/// `TestProcessServiceCreateOrUpdate`: a valid Service, and one whose `loadBalancerIP` changes.
#[tokio::test(start_paused = true)]
async fn another_load_balancer_ip_is_asked_for() {
    let asking = |ip: &str| with(service("s"), |it| it["spec"]["loadBalancerIP"] = json!(ip));
    let world = World::new([asking("192.168.1.1")], []);
    let running = start(&world);
    until("it is done", || world.is_done("s")).await;
    world.change("s", |service| service["spec"]["loadBalancerIP"] = json!("192.168.1.11"));
    pass(SECOND * 5).await;
    let asked: Vec<_> = world.cloud.made(Verb::Ensure).into_iter().map(|call| call.service.load_balancer_ip).collect();
    assert_eq!(asked, [Some("192.168.1.1".to_owned()), Some("192.168.1.11".to_owned())]);
    running.stop().await;
}

/// `TestProcessServiceCreateOrUpdateK8sError`: Go fails on a conflict and tries again with an event; here the same answer is
/// written to the Service as it is now, so that there is nothing to tell and no second call.
#[tokio::test(start_paused = true)]
async fn errors_of_the_api_server_on_the_status_cost_no_second_call() {
    for (name, code, done) in [("conflict error", 409, true), ("not found error", 404, false)] {
        let mut world = World::new([held(service("s"))], []);
        world.server.before_write(move |objects| {
            if code == 404 {
                objects.clear();
            }
            Some(code)
        });
        let running = start(&world);
        pass(SECOND * 10).await;
        assert_eq!(world.cloud.verbs("s"), [Verb::Ensure], "{name}");
        assert_eq!(world.is_done("s"), done, "{name}");
        assert!(!world.reasons().contains(&names::events::SYNC_LOAD_BALANCER_FAILED.to_owned()), "{name}");
        running.stop().await;
    }
}

/// `TestProcessServiceDeletion`: of a Service that was never there, one whose deletion fails, and one whose succeeds. In Go the
/// absence of a Service from the cache deletes its load balancer; here only the Service itself can ask for that.
#[tokio::test(start_paused = true)]
async fn deletion_is_asked_for_by_the_service_itself() {
    let world = World::new([], []);
    let running = start(&world);
    settle().await;
    world.services.hide("default/never-there");
    pass(SECOND * 5).await;
    assert!(world.cloud.calls().is_empty());
    running.stop().await;

    let world = World::new([finished("fails"), finished("succeeds")], []);
    let error = refusal(Outcome::Retry { after: None }, "UNAVAILABLE");
    world.cloud.reply(Verb::Delete, "fails", [Reply::Fail(error)]);
    let running = start(&world);
    settle().await;
    world.delete("fails");
    world.delete("succeeds");
    settle().await;
    assert!(world.server.service("default/succeeds").is_none());
    assert!(world.server.service("default/fails").unwrap().has_finalizer());
    until("the other is gone, too", || world.server.service("default/fails").is_none()).await;
    assert_eq!(world.cloud.count(Verb::Delete), 3);
    running.stop().await;
}

/// `TestServiceQueueDelay`.
#[tokio::test(start_paused = true)]
async fn a_service_returns_after_success_never_after_an_error_soon_and_after_a_wish_when_it_says() {
    let wish = Duration::from_secs(42);
    let error = |after| Reply::Fail(refusal(Outcome::Retry { after }, "UNAVAILABLE"));
    let cases = [
        ("processing successful", None, None),
        ("regular error", Some(error(None)), Some(0.5..=1.6)),
        ("retry error", Some(Reply::Busy(wish)), Some(42.0..=42.1)),
        ("retry error, as an error with a time", Some(error(Some(wish))), Some(42.0..=84.1)),
    ];
    for (name, reply, expected) in cases {
        let world = World::new([service("s")], []);
        world.cloud.reply(Verb::Ensure, "s", reply);
        let running = start(&world);
        pass(SECOND * 100).await;
        let calls = world.cloud.made(Verb::Ensure);
        match expected {
            None => assert_eq!(calls.len(), 1, "{name}"),
            Some(pause) => {
                assert_eq!(calls.len(), 2, "{name}");
                let paused = (calls[1].at - calls[0].at).as_secs_f64();
                assert!(pause.contains(&paused), "{name}: {paused}");
            }
        }
        running.stop().await;
    }
}

/// `TestAddFinalizer`.
#[tokio::test(start_paused = true)]
async fn the_finalizer_is_added_where_it_is_not() {
    for (name, service, writes) in [("no-op add finalizer", held(service("s")), 0), ("add finalizer", service("s"), 1)] {
        let world = World::new([service], []);
        world.cloud.hold(Verb::Ensure);
        let running = start(&world);
        until("the cloud is asked", || world.cloud.running() == 1).await;
        assert_eq!(world.server.service_writes("default/s").len(), writes, "{name}");
        world.cloud.release(Verb::Ensure);
        running.stop().await;
        assert!(world.server.service("default/s").unwrap().has_finalizer());
    }
}

/// `TestRemoveFinalizer`. One that is not there is asked to be removed by nobody: such a Service is not ours.
#[tokio::test(start_paused = true)]
async fn the_finalizer_is_removed_where_it_is() {
    for (name, service, writes) in
        [("no-op remove finalizer", typed("NodePort"), 0), ("remove finalizer", held(typed("NodePort")), 1)]
    {
        let world = World::new([service], []);
        let running = start(&world);
        pass(SECOND * 5).await;
        assert_eq!(world.server.service_writes("default/s").len(), writes, "{name}");
        assert!(!world.server.service("default/s").unwrap().has_finalizer());
        running.stop().await;
    }
}

/// `TestPatchStatus`. The condition is written beside the status, so what counts is whether the status is in the write.
#[tokio::test(start_paused = true)]
async fn the_status_is_written_where_it_differs() {
    let none = LoadBalancerStatus::default;
    let some = || LoadBalancerStatus { ingress: vec![address("8.8.8.8")] };
    for (name, before, status, written) in [
        ("no-op add status", with_address(service("s")), some(), false),
        ("add status", service("s"), some(), true),
        ("no-op clear status", service("s"), none(), false),
        ("clear status", with_address(service("s")), none(), true),
    ] {
        let world = World::new([before], []);
        let service = world.server.service("default/s").unwrap();
        let answer = Ensured { status: status.clone(), extras: Extras::default() };
        let after = act(&world.context().writer, &service, Write::InDesiredState(&answer)).await.unwrap();
        let patches: Vec<_> = world.server.calls().into_iter().filter(|call| call.path.ends_with("/status")).collect();
        assert_eq!(patches.len(), 1, "{name}");
        assert_eq!(!patches[0].body["status"]["loadBalancer"].is_null(), written, "{name}");
        assert_eq!(after.status.ingress.len(), status.ingress.len(), "{name}");
    }
}
