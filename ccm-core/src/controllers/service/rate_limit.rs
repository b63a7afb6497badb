//! Reports the pause that the cloud's rate limit asks for: a log line when it begins, and a readiness check while it lasts.
use std::time::Instant;

use crate::telemetry::cloud_health::CloudHealth;

/// The RPC service that is limited.
const SERVICE: &str = "LoadBalancers";

/// What was reported last.
pub struct RateLimitReport {
    cloud: CloudHealth,
    until: Option<Instant>,
}

impl RateLimitReport {
    /// There is no pause.
    pub fn new(cloud: CloudHealth) -> Self {
        Self { cloud, until: None }
    }

    /// No call begins until then.
    pub fn report(&mut self, until: Option<Instant>, now: Instant) {
        let before = std::mem::replace(&mut self.until, until);
        if before == until {
            return;
        }
        let Some(until) = until else { return self.cloud.recovered(SERVICE) };
        if before.is_none() {
            let pause = until.saturating_duration_since(now);
            tracing::warn!(?pause, "the cloud limits the rate of calls to LoadBalancers: they pause, then one call probes");
        }
        self.cloud.rate_limited(SERVICE, until.into());
    }
}

impl Drop for RateLimitReport {
    fn drop(&mut self) {
        self.cloud.recovered(SERVICE);
    }
}
