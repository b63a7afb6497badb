//! What is published of a session, and said in the log once for each change.
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::{Live, LiveReceiver, Published};
use crate::model::provider_info::ProviderInfo;
use crate::provider::endpoint::Endpoint;
use crate::provider::grpc::Connection;
use crate::provider::{ProviderError, ProviderState, StateReceiver, capabilities};

/// What is known of the session, and the part of it that other rooms see.
#[derive(Debug)]
pub struct Board {
    session: watch::Sender<Published>,
    /// Its state, for those who have no use for a connection. Only [`Board::publish`] sends to it.
    state: watch::Sender<ProviderState>,
    handshakes: Mutex<Handshakes>,
}

/// What came of the latest handshakes of a provider that can be used.
#[derive(Debug)]
struct Handshakes {
    /// When the last one was answered and judged.
    confirmed: Instant,
    /// Why the latest one was not.
    missed: Option<String>,
}

impl Board {
    /// Nothing is connected yet.
    pub fn new(endpoint: &Endpoint) -> Self {
        let message = format!("connecting to the provider at {endpoint}");
        let state = ProviderState::Disconnected { since: Instant::now().into_std(), message };
        let handshakes = Mutex::new(Handshakes { confirmed: Instant::now(), missed: None });
        let session = watch::Sender::new(Published { state: state.clone(), live: None });
        Self { session, state: watch::Sender::new(state), handshakes }
    }

    /// How the provider stands.
    pub fn state(&self) -> StateReceiver {
        self.state.subscribe()
    }

    /// The session.
    pub fn session(&self) -> watch::Receiver<Published> {
        self.session.subscribe()
    }

    /// The connection that may be used.
    pub fn live(&self) -> LiveReceiver {
        LiveReceiver::new(self.session())
    }

    /// Whether there is a connection that may be used.
    pub fn is_live(&self) -> bool {
        self.session.borrow().live.is_some()
    }

    /// The provider was just found usable. A description that was known already changes neither connection nor streams.
    pub fn ready(&self, connection: &Connection, info: ProviderInfo) -> Arc<ProviderInfo> {
        let confirmed = Handshakes { confirmed: Instant::now(), missed: None };
        let missed = std::mem::replace(&mut *self.handshakes.lock(), confirmed).missed;
        let known = self.session.borrow().live.as_ref().map(|live| Arc::clone(&live.info)).filter(|known| **known == info);
        if let Some(known) = known {
            self.confirmed_again(&known, missed.is_some());
            return known;
        }
        tracing::info!(
            provider = info.name, version = info.version, cloud_identity = info.cloud_identity, capabilities = ?info.capabilities,
            "the provider is ready"
        );
        let info = Arc::new(info);
        let identity = info.cloud_identity.as_str().into();
        let live = Live { connection: connection.clone(), info: Arc::clone(&info), identity };
        self.publish(Published { state: ProviderState::Ready(Arc::clone(&info)), live: Some(Arc::new(live)) });
        info
    }

    fn confirmed_again(&self, known: &Arc<ProviderInfo>, after_a_miss: bool) {
        if after_a_miss {
            tracing::info!(provider = known.name, "the provider completed a handshake again");
        }
        if self.session.borrow().state.ready().is_none() {
            self.publish_state(ProviderState::Ready(Arc::clone(known)));
        }
    }

    /// A handshake confirmed nothing, and ends nothing. Answers the error for those who asked for it.
    pub fn missed(&self, why: String) -> ProviderError {
        let error = capabilities::retry("NOT_CONFIRMED", why.as_str());
        if self.handshakes.lock().missed.replace(why).is_none() {
            tracing::warn!(
                error = error.message,
                "a handshake was not completed and is repeated; running calls go on, and it confirms nothing"
            );
        }
        error
    }

    /// Publishes that nothing may be changed whenever no handshake was completed for `limit`. Never returns.
    pub async fn watch_confirmations(&self, limit: Duration) {
        let mut state = self.state();
        while state.wait_for(|state| state.ready().is_some()).await.is_ok() {
            let due = self.handshakes.lock().confirmed + limit;
            if Instant::now() < due {
                sleep_until(due).await;
            } else {
                self.unconfirmed(limit);
            }
        }
    }

    fn unconfirmed(&self, limit: Duration) {
        let Some(info) = self.session.borrow().state.ready().cloned() else { return };
        let (since, why) = {
            let handshakes = self.handshakes.lock();
            (handshakes.confirmed.into_std(), handshakes.missed.clone())
        };
        let message = format!(
            "the provider completed no handshake for {}: {}. Nothing is changed until it completes one; running calls and look-ups \
             go on. Look at the provider's log, and restart the provider if it hangs",
            humantime::format_duration(limit),
            why.as_deref().unwrap_or("the handshake still runs")
        );
        let state = ProviderState::Unconfirmed { info, since, message };
        tracing::warn!("{}", capabilities::standing(&state).message);
        self.publish_state(state);
    }

    /// There is no connection, or none that answers. Answers the error of calls that need one.
    pub fn disconnected(&self, message: String) -> ProviderError {
        let since = match &self.session.borrow().state {
            ProviderState::Disconnected { since, .. } => *since,
            _ => Instant::now().into_std(),
        };
        self.refuse(ProviderState::Disconnected { since, message })
    }

    /// The provider answers and may not be used, or is not there. Answers the error of calls that need it.
    pub fn refuse(&self, state: ProviderState) -> ProviderError {
        let error = capabilities::standing(&state);
        if self.session.borrow().state == state {
            tracing::debug!(reason = %error.message, "still the same");
            return error;
        }
        tracing::warn!("{}", error.message);
        self.publish(Published { state, live: None });
        error
    }

    /// Whether this very description was judged before, so that a judge who cannot say now takes nothing away.
    pub fn knows(&self, info: &ProviderInfo) -> bool {
        match &self.session.borrow().state {
            ProviderState::Ready(known)
            | ProviderState::Unconfirmed { info: known, .. }
            | ProviderState::IdentityChanged { found: known, .. } => **known == *info,
            ProviderState::Disconnected { .. } | ProviderState::Unusable { .. } => false,
        }
    }

    /// Another state of the connection that there is.
    fn publish_state(&self, state: ProviderState) {
        let live = self.session.borrow().live.clone();
        self.publish(Published { state, live });
    }

    /// The session first: who sees a provider that is ready finds the connection.
    fn publish(&self, published: Published) {
        let state = published.state.clone();
        self.session.send_replace(published);
        self.state.send_replace(state);
    }
}
