//! How slow and how strict the cloud is: latency with jitter, and a token bucket. It knows nothing of what is called.
use std::time::Duration;

use tokio::time::Instant;

/// How long a call takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// At least this long.
    pub base: Duration,
    /// Up to this much longer, evenly spread.
    pub jitter: Duration,
}

impl Latency {
    /// Waits as long as a call takes.
    pub async fn pass(self) {
        let extra = self.jitter.mul_f64(rand::random::<f64>());
        let total = self.base + extra;
        if !total.is_zero() {
            tokio::time::sleep(total).await;
        }
    }
}

/// How many calls the cloud takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// Calls a second, in the long run.
    pub per_second: f64,
    /// Calls at once, after a rest.
    pub burst: u32,
}

/// A token bucket: starts full, fills evenly.
#[derive(Debug)]
pub struct Bucket {
    limit: RateLimit,
    tokens: f64,
    filled_at: Instant,
}

impl Bucket {
    /// A full bucket.
    pub fn new(limit: RateLimit, now: Instant) -> Self {
        Self { limit, tokens: f64::from(limit.burst), filled_at: now }
    }

    /// Takes a token, or says how long until there will be one.
    pub fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let grown = now.saturating_duration_since(self.filled_at).as_secs_f64() * self.limit.per_second;
        self.tokens = (self.tokens + grown).min(f64::from(self.limit.burst));
        self.filled_at = now;
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        Err(Duration::try_from_secs_f64((1.0 - self.tokens) / self.limit.per_second).unwrap_or(Duration::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    #[test]
    fn a_burst_passes_and_what_follows_is_told_when_to_come_back() {
        let start = Instant::now();
        let mut bucket = Bucket::new(RateLimit { per_second: 2.0, burst: 3 }, start);
        assert!((0..3).all(|_| bucket.take(start).is_ok()));
        assert_eq!(bucket.take(start), Err(Duration::from_millis(500)));
        assert_eq!(bucket.take(after(start, 500)), Ok(()));
        assert!(bucket.take(after(start, 600)).is_err());
    }

    #[test]
    fn a_rest_saves_no_more_than_a_burst() {
        let start = Instant::now();
        let mut bucket = Bucket::new(RateLimit { per_second: 100.0, burst: 2 }, start);
        let rested = after(start, 60_000);
        let passed = (0..10).filter(|_| bucket.take(rested).is_ok()).count();
        assert_eq!(passed, 2);
    }
}
