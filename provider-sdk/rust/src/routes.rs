//! Routes, as a provider implements them: one at a time, or in batches where the cloud has such calls. Who may change a route,
//! and when, is `rpc`'s and `mutations`' business; what helps with a route's owner, target and destination is in `help`.
use std::time::SystemTime;

use async_trait::async_trait;
use ccm_proto::v1;

use crate::context::CallContext;
use crate::provider::Result;

mod help;

pub use help::{ClusterTag, destination, next_hop};

/// The complete routing table, and when it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouteList {
    /// Every route, also those of others, each with its owner.
    pub routes: Vec<v1::Route>,
    /// When the cloud's data was read; see [`Self::read_at`]. `None` means "during this call".
    pub read_at: Option<SystemTime>,
}

impl RouteList {
    /// The same list from data that was read at `time`, by this machine's clock (the contract's `observed_at`). A provider
    /// MUST set it on every list from a cache. A time in the future is refused.
    #[must_use]
    pub fn read_at(self, time: SystemTime) -> Self {
        Self { read_at: Some(time), ..self }
    }
}

impl From<Vec<v1::Route>> for RouteList {
    fn from(routes: Vec<v1::Route>) -> Self {
        Self { routes, read_at: None }
    }
}

/// A route that is to be made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewRoute {
    /// A text from which a name may be built: the node's UID.
    pub name_hint: String,
    /// The route; its destination has no host bits.
    pub route: v1::Route,
}

/// What became of one route.
#[derive(Clone, Debug, PartialEq)]
pub enum RouteOutcome {
    /// It is as requested.
    Done,
    /// The cloud is at work on it.
    InProgress(v1::InProgress),
    /// The cloud was asked and does not know the machine that the route is to lead to. Never the outcome of a deletion.
    TargetNotFound,
}

/// Routes, one at a time. No two mutating calls for one destination run at once: the SDK sees to it.
#[async_trait]
pub trait Routes: Send + Sync + 'static {
    /// Every route of the table that this cluster uses, whoever made it; [`ClusterTag`] says whose a tagged one is. A target
    /// that cannot be resolved is listed with a `target_description`.
    async fn list(&self, ctx: &CallContext) -> Result<RouteList>;

    /// Makes a route as described, and replaces a route of this cluster that leads elsewhere. A route of others in the way is
    /// [`not_owned`](crate::ProviderError::not_owned).
    async fn create(&self, ctx: &CallContext, new: &NewRoute) -> Result<RouteOutcome>;

    /// Removes a route, as it came from `list`. A route that is gone is a success, one that leads elsewhere by now a
    /// [`conflict`](crate::ProviderError::conflict).
    async fn delete(&self, ctx: &CallContext, route: &v1::Route) -> Result<RouteOutcome>;

    /// How many `create` or `delete` calls the SDK makes at once for one batch.
    fn route_concurrency(&self) -> usize {
        16
    }
}

/// Routes for a cloud that changes several in one call, in place of [`Routes`]. The SDK makes one call of what of a batch can
/// begin at once. A route that has to wait for another change of its destination comes later, alone.
#[async_trait]
pub trait RouteBatches: Send + Sync + 'static {
    /// As [`Routes::list`].
    async fn list(&self, ctx: &CallContext) -> Result<RouteList>;

    /// As [`Routes::create`] for each route: one result for each, in the same order. No destination comes twice. An error of
    /// the whole is the error of each.
    async fn create_batch(&self, ctx: &CallContext, new: &[NewRoute]) -> Result<Vec<Result<RouteOutcome>>>;

    /// As [`Routes::delete`] for each route, in the same way.
    async fn delete_batch(&self, ctx: &CallContext, routes: &[v1::Route]) -> Result<Vec<Result<RouteOutcome>>>;
}
