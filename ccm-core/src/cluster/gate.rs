//! The one question before every write: may this process change anything now?
#[cfg(test)]
pub(in crate::cluster) mod tests;

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;
use tokio::time::sleep_until;

use super::presence::Presence;
use crate::model::provider_info::ProviderInfo;
use crate::model::term::Term;
use crate::provider::{ProviderState, StateReceiver};

/// Answers from the lease and the provider's state, both as they are at this moment.
#[derive(Clone, Debug)]
pub struct Gate {
    term: watch::Receiver<Option<Term>>,
    provider: StateReceiver,
    presence: Presence,
}

/// What an open gate says.
#[derive(Clone, Debug)]
pub struct Permit {
    /// Under which epoch.
    pub epoch: u64,
    /// For which provider.
    pub provider: Arc<ProviderInfo>,
}

/// Why nothing may be changed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    /// The lease is another's, or has not been renewed in time.
    #[error("the lease is not held")]
    NotLeading,
    /// The provider is away, unusable, or another cloud than the accepted one.
    #[error("the provider is not ready")]
    ProviderNotReady,
    /// The provider has completed no handshake for too long.
    #[error("the provider has completed no handshake for too long")]
    ProviderUnconfirmed,
    /// The provider serves another cloud than the one that the term began with: that term ends.
    #[error("the provider serves another cloud than at the beginning of the term")]
    AnotherCloud,
}

impl Gate {
    /// A gate over the elector's terms and the provider's state.
    pub fn new(term: watch::Receiver<Option<Term>>, provider: StateReceiver) -> Self {
        Self { term, provider, presence: Presence::default() }
    }

    /// One before which writes wait while the API server is away.
    #[must_use]
    pub fn while_present(self, presence: Presence) -> Self {
        Self { presence, ..self }
    }

    /// Waits while the API server is away, and then asks whether this process may change anything: an answer from before is too old.
    pub async fn check_when_present(&self) -> Result<Permit, Closed> {
        self.presence.present().await;
        self.check()
    }

    /// Whether this process may change anything now.
    pub fn check(&self) -> Result<Permit, Closed> {
        let term = self.term()?;
        match &*self.provider.borrow() {
            ProviderState::Unconfirmed { .. } => Err(Closed::ProviderUnconfirmed),
            ProviderState::Ready(info) if !term.cloud.is(info) => Err(Closed::AnotherCloud),
            ProviderState::Ready(info) => Ok(Permit { epoch: term.epoch, provider: Arc::clone(info) }),
            _ => Err(Closed::ProviderNotReady),
        }
    }

    /// Waits while the provider is away or unconfirmed, for as long as the term of this epoch lasts: what was answered in it may be
    /// written when the same cloud is there again.
    pub async fn opened(&self, epoch: u64) -> Result<(), Closed> {
        let (mut terms, mut provider) = (self.term.clone(), self.provider.clone());
        loop {
            terms.mark_unchanged();
            provider.mark_unchanged();
            match self.check() {
                Ok(permit) if permit.epoch == epoch => return Ok(()),
                Ok(_) => return Err(Closed::NotLeading),
                Err(Closed::ProviderNotReady | Closed::ProviderUnconfirmed) => {}
                Err(closed) => return Err(closed),
            }
            let term = self.term()?;
            tokio::select! {
                changed = terms.changed() => changed.map_err(|_| Closed::NotLeading)?,
                changed = provider.changed() => changed.map_err(|_| Closed::ProviderNotReady)?,
                () = sleep_until(term.valid_until.into()) => {}
            }
        }
    }

    /// The epoch under which this process may write what it keeps for itself, whatever the provider does.
    pub fn check_lease(&self) -> Result<u64, Closed> {
        self.term().map(|term| term.epoch)
    }

    fn term(&self) -> Result<Term, Closed> {
        let term = self.term.borrow().clone();
        term.filter(|term| Instant::now() < term.valid_until).ok_or(Closed::NotLeading)
    }
}
