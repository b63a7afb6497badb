//! What holds for every call: request ids, deadlines, panics, size limits.
use std::future::pending;

use ccm_provider_sdk::fake::{FakeInstances, FakeProvider, FakeZones};
use ccm_provider_sdk::{Lookup, v1};
use tokio::time::{Instant, timeout};
use tonic::{Code, Request};
use v1::zones_client::ZonesClient;

use crate::fixture::{Fixture, PATIENCE, SHORT, batch, within};

#[tokio::test]
async fn the_callers_request_id_comes_back_and_an_absent_one_is_made() {
    let fixture = Fixture::of(&FakeProvider::default()).await;
    let mut named = Request::new(batch(["a"]));
    named.metadata_mut().insert("x-request-id", "core-7".parse().unwrap());

    let answer = fixture.instances().batch_get_instances(named).await.unwrap();
    assert_eq!(answer.metadata().get("x-request-id").unwrap(), "core-7");

    let status = fixture.instances().batch_get_instances(batch([])).await.unwrap_err();
    assert_eq!(status.metadata().get("x-request-id").unwrap().len(), 36);
}

#[tokio::test]
async fn a_read_that_hangs_ends_within_the_callers_deadline() {
    let zones = FakeZones::default();
    zones.get.always_await(|_| pending());
    let fixture = Fixture::of(&FakeProvider { zones: Some(zones), ..FakeProvider::bare() }).await;
    let target = Some(v1::get_zone_request::Target::NodeName("a".into()));
    let started = Instant::now();

    let request = within(SHORT, v1::GetZoneRequest { target });
    let status = ZonesClient::new(fixture.channel()).get_zone(request).await.unwrap_err();

    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    assert!(started.elapsed() < PATIENCE / 2);
}

#[tokio::test]
async fn a_panic_of_the_provider_is_an_error_of_one_call() {
    let instances = FakeInstances::default();
    instances.get.then_await(|_| async { panic!("a bug") });
    let fixture = Fixture::of(&FakeProvider { instances: Some(instances), ..FakeProvider::bare() }).await;
    let mut client = fixture.instances();

    let status = client.batch_get_instances(batch(["a"])).await.unwrap_err();
    assert_eq!(status.code(), Code::Internal);
    assert!(client.batch_get_instances(batch(["a"])).await.is_ok());
}

#[tokio::test]
async fn a_caller_that_goes_away_cancels_its_read() {
    let (dropped, heard) = tokio::sync::oneshot::channel::<()>();
    let instances = FakeInstances::default();
    instances.get.then_await(move |_| async move {
        let _held = dropped;
        pending::<()>().await;
        Ok(Lookup::not_found())
    });
    let fixture = Fixture::of(&FakeProvider { instances: Some(instances.clone()), ..FakeProvider::bare() }).await;
    let mut client = fixture.instances();
    let call = tokio::spawn(async move { client.batch_get_instances(batch(["a"])).await });
    instances.get.wait_for_calls(1).await;

    call.abort();

    assert!(timeout(PATIENCE, heard).await.unwrap().is_err());
}

#[tokio::test]
async fn a_message_over_four_mebibytes_is_taken() {
    let fixture = Fixture::of(&FakeProvider::default()).await;
    let mut request = batch(["a"]);
    request.queries[0].labels.insert("example.com/long".into(), "x".repeat(6 << 20));

    assert!(fixture.instances().batch_get_instances(request).await.is_ok());
}
