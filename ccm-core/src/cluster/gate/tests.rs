//! When the gate is open; and one to open and close, for the tests of those who ask it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::time::Duration;

use super::*;

/// What decides over a gate.
pub struct Open {
    /// The lease.
    pub term: watch::Sender<Option<Term>>,
    /// The provider's state.
    pub provider: watch::Sender<ProviderState>,
}

/// An open gate, for a provider whose providerIDs begin with `test://`.
pub fn gate() -> (Open, Gate) {
    let term = Term { valid_until: Instant::now() + Duration::from_hours(1), ..expired() };
    let (term, terms) = watch::channel(Some(term));
    let info = ProviderInfo { provider_id_prefixes: vec!["test://".to_owned()], ..ProviderInfo::default() };
    let (provider, states) = watch::channel(ProviderState::Ready(Arc::new(info)));
    (Open { term, provider }, Gate::new(terms, states))
}

/// A term of the cloud of a default [`ProviderInfo`] that has just run out.
fn expired() -> Term {
    Term { epoch: 1, cloud: Arc::default(), holder: "me".into(), valid_until: Instant::now() }
}

#[test]
fn a_term_that_has_expired_closes_the_gate_without_being_told() {
    let (open, gate) = gate();
    open.term.send_replace(Some(expired()));
    assert_eq!(gate.check().unwrap_err(), Closed::NotLeading);
    assert_eq!(gate.check_lease().unwrap_err(), Closed::NotLeading);
}

#[test]
fn another_cloud_than_the_terms_closes_the_gate_also_one_that_is_accepted() {
    let (open, gate) = gate();
    for another in [
        ProviderInfo { cloud_identity: "another".to_owned(), ..ProviderInfo::default() },
        ProviderInfo { name: "another".to_owned(), ..ProviderInfo::default() },
    ] {
        open.provider.send_replace(ProviderState::Ready(Arc::new(another)));
        assert_eq!(gate.check().unwrap_err(), Closed::AnotherCloud);
    }
    open.provider.send_replace(ProviderState::Ready(Arc::default()));
    assert_eq!(gate.check().unwrap().epoch, 1);
}

#[test]
fn what_the_leader_keeps_for_itself_needs_the_lease_alone() {
    let (open, gate) = gate();
    open.provider.send_replace(ProviderState::Unusable { message: "away".to_owned() });
    assert_eq!((gate.check().unwrap_err(), gate.check_lease()), (Closed::ProviderNotReady, Ok(1)));
    open.term.send_replace(None);
    assert_eq!(gate.check_lease(), Err(Closed::NotLeading));
}

#[test]
fn a_provider_without_a_recent_handshake_closes_the_gate_with_a_reason_of_its_own() {
    let (open, gate) = gate();
    let state = ProviderState::Unconfirmed { info: Arc::default(), since: Instant::now(), message: String::new() };
    open.provider.send_replace(state);
    assert_eq!(gate.check().unwrap_err(), Closed::ProviderUnconfirmed);
}

type Change = Box<dyn FnOnce(&Open)>;

#[tokio::test(start_paused = true)]
async fn what_was_answered_in_a_term_waits_for_the_provider_and_never_for_another_term_or_cloud() {
    let away = || ProviderState::Disconnected { since: Instant::now(), message: String::new() };
    let another = ProviderInfo { cloud_identity: "another".to_owned(), ..ProviderInfo::default() };
    let cases: [(Change, Result<(), Closed>); 4] = [
        (Box::new(|open| drop(open.provider.send_replace(ProviderState::Ready(Arc::default())))), Ok(())),
        (Box::new(|open| drop(open.provider.send_replace(ProviderState::Ready(Arc::new(another))))), Err(Closed::AnotherCloud)),
        (Box::new(|open| drop(open.term.send_replace(None))), Err(Closed::NotLeading)),
        (Box::new(|open| drop(open.term.send_replace(Some(Term { epoch: 2, ..expired() })))), Err(Closed::NotLeading)),
    ];
    for (change, expected) in cases {
        let (open, gate) = gate();
        open.provider.send_replace(away());
        let waits = tokio::spawn(async move { gate.opened(1).await });
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(!waits.is_finished());
        change(&open);
        assert_eq!(waits.await.unwrap(), expected);
    }
}
