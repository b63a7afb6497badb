//! One writer per service: attaching, waiting, detaching, handing over and cancelling, as a caller sees them.
use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use ccm_provider_sdk::fake::{FakeLoadBalancers, FakeProvider};
use ccm_provider_sdk::v1::ensure_load_balancer_response::Outcome;
use ccm_provider_sdk::{Progress, v1};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tonic::{Code, Response, Status};

use crate::fixture::{Fixture, Lead, PATIENCE, SHORT, cluster, ensure, reason, within};

type Ensured = Result<Response<v1::EnsureLoadBalancerResponse>, Status>;

async fn leading() -> (FakeLoadBalancers, Fixture, Lead) {
    let provider = FakeProvider::whole();
    let fixture = Fixture::of(&provider).await;
    let lead = fixture.lead(1).await;
    (provider.load_balancers.unwrap(), fixture, lead)
}

fn call(fixture: &Fixture, timeout: Duration, request: v1::EnsureLoadBalancerRequest) -> JoinHandle<Ensured> {
    let mut client = fixture.load_balancers();
    tokio::spawn(async move { client.ensure_load_balancer(within(timeout, request)).await })
}

async fn outcome(call: impl Future<Output = Result<Ensured, tokio::task::JoinError>>) -> Outcome {
    call.await.unwrap().unwrap().into_inner().outcome.unwrap()
}

/// Makes the next `ensure` wait for a permit and then answer with one warning, by which its result is known.
fn gate(balancers: &FakeLoadBalancers, word: &str) -> Arc<Semaphore> {
    let gate = Arc::new(Semaphore::new(0));
    let (entry, ready) = (Arc::clone(&gate), marked(word));
    balancers.ensure.then_await(move |_| async move {
        let _permit = entry.acquire().await;
        Ok(Progress::Done(ready))
    });
    gate
}

fn marked(word: &str) -> v1::LoadBalancerReady {
    let warnings = vec![v1::Warning { reason: word.into(), message: String::new() }];
    v1::LoadBalancerReady { warnings, ..v1::LoadBalancerReady::default() }
}

#[tokio::test]
async fn an_equal_call_attaches_to_the_running_one_and_gets_its_result() {
    let (balancers, fixture, _lead) = leading().await;
    let gate = gate(&balancers, "First");
    let first = call(&fixture, PATIENCE, ensure("s", 1, 1));
    balancers.ensure.wait_for_calls(1).await;
    let second = outcome(call(&fixture, SHORT, ensure("s", 1, 1))).await;
    assert!(matches!(second, Outcome::InProgress(progress) if progress.message.contains("EnsureLoadBalancer has been at work")));

    gate.add_permits(1);

    assert_eq!(outcome(first).await, Outcome::Ready(marked("First")));
    assert_eq!(balancers.ensure.count(), 1);
}

#[tokio::test]
async fn a_different_call_waits_for_the_running_one() {
    let (balancers, fixture, _lead) = leading().await;
    let gate = gate(&balancers, "First");
    balancers.ensure.then(Ok(Progress::Done(marked("Second"))));
    let first = call(&fixture, PATIENCE, ensure("s", 1, 1));
    balancers.ensure.wait_for_calls(1).await;

    let waits = outcome(call(&fixture, SHORT, ensure("s", 1, 2))).await;
    assert!(
        matches!(waits, Outcome::InProgress(progress) if progress.message.contains("waits for an earlier EnsureLoadBalancer"))
    );
    assert_eq!(balancers.ensure.count(), 1);
    let second = call(&fixture, PATIENCE, ensure("s", 1, 2));
    gate.add_permits(1);

    assert_eq!(outcome(first).await, Outcome::Ready(marked("First")));
    assert_eq!(outcome(second).await, Outcome::Ready(marked("Second")));
}

#[tokio::test]
async fn a_deletion_waits_for_a_running_ensure_of_the_same_service() {
    let (balancers, fixture, _lead) = leading().await;
    let gate = gate(&balancers, "First");
    let first = call(&fixture, PATIENCE, ensure("s", 1, 1));
    balancers.ensure.wait_for_calls(1).await;
    let ensured = ensure("s", 1, 1);
    let delete = v1::EnsureLoadBalancerDeletedRequest {
        cluster: ensured.cluster,
        leadership: ensured.leadership,
        service: ensured.service,
    };
    let mut client = fixture.load_balancers();

    let answer = client.ensure_load_balancer_deleted(within(SHORT, delete.clone())).await.unwrap().into_inner();
    assert!(matches!(answer.outcome, Some(v1::ensure_load_balancer_deleted_response::Outcome::InProgress(_))));
    assert_eq!(balancers.delete.count(), 0);
    gate.add_permits(1);
    outcome(first).await;
    let answer = client.ensure_load_balancer_deleted(delete).await.unwrap().into_inner();

    assert!(matches!(answer.outcome, Some(v1::ensure_load_balancer_deleted_response::Outcome::Done(_))));
}

#[tokio::test]
async fn services_do_not_wait_for_each_other() {
    let (balancers, fixture, _lead) = leading().await;
    let _closed = gate(&balancers, "Never");
    let _stuck = call(&fixture, PATIENCE, ensure("stuck", 1, 1));
    balancers.ensure.wait_for_calls(1).await;

    let other = outcome(call(&fixture, PATIENCE, ensure("other", 1, 1))).await;

    assert!(matches!(other, Outcome::Ready(_)));
}

#[tokio::test]
async fn work_outlives_its_callers_deadline_and_its_result_is_handed_to_the_next_equal_call() {
    let (balancers, fixture, _lead) = leading().await;
    let gate = gate(&balancers, "First");
    let first = outcome(call(&fixture, SHORT, ensure("s", 1, 1))).await;
    assert!(matches!(first, Outcome::InProgress(_)));
    gate.add_permits(1);

    let again = outcome(call(&fixture, PATIENCE, ensure("s", 1, 1))).await;

    assert_eq!(again, Outcome::Ready(marked("First")));
    assert_eq!(balancers.ensure.count(), 1);
    // Once only: the next call runs, since the cloud may have changed.
    outcome(call(&fixture, PATIENCE, ensure("s", 1, 1))).await;
    assert_eq!(balancers.ensure.count(), 2);
}

#[tokio::test]
async fn work_outlives_a_caller_that_disconnects_and_never_runs_twice_at_once() {
    let (balancers, fixture, _lead) = leading().await;
    let gate = gate(&balancers, "First");
    let first = call(&fixture, PATIENCE, ensure("s", 1, 1));
    balancers.ensure.wait_for_calls(1).await;
    first.abort();

    let changed = outcome(call(&fixture, SHORT, ensure("s", 1, 2))).await;
    assert!(matches!(changed, Outcome::InProgress(_)));
    gate.add_permits(1);
    let again = outcome(call(&fixture, PATIENCE, ensure("s", 1, 1))).await;

    assert_eq!(again, Outcome::Ready(marked("First")));
    assert_eq!(balancers.ensure.count(), 1);
}

#[tokio::test]
async fn lost_leadership_cancels_running_work() {
    let (balancers, fixture, lead) = leading().await;
    let (held, dropped) = oneshot::channel::<()>();
    balancers.ensure.then_await(move |_| async move {
        let _held = held;
        pending().await
    });
    let running = call(&fixture, PATIENCE, ensure("s", 1, 1));
    balancers.ensure.wait_for_calls(1).await;

    drop(lead);

    assert!(timeout(PATIENCE, dropped).await.unwrap().is_err());
    let status = running.await.unwrap().unwrap_err();
    assert_eq!((status.code(), reason(&status).as_str()), (Code::FailedPrecondition, "NOT_LEADING"));
    // The cancelled call leaves nothing behind: its repeat under a new stream of the same epoch runs.
    let _again = fixture.lead(1).await;
    assert!(matches!(outcome(call(&fixture, PATIENCE, ensure("s", 1, 1))).await, Outcome::Ready(_)));
}

#[tokio::test]
async fn a_lost_leadership_answers_those_who_wait_too() {
    let (balancers, fixture, lead) = leading().await;
    let _closed = gate(&balancers, "Never");
    let running = call(&fixture, PATIENCE, ensure("s", 1, 1));
    balancers.ensure.wait_for_calls(1).await;
    assert!(matches!(outcome(call(&fixture, SHORT, ensure("s", 1, 1))).await, Outcome::InProgress(_)));
    let calls = [running, call(&fixture, PATIENCE, ensure("s", 1, 1)), call(&fixture, PATIENCE, ensure("s", 1, 2))];

    drop(lead);

    for call in calls {
        assert_eq!(reason(&call.await.unwrap().unwrap_err()), "NOT_LEADING");
    }
    assert_eq!(balancers.ensure.count(), 1);
}

#[tokio::test]
async fn a_kept_result_survives_a_reconnection_and_no_change_of_the_epoch() {
    for (epoch, expected) in [(1, "First"), (2, "Second")] {
        let (balancers, fixture, lead) = leading().await;
        let (finish, finished) = oneshot::channel::<()>();
        let (held, dropped) = oneshot::channel::<()>();
        balancers.ensure.then_await(move |_| async move {
            let _held = held;
            finished.await.unwrap();
            Ok(Progress::Done(marked("First")))
        });
        balancers.ensure.then(Ok(Progress::Done(marked("Second"))));
        assert!(matches!(outcome(call(&fixture, SHORT, ensure("s", 1, 1))).await, Outcome::InProgress(_)));
        finish.send(()).unwrap();
        assert!(timeout(PATIENCE, dropped).await.unwrap().is_err(), "the work has ended");
        drop(lead);
        let _again = fixture.lead(epoch).await;

        let found = outcome(call(&fixture, PATIENCE, ensure("s", epoch, 1))).await;

        assert_eq!(found, Outcome::Ready(marked(expected)), "epoch {epoch}");
    }
}

#[tokio::test]
async fn a_service_whose_status_or_generation_alone_differs_asks_for_the_same() {
    let (balancers, fixture, _lead) = leading().await;
    let gate = gate(&balancers, "First");
    let first = call(&fixture, PATIENCE, ensure("s", 1, 1));
    balancers.ensure.wait_for_calls(1).await;
    let mut request = ensure("s", 1, 1);
    let service = request.service.as_mut().unwrap();
    service.generation = 7;
    service.status = Some(v1::LoadBalancerStatus { ingress: vec![v1::LoadBalancerIngress::default()] });
    let second = call(&fixture, PATIENCE, request);

    let third = outcome(call(&fixture, SHORT, ensure("s", 1, 2))).await;
    assert!(matches!(third, Outcome::InProgress(progress) if progress.message.contains("waits for an earlier")));
    gate.add_permits(1);

    assert_eq!(outcome(first).await, Outcome::Ready(marked("First")));
    assert_eq!(outcome(second).await, Outcome::Ready(marked("First")));
    assert_eq!(balancers.ensure.count(), 1);
}

#[tokio::test]
async fn a_node_set_crosses_the_socket_once_and_an_unknown_one_is_asked_for() {
    let (balancers, fixture, _lead) = leading().await;
    let mut client = fixture.load_balancers();
    let by_hash = || {
        let nodes = Some(v1::NodeSetRef { set: Some(v1::node_set_ref::Set::Hash("h1".into())) });
        v1::EnsureLoadBalancerRequest { nodes, ..ensure("s", 1, 1) }
    };

    let status = client.ensure_load_balancer(by_hash()).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_str()), (Code::FailedPrecondition, "NODE_SET_UNKNOWN"));
    let node = v1::Node { name: "a".into(), ..v1::Node::default() };
    let set = Some(v1::NodeSet { nodes: vec![node] });
    client.put_node_set(v1::PutNodeSetRequest { hash: "h1".into(), set }).await.unwrap();
    client.ensure_load_balancer(by_hash()).await.unwrap();

    assert_eq!(balancers.ensure.calls()[0].1[0].name, "a");
}

#[tokio::test]
async fn the_default_name_is_gos() {
    let (_, fixture, _lead) = leading().await;
    let service = Some(v1::Service { uid: "01234567-89ab-cdef-0123-456789abcdef".into(), ..v1::Service::default() });
    let request = v1::GetLoadBalancerNameRequest { cluster: Some(cluster()), service };

    let name = fixture.load_balancers().get_load_balancer_name(request).await.unwrap().into_inner().name;

    assert_eq!(name, "a0123456789abcdef0123456789abcde");
}
