//! Tells an outage, in which every call fails, from calls of which some fail. After an outage, work in back-off is retried at once;
//! otherwise each object waits for itself. Pure: time is an argument.
use std::time::{Duration, Instant};

/// For how long nothing but failures is an outage.
const OUTAGE: Duration = Duration::from_secs(5);

/// What is known of the latest calls.
#[derive(Debug)]
pub struct Outage {
    /// When a call last succeeded.
    succeeded: Instant,
    /// Whether one failed since.
    failed: bool,
}

impl Outage {
    /// Nothing has failed yet.
    pub fn new(now: Instant) -> Self {
        Self { succeeded: now, failed: false }
    }

    /// A call failed that may succeed by itself.
    pub fn failed(&mut self) {
        self.failed = true;
    }

    /// A call succeeded; says whether that is the end of an outage.
    pub fn succeeded(&mut self, now: Instant) -> bool {
        let over = std::mem::take(&mut self.failed) && now.saturating_duration_since(self.succeeded) >= OUTAGE;
        self.succeeded = now;
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failures_and_nothing_else_for_some_time_are_an_outage() {
        let now = Instant::now();
        let mut outage = Outage::new(now);
        assert!(!outage.succeeded(now + OUTAGE), "nothing failed");
        outage.failed();
        assert!(!outage.succeeded(now + OUTAGE + Duration::from_secs(1)), "too short");
        outage.failed();
        assert!(outage.succeeded(now + OUTAGE * 3));
        assert!(!outage.succeeded(now + OUTAGE * 5), "it is told once");
    }
}
