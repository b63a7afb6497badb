//! Who goes first. Each Service waits in one lane; a lane before another goes first. Some places are kept for changes and one
//! for other targets, and, while somebody waits there, more for other targets, some for work that goes on and one for checks: none of them stands behind a storm of calls of
//! another that take their time.
use std::collections::{BTreeMap, HashMap};

use super::decide::Lane;
use crate::controllers::queue::Cause;

#[cfg(test)]
mod tests;

/// In this order.
const ORDER: [Lane; 5] = [Lane::Change, Lane::Targets, Lane::Again, Lane::Check, Lane::Paced];

/// The lanes.
#[derive(Debug, Default)]
pub struct Lanes {
    waiting: HashMap<String, Place>,
    /// Who waits in each, by number.
    lines: HashMap<Lane, BTreeMap<u64, String>>,
    /// The last number that was given.
    last: u64,
    running: HashMap<Lane, usize>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    lane: Lane,
    number: u64,
    cause: Cause,
}

impl Lanes {
    /// Puts a Service into a lane; one that waits in another already moves.
    pub fn add(&mut self, key: String, lane: Lane, cause: Cause) {
        if let Some(place) = self.waiting.get_mut(&key).filter(|place| place.lane == lane) {
            place.cause = cause.max(place.cause);
            return;
        }
        let cause = self.remove(&key).map_or(cause, |before| cause.max(before));
        self.last += 1;
        self.lines.entry(lane).or_default().insert(self.last, key.clone());
        self.waiting.insert(key, Place { lane, number: self.last, cause });
    }

    /// The Service that goes next, while at most `limit` are at work.
    pub fn next(&mut self, limit: usize, paced: bool) -> Option<(String, Lane, Cause)> {
        ORDER.into_iter().filter(|lane| paced || *lane != Lane::Paced).find_map(|lane| {
            if !self.has_room(lane, limit) {
                return None;
            }
            let (key, cause) = self.pop(lane)?;
            Some((key, lane, cause))
        })
    }

    /// Work has begun.
    pub fn began(&mut self, lane: Lane) {
        *self.running.entry(lane).or_default() += 1;
    }

    /// Work has ended.
    pub fn ended(&mut self, lane: Lane) {
        let running = self.running.entry(lane).or_default();
        *running = running.saturating_sub(1);
    }

    /// Whether anybody waits or works in a lane.
    pub fn is_busy(&self, lane: Lane) -> bool {
        self.running_in(lane) > 0 || self.waits(lane)
    }

    /// Why a Service waits, if it does.
    pub fn cause(&self, key: &str) -> Option<Cause> {
        self.waiting.get(key).map(|place| place.cause)
    }

    /// The Service waits no more; answers why it did.
    pub fn remove(&mut self, key: &str) -> Option<Cause> {
        let Place { lane, number, cause } = self.waiting.remove(key)?;
        self.lines.get_mut(&lane)?.remove(&number);
        Some(cause)
    }

    fn has_room(&self, lane: Lane, limit: usize) -> bool {
        let running: usize = self.running.values().sum();
        let others = ORDER.into_iter().filter(|other| *other != lane);
        let kept: usize = others.map(|other| self.kept(other, limit)).sum();
        (lane != Lane::Paced || self.running_in(lane) == 0) && running + kept < limit
    }

    /// How many places no other lane may take.
    fn kept(&self, lane: Lane, limit: usize) -> usize {
        let share = |enough: usize| if limit >= enough { (limit / 4).max(1) } else { 0 };
        let share = match lane {
            Lane::Change => share(2),
            Lane::Targets if self.waits(lane) => share(3),
            // What runs may take long, and nodes that are gone cannot wait for that.
            Lane::Targets if limit >= 3 => 1,
            Lane::Again if self.waits(lane) => share(4),
            Lane::Check | Lane::Paced if limit >= 5 && self.waits(lane) => 1,
            _ => 0,
        };
        share.saturating_sub(self.running_in(lane))
    }

    fn running_in(&self, lane: Lane) -> usize {
        self.running.get(&lane).copied().unwrap_or_default()
    }

    fn waits(&self, lane: Lane) -> bool {
        self.lines.get(&lane).is_some_and(|line| !line.is_empty())
    }

    /// The first of a line.
    fn pop(&mut self, lane: Lane) -> Option<(String, Cause)> {
        let (_, key) = self.lines.get_mut(&lane)?.pop_first()?;
        let place = self.waiting.remove(&key)?;
        Some((key, place.cause))
    }
}
