//! When the table is listed: at the beginning of a term, once each period, and sooner where something asks for it. Pure but for the
//! jitter.
use std::time::{Duration, Instant};

use crate::controllers::scheduler::retry::{Pause, Retry};

use super::trouble::PAUSES;

/// Between the beginnings of two lists that something asked for.
const APART: Duration = Duration::from_secs(5);

/// The schedule.
#[derive(Debug)]
pub struct Lists {
    period: Duration,
    due: Instant,
    began: Option<Instant>,
    running: bool,
    /// Something asked for a list while one ran.
    again: bool,
    retry: Retry,
}

impl Lists {
    /// The first is due now.
    pub fn new(period: Duration, now: Instant) -> Self {
        Self { period, due: now, began: None, running: false, again: false, retry: Retry::default() }
    }

    /// A list is needed.
    pub fn need(&mut self, now: Instant) {
        if self.running {
            self.again = true;
        } else if self.retry.not_before(0, now).is_none() {
            self.due = self.due.min(self.began.map_or(now, |began| (began + APART).max(now)));
        }
    }

    /// There is another provider: the pause after a failure is over.
    pub fn restart(&mut self, now: Instant) {
        self.retry.reset();
        self.need(now);
    }

    /// When the next is due; `None` while one runs.
    pub fn due_at(&self) -> Option<Instant> {
        (!self.running).then_some(self.due)
    }

    /// It begins.
    pub fn begin(&mut self, now: Instant) {
        self.running = true;
        self.again = false;
        self.began = Some(now);
    }

    /// It ended. After one that succeeded the next follows after about a period, otherwise after a pause that grows.
    pub fn ended(&mut self, failure: Option<Pause>, now: Instant) {
        self.running = false;
        if let Some(pause) = failure {
            self.retry.again(pause, 0, &PAUSES, now);
            self.due = self.retry.not_before(0, now).unwrap_or(now);
            return;
        }
        self.retry.reset();
        self.due = now + self.period.mul_f64(rand::random_range(0.9..1.1));
        if std::mem::take(&mut self.again) {
            self.need(now);
        }
    }

    /// Whether one runs.
    pub fn is_running(&self) -> bool {
        self.running
    }
}
