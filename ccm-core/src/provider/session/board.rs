//! What is published of a session, and said in the log once for each change.
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;

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
}

impl Board {
    /// Nothing is connected yet.
    pub fn new(endpoint: &Endpoint) -> Self {
        let message = format!("connecting to the provider at {endpoint}");
        let state = ProviderState::Disconnected { since: Instant::now(), message };
        Self { state: watch::Sender::new(state), live: watch::Sender::new(None), changes: watch::Sender::new(0) }
    }

    /// How the provider stands.
    pub fn state(&self) -> StateReceiver {
        self.state.subscribe()
    }

    /// The connection that may be used.
    pub fn live(&self) -> LiveReceiver {
        self.live.subscribe()
    }

    /// Changes with the connection that may be used.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The provider may be used.
    pub fn ready(&self, connection: &Connection, info: ProviderInfo) {
        if self.state.borrow().ready().is_some_and(|known| **known == info) {
            return;
        }
        tracing::info!(
            provider = info.name, version = info.version, cloud_identity = info.cloud_identity, capabilities = ?info.capabilities,
            "the provider is ready"
        );
        let info = Arc::new(info);
        let identity = info.cloud_identity.as_str().into();
        // The state last: who sees Ready finds the connection.
        self.replace(Some(Arc::new(Live { connection: connection.clone(), info: Arc::clone(&info), identity })));
        self.state.send_replace(ProviderState::Ready(info));
        self.changes.send_modify(|count| *count += 1);
    }

    /// There is no connection, or none that answers.
    pub fn disconnected(&self, message: String) {
        let since = match &*self.state.borrow() {
            ProviderState::Disconnected { since, .. } => *since,
            _ => Instant::now(),
        };
        self.refuse(ProviderState::Disconnected { since, message });
    }

    /// The provider answers and may not be used, or is not there.
    pub fn refuse(&self, state: ProviderState) {
        if *self.state.borrow() == state {
            tracing::debug!(reason = %capabilities::standing(&state).message, "still the same");
            return;
        }
        tracing::warn!("{}", capabilities::standing(&state).message);
        self.state.send_replace(state);
        self.replace(None);
        self.changes.send_modify(|count| *count += 1);
    }

    /// What is known of this very description already, so that a judge who cannot say now takes nothing away.
    pub fn knows(&self, info: &ProviderInfo) -> bool {
        match &*self.state.borrow() {
            ProviderState::Ready(known) | ProviderState::IdentityChanged { found: known, .. } => **known == *info,
            _ => false,
        }
    }

    /// The answer to who asked for a handshake.
    pub fn confirmation(&self) -> Result<Arc<ProviderInfo>, ProviderError> {
        let state = self.state.borrow();
        state.ready().cloned().ok_or_else(|| capabilities::standing(&state))
    }

    fn replace(&self, live: Option<Arc<Live>>) {
        self.live.send_if_modified(|known| {
            let changed = known.is_some() || live.is_some();
            *known = live;
            changed
        });
    }
}
