//! One node, from the look-up to the last write. Many run at once: look-ups without a bound, so that batches are full,
//! writes behind one.
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::act::{Acted, act};
use super::decide::{Again, decide};
use super::observe::{Observed, look_up};
use super::status::Status;
use crate::cluster::patch::WriteError;
use crate::controllers::NodeContext;
use crate::controllers::queue::Pause;
use crate::model::node::Node;
use crate::provider::{self, ProviderError};

/// How work at a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is left to do until the node changes.
    Done {
        /// The resourceVersion of the last write. Until the watch shows it, what the watch shows is old.
        written: Option<u64>,
    },
    /// It is to be repeated.
    Again(Pause),
    /// The provider does not serve look-ups.
    Unsupported,
}

impl Outcome {
    const NOTHING: Self = Self::Done { written: None };
    const BACK_OFF: Self = Self::Again(Pause::BackOff { at_least: None });
}

/// What work at any node needs.
pub struct Worker {
    /// The world.
    pub ctx: NodeContext,
    /// Who tells.
    pub status: Status,
    /// The bound on writes.
    pub writes: Semaphore,
    /// Look-ups and waiting end with it; a write that has begun does not.
    pub shutdown: CancellationToken,
}

impl Worker {
    /// Works at one node.
    pub async fn work(&self, observed: Observed) -> Outcome {
        let worked = self.shutdown.run_until_cancelled(self.answered(observed)).await;
        let observed = match worked {
            Some(Ok(observed)) => observed,
            Some(Err(outcome)) => return outcome,
            None => return Outcome::NOTHING,
        };
        if !decide(&observed).writes() {
            return self.acted(observed).await;
        }
        match self.shutdown.run_until_cancelled(self.writes.acquire()).await {
            Some(Ok(_permit)) => self.acted(observed).await,
            _ => Outcome::NOTHING,
        }
    }

    /// Asks the provider if need be, and takes the node as it is once the answer is there.
    async fn answered(&self, mut observed: Observed) -> Result<Observed, Outcome> {
        let Some(priority) = decide(&observed).look_up else { return Ok(observed) };
        match look_up(&*self.ctx.instances, &observed, priority).await {
            Ok(lookup) => {
                self.status.looked_up(&observed.node);
                observed.answer = Some(lookup);
            }
            Err(error) => return Err(self.lookup_failed(&observed.node, &error)),
        }
        let latest = self.ctx.nodes.get(&observed.node.name).filter(|node| node.uid == observed.node.uid);
        observed.node = latest.ok_or(Outcome::NOTHING)?;
        Ok(observed)
    }

    async fn acted(&self, observed: Observed) -> Outcome {
        let node = Arc::clone(&observed.node);
        match act(&self.ctx.writer, &self.ctx.metrics, observed).await {
            Ok(acted) => {
                self.status.acted(&acted, Timestamp::now());
                outcome(&acted)
            }
            Err(error) => self.write_failed(&node, &error),
        }
    }

    fn write_failed(&self, node: &Node, error: &WriteError) -> Outcome {
        match error {
            WriteError::Gone => return Outcome::NOTHING,
            refused if refused.is_refused() => {
                self.status.write_refused(node, refused);
                return Outcome::Again(Pause::Slow);
            }
            WriteError::Api(_) if !error.is_unanswered() => {
                tracing::warn!(node = node.name, %error, "node not written, retrying");
            }
            // Said elsewhere, once for all.
            _ => tracing::debug!(node = node.name, %error, "node not written, retrying"),
        }
        Outcome::BACK_OFF
    }

    fn lookup_failed(&self, node: &Node, error: &ProviderError) -> Outcome {
        self.status.lookup_failed(node, error);
        match error.outcome {
            provider::Outcome::Unsupported => Outcome::Unsupported,
            // An initialised node waits for the next refresh.
            _ if !node.is_uninitialized() => Outcome::NOTHING,
            provider::Outcome::Terminal => Outcome::Again(Pause::Slow),
            provider::Outcome::Retry { after } => Outcome::Again(Pause::BackOff { at_least: after }),
            provider::Outcome::Unknown => Outcome::BACK_OFF,
        }
    }
}

fn outcome(acted: &Acted) -> Outcome {
    match acted.plan.again {
        Again::No => Outcome::Done { written: acted.plan.writes().then(|| acted.node.resource_version.parse().ok()).flatten() },
        Again::BackOff => Outcome::BACK_OFF,
        Again::Slowly => Outcome::Again(Pause::Slow),
    }
}
