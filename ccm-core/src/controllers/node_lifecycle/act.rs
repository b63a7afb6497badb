//! Applies a plan: taints, and deletes what the provider and the live object still agree upon. It decides nothing, and asks
//! everything again that can be asked again.
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;

use super::decide::{self, Doomed};
use super::status;
use crate::cluster::gate::Closed;
use crate::cluster::patch::{NodePatch, WriteError};
use crate::cluster::state::{Cause, Deletion, State, StateError, TermStore};
use crate::controllers::NodeContext;
use crate::model::node::{Node, Ready, Taint};
use crate::names;
use crate::provider::ProviderError;

/// How many nodes are written to at a time.
const IN_FLIGHT: usize = 32;
/// How often a patch that found the node changed is made anew.
const ATTEMPTS: usize = 3;

/// Why nothing was deleted.
#[derive(Debug, thiserror::Error)]
pub(super) enum ActError {
    /// This process may not write now.
    #[error(transparent)]
    Closed(#[from] Closed),
    /// The provider could not say who it is.
    #[error("the provider's identity could not be confirmed: {0}")]
    Confirm(#[from] ProviderError),
    /// The provider is another than the one that said that machines are gone.
    #[error("the provider's cloud was {decided:?} when nodes were looked up and is {found:?} now")]
    Identity {
        /// Whose answers were acted upon.
        decided: String,
        /// Who answers now.
        found: String,
    },
    /// The history could not be written.
    #[error(transparent)]
    State(#[from] StateError),
}

/// Deletes nodes: after the provider's identity is confirmed, after a live look at each, and after the history is written.
pub(super) async fn delete(
    ctx: &NodeContext,
    store: &TermStore,
    state: &mut State,
    doomed: Vec<Doomed>,
    window: Duration,
) -> Result<(), ActError> {
    ctx.writer.gate().check()?;
    confirm(ctx, &doomed).await?;
    let doomed = still_doomed(ctx, doomed).await;
    if doomed.is_empty() {
        return Ok(());
    }
    let now = Timestamp::now();
    state.record(doomed.iter().map(|one| deletion(one, now)));
    state.prune(now, window);
    store.save(state).await?;
    each(ctx, doomed, |one| delete_one(ctx, one)).await;
    Ok(())
}

/// Notes for `/livez` that a part of the tick is done.
pub(super) fn goes_on(ctx: &NodeContext) {
    ctx.health.liveness().goes_on(names::controllers::NODE_LIFECYCLE);
}

async fn each<T, R, F: Future<Output = R>>(ctx: &NodeContext, items: Vec<T>, work: impl Fn(T) -> F) -> Vec<R> {
    let done = futures::stream::iter(items).map(work).buffer_unordered(IN_FLIGHT);
    done.inspect(|_| goes_on(ctx)).collect().await
}

async fn confirm(ctx: &NodeContext, doomed: &[Doomed]) -> Result<(), ActError> {
    let found = ctx.identity.confirm().await?;
    let trusted = |one: &&Doomed| found.ownership(&one.node).is_deletable() && *one.cloud_identity == *found.cloud_identity;
    match doomed.iter().find(|one| !trusted(one)) {
        None => Ok(()),
        Some(one) => Err(ActError::Identity { decided: one.cloud_identity.to_string(), found: found.cloud_identity.clone() }),
    }
}

/// Those whose live object is the one decided upon and not ready; they now carry the live resourceVersion.
async fn still_doomed(ctx: &NodeContext, doomed: Vec<Doomed>) -> Vec<Doomed> {
    let looks = each(ctx, doomed, |one| async move {
        match ctx.writer.get(&one.node.name).await {
            Ok(live) if decide::is_still_doomed(&live, &one.node, one.cause) => Some(Doomed { node: Arc::new(live), ..one }),
            Ok(_) => {
                tracing::info!(node = one.node.name, "not deleted: the live node is ready again, changed or going");
                None
            }
            Err(WriteError::Gone) => None,
            Err(error) => {
                tracing::warn!(%error, node = one.node.name, "not deleted: the live node could not be read");
                None
            }
        }
    });
    looks.await.into_iter().flatten().collect()
}

fn deletion(one: &Doomed, at: Timestamp) -> Deletion {
    let zone = one.node.zone().map(str::to_owned);
    Deletion { node: one.node.name.clone(), uid: one.node.uid.clone(), zone, at, cause: one.cause }
}

async fn delete_one(ctx: &NodeContext, one: Doomed) {
    let node = &*one.node;
    let why = match one.cause {
        Cause::Deleted => "its machine was deleted",
        Cause::Absent | Cause::Planned | Cause::Released => "it does not exist in the cloud provider",
    };
    tracing::info!(node = node.name, cause = ?one.cause, "deleting the node because {why}");
    ctx.events.publish(status::deleting(node, why));
    match ctx.writer.delete(node).await {
        Ok(()) => drop(ctx.metrics.deletions.inc()),
        Err(WriteError::Gone) => {}
        Err(WriteError::Conflict) => {
            ctx.metrics.conflicts.inc();
            tracing::info!(node = node.name, "not deleted: the node changed meanwhile; it is looked at again");
        }
        Err(error) => {
            tracing::error!(%error, node = node.name, "the node was not deleted");
            ctx.events.publish(status::deleting_failed(node, &error));
        }
    }
}

/// Adds and removes the shutdown taint.
pub(super) async fn taint(ctx: &NodeContext, add: Vec<Arc<Node>>, remove: Vec<Arc<Node>>) {
    let changes = add.into_iter().map(|node| (node, true)).chain(remove.into_iter().map(|node| (node, false)));
    each(ctx, changes.collect(), |(node, stopped)| async move {
        match set_taint(ctx, &node, stopped).await {
            Ok(()) | Err(WriteError::Gone) => {}
            Err(error) => tracing::warn!(%error, node = node.name, stopped, "the shutdown taint was not changed"),
        }
    })
    .await;
}

async fn set_taint(ctx: &NodeContext, node: &Node, stopped: bool) -> Result<(), WriteError> {
    let mut live = node.clone();
    for _ in 0..ATTEMPTS {
        if !needs_change(&live, node, stopped) {
            return Ok(());
        }
        match ctx.writer.patch(&live, &taint_patch(&live, stopped)).await {
            Ok(_) => {
                ctx.metrics.writes.inc();
                return Ok(());
            }
            Err(WriteError::Conflict) => drop(ctx.metrics.conflicts.inc()),
            Err(error) => return Err(error),
        }
        live = ctx.writer.get(&node.name).await?;
    }
    Err(WriteError::Conflict)
}

/// Whether the same object, read again, is still as ready as it was and has the wrong taints.
fn needs_change(live: &Node, decided: &Node, stopped: bool) -> bool {
    let same = live.uid == decided.uid && live.provider_id == decided.provider_id && live.deleted_at.is_none();
    same && (live.ready != Ready::True) == stopped && decide::has_shutdown_taint(live) != stopped
}

fn taint_patch(node: &Node, stopped: bool) -> NodePatch {
    let mut taints = node.taints.clone();
    if stopped {
        let key = names::taints::SHUTDOWN.to_owned();
        taints.push(Taint { key, value: None, effect: "NoSchedule".to_owned(), time_added: None });
    } else {
        taints.retain(|taint| !decide::is_shutdown_taint(taint));
    }
    NodePatch { taints: Some(taints), ..NodePatch::default() }
}
