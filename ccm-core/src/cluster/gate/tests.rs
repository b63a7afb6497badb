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

/// An open gate.
pub fn gate() -> (Open, Gate) {
    let term = Term { epoch: 1, holder: "me".into(), valid_until: Instant::now() + Duration::from_hours(1) };
    let (term, terms) = watch::channel(Some(term));
    let (provider, states) = watch::channel(ProviderState::Ready(Arc::default()));
    (Open { term, provider }, Gate::new(terms, states))
}

#[test]
fn a_term_that_has_expired_closes_the_gate_without_being_told() {
    let (open, gate) = gate();
    let expired = Term { epoch: 1, holder: "me".into(), valid_until: Instant::now() };
    open.term.send_replace(Some(expired));
    assert_eq!(gate.check().unwrap_err(), Closed::NotLeading);
}

#[test]
fn a_provider_without_a_recent_handshake_closes_the_gate_with_a_reason_of_its_own() {
    let (open, gate) = gate();
    let state = ProviderState::Unconfirmed { info: Arc::default(), since: Instant::now(), message: String::new() };
    open.provider.send_replace(state);
    assert_eq!(gate.check().unwrap_err(), Closed::ProviderUnconfirmed);
}
