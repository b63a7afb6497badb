//! One mutation of a thing at a time, truly: a call that the SDK drops, since its leader is lost, may have sent something to the
//! cloud that cannot be called back. Its successor waits until the cloud has answered that. A thing is the load balancer of a
//! Service, or the destination of a route.
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use ccm_provider_sdk::{ProviderError, Result};

/// The things that are being changed.
#[derive(Debug, Default)]
pub struct Serial(Mutex<HashMap<String, Arc<AsyncMutex<()>>>>);

/// The right to change one thing.
pub type Turn = OwnedMutexGuard<()>;

impl Serial {
    /// Waits until nobody else changes this thing.
    pub async fn turn(&self, thing: &str) -> Turn {
        let lane = {
            let mut lanes = self.0.lock();
            lanes.retain(|_, lane| Arc::strong_count(lane) > 1);
            Arc::clone(lanes.entry(thing.to_owned()).or_default())
        };
        lane.lock_owned().await
    }

    /// Waits until nobody else changes any of these things. All callers wait in one order, so that no two wait for each other.
    pub async fn turns(&self, mut things: Vec<String>) -> Vec<Turn> {
        things.sort();
        things.dedup();
        let mut turns = Vec::with_capacity(things.len());
        for thing in things {
            turns.push(self.turn(&thing).await);
        }
        turns
    }
}

/// Runs `work` to its end even if nobody waits for it any more; its turn, or its turns, end with it.
pub async fn to_the_end<T: Send + 'static>(
    turn: impl Send + 'static,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let task = tokio::spawn(async move {
        let result = work.await;
        drop(turn);
        result
    });
    task.await.unwrap_or_else(|_| Err(ProviderError::unavailable("the provider is shutting down")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn the_successor_of_dropped_work_waits_for_what_the_cloud_has_still_to_answer() {
        let serial = Serial::default();
        let (answer, cloud) = oneshot::channel::<()>();
        let turn = serial.turn("s").await;
        let work = to_the_end(turn, async move {
            // Either way the cloud has answered.
            let _ = cloud.await;
            Ok(())
        });
        assert!(timeout(Duration::from_millis(1), work).await.is_err(), "it was dropped");
        let mut next = Box::pin(serial.turn("s"));
        assert!(timeout(Duration::from_millis(1), &mut next).await.is_err(), "it did not wait");
        drop(serial.turn("other").await);
        drop(answer);
        drop(next.await);
    }
}
