//! Reports the pause that the cloud's rate limit asks for: a log line when it begins, and a readiness check while it lasts.
use std::time::Instant;

use crate::telemetry::cloud_health::CloudHealth;

/// What was reported last.
pub struct RateLimitReport {
    cloud: CloudHealth,
    /// The RPC service that is limited.
    service: &'static str,
    until: Option<Instant>,
}

impl RateLimitReport {
    /// There is no pause of the calls to this RPC service.
    pub fn new(cloud: CloudHealth, service: &'static str) -> Self {
        Self { cloud, service, until: None }
    }

    /// No call begins until then.
    pub fn report(&mut self, until: Option<Instant>, now: Instant) {
        let before = std::mem::replace(&mut self.until, until);
        if before == until {
            return;
        }
        let Some(until) = until else { return self.cloud.recovered(self.service) };
        if before.is_none() {
            let pause = until.saturating_duration_since(now);
            tracing::warn!(?pause, "the cloud limits the rate of calls to {}: they pause, then one call probes", self.service);
        }
        self.cloud.rate_limited(self.service, until.into());
    }
}

impl Drop for RateLimitReport {
    fn drop(&mut self) {
        self.cloud.recovered(self.service);
    }
}
