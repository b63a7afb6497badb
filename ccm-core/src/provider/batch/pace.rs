//! How fast batches may follow one another while the provider fails: all look-ups share one back-off.
use std::time::Duration;

use tokio::time::Instant;

use super::PANICKED;
use crate::provider::{Outcome, ProviderError};

/// First and longest pause after the cloud limited the rate.
const THROTTLED: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));
/// First and longest pause after a batch failed otherwise.
const FAILED: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(15));
/// Look-ups wait for no longer pause than this: they fail, and their callers come back.
const MAX_WAIT: Duration = Duration::from_mins(1);

/// The shared back-off.
#[derive(Debug, Default)]
pub struct Pace {
    failures: u32,
    failed_at: Option<Instant>,
    paused_until: Option<Instant>,
    error: Option<ProviderError>,
}

impl Pace {
    /// A whole batch failed.
    pub fn failed(&mut self, error: &ProviderError, now: Instant) {
        if is_of_one_call(error) {
            return;
        }
        let (first, longest) = if error.is_rate_limit() { THROTTLED } else { FAILED };
        let grown = first.saturating_mul(2_u32.saturating_pow(self.failures)).min(longest);
        let pause = match error.outcome {
            Outcome::Retry { after: Some(after) } => after,
            _ => grown,
        };
        self.failures = self.failures.saturating_add(1);
        self.failed_at = Some(now);
        self.paused_until = self.paused_until.max(Some(now + pause));
        self.error = Some(error.clone());
    }

    /// A batch came back whole; one that began before the last failure says nothing.
    pub fn succeeded(&mut self, started: Instant) {
        if self.failed_at.is_none_or(|failed| started > failed) {
            *self = Self::default();
        }
    }

    /// When the next batch may go.
    pub fn next_at(&self) -> Option<Instant> {
        self.paused_until
    }

    /// Until when the cloud's rate limit pauses all look-ups.
    pub fn rate_limited_until(&self) -> Option<Instant> {
        self.paused_until.filter(|_| self.error.as_ref().is_some_and(ProviderError::is_rate_limit))
    }

    /// How many calls may run at one time: after a failure a single one tries.
    pub fn concurrency(&self, limit: usize) -> usize {
        if self.failures == 0 { limit } else { 1 }
    }

    /// The error of look-ups that would have to wait too long.
    pub fn gives_up(&self, now: Instant) -> Option<ProviderError> {
        let left = self.paused_until?.saturating_duration_since(now);
        let error = self.error.clone().filter(|_| left > MAX_WAIT)?;
        Some(ProviderError { outcome: Outcome::Retry { after: Some(left) }, ..error })
    }
}

/// Whether the error is about what the call held, so that another call may succeed.
fn is_of_one_call(error: &ProviderError) -> bool {
    let by_content = ["RESOURCE_EXHAUSTED", "INVALID_ARGUMENT", "BATCH_TOO_LARGE", PANICKED];
    error.is_defect() || by_content.contains(&error.reason.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(reason: &str, after: Option<u64>) -> ProviderError {
        let after = after.map(Duration::from_secs);
        ProviderError { outcome: Outcome::Retry { after }, reason: reason.to_owned(), message: String::new() }
    }

    fn pauses(reason: &str, times: usize) -> Vec<u128> {
        let (now, mut pace) = (Instant::now(), Pace::default());
        let pause = |pace: &mut Pace| {
            pace.paused_until = None;
            pace.failed(&error(reason, None), now);
            pace.next_at().map_or(0, |until| (until - now).as_millis())
        };
        (0..times).map(|_| pause(&mut pace)).collect()
    }

    #[test]
    fn pauses_double_up_to_their_limit() {
        assert_eq!(pauses("RATE_LIMITED", 8), [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!(pauses("RESOURCE_EXHAUSTED", 2), [0, 0], "it may be a message that is too large");
        assert_eq!(pauses("UNAVAILABLE", 8), [250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000]);
    }

    #[test]
    fn the_provider_knows_best_when_to_come_back() {
        let (now, mut pace) = (Instant::now(), Pace::default());
        pace.failed(&error("RATE_LIMITED", Some(20)), now);
        assert_eq!((pace.next_at(), pace.gives_up(now)), (Some(now + Duration::from_secs(20)), None));
        pace.failed(&error("RATE_LIMITED", Some(300)), now);
        assert_eq!(pace.rate_limited_until(), Some(now + Duration::from_mins(5)));
        let given_up = pace.gives_up(now + Duration::from_mins(1));
        assert_eq!(given_up.map(|it| it.outcome), Some(Outcome::Retry { after: Some(Duration::from_mins(4)) }));
    }

    #[test]
    fn only_a_batch_that_began_after_the_failure_ends_the_back_off() {
        let (now, mut pace) = (Instant::now(), Pace::default());
        pace.failed(&error("UNAVAILABLE", None), now + Duration::from_secs(1));
        pace.succeeded(now);
        assert_eq!(pace.concurrency(4), 1);
        pace.succeeded(now + Duration::from_secs(2));
        assert_eq!((pace.concurrency(4), pace.next_at()), (4, None));
        pace.failed(&error("UNAVAILABLE", None), now);
        assert_eq!(pace.rate_limited_until(), None, "an outage is no rate limit");
    }
}
