//! Batching for providers that look up one machine at a time: bounded concurrency, and an item that is late fails alone.
use ccm_proto::v1::InstanceQuery;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use tokio::time::{Instant, timeout_at};

use crate::context::CallContext;
use crate::error::ProviderError;
use crate::instances::{Instances, Lookup};
use crate::provider::Result;

/// Answers each query by `get_instance`, at most `look_up_concurrency` at a time, in the order of the queries. What has no
/// answer by 90 % of the deadline is an error of that item; the call as a whole succeeds.
pub async fn each<I>(instances: &I, ctx: &CallContext, queries: &[InstanceQuery]) -> Result<Vec<Result<Lookup>>>
where
    I: Instances + ?Sized,
{
    let look_ups: Vec<BoxFuture<'_, Result<Lookup>>> = queries.iter().map(|query| one(instances, ctx, query).boxed()).collect();
    Ok(stream::iter(look_ups).buffered(instances.look_up_concurrency().max(1)).collect().await)
}

async fn one<I>(instances: &I, ctx: &CallContext, query: &InstanceQuery) -> Result<Lookup>
where
    I: Instances + ?Sized,
{
    let Some(answer_by) = ctx.answer_by() else {
        return instances.get_instance(ctx, query).await;
    };
    if answer_by <= Instant::now() {
        return Err(late(query));
    }
    timeout_at(answer_by, instances.get_instance(ctx, query)).await.unwrap_or_else(|_| Err(late(query)))
}

/// The error of an item that had no answer in time.
pub(crate) fn late(query: &InstanceQuery) -> ProviderError {
    ProviderError::deadline_exceeded(format!("the look-up of {} had no answer in time", query.node_name))
}
