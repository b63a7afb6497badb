//! The Lead stream: who may lead, and what ends a leadership.
use std::time::Duration;

use ccm_provider_sdk::fake::FakeProvider;
use ccm_provider_sdk::v1;
use tokio::time::timeout;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::fixture::{Fixture, PATIENCE, ensure, reason, word};

/// What a refusal names as the highest epoch seen.
fn highest_epoch(status: &Status) -> Option<String> {
    status.get_details_error_info().and_then(|info| info.metadata.get("highest_epoch").cloned())
}

async fn lost(provider: &FakeProvider, at: usize) {
    timeout(PATIENCE, provider.leaders()[at].lost()).await.expect("the leadership ends");
}

#[tokio::test]
async fn each_word_is_acknowledged_and_the_provider_learns_of_the_leader_once() {
    let provider = FakeProvider::default();
    let fixture = Fixture::of(&provider).await;

    let mut lead = fixture.lead(7).await;
    lead.words.send(word(7, "core-a", PATIENCE)).await.unwrap();

    assert_eq!(lead.acknowledged().await.unwrap(), 7);
    let leaders = provider.leaders();
    assert_eq!((leaders.len(), leaders[0].epoch(), leaders[0].holder()), (1, 7, "core-a"));
    assert!(!leaders[0].is_lost());
}

#[tokio::test]
async fn a_closed_stream_ends_the_leadership() {
    let provider = FakeProvider::default();
    let fixture = Fixture::of(&provider).await;

    drop(fixture.lead(1).await);

    lost(&provider, 0).await;
}

#[tokio::test]
async fn a_word_that_expires_ends_the_leadership_and_the_stream() {
    let provider = FakeProvider::default();
    let fixture = Fixture::of(&provider).await;

    let mut lead = fixture.open_lead(word(1, "core-a", Duration::from_millis(50))).await;
    lead.acknowledged().await.unwrap();
    let status = lead.acknowledged().await.unwrap_err();

    assert_eq!((status.code(), reason(&status).as_str()), (Code::FailedPrecondition, "NOT_LEADING"));
    lost(&provider, 0).await;
}

#[tokio::test]
async fn a_newer_epoch_replaces_an_older_one() {
    let provider = FakeProvider::default();
    let fixture = Fixture::of(&provider).await;

    let mut old = fixture.lead(1).await;
    let _new = fixture.lead(2).await;

    assert_eq!(reason(&old.acknowledged().await.unwrap_err()), "NOT_LEADING");
    lost(&provider, 0).await;
    assert!(!provider.leaders()[1].is_lost());
}

#[tokio::test]
async fn an_older_epoch_is_refused_even_after_its_successor_has_gone() {
    let provider = FakeProvider::default();
    let fixture = Fixture::of(&provider).await;
    drop(fixture.lead(5).await);
    lost(&provider, 0).await;

    for stale in [word(4, "core-a", PATIENCE), word(5, "core-b", PATIENCE)] {
        let mut lead = fixture.open_lead(stale).await;
        let refusal = lead.acknowledged().await.unwrap_err();
        assert_eq!((reason(&refusal).as_str(), highest_epoch(&refusal).as_deref()), ("NOT_LEADING", Some("5")));
    }
    assert_eq!(provider.leaders().len(), 1);
}

#[tokio::test]
async fn the_same_leader_may_reconnect_with_its_epoch_at_once() {
    let provider = FakeProvider::default();
    let fixture = Fixture::of(&provider).await;

    drop(fixture.lead(5).await);
    let _again = fixture.lead(5).await;

    assert!(!provider.leaders()[1].is_lost());
}

#[tokio::test]
async fn a_malformed_word_is_refused_with_the_path_of_the_field() {
    let fixture = Fixture::of(&FakeProvider::default()).await;
    let sound = word(1, "core-a", PATIENCE);

    for (malformed, path) in [
        (v1::LeadRequest { cluster: None, ..sound.clone() }, "cluster.uid"),
        (v1::LeadRequest { valid_for: None, ..sound.clone() }, "valid_for"),
        (word(1, "core-a", Duration::ZERO), "valid_for"),
        (word(1, "core-a", Duration::from_secs(3601)), "valid_for"),
        (v1::LeadRequest { holder: String::new(), ..sound.clone() }, "holder"),
        (v1::LeadRequest { epoch: 0, ..sound.clone() }, "epoch"),
    ] {
        let status = fixture.open_lead(malformed).await.acknowledged().await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().starts_with(&format!("{path}: ")), "{}", status.message());
    }
}

#[tokio::test]
async fn epoch_holder_and_cluster_are_the_same_in_all_messages_of_a_stream() {
    let other = v1::ClusterRef { name: "kubernetes".into(), uid: "another".into() };
    for (changed, field) in [
        (word(2, "core-a", PATIENCE), "epoch"),
        (word(1, "core-b", PATIENCE), "holder"),
        (v1::LeadRequest { cluster: Some(other), ..word(1, "core-a", PATIENCE) }, "cluster"),
    ] {
        let provider = FakeProvider::default();
        let fixture = Fixture::of(&provider).await;
        let mut lead = fixture.lead(1).await;

        lead.words.send(changed).await.unwrap();

        let status = lead.acknowledged().await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{field}");
        assert!(status.message().starts_with(&format!("{field}: ")), "{}", status.message());
        lost(&provider, 0).await;
    }
}

#[tokio::test]
async fn valid_for_may_differ_from_message_to_message() {
    let provider = FakeProvider::default();
    let fixture = Fixture::of(&provider).await;
    let mut lead = fixture.open_lead(word(1, "core-a", Duration::from_secs(3600))).await;
    lead.acknowledged().await.unwrap();

    lead.words.send(word(1, "core-a", Duration::from_millis(50))).await.unwrap();

    assert_eq!(lead.acknowledged().await.unwrap(), 1);
    assert_eq!(reason(&lead.acknowledged().await.unwrap_err()), "NOT_LEADING", "the latest message counts");
    lost(&provider, 0).await;
}

#[tokio::test]
async fn a_mutation_needs_the_epoch_and_the_cluster_of_the_open_stream() {
    let provider = FakeProvider::whole();
    let fixture = Fixture::of(&provider).await;
    let mut client = fixture.load_balancers();
    let refused = |status: Status| (status.code(), reason(&status)) == (Code::FailedPrecondition, "NOT_LEADING".into());

    assert!(refused(client.ensure_load_balancer(ensure("s", 3, 1)).await.unwrap_err()));
    let _lead = fixture.lead(3).await;
    assert!(refused(client.ensure_load_balancer(ensure("s", 2, 1)).await.unwrap_err()));
    assert!(refused(client.ensure_load_balancer(ensure("s", 4, 1)).await.unwrap_err()));
    let mut foreign = ensure("s", 3, 1);
    foreign.cluster = Some(v1::ClusterRef { name: "kubernetes".into(), uid: "another".into() });
    assert!(refused(client.ensure_load_balancer(foreign).await.unwrap_err()));

    assert!(client.ensure_load_balancer(ensure("s", 3, 1)).await.is_ok());
    assert_eq!(provider.load_balancers.unwrap().ensure.count(), 1);
}
