//! Who goes first. Each Service waits in one lane; a lane before another goes first. Some places are kept for changes and one
//! for other targets, and, while somebody waits there, more for other targets, some for work that goes on and one for checks: none of them stands behind a storm of calls of
//! another that take their time.
use std::collections::{HashMap, VecDeque};

use super::decide::Lane;
use crate::controllers::queue::Cause;

#[cfg(test)]
mod tests;

/// In this order.
const ORDER: [Lane; 5] = [Lane::Change, Lane::Targets, Lane::Again, Lane::Check, Lane::Paced];

/// The lanes.
#[derive(Debug, Default)]
pub struct Lanes {
    waiting: HashMap<String, (Lane, Cause)>,
    lines: HashMap<Lane, VecDeque<String>>,
    running: HashMap<Lane, usize>,
}

impl Lanes {
    /// Puts a Service into a lane; one that waits in another already moves.
    pub fn add(&mut self, key: String, lane: Lane, cause: Cause) {
        let before = self.waiting.get(&key).copied();
        let cause = before.map_or(cause, |(_, before)| cause.max(before));
        if before.is_none_or(|(before, _)| before != lane) {
            self.lines.entry(lane).or_default().push_back(key.clone());
        }
        self.waiting.insert(key, (lane, cause));
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
        self.waiting.get(key).map(|(_, cause)| *cause)
    }

    /// The Service waits no more.
    pub fn remove(&mut self, key: &str) {
        self.waiting.remove(key);
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
        let waits = |key: &String| self.waiting.get(key).is_some_and(|(it, _)| *it == lane);
        self.lines.get(&lane).is_some_and(|line| line.iter().any(waits))
    }

    /// The first of a line that still waits in it: who moved to another lane has left its name behind.
    fn pop(&mut self, lane: Lane) -> Option<(String, Cause)> {
        let line = self.lines.get_mut(&lane)?;
        while let Some(key) = line.pop_front() {
            if self.waiting.get(&key).is_some_and(|(it, _)| *it == lane) {
                let (_, cause) = self.waiting.remove(&key)?;
                return Some((key, cause));
            }
        }
        None
    }
}
