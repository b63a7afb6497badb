//! A leadership term.
use std::sync::Arc;
use std::time::Instant;

use super::provider_info::ProviderInfo;

/// Proof that this process holds the lease, until it expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Grows with every change of leader; constant through renewals.
    pub epoch: u64,
    /// The cloud that the term began with. Another one ends the term, even if the operator accepts it.
    pub cloud: Arc<Cloud>,
    /// This process's name in the lease.
    pub holder: Arc<str>,
    /// By this process's monotonic clock: nothing may be written from then on unless the lease was renewed.
    pub valid_until: Instant,
}

/// A cloud, as a provider describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cloud {
    /// The provider's name.
    pub provider: String,
    /// The provider's `cloud_identity`.
    pub identity: String,
}

impl Cloud {
    /// The cloud behind a provider.
    pub fn of(info: &ProviderInfo) -> Self {
        Self { provider: info.name.clone(), identity: info.cloud_identity.clone() }
    }

    /// Whether it is the cloud behind a provider.
    pub fn is(&self, info: &ProviderInfo) -> bool {
        self.provider == info.name && self.identity == info.cloud_identity
    }
}
