//! Carries a plan out: at most two writes to a node, the status before everything else, so that the taint goes last. It
//! decides nothing itself: where the node has changed meanwhile it reads it again and has the same answer decided anew.
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::decide::{Plan, decide};
use super::observe::Observed;
use crate::cluster::patch::{NodeWriter, WriteError};
use crate::model::node::Node;
use crate::telemetry::metrics::NodeMetrics;

/// How often a node that keeps changing is tried before it has to wait.
const ATTEMPTS: u32 = 5;

/// What was done.
#[derive(Clone, Debug)]
pub struct Acted {
    /// The plan that was carried out; after a conflict not the first one.
    pub plan: Plan,
    /// The node as it is now.
    pub node: Arc<Node>,
}

/// Decides by what was observed and carries it out.
pub async fn act(writer: &NodeWriter, metrics: &NodeMetrics, mut observed: Observed) -> Result<Acted, WriteError> {
    for _ in 0..ATTEMPTS {
        let plan = decide(&observed);
        match write(writer, metrics, &observed.node, &plan).await {
            Err(WriteError::Conflict) => {
                metrics.conflicts.inc();
                observed.node = read_again(writer, &observed.node).await?;
            }
            written => return Ok(Acted { node: written?, plan }),
        }
    }
    Err(WriteError::Conflict)
}

async fn write(writer: &NodeWriter, metrics: &NodeMetrics, node: &Arc<Node>, plan: &Plan) -> Result<Arc<Node>, WriteError> {
    let mut node = Arc::clone(node);
    if !plan.status.is_empty() {
        node = Arc::new(writer.patch_status(&node, &plan.status).await?);
        metrics.writes.inc();
    }
    if !plan.patch.is_empty() {
        node = Arc::new(writer.patch(&node, &plan.patch).await?);
        metrics.writes.inc();
    }
    Ok(node)
}

/// Past every cache. A node of the same name that joined since is another machine: the answer says nothing of it.
async fn read_again(writer: &NodeWriter, before: &Node) -> Result<Arc<Node>, WriteError> {
    let node = writer.get(&before.name).await?;
    if node.uid == before.uid { Ok(Arc::new(node)) } else { Err(WriteError::Gone) }
}
