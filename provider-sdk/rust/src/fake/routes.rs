//! The scripted routes of a fake provider: one at a time, or in batches.
use std::sync::Arc;

use async_trait::async_trait;
use ccm_proto::v1;

use super::Script;
use crate::context::CallContext;
use crate::parts::Parts;
use crate::provider::Result;
use crate::routes::{NewRoute, RouteBatches, RouteList, RouteOutcome, Routes};

/// Answers to batches of so many routes.
pub type RouteBatchScript<Q> = Script<Vec<Q>, Result<Vec<Result<RouteOutcome>>>>;

/// Routes: an empty table unless scripted.
#[derive(Clone)]
pub struct FakeRoutes {
    /// Answers `list`.
    pub list: Script<(), Result<RouteList>>,
    /// Answers `create`.
    pub create: Script<NewRoute, Result<RouteOutcome>>,
    /// Answers `delete`.
    pub delete: Script<v1::Route, Result<RouteOutcome>>,
    /// Answers whole batches instead.
    pub batches: Option<FakeRouteBatches>,
}

impl Default for FakeRoutes {
    fn default() -> Self {
        let (create, delete) = (Script::new(|_| Ok(RouteOutcome::Done)), Script::new(|_| Ok(RouteOutcome::Done)));
        Self { list: Script::new(|()| Ok(RouteList::default())), create, delete, batches: None }
    }
}

impl FakeRoutes {
    pub(super) fn serve_with(&self, parts: Parts) -> Parts {
        match &self.batches {
            None => parts.routes(Arc::new(self.clone())),
            Some(batches) => parts.route_batches(Arc::new(Batches { list: self.list.clone(), scripts: batches.clone() })),
        }
    }
}

#[async_trait]
impl Routes for FakeRoutes {
    async fn list(&self, _: &CallContext) -> Result<RouteList> {
        self.list.call(()).await
    }
    async fn create(&self, _: &CallContext, new: &NewRoute) -> Result<RouteOutcome> {
        self.create.call(new.clone()).await
    }
    async fn delete(&self, _: &CallContext, route: &v1::Route) -> Result<RouteOutcome> {
        self.delete.call(route.clone()).await
    }
}

/// Batches of routes: every change is done at once unless scripted.
#[derive(Clone)]
pub struct FakeRouteBatches {
    /// Answers `create_batch`.
    pub create: RouteBatchScript<NewRoute>,
    /// Answers `delete_batch`.
    pub delete: RouteBatchScript<v1::Route>,
}

impl Default for FakeRouteBatches {
    fn default() -> Self {
        let create = Script::new(|new: Vec<NewRoute>| Ok(new.iter().map(|_| Ok(RouteOutcome::Done)).collect()));
        let delete = Script::new(|routes: Vec<v1::Route>| Ok(routes.iter().map(|_| Ok(RouteOutcome::Done)).collect()));
        Self { create, delete }
    }
}

/// The part that takes batches.
struct Batches {
    list: Script<(), Result<RouteList>>,
    scripts: FakeRouteBatches,
}

#[async_trait]
impl RouteBatches for Batches {
    async fn list(&self, _: &CallContext) -> Result<RouteList> {
        self.list.call(()).await
    }
    async fn create_batch(&self, _: &CallContext, new: &[NewRoute]) -> Result<Vec<Result<RouteOutcome>>> {
        self.scripts.create.call(new.to_vec()).await
    }
    async fn delete_batch(&self, _: &CallContext, routes: &[v1::Route]) -> Result<Vec<Result<RouteOutcome>>> {
        self.scripts.delete.call(routes.to_vec()).await
    }
}
