//! The service Routes: each route of a batch is a mutation of its own, serialised by its destination.
use std::collections::HashSet;
use std::sync::Arc;

use ccm_proto::v1;
use ccm_proto::v1::route_result::Outcome;
use futures::future::join_all;
use futures::stream::{self, BoxStream, StreamExt as _};
use tonic::{Code, Request, Response, Status};

use super::call::Kind;
use super::{Shared, nonempty, required, required_cluster};
use crate::context::CallContext;
use crate::error::ProviderError;
use crate::leadership::Licence;
use crate::mutations::{Mutation, Mutations};
use crate::provider::{Progress, Result, Routes};

/// The most items of one batch, unless the provider says otherwise.
const DEFAULT_BATCH: u32 = 100;
/// Routes in one message of a list.
const ROUTES_PER_MESSAGE: usize = 500;

/// Routes, for any provider.
pub(super) struct Service {
    shared: Arc<Shared>,
    changes: Arc<Mutations<Change, ()>>,
}

/// What tells one change of a route from another.
#[derive(Clone, PartialEq)]
struct Change {
    verb: Verb,
    epoch: u64,
    name_hint: String,
    route: v1::Route,
}

#[derive(Clone, Copy, PartialEq)]
enum Verb {
    Create,
    Delete,
}

impl Verb {
    const fn method(self) -> &'static str {
        match self {
            Self::Create => "CreateRoutes",
            Self::Delete => "DeleteRoutes",
        }
    }
}

/// An item of either batch.
struct Item {
    key: String,
    name_hint: String,
    route: Option<v1::Route>,
}

impl Service {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), changes: Arc::new(Mutations::new(shared.running.clone())) }
    }

    fn part(&self, method: &str) -> Result<Arc<dyn Routes>> {
        self.shared.part(v1::Capability::Routes, method, |parts| parts.routes)
    }

    async fn list(&self, ctx: CallContext, request: v1::ListRoutesRequest) -> Result<Table> {
        let routes = self.part("ListRoutes")?;
        let ctx = ctx.for_cluster(required_cluster(request.cluster)?);
        let routes = routes.list(&ctx).await?;
        let messages: Vec<_> = routes
            .chunks(ROUTES_PER_MESSAGE)
            .map(|part| Ok(v1::ListRoutesResponse { routes: part.to_vec(), observed_at: None }))
            .collect();
        Ok(stream::iter(messages).boxed())
    }

    async fn change(
        &self,
        verb: Verb,
        ctx: CallContext,
        (cluster, leadership): (Option<v1::ClusterRef>, Option<v1::Leadership>),
        items: Vec<Item>,
    ) -> Result<Vec<v1::RouteResult>> {
        let routes = self.part(verb.method())?;
        validate(&items, self.shared.provider.describe().limits.max_batch_size.unwrap_or(DEFAULT_BATCH))?;
        let cluster = required_cluster(cluster)?;
        let licence = self.shared.leadership.admit(leadership.as_ref(), Some(&cluster))?;
        let ctx = ctx.for_cluster(cluster);
        Ok(join_all(items.into_iter().map(|item| self.change_one(verb, &routes, &ctx, &licence, item))).await)
    }

    async fn change_one(
        &self,
        verb: Verb,
        routes: &Arc<dyn Routes>,
        ctx: &CallContext,
        licence: &Licence,
        item: Item,
    ) -> v1::RouteResult {
        let Item { key, name_hint, route } = item;
        let change = Change { verb, epoch: licence.epoch, name_hint, route: route.unwrap_or_default() };
        let mutation = Mutation {
            key: format!("route/{}", change.route.destination_cidr),
            method: verb.method(),
            request: change.clone(),
            answer_by: ctx.answer_by(),
            lost: licence.lost.clone(),
        };
        let ctx = ctx.clone().led(licence.epoch, licence.lost.clone());
        let work = apply(Arc::clone(routes), ctx, change);
        let outcome = match self.changes.run(mutation, work).await {
            Ok(Progress::Done(())) => Outcome::Done(v1::RouteDone {}),
            Ok(Progress::InProgress(progress)) => Outcome::InProgress(progress),
            Ok(Progress::ImplementedElsewhere(_)) => {
                Outcome::Error(ProviderError::internal("routes cannot be implemented elsewhere").into())
            }
            Err(error) => Outcome::Error(error.into()),
        };
        v1::RouteResult { key, outcome: Some(outcome) }
    }
}

async fn apply(routes: Arc<dyn Routes>, ctx: CallContext, change: Change) -> Result<Progress<()>> {
    match change.verb {
        Verb::Create => routes.create(&ctx, &change.name_hint, &change.route).await,
        Verb::Delete => routes.delete(&ctx, &change.route).await,
    }
}

fn validate(items: &[Item], limit: u32) -> Result<()> {
    if items.len() > limit as usize {
        let message = format!("items: {} are more than the {limit} that one batch may have", items.len());
        return Err(ProviderError::new(Code::InvalidArgument, v1::ErrorReason::BatchTooLarge, message));
    }
    let mut keys = HashSet::new();
    for (at, item) in items.iter().enumerate() {
        let field = format!("items[{at}].key");
        if !keys.insert(nonempty(&field, &item.key)?) {
            return Err(ProviderError::invalid_request(&field, format!("{} comes twice", item.key)));
        }
        let route = required(&format!("items[{at}].route"), item.route.as_ref())?;
        nonempty(&format!("items[{at}].route.destination_cidr"), &route.destination_cidr)?;
    }
    Ok(())
}

type Table = BoxStream<'static, Result<v1::ListRoutesResponse, Status>>;

#[tonic::async_trait]
impl v1::routes_server::Routes for Service {
    type ListRoutesStream = Table;

    async fn list_routes(&self, request: Request<v1::ListRoutesRequest>) -> Result<Response<Table>, Status> {
        self.shared.answer("ListRoutes", Kind::Read, request, |ctx, request| self.list(ctx, request)).await
    }

    async fn create_routes(
        &self,
        request: Request<v1::CreateRoutesRequest>,
    ) -> Result<Response<v1::CreateRoutesResponse>, Status> {
        let work = |ctx, request: v1::CreateRoutesRequest| async move {
            let items = request.items.into_iter();
            let items = items.map(|item| Item { key: item.key, name_hint: item.name_hint, route: item.route }).collect();
            let results = self.change(Verb::Create, ctx, (request.cluster, request.leadership), items).await?;
            Ok(v1::CreateRoutesResponse { results })
        };
        self.shared.answer("CreateRoutes", Kind::Mutation, request, work).await
    }

    async fn delete_routes(
        &self,
        request: Request<v1::DeleteRoutesRequest>,
    ) -> Result<Response<v1::DeleteRoutesResponse>, Status> {
        let work = |ctx, request: v1::DeleteRoutesRequest| async move {
            let items = request.items.into_iter();
            let items = items.map(|item| Item { key: item.key, name_hint: String::new(), route: item.route }).collect();
            let results = self.change(Verb::Delete, ctx, (request.cluster, request.leadership), items).await?;
            Ok(v1::DeleteRoutesResponse { results })
        };
        self.shared.answer("DeleteRoutes", Kind::Mutation, request, work).await
    }
}
