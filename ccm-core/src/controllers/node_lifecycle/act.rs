//! Applies a plan: taints, and deletes what the provider and the live object still agree upon. It decides nothing, and asks
//! everything again that can be asked again.
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;

use super::decide::recheck::{Decided, Recheck, recheck};
use super::decide::{self, Doomed};
use super::status;
use crate::cluster::gate::Closed;
use crate::cluster::patch::{NodePatch, WriteError};
use crate::cluster::state::{Cause, Deletion, State, StateError, TermStore};
use crate::controllers::NodeContext;
use crate::model::node::{Node, Taint};
use crate::model::provider_info::ProviderInfo;
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
    let provider = confirm(ctx, &doomed).await?;
    let doomed = still_doomed(ctx, &provider, doomed).await;
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

async fn confirm(ctx: &NodeContext, doomed: &[Doomed]) -> Result<Arc<ProviderInfo>, ActError> {
    let found = ctx.identity.confirm().await?;
    let trusted = |one: &&Doomed| found.ownership(&one.node).is_deletable() && *one.cloud_identity == *found.cloud_identity;
    match doomed.iter().find(|one| !trusted(one)) {
        None => Ok(found),
        Some(one) => Err(ActError::Identity { decided: one.cloud_identity.to_string(), found: found.cloud_identity.clone() }),
    }
}

/// Those whose live object still calls for it; they now carry the live resourceVersion.
async fn still_doomed(ctx: &NodeContext, provider: &ProviderInfo, doomed: Vec<Doomed>) -> Vec<Doomed> {
    let looks = each(ctx, doomed, |one| async move {
        let live = match ctx.writer.get(&one.node.name).await {
            Ok(live) => live,
            Err(WriteError::Gone) => return None,
            Err(error) => {
                tracing::warn!(%error, node = one.node.name, "not deleted: the live node could not be read");
                return None;
            }
        };
        if let Recheck::Refused(reason) = recheck(Decided::Delete(one.cause), &one.node, &live, provider) {
            tracing::info!(node = one.node.name, "not deleted: the live node {reason}");
            return None;
        }
        Some(Doomed { node: Arc::new(live), ..one })
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
    let (add, remove) =
        (add.into_iter().map(|node| (node, Decided::Taint)), remove.into_iter().map(|node| (node, Decided::Untaint)));
    each(ctx, add.chain(remove).collect(), |(node, decided)| async move {
        match set_taint(ctx, &node, decided).await {
            Ok(()) | Err(WriteError::Gone) => {}
            Err(error) => tracing::warn!(%error, node = node.name, ?decided, "the shutdown taint was not changed"),
        }
    })
    .await;
}

async fn set_taint(ctx: &NodeContext, node: &Node, decided: Decided) -> Result<(), WriteError> {
    let mut live = node.clone();
    for _ in 0..ATTEMPTS {
        let provider = ctx.writer.gate().check()?.provider;
        if recheck(decided, node, &live, &provider) != Recheck::Confirmed {
            return Ok(());
        }
        match ctx.writer.patch(&live, &taint_patch(&live, decided)).await {
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

fn taint_patch(node: &Node, decided: Decided) -> NodePatch {
    let mut taints = node.taints.clone();
    if decided == Decided::Taint {
        let key = names::taints::SHUTDOWN.to_owned();
        taints.push(Taint { key, value: None, effect: "NoSchedule".to_owned(), time_added: None });
    } else {
        taints.retain(|taint| !decide::is_shutdown_taint(taint));
    }
    NodePatch { taints: Some(taints), ..NodePatch::default() }
}
