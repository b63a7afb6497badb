//! What is published of a session, and said in the log once for each change.
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::{Live, LiveReceiver};
use crate::model::provider_info::ProviderInfo;
use crate::provider::endpoint::Endpoint;
use crate::provider::grpc::Connection;
use crate::provider::{ProviderError, ProviderState, StateReceiver, capabilities};

/// The three channels: the state for people and controllers, the live connection for callers, and a count of changes.
#[derive(Debug)]
pub struct Board {
    state: watch::Sender<ProviderState>,
    live: watch::Sender<Option<Arc<Live>>>,
    changes: watch::Sender<u64>,
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
        Self { state: watch::Sender::new(state), live: watch::Sender::new(None), changes: watch::Sender::new(0), handshakes }
    }

    /// How the provider stands.
    pub fn state(&self) -> StateReceiver {
        self.state.subscribe()
    }

    /// The connection that may be used.
    pub fn live(&self) -> LiveReceiver {
        self.live.subscribe()
    }

    /// Whether there is a connection that may be used.
    pub fn is_live(&self) -> bool {
        self.live.borrow().is_some()
    }

    /// Changes with the connection that may be used.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The provider was just found usable. A description that was known already changes neither connection nor streams.
    pub fn ready(&self, connection: &Connection, info: ProviderInfo) -> Arc<ProviderInfo> {
        let confirmed = Handshakes { confirmed: Instant::now(), missed: None };
        let missed = std::mem::replace(&mut *self.handshakes.lock(), confirmed).missed;
        let known = self.live.borrow().as_ref().map(|live| Arc::clone(&live.info)).filter(|known| **known == info);
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
        // The state last: who sees Ready finds the connection.
        self.replace(Some(Arc::new(Live { connection: connection.clone(), info: Arc::clone(&info), identity })));
        self.state.send_replace(ProviderState::Ready(Arc::clone(&info)));
        self.changes.send_modify(|count| *count += 1);
        info
    }

    fn confirmed_again(&self, known: &Arc<ProviderInfo>, after_a_miss: bool) {
        if after_a_miss {
            tracing::info!(provider = known.name, "the provider completed a handshake again");
        }
        self.state.send_if_modified(|state| {
            let unconfirmed = state.ready().is_none();
            if unconfirmed {
                *state = ProviderState::Ready(Arc::clone(known));
            }
            unconfirmed
        });
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
        let Some(info) = self.state.borrow().ready().cloned() else { return };
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
        self.state.send_replace(state);
    }

    /// There is no connection, or none that answers. Answers the error of calls that need one.
    pub fn disconnected(&self, message: String) -> ProviderError {
        let since = match &*self.state.borrow() {
            ProviderState::Disconnected { since, .. } => *since,
            _ => Instant::now().into_std(),
        };
        self.refuse(ProviderState::Disconnected { since, message })
    }

    /// The provider answers and may not be used, or is not there. Answers the error of calls that need it.
    pub fn refuse(&self, state: ProviderState) -> ProviderError {
        let error = capabilities::standing(&state);
        if *self.state.borrow() == state {
            tracing::debug!(reason = %error.message, "still the same");
            return error;
        }
        tracing::warn!("{}", error.message);
        self.state.send_replace(state);
        self.replace(None);
        self.changes.send_modify(|count| *count += 1);
        error
    }

    /// Whether this very description was judged before, so that a judge who cannot say now takes nothing away.
    pub fn knows(&self, info: &ProviderInfo) -> bool {
        match &*self.state.borrow() {
            ProviderState::Ready(known)
            | ProviderState::Unconfirmed { info: known, .. }
            | ProviderState::IdentityChanged { found: known, .. } => **known == *info,
            ProviderState::Disconnected { .. } | ProviderState::Unusable { .. } => false,
        }
    }

    fn replace(&self, live: Option<Arc<Live>>) {
        self.live.send_if_modified(|known| {
            let changed = known.is_some() || live.is_some();
            *known = live;
            changed
        });
    }
}
