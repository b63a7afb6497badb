//! Which events were sent about each object, so that a condition that lasts is one event and not one per reconcile.
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use parking_lot::Mutex;

/// How many events of one object are remembered, so that a provider whose messages never repeat fills no memory.
const REMEMBERED: usize = 64;

/// The events that were sent, by the object's name. `E` is what makes two events the same.
pub struct EventDedup<E>(Mutex<HashMap<String, Sent<E>>>);

struct Sent<E> {
    uid: String,
    events: HashSet<E>,
}

impl<E> Default for EventDedup<E> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<E: Eq + Hash> EventDedup<E> {
    /// Remembers an event; false if it was sent about this very object before.
    pub fn is_new(&self, name: &str, uid: &str, event: E) -> bool {
        let mut sent = self.0.lock();
        let nothing = || Sent { uid: uid.to_owned(), events: HashSet::new() };
        let known = sent.entry(name.to_owned()).or_insert_with(nothing);
        if known.uid != uid || known.events.len() >= REMEMBERED {
            *known = nothing();
        }
        known.events.insert(event)
    }

    /// The object is gone, or the condition has ended: the next event about it is new.
    pub fn forget(&self, name: &str) {
        self.0.lock().remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_new_once_for_each_object_until_it_is_forgotten() {
        let sent = EventDedup::default();
        assert!(sent.is_new("a", "1", "x") && sent.is_new("a", "1", "y") && sent.is_new("b", "1", "x"));
        assert!(!sent.is_new("a", "1", "x"));
        assert!(sent.is_new("a", "2", "x"), "another object of the same name");
        sent.forget("a");
        assert!(sent.is_new("a", "2", "x"));
    }

    #[test]
    fn messages_that_never_repeat_fill_no_memory() {
        let sent = EventDedup::default();
        assert!((0..1000).all(|message| sent.is_new("a", "1", message)));
        assert!(sent.0.lock()["a"].events.len() <= REMEMBERED);
    }
}
