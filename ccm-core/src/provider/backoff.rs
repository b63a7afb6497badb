//! Increasing delays, with jitter, between an unlimited number of attempts. It does not wait itself.
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// Doubling delays from `min` to `max`, each lengthened by up to its own length at random.
#[derive(Debug)]
pub struct Backoff {
    builder: ExponentialBuilder,
    delays: ExponentialBackoff,
    max: Duration,
}

impl Backoff {
    /// Delays from `min` to `max`.
    pub fn new(min: Duration, max: Duration) -> Self {
        let builder = ExponentialBuilder::new().with_min_delay(min).with_max_delay(max).with_jitter().without_max_times();
        Self { builder, delays: builder.build(), max }
    }

    /// How long to wait before the next attempt.
    pub fn delay(&mut self) -> Duration {
        self.delays.next().unwrap_or(self.max)
    }

    /// After a success: begins again with the shortest.
    pub fn reset(&mut self) {
        self.delays = self.builder.build();
    }
}
