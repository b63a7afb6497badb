//! One node, from the look-up to the last write. Many run at once: look-ups as many as fill batches, writes behind a bound.
use std::hash::{DefaultHasher, Hash, Hasher};
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
use crate::controllers::scheduler::retry::Pause;
use crate::controllers::written::{later_than, version};
use crate::model::instance::NodeQuery;
use crate::model::node::Node;
use crate::names;
use crate::provider::{Outcome, Priority, ProviderError};

/// How work on a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Whether a look-up was answered, or failed so that it may succeed by itself; `None` where there was none, or neither.
    pub answered: Option<bool>,
    /// The resourceVersion that the watch has to reach: what it shows before is older than what the API server has.
    pub written: Option<u64>,
    /// When to try again, and what the attempt was made with; `None`: not until the node changes.
    pub again: Option<(Pause, u64)>,
}

const BACK_OFF: Pause = Pause::BackOff { at_least: None };

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
    /// Works on one node.
    pub async fn work(&self, observed: Observed) -> Ended {
        let (asks, attempted) = (decide(&observed).look_up, observed.clone());
        let nothing = Ended { answered: None, written: None, again: None };
        let because = |pause: Option<Pause>| pause.map(|pause| (pause, fingerprint(&attempted)));
        match self.shutdown.run_until_cancelled(self.looked_up(observed, asks)).await {
            None => nothing,
            Some(Err(error)) => Ended { answered: may_pass(&error), again: because(again(&attempted.node, &error)), ..nothing },
            Some(Ok(None)) => Ended { answered: Some(true), written: later_than(&attempted.node.resource_version), ..nothing },
            Some(Ok(Some(observed))) => {
                let (written, again) = self.acted_in_turn(observed).await;
                Ended { answered: asks.map(|_| true), written, again: because(again) }
            }
        }
    }

    /// Asks the provider if need be, and takes the node as it is once the answer is there; `None` if it is gone.
    async fn looked_up(&self, mut observed: Observed, asks: Option<Priority>) -> Result<Option<Observed>, ProviderError> {
        let Some(priority) = asks else { return Ok(Some(observed)) };
        match look_up(&*self.ctx.instances, &observed, priority).await {
            Ok(lookup) => {
                self.status.looked_up(&observed.node);
                observed.answer = Some(lookup);
            }
            Err(error) => {
                self.status.lookup_failed(&observed.node, &error);
                if error.outcome == Outcome::Unsupported {
                    // Whether the capability is lost for all nodes is for a handshake to say.
                    drop(self.ctx.identity.confirm().await);
                }
                return Err(error);
            }
        }
        let latest = self.ctx.nodes.get(&observed.node.name).filter(|node| node.uid == observed.node.uid);
        Ok(latest.map(|node| Observed { node, ..observed }))
    }

    /// Writes what is decided, once fewer than the bound are being written. The writing is in a box: most nodes in flight wait
    /// for an answer or a permit.
    async fn acted_in_turn(&self, observed: Observed) -> (Option<u64>, Option<Pause>) {
        if !decide(&observed).writes() {
            return Box::pin(self.acted(observed)).await;
        }
        match self.shutdown.run_until_cancelled(self.writes.acquire()).await {
            Some(Ok(_permit)) => Box::pin(self.acted(observed)).await,
            _ => (None, None),
        }
    }

    /// What was written last, and when to try again.
    async fn acted(&self, observed: Observed) -> (Option<u64>, Option<Pause>) {
        let node = Arc::clone(&observed.node);
        match act(&self.ctx.writer, &self.ctx.metrics, observed).await {
            Ok(acted) => {
                self.status.acted(&acted, Timestamp::now());
                let written = acted.plan.writes().then(|| version(&acted.node.resource_version)).flatten();
                (written, after(&acted))
            }
            Err(WriteError::Gone) => (later_than(&node.resource_version), None),
            Err(error) => (None, Some(self.write_failed(&node, &error))),
        }
    }

    fn write_failed(&self, node: &Node, error: &WriteError) -> Pause {
        match error {
            refused if refused.is_refused() => {
                self.status.write_refused(node, refused);
                return Pause::Terminal;
            }
            WriteError::Api(_) if !error.is_unanswered() => {
                tracing::warn!(node = node.name, %error, "node patch failed, retrying");
            }
            // Finding elsewhere, once for all.
            _ => tracing::debug!(node = node.name, %error, "node patch failed, retrying"),
        }
        BACK_OFF
    }
}

/// When to work on a node again. One that another provider is to initialise is asked about now and then.
fn after(acted: &Acted) -> Option<Pause> {
    match acted.plan.again {
        Again::BackOff => Some(BACK_OFF),
        Again::Slowly => Some(Pause::Terminal),
        Again::No => (acted.node.is_uninitialized() && !acted.plan.writes()).then_some(Pause::Terminal),
    }
}

/// When to look up a node again. An initialised one waits for its next refresh.
fn again(node: &Node, error: &ProviderError) -> Option<Pause> {
    let pause = match error.outcome {
        Outcome::Terminal | Outcome::Unsupported => Pause::Terminal,
        Outcome::Retry { after } => Pause::BackOff { at_least: after },
        Outcome::Unknown => BACK_OFF,
    };
    node.is_uninitialized().then_some(pause)
}

/// `Some(false)` for a failure that may pass by itself.
fn may_pass(error: &ProviderError) -> Option<bool> {
    matches!(error.outcome, Outcome::Retry { .. } | Outcome::Unknown).then_some(false)
}

/// What an answer, and what follows from it, depends on. Heartbeats and conditions are not in it.
pub fn fingerprint(observed: &Observed) -> u64 {
    let node = &observed.node;
    let query = NodeQuery::about(node, &observed.provider);
    let own = [names::annotations::PROVIDED_NODE_IP, names::annotations::APPLIED_LABELS].map(|key| node.annotations.get(key));
    let mut hasher = DefaultHasher::new();
    (&node.uid, node.is_uninitialized(), &node.labels, own).hash(&mut hasher);
    (query.provider_id, query.system_uuid, query.addresses, query.annotations).hash(&mut hasher);
    hasher.finish()
}
