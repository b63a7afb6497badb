//! Whether what lies behind all calls was away and is back: for some time there were failures and nothing else, then a success. Pure:
//! time is an argument.
use std::time::{Duration, Instant};

/// For how long nothing but failures is an outage.
const OUTAGE: Duration = Duration::from_secs(5);

/// What was last heard.
#[derive(Debug)]
pub struct Outage {
    succeeded: Instant,
    fails: bool,
}

impl Outage {
    /// All is well.
    pub fn new(now: Instant) -> Self {
        Self { succeeded: now, fails: false }
    }

    /// A call failed that may succeed by itself.
    pub fn failed(&mut self) {
        self.fails = true;
    }

    /// A call succeeded. True if that is the end of an outage. Where some calls fail and others succeed there is none, and each
    /// object waits for itself.
    pub fn succeeded(&mut self, now: Instant) -> bool {
        let over = std::mem::take(&mut self.fails) && now.saturating_duration_since(self.succeeded) >= OUTAGE;
        self.succeeded = now;
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_failures_for_a_while_and_then_a_success_is_the_end_of_an_outage() {
        let now = Instant::now();
        let mut outage = Outage::new(now);
        assert!(!outage.succeeded(now + OUTAGE * 2), "nothing failed");
        outage.failed();
        assert!(!outage.succeeded(now + OUTAGE * 2 + OUTAGE / 2), "some succeeded meanwhile");
        outage.failed();
        assert!(outage.succeeded(now + OUTAGE * 4));
        assert!(!outage.succeeded(now + OUTAGE * 8), "once");
    }
}
