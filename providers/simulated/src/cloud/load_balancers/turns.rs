//! One mutation of a load balancer at a time: who comes while another runs waits its turn, in the order of arrival. A caller
//! that makes two at once by itself has lost count of its own work, which is counted.
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// The process that a mutation comes from: a random word of each provider process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(String);

impl Origin {
    /// A process that no other is.
    pub fn random() -> Self {
        Self(format!("{:016x}", rand::random::<u64>()))
    }

    /// The process that calls itself so.
    pub fn named(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// What it calls itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The mutations that run or wait.
#[derive(Debug, Default)]
pub struct Turns(Arc<Mutex<HashMap<String, Lane>>>);

/// Those of one load balancer.
#[derive(Debug, Default)]
struct Lane {
    turn: Arc<AsyncMutex<()>>,
    /// Where they come from.
    origins: Vec<Origin>,
}

/// A mutation from its arrival to its end, which is when this is dropped.
#[derive(Debug)]
pub struct Ticket {
    lanes: Arc<Mutex<HashMap<String, Lane>>>,
    name: String,
    origin: Origin,
    turn: Arc<AsyncMutex<()>>,
    /// Whether one of the same process ran or waited already.
    pub overlaps: bool,
}

impl Turns {
    /// A mutation of `name` has arrived.
    pub fn arrive(&self, name: &str, origin: &Origin) -> Ticket {
        let mut lanes = self.0.lock();
        let lane = lanes.entry(name.to_owned()).or_default();
        let overlaps = lane.origins.contains(origin);
        lane.origins.push(origin.clone());
        let turn = Arc::clone(&lane.turn);
        Ticket { lanes: Arc::clone(&self.0), name: name.to_owned(), origin: origin.clone(), turn, overlaps }
    }
}

impl Ticket {
    /// Waits until it is this one's turn, which ends when the guard is dropped.
    pub async fn turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.turn).lock_owned().await
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut lanes = self.lanes.lock();
        let Some(lane) = lanes.get_mut(&self.name) else { return };
        if let Some(index) = lane.origins.iter().position(|origin| *origin == self.origin) {
            lane.origins.swap_remove(index);
        }
        if lane.origins.is_empty() {
            lanes.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_of_one_process_for_one_load_balancer_overlap() {
        let turns = Turns::default();
        let [one, other] = ["one", "other"].map(Origin::named);
        let first = turns.arrive("web", &one);
        let overlaps = [("web", &one), ("web", &other), ("db", &one)].map(|(name, from)| turns.arrive(name, from).overlaps);
        assert!(!first.overlaps);
        assert_eq!(overlaps, [true, false, false]);
        drop(first);
        assert!(!turns.arrive("web", &one).overlaps);
        assert!(turns.0.lock().is_empty());
    }

    #[tokio::test]
    async fn who_comes_later_waits() {
        let turns = Turns::default();
        let [first, second] = ["one", "other"].map(|name| turns.arrive("web", &Origin::named(name)));
        let running = first.turn().await;
        let mut waiting = Box::pin(second.turn());
        assert!(futures_poll(&mut waiting).await.is_none());
        drop(running);
        waiting.await;
    }

    async fn futures_poll<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
        tokio::time::timeout(std::time::Duration::ZERO, future).await.ok()
    }
}
