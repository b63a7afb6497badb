//! When work that failed is tried again. Pure but for the jitter: time is an argument.
use std::time::{Duration, Instant};

/// The pauses after failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pauses {
    /// The first after a failure that may pass by itself; it doubles with each failure
    pub first: Duration,
    /// up to this.
    pub longest: Duration,
    /// The first after a failure that only a person can fix; it doubles with each failure
    pub first_terminal: Duration,
    /// up to this.
    pub longest_terminal: Duration,
}

/// When to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// After a failure that may pass by itself: longer each time, and never sooner than the provider asked for.
    BackOff {
        /// The provider's `RetryInfo`.
        at_least: Option<Duration>,
    },
    /// After a failure that only a person can fix: longer each time.
    Terminal,
    /// After this long: nothing failed.
    Exactly(Duration),
}

/// The pause of one object, or of one part of it. It is bound to what the attempt was made with: where that is another now, the pause
/// is over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retry {
    failures: u32,
    not_before: Option<Instant>,
    /// What the attempt was made with.
    made_with: u64,
    /// Whether the failure may pass by itself, at an unknown time.
    may_pass: bool,
}

impl Retry {
    /// The attempt that was made with `made_with` is to be repeated.
    pub fn again(&mut self, pause: Pause, made_with: u64, pauses: &Pauses, now: Instant) {
        let failures = if self.made_with == made_with { self.failures } else { 0 };
        let length = pauses.length(pause, failures);
        *self = Self {
            failures: if matches!(pause, Pause::Exactly(_)) { 0 } else { failures.saturating_add(1) },
            not_before: Some(now + length),
            made_with,
            may_pass: pause == Pause::BackOff { at_least: None },
        };
    }

    /// An attempt with `made_with` waits at least until then. Failures are still counted.
    pub fn hold(&mut self, until: Instant, made_with: u64) {
        let before = if self.made_with == made_with { self.clone() } else { Self::default() };
        *self = Self { not_before: before.not_before.max(Some(until)), made_with, may_pass: false, ..before };
    }

    /// An attempt with `made_with` waits for as long as `other` does.
    pub fn wait_with(&mut self, other: &Self, made_with: u64) {
        *self = Self { not_before: other.not_before, made_with, ..Self::default() };
    }

    /// The pause is over. Failures are still counted.
    pub fn end_pause(&mut self) {
        self.not_before = None;
    }

    /// It succeeded, or nothing is known of it.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Until when an attempt with `with` waits.
    pub fn not_before(&self, with: u64, now: Instant) -> Option<Instant> {
        self.not_before.filter(|at| *at > now && self.made_with == with)
    }

    /// What made others fail has passed: an attempt that failed likewise is made now. Says whether it waited.
    pub fn retry_now(&mut self) -> bool {
        self.may_pass && self.not_before.take().is_some()
    }
}

impl Pauses {
    /// Jittered, so that what failed together does not return together, and never shorter than what the provider asked for.
    fn length(&self, pause: Pause, failures: u32) -> Duration {
        let spread = rand::random_range(0.5..1.5);
        let doubled = |first: Duration, longest: Duration| {
            first.saturating_mul(2_u32.saturating_pow(failures)).mul_f64(spread).min(longest)
        };
        match pause {
            Pause::Exactly(length) => length,
            Pause::Terminal => doubled(self.first_terminal, self.longest_terminal),
            Pause::BackOff { at_least } => {
                let doubled = doubled(self.first, self.longest);
                at_least.map_or(doubled, |least| doubled.max(least.mul_f64(0.5 + spread)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSES: Pauses = Pauses {
        first: Duration::from_secs(1),
        longest: Duration::from_secs(15),
        first_terminal: Duration::from_mins(1),
        longest_terminal: Duration::from_mins(5),
    };
    const FAILED: Pause = Pause::BackOff { at_least: None };

    fn pauses(pause: Pause, times: usize) -> Vec<f64> {
        let (mut retry, now) = (Retry::default(), Instant::now());
        let mut one = || {
            retry.again(pause, 1, &PAUSES, now);
            retry.not_before(1, now).map_or(0.0, |at| (at - now).as_secs_f64())
        };
        (0..times).map(|_| one()).collect()
    }

    #[test]
    fn pauses_double_with_jitter_and_never_pass_the_longest() {
        for (number, length) in pauses(FAILED, 10).into_iter().enumerate() {
            let middle = 2_f64.powi(i32::try_from(number).unwrap_or(0));
            assert!(length >= (middle * 0.5).min(15.0) && length <= (middle * 1.5).min(15.0), "{number}: {length}");
        }
        assert!(pauses(Pause::Terminal, 10).into_iter().all(|length| (30.0..=300.0).contains(&length)));
    }

    #[test]
    fn the_providers_word_is_the_least() {
        let least = Duration::from_mins(2);
        assert!(pauses(Pause::BackOff { at_least: Some(least) }, 5).into_iter().all(|length| (120.0..=240.0).contains(&length)));
    }

    #[test]
    fn a_pause_is_over_for_what_has_changed_since_and_its_failures_are_forgotten() {
        let (mut retry, now) = (Retry::default(), Instant::now());
        (0..10).for_each(|_| retry.again(FAILED, 1, &PAUSES, now));
        assert!(retry.not_before(1, now).is_some() && retry.not_before(2, now).is_none());
        retry.again(FAILED, 2, &PAUSES, now);
        assert!(retry.not_before(2, now).is_some_and(|at| at <= now + Duration::from_millis(1500)), "the first pause");
    }

    #[test]
    fn a_hold_is_the_least_and_ends_with_its_reason() {
        let (mut retry, now) = (Retry::default(), Instant::now());
        retry.again(Pause::Exactly(Duration::from_secs(9)), 1, &PAUSES, now);
        retry.hold(now + Duration::from_secs(5), 1);
        assert_eq!(retry.not_before(1, now), Some(now + Duration::from_secs(9)));
        retry.hold(now + Duration::from_secs(12), 1);
        assert_eq!(retry.not_before(1, now), Some(now + Duration::from_secs(12)));
        retry.hold(now + Duration::from_secs(5), 2);
        assert_eq!((retry.not_before(2, now), retry.not_before(1, now)), (Some(now + Duration::from_secs(5)), None));
        let mut other = Retry::default();
        other.wait_with(&retry, 7);
        assert_eq!(other.not_before(7, now), Some(now + Duration::from_secs(5)));
        other.end_pause();
        assert_eq!(other.not_before(7, now), None);
    }

    #[test]
    fn only_what_may_pass_by_itself_is_retried_at_once() {
        let waits = |pause| {
            let (mut retry, now) = (Retry::default(), Instant::now());
            retry.again(pause, 1, &PAUSES, now);
            retry.retry_now() && retry.not_before(1, now).is_none() && !retry.retry_now()
        };
        assert!(waits(FAILED));
        let asked = Pause::BackOff { at_least: Some(Duration::from_secs(1)) };
        assert!([asked, Pause::Terminal, Pause::Exactly(Duration::from_secs(1))].into_iter().all(|pause| !waits(pause)));
    }
}
