//! Routes over real sockets: what crosses, in which batches, and what each answer becomes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ccm_provider_sdk::fake::{RawServer, Serving};
use tonic::Code;
use v1::ErrorReason;

use super::*;
use crate::provider::grpc::MAX_LISTED;
use crate::provider::scripted::routes::{foreign, ours};
use crate::provider::scripted::scenario::{Scenario, describe, refusal};
use crate::provider::{Identity as _, Outcome};

const ALL: &[v1::Capability] = &[v1::Capability::Lead, v1::Capability::Routes];
type Started = (Scenario, RawServer, Serving<tonic::transport::Error>);

fn wanted(index: usize) -> WantedRoute {
    WantedRoute {
        destination: format!("10.{}.{}.0/24", index / 256, index % 256).parse().unwrap(),
        node_name: format!("n-{index}"),
        node_uid: format!("uid-{index}"),
        provider_id: Some(format!("fake://n-{index}")),
        addresses: Vec::new(),
    }
}

fn all_wanted(count: usize) -> Vec<WantedRoute> {
    (0..count).map(wanted).collect()
}

/// A provider that takes so many items in a batch and so many calls at one time.
async fn with_limits(batch: u32, calls: u32) -> Started {
    let (scenario, raw) = (Scenario::new(), RawServer::default());
    let limits = v1::ProviderLimits {
        max_batch_size: Some(batch),
        max_concurrent_route_calls: Some(calls),
        ..v1::ProviderLimits::default()
    };
    let info = v1::ProviderInfo {
        capabilities: ALL.iter().map(|it| (*it).into()).collect(),
        limits: Some(limits),
        ..RawServer::sound_info()
    };
    raw.info.always(move |_| Ok(v1::GetProviderInfoResponse { info: Some(info.clone()) }));
    let serving = scenario.serve(&raw);
    scenario.until(|state| state.ready().is_some()).await;
    (scenario, raw, serving)
}

fn listed(count: usize) -> v1::ListRoutesResponse {
    let routes = vec![v1::Route { destination_cidr: "10.0.1.0/24".to_owned(), ..v1::Route::default() }; count];
    v1::ListRoutesResponse { routes, observed_at: None }
}

fn reasons(answers: &[Answer]) -> Vec<&str> {
    answers.iter().map(|it| it.as_ref().map_or_else(|error| error.reason.as_str(), |_| "")).collect()
}

#[tokio::test]
async fn a_list_comes_in_parts_and_one_that_breaks_off_lists_nothing() {
    let (scenario, raw, _serving) = Scenario::with_raw(ALL).await;
    raw.routes.list.then(vec![Ok(listed(2)), Ok(listed(0)), Ok(listed(1))]);
    assert_eq!(scenario.routes.list().await.unwrap().routes.len(), 3);
    let cluster = v1::ClusterRef { name: "kubernetes".to_owned(), uid: "uid".to_owned() };
    assert_eq!(raw.routes.list.calls(), [v1::ListRoutesRequest { cluster: Some(cluster) }]);

    raw.routes.list.then(vec![Ok(listed(2)), Err(Status::unavailable("away"))]);
    assert_eq!(scenario.routes.list().await.unwrap_err().reason, "UNAVAILABLE");
    assert_eq!(scenario.routes.list().await.unwrap(), RouteTable { routes: vec![], observed_at: None });
}

#[tokio::test]
async fn a_list_without_end_is_an_error() {
    let (scenario, raw, _serving) = Scenario::with_raw(ALL).await;
    raw.routes.list.then(vec![Ok(listed(MAX_LISTED))]);
    assert_eq!(scenario.routes.list().await.unwrap().routes.len(), MAX_LISTED);
    raw.routes.list.then(vec![Ok(listed(MAX_LISTED)), Ok(listed(1))]);
    let error = scenario.routes.list().await.unwrap_err();
    assert!(error.reason == "INTERNAL" && error.message.contains("ListRoutes lists more than"), "{error}");
}

#[tokio::test]
async fn routes_are_created_in_full_batches_with_the_epoch_and_answered_in_order() {
    let (scenario, raw, _serving) = with_limits(3, 2).await;
    raw.routes.create.always(|request| {
        let outcome = |item: &v1::CreateRouteItem| match item.route.as_ref().unwrap().target_node_name.as_str() {
            "n-4" => v1::route_result::Outcome::TargetNotFound(v1::RouteTargetNotFound {}),
            _ => v1::route_result::Outcome::Done(v1::RouteDone {}),
        };
        let result = |item: &v1::CreateRouteItem| v1::RouteResult { key: item.key.clone(), outcome: Some(outcome(item)) };
        Ok(v1::CreateRoutesResponse { results: request.items.iter().rev().map(result).collect() })
    });
    let answers = scenario.routes.create(9, &all_wanted(7)).await;
    let expected: Vec<_> =
        (0..7).map(|index| Ok(if index == 4 { RouteOutcome::TargetNotFound } else { RouteOutcome::Done })).collect();
    assert_eq!(answers, expected);
    let calls = raw.routes.create.calls();
    let mut sizes: Vec<_> = calls.iter().map(|call| call.items.len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 3, 3]);
    assert!(calls.iter().all(|call| call.leadership == Some(v1::Leadership { epoch: 9 }) && call.cluster.is_some()));
    assert_eq!(scenario.routes.create(9, &[]).await, []);
    assert_eq!(raw.routes.create.count(), 3);
}

#[tokio::test]
async fn routes_are_deleted_as_they_were_listed_and_a_missing_target_makes_no_sense_there() {
    let (scenario, raw, _serving) = Scenario::with_raw(ALL).await;
    let routes = [ours("a", "10.0.1.0/24"), ours("a", "10.0.1.0/24"), foreign("10.0.2.0/24")];
    assert_eq!(scenario.routes.delete(9, &routes).await, [const { Ok(RouteOutcome::Done) }; 3]);
    let call = raw.routes.delete.calls().remove(0);
    assert_eq!(call.leadership, Some(v1::Leadership { epoch: 9 }));
    let sent: Vec<_> = routes.iter().enumerate().map(convert::deletion).collect();
    assert_eq!(call.items, sent);

    let outcome = Some(v1::route_result::Outcome::TargetNotFound(v1::RouteTargetNotFound {}));
    raw.routes.delete.then(Ok(v1::DeleteRoutesResponse { results: vec![v1::RouteResult { key: "0".to_owned(), outcome }] }));
    assert_eq!(reasons(&scenario.routes.delete(9, &routes[..1]).await), ["INTERNAL"]);
}

#[tokio::test]
async fn no_more_calls_run_at_one_time_than_the_provider_accepts() {
    let (scenario, raw, _serving) = with_limits(1, 3).await;
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let gate = Arc::new(Semaphore::new(0));
    let (now, peak, permits) = (Arc::clone(&running), Arc::clone(&most), Arc::clone(&gate));
    raw.routes.create.always_await(move |request| {
        let (now, peak, permits) = (Arc::clone(&now), Arc::clone(&peak), Arc::clone(&permits));
        async move {
            peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            permits.acquire().await.unwrap().forget();
            now.fetch_sub(1, Ordering::SeqCst);
            let done = Some(v1::route_result::Outcome::Done(v1::RouteDone {}));
            let results = request.items.into_iter().map(|item| v1::RouteResult { key: item.key, outcome: done.clone() });
            Ok(v1::CreateRoutesResponse { results: results.collect() })
        }
    });
    let routes = all_wanted(8);
    let release = async {
        raw.routes.create.wait_for_calls(3).await;
        gate.add_permits(8);
    };
    let (first, second, ()) =
        tokio::join!(scenario.routes.create(1, &routes[..4]), scenario.routes.create(1, &routes[4..]), release);
    assert!(first.iter().chain(&second).all(Result::is_ok));
    assert_eq!((most.load(Ordering::SeqCst), raw.routes.create.count()), (3, 8));
}

#[tokio::test]
async fn an_error_of_a_call_is_that_of_its_items_and_other_batches_go_on() {
    let (scenario, raw, _serving) = with_limits(2, 1).await;
    raw.routes.create.then(Err(refusal(Code::Internal, ErrorReason::Unspecified, None)));
    assert_eq!(reasons(&scenario.routes.create(1, &all_wanted(3)).await), ["INTERNAL", "INTERNAL", ""]);
    raw.routes.create.then(Err(refusal(Code::FailedPrecondition, ErrorReason::NotLeading, None)));
    assert_eq!(reasons(&scenario.routes.create(1, &all_wanted(1)).await), ["NOT_LEADING"]);
    raw.routes.delete.then(Err(Status::unimplemented("words")));
    let answers = scenario.routes.delete(1, &[ours("a", "10.0.1.0/24")]).await;
    assert_eq!(answers[0].as_ref().unwrap_err().outcome, Outcome::Unsupported);
}

#[tokio::test]
async fn a_rate_limit_of_all_calls_spares_the_batches_that_have_not_begun() {
    let (scenario, raw, _serving) = with_limits(1, 1).await;
    let after = Some(Duration::from_secs(7));
    raw.routes.create.then(Err(refusal(Code::ResourceExhausted, ErrorReason::RateLimited, after)));
    let answers = scenario.routes.create(1, &all_wanted(5)).await;
    assert_eq!(reasons(&answers), ["RATE_LIMITED"; 5]);
    assert!(answers.iter().all(|it| it.as_ref().unwrap_err().outcome == Outcome::Retry { after }));
    assert_eq!(raw.routes.create.count(), 1);
    assert!(scenario.routes.create(1, &all_wanted(5)).await.iter().all(Result::is_ok));
}

#[tokio::test]
async fn what_the_provider_does_not_list_is_not_called() {
    for capabilities in [&[v1::Capability::Lead][..], &[v1::Capability::Routes]] {
        let (scenario, raw, _serving) = Scenario::with_raw(capabilities).await;
        let (routes, listed) = (&scenario.routes, [ours("a", "10.0.1.0/24")]);
        for answer in [routes.create(1, &all_wanted(1)).await, routes.delete(1, &listed).await].concat() {
            let error = answer.unwrap_err();
            assert_eq!((error.outcome, error.reason.as_str()), (Outcome::Unsupported, "NOT_IMPLEMENTED"));
        }
        assert_eq!(routes.list().await.is_ok(), capabilities.contains(&v1::Capability::Routes), "reading needs no Lead");
        assert_eq!(raw.routes.create.count() + raw.routes.delete.count(), 0);
    }
}

#[tokio::test]
async fn an_answer_of_another_cloud_is_discarded() {
    let (scenario, raw, _serving) = Scenario::with_raw(ALL).await;
    let answered = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&answered);
    raw.routes.list.then_await(move |_| async move {
        drop(gate.acquire().await);
        vec![Ok(listed(1))]
    });
    let gate = Arc::clone(&answered);
    raw.routes.create.then_await(move |_| async move {
        drop(gate.acquire().await);
        Ok(v1::CreateRoutesResponse::default())
    });
    let routes = Arc::clone(&scenario.routes);
    let calls = tokio::spawn(async move {
        let wanted = all_wanted(2);
        tokio::join!(routes.list(), routes.create(1, &wanted))
    });
    raw.routes.list.wait_for_calls(1).await;
    raw.routes.create.wait_for_calls(1).await;
    describe(&raw, "elsewhere", ALL);
    scenario.handle.confirm().await.unwrap();
    answered.add_permits(2);
    let (list, created) = calls.await.unwrap();
    assert_eq!(list.unwrap_err().reason, "CLOUD_IDENTITY_CHANGED");
    assert_eq!(reasons(&created), ["CLOUD_IDENTITY_CHANGED"; 2]);
}

#[tokio::test]
async fn without_a_provider_every_item_waits_for_one() {
    let scenario = Scenario::new();
    assert_eq!(reasons(&scenario.routes.create(1, &all_wanted(2)).await), ["PROVIDER_NOT_READY"; 2]);
    assert_eq!(scenario.routes.list().await.unwrap_err().reason, "PROVIDER_NOT_READY");
}
