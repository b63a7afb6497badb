//! Election eligibility: whether this process should lead, which it should while its provider can be used, and for a grace period
//! after. It sets the health check of the provider.
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::acceptance::identity_changed;
use crate::provider::metrics::ProviderMetrics;
use crate::provider::{ProviderState, StateReceiver};
use crate::telemetry::health::{Check, Health};

/// The check's name in `/readyz`.
pub const CHECK: &str = "provider";

/// Watches the state of the provider.
pub struct Eligibility {
    provider: StateReceiver,
    grace: Duration,
    health: Health,
    metrics: ProviderMetrics,
}

impl Eligibility {
    /// Watches `provider`; `grace` is `--provider-grace`.
    pub fn new(provider: StateReceiver, grace: Duration, health: Health, metrics: ProviderMetrics) -> Self {
        Self { provider, grace, health, metrics }
    }

    /// Sends `true` as soon as the provider can be used, and `false` once it could not be used for the whole grace period, whatever
    /// the reasons were.
    pub async fn run(mut self, candidate: watch::Sender<bool>) {
        let mut last_usable = Instant::now();
        loop {
            let was_candidate = *candidate.borrow();
            let ready = self.report();
            if ready {
                candidate.send_replace(true);
            }
            let ended = tokio::select! {
                changed = self.provider.changed() => {
                    if ready {
                        last_usable = Instant::now();
                    }
                    changed.is_err()
                }
                () = sleep_until(last_usable + self.grace), if !ready && was_candidate => {
                    tracing::warn!(grace = ?self.grace, "the provider was unavailable for --provider-grace; releasing the lease");
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
        self.health.set(CHECK, check);
        ready
    }
}

/// Decides whether to contend: while the provider can be used, and this replica is not in the pause after a term that a task ended.
pub async fn eligibility(mut usable: watch::Receiver<bool>, mut resting: watch::Receiver<bool>, eligible: watch::Sender<bool>) {
    loop {
        let now = *usable.borrow_and_update() && !*resting.borrow_and_update();
        eligible.send_if_modified(|before| std::mem::replace(before, now) != now);
        let changed = tokio::select! {
            changed = usable.changed() => changed,
            changed = resting.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}

fn check(state: &ProviderState) -> Check {
    match state {
        ProviderState::Ready(_) => Check::Ok,
        ProviderState::Disconnected { message, .. }
        | ProviderState::Unusable { message }
        | ProviderState::Unconfirmed { message, .. } => Check::Failed(message.clone()),
        ProviderState::IdentityChanged { accepted, found } => Check::Failed(identity_changed(accepted, &found.cloud_identity)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use super::*;
    use crate::model::provider_info::ProviderInfo;

    const GRACE: Duration = Duration::from_secs(30);

    /// A provider that can be used, and whether this process should lead with it.
    async fn start() -> (watch::Sender<ProviderState>, watch::Receiver<bool>) {
        let provider = watch::Sender::new(ProviderState::Ready(Arc::new(ProviderInfo::default())));
        let (candidate, mut leads) = watch::channel(false);
        let eligibility = Eligibility::new(provider.subscribe(), GRACE, Health::default(), ProviderMetrics::unregistered());
        tokio::spawn(eligibility.run(candidate));
        leads.wait_for(|leads| *leads).await.unwrap();
        (provider, leads)
    }

    #[tokio::test(start_paused = true)]
    async fn a_provider_that_is_away_in_ever_other_words_costs_the_lease_after_one_grace() {
        let (provider, mut leads) = start().await;
        tokio::time::sleep(3 * GRACE).await;
        let gone = Instant::now();
        let words = async {
            for number in 0..12 {
                provider.send_replace(ProviderState::Unusable { message: format!("request {number} failed") });
                tokio::time::sleep(GRACE / 3).await;
            }
        };
        tokio::select! {
            () = words => {}
            gave_up = leads.wait_for(|leads| !leads) => drop(gave_up.unwrap()),
        }
        assert_eq!(gone.elapsed(), GRACE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_provider_that_is_back_within_the_grace_has_a_whole_one_again() {
        let (provider, mut leads) = start().await;
        for _ in 0..3 {
            provider.send_replace(ProviderState::Unusable { message: "away".to_owned() });
            tokio::time::sleep(GRACE / 2).await;
            provider.send_replace(ProviderState::Ready(Arc::new(ProviderInfo::default())));
            tokio::time::sleep(GRACE).await;
        }
        assert!(*leads.borrow_and_update());
        provider.send_replace(ProviderState::Unusable { message: "away".to_owned() });
        leads.wait_for(|leads| !leads).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_provider_without_a_recent_handshake_costs_the_lease_after_the_grace_and_readiness_says_why() {
        let provider = watch::Sender::new(ProviderState::Ready(Arc::default()));
        let (candidate, mut leads) = watch::channel(false);
        let health = Health::default();
        tokio::spawn(
            Eligibility::new(provider.subscribe(), GRACE, health.clone(), ProviderMetrics::unregistered()).run(candidate),
        );
        leads.wait_for(|leads| *leads).await.unwrap();
        let (message, since) = ("no handshake; restart the provider".to_owned(), std::time::Instant::now());
        provider.send_replace(ProviderState::Unconfirmed { info: Arc::default(), since, message: message.clone() });
        let unconfirmed = Instant::now();
        leads.wait_for(|leads| !leads).await.unwrap();
        assert_eq!(unconfirmed.elapsed(), GRACE);
        assert_eq!(health.checks()[CHECK], Check::Failed(message));
    }

    #[tokio::test(start_paused = true)]
    async fn it_contends_while_the_provider_can_be_used_and_it_does_not_rest() {
        let ((usable, usables), (resting, rests)) = (watch::channel(true), watch::channel(false));
        let (candidate, mut candidates) = watch::channel(false);
        tokio::spawn(eligibility(usables, rests, candidate));
        candidates.wait_for(|eligible| *eligible).await.unwrap();
        resting.send_replace(true);
        candidates.wait_for(|eligible| !eligible).await.unwrap();
        usable.send_replace(false);
        resting.send_replace(false);
        usable.send_replace(true);
        candidates.wait_for(|eligible| *eligible).await.unwrap();
    }
}
