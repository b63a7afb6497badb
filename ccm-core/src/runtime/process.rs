//! The tasks that last as long as the process, and what follows where one of them ends early: the process ends, in good order.
use std::panic::AssertUnwindSafe;
use std::pin::pin;

use futures::FutureExt as _;
use futures::future::FusedFuture as _;
use tokio_util::sync::CancellationToken;

use super::supervisor::{self, Ended, How, Supervisor};

/// The tasks' names.
pub(super) mod tasks {
    pub const SERVING: &str = "health-and-metrics";
    pub const EVENTS: &str = "events";
    pub const PRESENCE: &str = "api-server-probe";
    pub const SESSION: &str = "provider-session";
    pub const BATCHES: &str = "look-up-batches";
    pub const PROVIDER_ELIGIBILITY: &str = "provider-eligibility";
    pub const ELIGIBILITY: &str = "election-eligibility";
    pub const ELECTION: &str = "leader-election";
    /// Not spawned: what runs one term after another.
    pub const TERMS: &str = "leadership-terms";
}

/// Runs the terms to their end. Where a task ends early, `stop` is cancelled, by which the terms end as at shutdown; answers the
/// task.
pub(super) async fn govern(
    background: &mut Supervisor,
    stop: &CancellationToken,
    terms: impl Future<Output = ()>,
) -> Option<Ended> {
    let mut terms = pin!(AssertUnwindSafe(terms).catch_unwind().fuse());
    let ended = tokio::select! {
        served = &mut terms => match served {
            Ok(()) if stop.is_cancelled() => return None,
            // Nothing leads any more: the elector is gone.
            Ok(()) => background.next().await,
            Err(panic) => Ended { task: tasks::TERMS, how: How::Panicked(supervisor::message(&*panic)) },
        },
        ended = background.next() => ended,
    };
    tracing::error!(task = ended.task, "{ended}; the process gives the lease back and ends");
    stop.cancel();
    if !terms.is_terminated() {
        drop(terms.await);
    }
    Some(ended)
}

#[cfg(test)]
mod tests;
