//! The pause that a cloud's rate limit asks of all calls. After it one call probes, until one is answered. Pure: time is an argument.
use std::time::{Duration, Instant};

pub mod report;

/// The shortest pause, whatever the cloud says,
const SHORTEST: Duration = Duration::from_millis(100);
/// the first where it does not say; it doubles with each refusal
const FIRST: Duration = Duration::from_secs(1);
/// up to this,
const LONGEST_DOUBLED: Duration = Duration::from_mins(1);
/// and the longest of all, however long the cloud asks for.
const LONGEST: Duration = Duration::from_mins(5);

/// What is known of the limit.
#[derive(Debug, Default)]
pub struct RateLimit {
    until: Option<Instant>,
    /// When the limit was last the answer.
    refused: Option<Instant>,
    refusals: u32,
}

impl RateLimit {
    /// The cloud limits the rate of calls. Many calls that are refused during one pause are one refusal.
    pub fn limited(&mut self, after: Option<Duration>, now: Instant) {
        if self.paused_until(now).is_none() {
            self.refusals = self.refusals.saturating_add(1);
        }
        let doubled = FIRST.saturating_mul(2_u32.saturating_pow(self.refusals.saturating_sub(1))).min(LONGEST_DOUBLED);
        let pause = after.unwrap_or(doubled).clamp(SHORTEST, LONGEST);
        self.until = self.until.max(Some(now + pause));
        self.refused = Some(now);
    }

    /// A call was answered that began at this time. One that began before the last refusal says nothing.
    pub fn answered(&mut self, began: Instant) {
        if self.refused.is_some_and(|refused| began >= refused) {
            *self = Self::default();
        }
    }

    /// Until when no call begins.
    pub fn paused_until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| *until > now)
    }

    /// Whether calls begin one at a time, until one is answered.
    pub fn is_probed(&self) -> bool {
        self.refused.is_some()
    }

    /// How many of `limit` calls may run at one time.
    pub fn places(&self, limit: usize, now: Instant) -> usize {
        match self.refused {
            None => limit,
            Some(_) if self.paused_until(now).is_some() => 0,
            Some(_) => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(limit: &mut RateLimit, after: Option<u64>, now: Instant) -> u128 {
        limit.limited(after.map(Duration::from_secs), now);
        limit.paused_until(now).map_or(0, |until| (until - now).as_millis())
    }

    #[test]
    fn pauses_double_up_to_a_minute_and_the_clouds_word_counts_up_to_five() {
        let (mut limit, mut now) = (RateLimit::default(), Instant::now());
        let pauses: Vec<_> = (0..8)
            .map(|_| {
                now += Duration::from_mins(10);
                pause(&mut limit, None, now)
            })
            .collect();
        assert_eq!(pauses, [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
        now += Duration::from_mins(10);
        assert_eq!(pause(&mut limit, Some(3600), now), 300_000);
        assert_eq!(pause(&mut RateLimit::default(), Some(0), now), 100);
    }

    #[test]
    fn calls_that_are_refused_together_are_one_refusal() {
        let (mut limit, now) = (RateLimit::default(), Instant::now());
        assert_eq!((0..5).map(|_| pause(&mut limit, None, now)).collect::<Vec<_>>(), [1000; 5]);
    }

    #[test]
    fn after_a_pause_one_call_probes_until_a_call_that_began_since_is_answered() {
        let (mut limit, before) = (RateLimit::default(), Instant::now());
        let now = before + Duration::from_secs(1);
        assert_eq!(limit.places(8, now), 8);
        limit.limited(None, now);
        assert_eq!(limit.places(8, now), 0);
        let later = now + Duration::from_secs(1);
        limit.answered(before);
        assert_eq!(limit.places(8, later), 1);
        limit.answered(later);
        assert_eq!(limit.places(8, later), 8);
    }
}
