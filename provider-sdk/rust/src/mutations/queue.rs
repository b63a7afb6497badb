//! Who waits for a key, in the order of arrival. It wakes those who wait; what each does then, the mutations decide.
use std::collections::{HashMap, VecDeque};

use tokio::sync::watch;

/// The queues of all keys.
#[derive(Default)]
pub(super) struct Queues {
    tickets: u64,
    waiting: HashMap<String, Queue>,
}

struct Queue {
    tickets: VecDeque<u64>,
    changes: watch::Sender<()>,
}

/// A place in a queue.
pub(super) struct Place {
    ticket: u64,
    /// Changes whenever somebody leaves the queue.
    pub(super) changes: watch::Receiver<()>,
}

impl Queues {
    /// Takes the last place in the queue of `key`.
    pub(super) fn join(&mut self, key: &str) -> Place {
        self.tickets += 1;
        let queue = self.waiting.entry(key.to_owned());
        let queue = queue.or_insert_with(|| Queue { tickets: VecDeque::new(), changes: watch::channel(()).0 });
        queue.tickets.push_back(self.tickets);
        Place { ticket: self.tickets, changes: queue.changes.subscribe() }
    }

    /// Whether nobody waits before this place; without one, whether nobody waits at all.
    pub(super) fn is_first(&self, key: &str, place: Option<&Place>) -> bool {
        let first = self.waiting.get(key).and_then(|queue| queue.tickets.front());
        first.is_none_or(|first| place.is_some_and(|place| place.ticket == *first))
    }

    /// Gives the place up and wakes the others.
    pub(super) fn leave(&mut self, key: &str, place: &Place) {
        let Some(queue) = self.waiting.get_mut(key) else { return };
        queue.tickets.retain(|ticket| *ticket != place.ticket);
        queue.changes.send_replace(());
        if queue.tickets.is_empty() {
            self.waiting.remove(key);
        }
    }
}
