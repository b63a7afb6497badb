//! Who goes first. Each Service waits in one lane; a lane before another goes first, and mass work never takes the last
//! places, so that a change that somebody waits for does not stand behind a storm of calls that take their time.
use std::collections::{HashMap, VecDeque};

use super::decide::Lane;
use crate::controllers::queue::Cause;

#[cfg(test)]
mod tests;

/// In this order.
const ORDER: [Lane; 4] = [Lane::Change, Lane::Targets, Lane::Check, Lane::Paced];

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
        let waits = |key: &String| self.waiting.get(key).is_some_and(|(it, _)| *it == lane);
        self.running.get(&lane).is_some_and(|running| *running > 0)
            || self.lines.get(&lane).is_some_and(|line| line.iter().any(waits))
    }

    /// The Service waits no more.
    pub fn remove(&mut self, key: &str) {
        self.waiting.remove(key);
    }

    fn has_room(&self, lane: Lane, limit: usize) -> bool {
        let running: usize = self.running.values().sum();
        let kept = if limit > 1 { (limit / 4).max(1) } else { 0 };
        match lane {
            Lane::Change => running < limit,
            Lane::Paced if self.running.get(&lane).is_some_and(|running| *running > 0) => false,
            _ => running + kept < limit,
        }
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
