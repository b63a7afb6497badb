//! The clock: when nodes were written, by the API server's audit log. It asks the API server nothing.
use std::collections::HashMap;
use std::time::Duration;

use anyhow::Result;
use ccm_test_support::audit::{Entry, Follow};
use ccm_test_support::world::World;
use jiff::Timestamp;
use tokio::time::{Instant, sleep};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(250);

/// Which of its two parts of a node were written: an initialised node has both.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    object: bool,
    status: bool,
}

/// What was written to nodes.
pub struct Writes {
    log: Follow,
    nodes: HashMap<String, Written>,
    expected: usize,
    /// Whether a node is done when its status is written.
    only_status: bool,
    /// Nodes with both parts written, or with the status where only that counts.
    pub done: usize,
    /// Successful writes.
    pub successful: usize,
    /// Writes refused because the node had changed.
    pub conflicts: usize,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

impl Writes {
    /// Of so many nodes, from now on.
    pub fn of(world: &World, expected: usize) -> Self {
        let (log, nodes) = (world.audit().follow(), HashMap::with_capacity(expected));
        Self { log, nodes, expected, only_status: false, done: 0, successful: 0, conflicts: 0, first: None, last: None }
    }

    /// Of the statuses of so many nodes, from now on; what was written before does not count.
    pub fn of_status(world: &World, expected: usize) -> Result<Self> {
        let mut writes = Self { only_status: true, ..Self::of(world, expected) };
        writes.log.entries()?;
        Ok(writes)
    }

    /// Waits until all nodes are done, or for so long.
    pub async fn all(&mut self, within: Duration) -> Result<()> {
        let end = Instant::now() + within;
        while !self.is_complete() && Instant::now() < end {
            sleep(PAUSE).await;
            for entry in self.log.entries()? {
                self.count(entry);
            }
        }
        Ok(())
    }

    /// Whether all nodes are done.
    pub fn is_complete(&self) -> bool {
        self.done == self.expected
    }

    /// Seconds from the first write's arrival to the end of the one that completed the last node.
    pub fn seconds(&self) -> f64 {
        self.first.zip(self.last).map_or(f64::NAN, |(first, last)| last.duration_since(first).as_secs_f64())
    }

    /// Seconds from then to the first write's arrival.
    pub fn since(&self, start: Timestamp) -> f64 {
        self.first.map_or(f64::NAN, |first| first.duration_since(start).as_secs_f64())
    }

    fn count(&mut self, entry: Entry) {
        match entry.response_status.code {
            200..=299 => self.succeeded(entry),
            409 => self.conflicts += 1,
            _ => {}
        }
    }

    fn succeeded(&mut self, entry: Entry) {
        self.successful += 1;
        let arrived = entry.request_received_timestamp;
        self.first = Some(self.first.map_or(arrived, |first| first.min(arrived)));
        let node = self.nodes.entry(entry.object_ref.name).or_default();
        let part = if entry.object_ref.subresource == "status" { &mut node.status } else { &mut node.object };
        let is_new = !std::mem::replace(part, true);
        if is_new && node.status && (node.object || self.only_status) {
            self.done += 1;
            self.last = self.last.max(Some(entry.stage_timestamp));
        }
    }
}
