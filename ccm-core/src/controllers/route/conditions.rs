//! Which nodes' conditions wait to be written, and which are being written. Pure: times are arguments.
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::trouble::{Failure, Troubles};
use crate::cluster::patch::WriteError;
use crate::controllers::written::{Written, version};
use crate::model::node::Node;

/// How soon a write guard that was closed is asked again.
const GUARD: Duration = Duration::from_secs(2);
/// How many are written at a time.
const IN_FLIGHT: usize = 64;

/// The conditions.
#[derive(Debug, Default)]
pub struct Conditions {
    wanted: BTreeMap<String, (Arc<Node>, bool)>,
    running: HashSet<String>,
    written: Written,
    troubles: Troubles<String>,
}

impl Conditions {
    /// What the condition of a node is to say; `None`: it stays as it is.
    pub fn want(&mut self, node: &Arc<Node>, made: Option<bool>, now: Instant) {
        let name = &node.name;
        let made =
            made.filter(|made| !node.network_unavailable.says(*made) && !self.written.is_ahead_of(name, &node.resource_version));
        match made {
            Some(made) if !self.running.contains(name) && self.troubles.not_before(name, u64::from(made), now).is_none() => {
                self.wanted.insert(name.clone(), (Arc::clone(node), made));
            }
            _ => drop(self.wanted.remove(name)),
        }
    }

    /// The next to write.
    pub fn next(&mut self) -> Option<(Arc<Node>, bool)> {
        if self.running.len() >= IN_FLIGHT {
            return None;
        }
        let (name, next) = self.wanted.pop_first()?;
        self.running.insert(name);
        Some(next)
    }

    /// A write ended, by `None` in a panic.
    pub fn ended(&mut self, name: &str, made: bool, written: Option<&Result<Node, WriteError>>, now: Instant) {
        self.running.remove(name);
        let failure = match written {
            Some(Err(WriteError::Closed(_))) => Failure::InProgress(GUARD),
            Some(Ok(node)) => {
                version(&node.resource_version).into_iter().for_each(|version| self.written.note(name, version));
                return self.troubles.forget(&name.to_owned());
            }
            Some(Err(WriteError::Gone | WriteError::NotOurs(_))) => return,
            Some(Err(error)) if error.is_refused() => Failure::Terminal,
            _ => Failure::Retry(None),
        };
        self.troubles.failed(name.to_owned(), failure, u64::from(made), now);
    }

    /// A node is gone.
    pub fn forget(&mut self, name: &str) {
        self.wanted.remove(name);
        self.written.forget(name);
        self.troubles.forget(&name.to_owned());
    }

    /// Nodes whose condition is to be tried again.
    pub fn take_due(&mut self, now: Instant) -> Vec<String> {
        self.troubles.take_due(now)
    }

    /// When the next pause is over.
    pub fn due_at(&self) -> Option<Instant> {
        self.troubles.due_at()
    }
}
