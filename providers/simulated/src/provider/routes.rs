//! The service Routes, as a thin client of the cloud: one call of the cloud for a batch. It keeps nothing; the cloud's tags say
//! whose a route is.
use std::sync::Arc;

use async_trait::async_trait;
use ccm_provider_sdk::{CallContext, NewRoute, Parts, ProviderError, Result, RouteBatches, RouteList, RouteOutcome, Routes, v1};
use parking_lot::Mutex;

use super::provider_error;
use super::serial::{Serial, to_the_end};
use crate::cloud::CloudApi;
use crate::cloud::counters::Counters;
use crate::cloud::load_balancers::Origin;
use crate::cloud::routes::model::Outcome;
use convert::{listed, outcome, removal, wanted};

mod convert;

/// What of the protocol is served, and how.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether routes are served at all.
    pub served: bool,
    /// Whether a batch is one call of the cloud.
    pub batches: bool,
    /// Whether routes lead to addresses of machines.
    pub to_addresses: bool,
    /// The most calls at once.
    pub max_calls: u32,
}

/// The service Routes.
pub struct TableOfCloud {
    cloud: Arc<dyn CloudApi>,
    calls: Arc<Counters>,
    options: Options,
    origin: Origin,
    serial: Serial,
    /// Whether the list that was read last shall break off on its way.
    breaks_off: Mutex<bool>,
}

impl TableOfCloud {
    /// The routes of this cloud; for the life of the process, since the cloud knows it as one.
    pub fn new(cloud: Arc<dyn CloudApi>, calls: Arc<Counters>, options: Options) -> Self {
        Self { cloud, calls, options, origin: Origin::random(), serial: Serial::default(), breaks_off: Mutex::default() }
    }

    /// What this provider was told to be.
    pub fn options(&self) -> Options {
        self.options
    }

    pub(super) fn serve_with(self: &Arc<Self>, parts: Parts) -> Parts {
        match self.options {
            Options { served: false, .. } => parts,
            Options { batches: true, .. } => parts.route_batches(Arc::clone(self)),
            Options { batches: false, .. } => parts.routes(Arc::new(OneByOne(Arc::clone(self)))),
        }
    }

    /// Leaves half of a list that shall break off.
    pub(super) fn break_off(&self, list: &mut RouteList) -> Option<ProviderError> {
        if !std::mem::take(&mut *self.breaks_off.lock()) {
            return None;
        }
        list.routes.truncate(list.routes.len() / 2);
        Some(ProviderError::unavailable("the list of routes broke off (scripted fault route-list-broken)"))
    }

    async fn create_all(&self, ctx: &CallContext, new: &[NewRoute]) -> Result<Vec<Result<RouteOutcome>>> {
        self.calls.count("CreateRoutes");
        let wanted: Vec<_> = new.iter().map(|new| wanted(&new.route, self.options.to_addresses)).collect();
        let (cloud, origin, uid) = (Arc::clone(&self.cloud), self.origin.clone(), ctx.cluster().uid.clone());
        let turns = self.serial.turns(new.iter().map(|new| new.route.destination_cidr.clone()).collect()).await;
        let sent: Vec<_> = wanted.iter().filter_map(|one| one.as_ref().ok().cloned()).collect();
        let outcomes = if sent.is_empty() {
            Vec::new()
        } else {
            to_the_end(turns, async move { cloud.put_routes(&origin, &uid, sent).await.map_err(provider_error) }).await?
        };
        Ok(merged(wanted, outcomes))
    }

    async fn delete_all(&self, ctx: &CallContext, routes: &[v1::Route]) -> Result<Vec<Result<RouteOutcome>>> {
        self.calls.count("DeleteRoutes");
        let gone = routes.iter().map(removal).collect::<Result<Vec<_>>>()?;
        let (cloud, origin, uid) = (Arc::clone(&self.cloud), self.origin.clone(), ctx.cluster().uid.clone());
        let turns = self.serial.turns(routes.iter().map(|route| route.destination_cidr.clone()).collect()).await;
        let work = async move { cloud.remove_routes(&origin, &uid, gone).await.map_err(provider_error) };
        Ok(to_the_end(turns, work).await?.into_iter().map(outcome).collect())
    }

    async fn list_all(&self, ctx: &CallContext) -> Result<RouteList> {
        self.calls.count("ListRoutes");
        let listing = self.cloud.list_routes().await.map_err(provider_error)?;
        *self.breaks_off.lock() = listing.breaks_off;
        let list = RouteList::from(listing.routes.iter().map(|one| listed(ctx, one)).collect::<Vec<_>>());
        Ok(listing.observed_at.map_or(list.clone(), |at| list.read_at(at.into())))
    }
}

/// The cloud's outcomes, and the refusals of what was not sent, in the order of the items.
fn merged<T>(wanted: Vec<Result<T>>, outcomes: Vec<Outcome>) -> Vec<Result<RouteOutcome>> {
    let mut outcomes = outcomes.into_iter();
    let short = || Err(ProviderError::internal("the cloud answered too few items"));
    wanted.into_iter().map(|one| one.and_then(|_| outcomes.next().map_or_else(short, outcome))).collect()
}

#[async_trait]
impl RouteBatches for TableOfCloud {
    async fn list(&self, ctx: &CallContext) -> Result<RouteList> {
        self.list_all(ctx).await
    }

    async fn create_batch(&self, ctx: &CallContext, new: &[NewRoute]) -> Result<Vec<Result<RouteOutcome>>> {
        self.create_all(ctx, new).await
    }

    async fn delete_batch(&self, ctx: &CallContext, routes: &[v1::Route]) -> Result<Vec<Result<RouteOutcome>>> {
        self.delete_all(ctx, routes).await
    }
}

/// The same table, a call of the cloud for each route.
struct OneByOne(Arc<TableOfCloud>);

fn single(results: Vec<Result<RouteOutcome>>) -> Result<RouteOutcome> {
    results.into_iter().next().unwrap_or_else(|| Err(ProviderError::internal("the cloud answered no item")))
}

#[async_trait]
impl Routes for OneByOne {
    async fn list(&self, ctx: &CallContext) -> Result<RouteList> {
        self.0.list_all(ctx).await
    }

    async fn create(&self, ctx: &CallContext, new: &NewRoute) -> Result<RouteOutcome> {
        single(self.0.create_all(ctx, std::slice::from_ref(new)).await?)
    }

    async fn delete(&self, ctx: &CallContext, route: &v1::Route) -> Result<RouteOutcome> {
        single(self.0.delete_all(ctx, std::slice::from_ref(route)).await?)
    }
}
