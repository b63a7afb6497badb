//! Routes of a cloud that changes several in one call: what can begin together is one call, and each route is still one writer's.
use std::sync::Arc;

use ccm_provider_sdk::fake::{FakeRouteBatches, FakeRoutes};
use ccm_provider_sdk::v1::route_result::Outcome;
use ccm_provider_sdk::{NewRoute, ProviderError, RouteOutcome, v1};
use tokio::sync::Semaphore;
use tonic::Code;

use super::{Led, is_done};
use crate::fixture::SHORT;

async fn led() -> (Led, FakeRouteBatches) {
    let batches = FakeRouteBatches::default();
    (Led::of(FakeRoutes { batches: Some(batches.clone()), ..FakeRoutes::default() }).await, batches)
}

fn destinations(call: &[NewRoute]) -> Vec<&str> {
    call.iter().map(|new| new.route.destination_cidr.as_str()).collect()
}

#[tokio::test]
async fn a_batch_is_one_call_of_the_cloud_and_each_item_has_its_own_result() {
    let (led, batches) = led().await;
    let answers = vec![Ok(RouteOutcome::Done), Err(ProviderError::not_owned("a person's")), Ok(RouteOutcome::TargetNotFound)];
    batches.create.then(Ok(answers));

    let outcomes = led.create(&["10.0.1.0/24", "10.0.2.0/24", "10.0.3.0/24"]).await.unwrap();

    assert!(is_done(&outcomes[0]));
    assert!(matches!(&outcomes[1], Outcome::Error(error) if error.reason() == v1::ErrorReason::NotOwned));
    assert!(matches!(outcomes[2], Outcome::TargetNotFound(_)));
    assert_eq!(destinations(&batches.create.calls()[0]), ["10.0.1.0/24", "10.0.2.0/24", "10.0.3.0/24"]);
    assert_eq!(batches.create.count(), 1);
    assert!(is_done(&led.delete("10.0.1.0/24").await.unwrap()));
    assert_eq!(batches.delete.count(), 1);
}

#[tokio::test]
async fn what_is_blocked_or_runs_already_is_left_out_of_the_call() {
    let (led, batches) = led().await;
    let gate = Arc::new(Semaphore::new(0));
    let entry = Arc::clone(&gate);
    batches.create.then_await(move |new| async move {
        entry.acquire().await.unwrap().forget();
        Ok(new.iter().map(|_| Ok(RouteOutcome::Done)).collect())
    });

    let early = led.create_within(SHORT, &["10.0.1.0/24", "10.0.2.0/24"]).await.unwrap();
    assert!(early.iter().all(|outcome| matches!(outcome, Outcome::InProgress(_))));
    let (again, deleted, ()) = tokio::join!(led.create(&["10.0.1.0/24", "10.0.3.0/24"]), led.delete("10.0.2.0/24"), async {
        batches.create.wait_for_calls(2).await;
        assert_eq!(batches.delete.count(), 0, "the creation of its destination still runs");
        gate.add_permits(1);
    });

    assert!(again.unwrap().iter().all(is_done) && is_done(&deleted.unwrap()));
    let calls = batches.create.calls();
    assert_eq!(destinations(&calls[1]), ["10.0.3.0/24"], "the first runs already, and its caller attaches");
    assert_eq!(calls.len(), 2);
}

#[tokio::test]
async fn one_destination_twice_in_a_batch_is_changed_one_after_the_other() {
    let (led, batches) = led().await;

    let outcomes = led.create(&["10.0.1.0/24", "10.0.1.9/24"]).await.unwrap();

    assert!(outcomes.iter().all(is_done));
    assert!(batches.create.calls().iter().all(|call| call.len() == 1), "never together: {:?}", batches.create.calls());
}

#[tokio::test]
async fn a_provider_that_answers_too_few_items_is_at_fault_and_an_error_of_the_whole_is_the_error_of_each() {
    let (led, batches) = led().await;
    batches.create.then(Ok(vec![Ok(RouteOutcome::Done)]));
    for outcome in led.create(&["10.0.1.0/24", "10.0.2.0/24"]).await.unwrap() {
        assert!(matches!(outcome, Outcome::Error(error) if error.code == i32::from(Code::Internal)));
    }
    batches.create.then(Err(ProviderError::unavailable("away")));
    for outcome in led.create(&["10.0.1.0/24", "10.0.2.0/24"]).await.unwrap() {
        assert!(matches!(outcome, Outcome::Error(error) if error.reason() == v1::ErrorReason::CloudUnavailable));
    }
}

#[tokio::test]
async fn a_lost_leadership_ends_the_whole_batch() {
    let (mut led, batches) = led().await;
    batches.create.always_await(|_| std::future::pending());
    let cidrs = ["10.0.1.0/24", "10.0.2.0/24"];
    let early = led.create_within(SHORT, &cidrs).await.unwrap();
    assert!(early.iter().all(|outcome| matches!(outcome, Outcome::InProgress(_))));

    led.lose_the_lead().await;
    batches.create.always(|new| Ok(new.iter().map(|_| Ok(RouteOutcome::Done)).collect()));

    let outcomes = led.create(&cidrs).await.unwrap();
    assert!(outcomes.iter().all(is_done), "{outcomes:?}");
    assert_eq!(batches.create.count(), 2, "the work began anew");
}
