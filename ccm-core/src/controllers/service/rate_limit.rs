//! Reports the pause that the cloud's rate limit asks for: a log line when it begins, and a line of readiness while it lasts.
use std::time::Instant;

use crate::telemetry::health::{Check, Health};

/// The line of readiness.
pub const RATE_LIMIT: &str = "load-balancer-rate-limit";

/// What was reported last.
pub struct RateLimitReport {
    health: Health,
    until: Option<Instant>,
}

impl RateLimitReport {
    /// There is no pause.
    pub fn new(health: Health) -> Self {
        Self { health, until: None }
    }

    /// No call is begun until then.
    pub fn report(&mut self, until: Option<Instant>, now: Instant) {
        let before = std::mem::replace(&mut self.until, until);
        if before == until {
            return;
        }
        let Some(until) = until else { return self.health.clear(RATE_LIMIT) };
        let pause = until.saturating_duration_since(now);
        if before.is_none() {
            tracing::warn!(?pause, "the cloud limits the rate of calls: no call for load balancers begins; then one tries");
        }
        let seconds = pause.as_secs_f64().ceil();
        let message =
            format!("load balancers: the cloud limits the rate of calls; nothing is begun for {seconds}s; then one call tries");
        self.health.set(RATE_LIMIT, Check::Warning(message));
    }
}

impl Drop for RateLimitReport {
    fn drop(&mut self) {
        self.health.clear(RATE_LIMIT);
    }
}
