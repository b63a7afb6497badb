//! How many of something there are now, and when there is none.
use std::sync::Arc;

use tokio::sync::watch;

/// A count. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Count(Arc<watch::Sender<usize>>);

/// One that is counted until this is dropped.
#[derive(Debug)]
pub struct Counted(Count);

impl Count {
    /// One more.
    pub fn add(&self) -> Counted {
        self.0.send_modify(|count| *count += 1);
        Counted(self.clone())
    }

    /// Whether there is one.
    pub fn any(&self) -> bool {
        *self.0.borrow() > 0
    }

    /// Returns when there is none.
    pub async fn none(&self) {
        // The sender lives in `self`: waiting cannot fail.
        drop(self.0.subscribe().wait_for(|count| *count == 0).await);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}
