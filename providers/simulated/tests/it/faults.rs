//! Every fault as a core meets it.
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ccm_proto::v1::instance_result::Outcome;
use ccm_proto::v1::{ErrorReason, InstanceState};
use ccm_provider_sdk::Endpoint;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::time::timeout;
use tonic::Code;
use tonic::transport::Channel;
use tonic_types::StatusExt as _;

use crate::processes::{Provider, eventually, handshake, start_cloud};

async fn provider() -> Provider {
    Provider::start(&["--auto-instances"]).await
}

#[tokio::test]
async fn whole_calls_fail_with_the_code_and_reason_of_their_fault() {
    let provider = provider().await;
    let table = [
        ("error-all", Code::Unavailable, "CLOUD_UNAVAILABLE"),
        ("unauthenticated", Code::Unauthenticated, "CREDENTIALS_INVALID"),
        ("throttle", Code::ResourceExhausted, "RATE_LIMITED"),
    ];
    for (fault, code, reason) in table {
        provider.ctl(&["fault", "set", fault]);
        let status = provider.batch(&["a"]).await.unwrap_err();
        assert_eq!(status.code(), code, "{fault}");
        assert_eq!(status.get_details_error_info().unwrap().reason, reason);
        assert_eq!(status.get_details_retry_info().is_some(), fault == "throttle", "{fault}");
        provider.ctl(&["fault", "clear", fault]);
    }
    assert_eq!(provider.state("a").await, Some(InstanceState::Running));
}

#[tokio::test]
async fn a_narrowed_fault_fails_just_its_items_and_a_counted_one_ends() {
    let provider = provider().await;
    provider.ctl(&["fault", "set", "error-all", "--for", "web-*", "--count", "1"]);
    let results = provider.batch(&["web-1", "db-1"]).await.unwrap();
    let Some(Outcome::Error(error)) = &results[0].outcome else { panic!("{:?}", results[0]) };
    assert_eq!(error.reason(), ErrorReason::CloudUnavailable);
    assert!(matches!(results[1].outcome, Some(Outcome::Instance(_))));
    assert_eq!(provider.state("web-1").await, Some(InstanceState::Running));
}

#[tokio::test]
async fn one_zone_of_three_vanishes() {
    let provider = provider().await;
    provider.ctl(&["fault", "set", "not-found-all", "--zone", "sim-1b"]);
    let mut states = Vec::new();
    for name in ["node-0", "node-1", "node-2"] {
        states.push(provider.state(name).await.is_some());
    }
    assert_eq!(states, [true, false, true]);
    provider.ctl(&["fault", "clear"]);
    assert!(provider.state("node-1").await.is_some());
}

#[tokio::test]
async fn a_hanging_call_is_answered_once_the_fault_is_cleared() {
    let provider = provider().await;
    provider.ctl(&["fault", "set", "hang"]);
    let call = provider.state("a");
    tokio::pin!(call);
    eventually(async || {
        (provider.ctl(&["calls"]).contains(":1}") || timeout(Duration::ZERO, &mut call).await.is_ok()).then_some(())
    })
    .await;
    assert!(timeout(Duration::ZERO, &mut call).await.is_err(), "it was answered");
    provider.ctl(&["fault", "clear", "hang"]);
    assert_eq!(call.await, Some(InstanceState::Running));
}

#[tokio::test]
async fn a_hanging_handshake_leaves_other_calls_alone_and_is_answered_once_the_fault_is_cleared() {
    let provider = provider().await;
    provider.ctl(&["fault", "set", "handshake-hang"]);
    let handshake = provider.info();
    tokio::pin!(handshake);
    assert!(timeout(Duration::from_millis(100), &mut handshake).await.is_err(), "it was answered");
    assert_eq!(provider.state("a").await, Some(InstanceState::Running));
    assert!(timeout(Duration::ZERO, &mut handshake).await.is_err(), "it was answered");
    provider.ctl(&["fault", "clear", "handshake-hang"]);
    handshake.await.unwrap();
}

#[tokio::test]
async fn stale_answers_do_not_move_and_say_from_when_they_are() {
    let provider = provider().await;
    provider.ctl(&["fault", "set", "stale"]);
    let first = provider.batch(&["a"]).await.unwrap();
    provider.ctl(&["forget", "a"]);
    assert_eq!(provider.batch(&["a"]).await.unwrap(), first);
    provider.ctl(&["fault", "clear"]);
    assert_eq!(provider.state("a").await, None);
}

#[tokio::test]
async fn garbage_is_contradictory_and_ends_with_the_fault() {
    let provider = provider().await;
    provider.ctl(&["fault", "set", "garbage"]);
    let names: Vec<_> = (0..12).map(|n| format!("node-{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let results = provider.batch(&names).await.unwrap();
    let mut counts = HashMap::new();
    for result in &results {
        *counts.entry(result.node_name.as_str()).or_insert(0) += 1;
    }
    assert!(counts.values().any(|count| *count > 1), "none twice");
    assert!(names.iter().any(|name| !counts.contains_key(name)), "none missing");
    assert!(counts.keys().any(|name| !names.contains(name)), "none wrong-named");
    assert!(results.iter().any(|result| result.outcome.is_none()), "none unset");
    provider.ctl(&["fault", "clear", "garbage"]);
    assert!(provider.batch(&names).await.unwrap().iter().zip(&names).all(|(result, name)| result.node_name == **name));
}

#[tokio::test]
async fn another_identity_closes_connections_and_is_told_on_the_next() {
    let provider = provider().await;
    let honest = provider.info().await.unwrap().cloud_identity;
    let (channel, connections) = counted_channel(&provider.endpoint());
    handshake(&channel).await.unwrap();
    provider.ctl(&["fault", "set", "other-identity"]);
    eventually(async || {
        // Its failure is as good as its success: what counts is that a new connection was needed.
        let _ = handshake(&channel).await;
        (connections.load(Ordering::SeqCst) > 1).then_some(())
    })
    .await;
    let told = eventually(async || provider.info().await.ok()).await;
    assert_ne!(told.cloud_identity, honest);
    provider.ctl(&["fault", "clear", "other-identity"]);
    eventually(async || (provider.info().await.ok()?.cloud_identity == honest).then_some(())).await;
}

/// A channel, and how often it had to connect.
fn counted_channel(endpoint: &Endpoint) -> (Channel, Arc<AtomicUsize>) {
    let connections = Arc::new(AtomicUsize::new(0));
    let (count, path) = (Arc::clone(&connections), endpoint.path().to_owned());
    let connector = tower::service_fn(move |_: tonic::transport::Uri| {
        let (count, path) = (Arc::clone(&count), path.clone());
        async move {
            let stream = UnixStream::connect(path).await?;
            count.fetch_add(1, Ordering::SeqCst);
            Ok::<_, std::io::Error>(TokioIo::new(stream))
        }
    });
    (tonic::transport::Endpoint::from_static("http://localhost").connect_with_connector_lazy(connector), connections)
}

#[tokio::test]
async fn faults_of_a_cloud_outlive_its_provider() {
    let (_cloud, url) = start_cloud(&["--auto-instances"]);
    let mut provider = Provider::start(&["--cloud", &url]).await;
    provider.ctl(&["fault", "set", "unauthenticated"]);
    provider.restart().await;
    assert_eq!(provider.batch(&["a"]).await.unwrap_err().code(), Code::Unauthenticated);
    assert!(provider.ctl(&["fault", "list"]).contains("unauthenticated"));
    provider.ctl(&["fault", "clear"]);
    assert_eq!(provider.state("a").await, Some(InstanceState::Running));
}
