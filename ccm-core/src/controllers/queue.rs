//! Which objects are to be looked at now, which later, and which have somebody at work on them. It knows names and times, not
//! what is done about an object.
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::Duration;

use futures::StreamExt;
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Key;

/// How long a queue pauses after failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pauses {
    /// The first pause after a failure; it doubles with each.
    pub first: Duration,
    /// The longest pause that doubling leads to.
    pub longest: Duration,
    /// The first pause where only a person can mend what is wrong; it doubles, too.
    pub slow: Duration,
    /// The longest of those.
    pub slowest: Duration,
}

/// When to look at an object again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Longer each time, and never shorter than what the provider asked for.
    BackOff {
        /// The provider's wish.
        at_least: Option<Duration>,
    },
    /// Longer each time, from a long one on.
    Slow,
    /// After this long: nothing failed.
    Exactly(Duration),
}

/// Why an object is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// It appeared, changed or went.
    Changed,
    /// Its pause is over, or what it waited for is there.
    Due,
    /// The periodic refresh.
    Refresh,
}

/// The queue. An object is in it once, whatever happens to it.
pub struct Queue {
    pauses: Pauses,
    ready: HashMap<String, Cause>,
    /// Objects at which somebody is at work, and whether they were named meanwhile.
    busy: HashMap<String, Option<Cause>>,
    waiting: HashMap<String, Waiting>,
    timers: DelayQueue<String>,
}

struct Waiting {
    timer: Option<Key>,
    /// Whether it waits because something failed that may succeed by itself, nobody knows when.
    backs_off: bool,
    failures: u32,
    /// What the last attempt was made with. As long as it is the same, a change of the object does not cut the pause short.
    seen: u64,
}

impl Queue {
    /// Nothing is in it yet.
    pub fn new(pauses: Pauses) -> Self {
        Self { pauses, ready: HashMap::new(), busy: HashMap::new(), waiting: HashMap::new(), timers: DelayQueue::new() }
    }

    /// Names an object. One at which somebody is at work is refreshed by that.
    pub fn add(&mut self, name: String, cause: Cause) {
        match self.busy.get_mut(&name) {
            Some(_) if cause == Cause::Refresh => {}
            Some(meanwhile) => *meanwhile = cause.max(*meanwhile.get_or_insert(cause)).into(),
            None => {
                let known = self.ready.entry(name).or_insert(cause);
                *known = cause.max(*known);
            }
        }
    }

    /// The objects to look at now.
    pub fn take_ready(&mut self) -> HashMap<String, Cause> {
        std::mem::take(&mut self.ready)
    }

    /// Waits for the next pause to end; `None` if nothing waits.
    pub async fn next_due(&mut self) -> Option<String> {
        let name = self.timers.next().await?.into_inner();
        if let Some(waiting) = self.waiting.get_mut(&name) {
            waiting.timer = None;
        }
        Some(name)
    }

    /// Whether it pauses after a failure, and nothing that mattered (`seen`) has changed.
    pub fn is_pausing(&self, name: &str, cause: Cause, seen: u64) -> bool {
        let pauses = |waiting: &Waiting| waiting.timer.is_some() && waiting.seen == seen;
        cause != Cause::Due && self.waiting.get(name).is_some_and(pauses)
    }

    /// Begins work that does not end the object's pause.
    pub fn begin_beside(&mut self, name: &str) {
        self.busy.insert(name.to_owned(), None);
    }

    /// Such work has ended.
    pub fn finish_beside(&mut self, name: &str) {
        self.release(name);
    }

    /// Begins work at an object, unless it pauses after a failure and nothing that mattered (`seen`) has changed.
    pub fn begin(&mut self, name: &str, cause: Cause, seen: u64) -> bool {
        if self.is_pausing(name, cause, seen) {
            return false;
        }
        if let Some(timer) = self.waiting.get_mut(name).and_then(|waiting| waiting.timer.take()) {
            self.timers.remove(&timer);
        }
        let failures = self.waiting.get(name).filter(|waiting| waiting.seen == seen).map_or(0, |waiting| waiting.failures);
        self.waiting.insert(name.to_owned(), Waiting { timer: None, backs_off: false, failures, seen });
        self.busy.insert(name.to_owned(), None);
        true
    }

    /// Work at an object is done.
    pub fn finish(&mut self, name: &str) {
        self.waiting.remove(name);
        self.release(name);
    }

    /// Work at an object failed or has yet to end, and is repeated after a pause, the length of which this answers.
    pub fn retry(&mut self, name: &str, pause: Pause) -> Option<Duration> {
        let waiting = self.waiting.get_mut(name)?;
        let length = self.pauses.length(pause, waiting.failures);
        if let Some(timer) = waiting.timer.take() {
            self.timers.remove(&timer);
        }
        waiting.failures = if matches!(pause, Pause::Exactly(_)) { 0 } else { waiting.failures.saturating_add(1) };
        waiting.timer = Some(self.timers.insert(name.to_owned(), length));
        waiting.backs_off = pause == Pause::BackOff { at_least: None };
        self.release(name);
        Some(length)
    }

    /// What made objects fail is over: those that pause longer each time are looked at now.
    pub fn hurry(&mut self) {
        let pausing = self.waiting.iter_mut().filter(|(_, waiting)| waiting.backs_off);
        let pausing: Vec<_> = pausing.filter_map(|(name, waiting)| Some((name.clone(), waiting.timer.take()?))).collect();
        for (name, timer) in pausing {
            self.timers.remove(&timer);
            self.add(name, Cause::Due);
        }
    }

    /// The object is gone.
    pub fn forget(&mut self, name: &str) {
        if let Some(timer) = self.waiting.remove(name).and_then(|waiting| waiting.timer) {
            self.timers.remove(&timer);
        }
    }

    fn release(&mut self, name: &str) {
        if let Some(Some(cause)) = self.busy.remove(name) {
            self.add(name.to_owned(), cause);
        }
    }
}

impl Pauses {
    /// Jittered, so that what failed together does not return together, and never shorter than what the provider asked for.
    fn length(&self, pause: Pause, failures: u32) -> Duration {
        let spread = rand::random_range(0.5..1.5);
        let doubled = |first: Duration, longest: Duration| {
            first.saturating_mul(2_u32.saturating_pow(failures)).min(longest).mul_f64(spread)
        };
        match pause {
            Pause::Exactly(length) => length,
            Pause::Slow => doubled(self.slow, self.slowest),
            Pause::BackOff { at_least } => {
                let doubled = doubled(self.first, self.longest);
                at_least.map_or(doubled, |least| doubled.max(least.mul_f64(0.5 + spread)))
            }
        }
    }
}
