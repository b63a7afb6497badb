//! Whether this process should lead: while its provider can be used, and for a grace after. Tells readiness how the provider
//! stands.
use std::time::Duration;

use tokio::sync::watch;

use super::acceptance::identity_changed;
use super::health::{Check, Health};
use crate::provider::metrics::ProviderMetrics;
use crate::provider::{ProviderState, StateReceiver};

/// The concern's name in `/readyz`.
const CONCERN: &str = "provider";

/// Watches the provider.
pub struct Candidacy {
    provider: StateReceiver,
    grace: Duration,
    health: Health,
    metrics: ProviderMetrics,
}

impl Candidacy {
    /// Over a provider's state; `grace` is `--provider-grace`.
    pub fn new(provider: StateReceiver, grace: Duration, health: Health, metrics: ProviderMetrics) -> Self {
        Self { provider, grace, health, metrics }
    }

    /// Says `true` at once when the provider can be used, and `false` when it could not for the whole grace.
    pub async fn run(mut self, candidate: watch::Sender<bool>) {
        loop {
            let ready = self.report();
            if ready {
                candidate.send_replace(true);
            }
            let changed = self.provider.changed();
            let waiting = !ready && *candidate.borrow();
            let ended = tokio::select! {
                changed = changed => changed.is_err(),
                () = tokio::time::sleep(self.grace), if waiting => {
                    tracing::warn!(grace = ?self.grace, "the provider has been away for --provider-grace; giving up the lease");
                    candidate.send_replace(false);
                    false
                }
            };
            if ended {
                return;
            }
        }
    }

    fn report(&mut self) -> bool {
        let check = check(&self.provider.borrow_and_update());
        let ready = check == Check::Ok;
        self.metrics.ready.set(i64::from(ready));
        self.health.set(CONCERN, check);
        ready
    }
}

fn check(state: &ProviderState) -> Check {
    match state {
        ProviderState::Ready(_) => Check::Ok,
        ProviderState::Disconnected { message, .. } | ProviderState::Unusable { message } => Check::Failed(message.clone()),
        ProviderState::IdentityChanged { accepted, found } => Check::Failed(identity_changed(accepted, &found.cloud_identity)),
    }
}
