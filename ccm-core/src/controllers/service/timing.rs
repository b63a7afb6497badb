//! When the driver looks up by itself: changes of nodes are gathered, checks for drift are spread. Pure: time is an argument.
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rand::seq::SliceRandom;

use crate::controllers::scheduler::Key;

#[cfg(test)]
mod tests;

/// Nodes that change together are one change if no more than this lies between them,
const QUIET: Duration = Duration::from_millis(100);
/// and if they keep changing, after this.
const RESTLESS: Duration = Duration::from_secs(1);
/// The shortest time between two checks for drift.
const CHECK_PACE: Duration = Duration::from_millis(20);

/// Changes of nodes that are yet to be given to all Services.
#[derive(Debug, Default)]
pub struct NodeChanges(Option<Gathered>);

#[derive(Debug)]
struct Gathered {
    first: Instant,
    last: Instant,
}

impl NodeChanges {
    /// A node has changed.
    pub fn add(&mut self, now: Instant) {
        self.0.get_or_insert(Gathered { first: now, last: now }).last = now;
    }

    /// When they are to be given to all.
    pub fn due_at(&self) -> Option<Instant> {
        self.0.as_ref().map(|Gathered { first, last }| (*last + QUIET).min(*first + RESTLESS))
    }

    /// Whether they are to be given to all now; once.
    pub fn take_due(&mut self, now: Instant) -> bool {
        let due = self.due_at().is_some_and(|at| at <= now);
        if due {
            self.0 = None;
        }
        due
    }
}

/// The order in which load balancers are compared with the cloud. A round takes the whole period, and its order is random.
#[derive(Debug)]
pub struct DriftRounds {
    period: Duration,
    next: Option<Instant>,
    pace: Duration,
    round: VecDeque<Key>,
}

impl DriftRounds {
    /// The first check comes at a random time, so that restarts don't line up; without a period there is none.
    pub fn new(period: Option<Duration>, now: Instant) -> Self {
        let next = period.map(|period| now + period.mul_f64(rand::random_range(0.1..1.0)));
        Self { period: period.unwrap_or_default(), next, pace: CHECK_PACE, round: VecDeque::new() }
    }

    /// When the next check is due.
    pub fn due_at(&self) -> Option<Instant> {
        self.next
    }

    /// The Service to compare now. `all` is asked at the beginning of a round.
    pub fn take_due(&mut self, now: Instant, all: impl FnOnce() -> Vec<Key>) -> Option<Key> {
        self.next.filter(|at| *at <= now)?;
        if self.round.is_empty() {
            let mut keys = all();
            keys.shuffle(&mut rand::rng());
            let share = self.period / u32::try_from(keys.len()).unwrap_or(u32::MAX).max(1);
            self.pace = share.max(CHECK_PACE);
            self.round = keys.into();
        }
        self.next = Some(now + self.pace);
        self.round.pop_front()
    }
}
