//! The service Routes: each route of a batch is a mutation of its own, serialised by its destination.
use std::sync::Arc;
use std::time::SystemTime;

use ccm_proto::v1;
use futures::future::join_all;
use futures::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status};

use super::call::Kind;
use super::{Shared, required_cluster};
use crate::context::CallContext;
use crate::error::ProviderError;
use crate::leadership::Licence;
use crate::mutations::{Mutation, Mutations};
use crate::parts::RoutesPart;
use crate::provider::{Progress, Result};
use crate::routes::{NewRoute, RouteList};
use change::{Change, Made, Verb};
use items::Item;

mod answers;
mod change;
mod items;

/// The most items of one batch, unless the provider says otherwise.
const DEFAULT_BATCH: u32 = 100;
/// Routes in one message of a list.
const ROUTES_PER_MESSAGE: usize = 500;
/// The calls at once for what of a batch had to wait, where the cloud takes batches.
const DEFAULT_CONCURRENCY: usize = 16;

/// Routes, for any provider.
pub(super) struct Service {
    shared: Arc<Shared>,
    changes: Arc<Mutations<Change, Made>>,
}

/// A batch whose caller leads.
struct Batch {
    verb: Verb,
    ctx: CallContext,
    licence: Licence,
}

impl Service {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), changes: Arc::new(Mutations::new(shared.running.clone())) }
    }

    fn part(&self, method: &str) -> Result<RoutesPart> {
        let parts = self.shared.parts();
        let part = if parts.serves(v1::Capability::Routes) { parts.routes } else { None };
        part.ok_or_else(|| ProviderError::not_implemented(method))
    }

    async fn list(&self, ctx: CallContext, request: v1::ListRoutesRequest) -> Result<Table> {
        let part = self.part("ListRoutes")?;
        let ctx = ctx.for_cluster(required_cluster(request.cluster)?);
        let mut list = part.list(&ctx).await?;
        answers::check(&list, SystemTime::now())?;
        let broken = match self.shared.parts().intercept {
            Some(intercept) => intercept.routes_listed(&ctx, &mut list),
            None => None,
        };
        let messages = messages(&list).into_iter().map(Ok).chain(broken.map(|error| Err(error.into())));
        Ok(stream::iter(messages.collect::<Vec<_>>()).boxed())
    }

    async fn change(
        &self,
        verb: Verb,
        ctx: CallContext,
        (cluster, leadership): (Option<v1::ClusterRef>, Option<v1::Leadership>),
        items: Vec<Item>,
    ) -> Result<Vec<v1::RouteResult>> {
        let part = self.part(verb.method())?;
        let limit = self.shared.provider.describe().limits.max_batch_size.unwrap_or(DEFAULT_BATCH);
        let routes = items::checked(verb, items, limit)?;
        let cluster = required_cluster(cluster)?;
        let licence = self.shared.leadership.admit(leadership.as_ref(), Some(&cluster))?;
        let batch = Batch { verb, ctx: ctx.for_cluster(cluster), licence };
        let outcomes = self.change_all(&part, &batch, routes).await;
        answers::results(outcomes)
    }

    async fn change_all(
        &self,
        part: &RoutesPart,
        batch: &Batch,
        routes: Vec<(String, NewRoute)>,
    ) -> Vec<(String, Result<Progress<Made>>)> {
        let changes: Vec<_> = routes.into_iter().map(|(key, new)| (key, batch.change(new))).collect();
        if let RoutesPart::Batches(_) = part {
            let begun: Vec<_> = changes.iter().map(|(_, change)| change.clone()).collect();
            self.begin_together(part, batch, &begun);
        }
        let places = Arc::new(Semaphore::new(part.concurrency()));
        join_all(changes.into_iter().map(|(key, change)| async {
            let work = one(part.clone(), batch.led(), change.clone(), Arc::clone(&places));
            (key, self.changes.run(batch.mutation(change), work).await)
        }))
        .await
    }

    /// Begins in one call of the cloud what of the batch can begin now.
    fn begin_together(&self, part: &RoutesPart, batch: &Batch, changes: &[Change]) {
        let requests = changes.iter().map(|change| (change.key(), change.clone())).collect();
        self.changes.begin_together(batch.verb.method(), &batch.licence.lost, requests, |positions| {
            let begun: Vec<_> = positions.iter().filter_map(|at| changes.get(*at).cloned()).collect();
            let (part, ctx, verb) = (part.clone(), batch.led(), batch.verb);
            async move { change::together(&part, &ctx, verb, begun).await }
        });
    }
}

impl Batch {
    fn change(&self, new: NewRoute) -> Change {
        Change { verb: self.verb, epoch: self.licence.epoch, new }
    }

    fn mutation(&self, request: Change) -> Mutation<Change> {
        Mutation {
            key: request.key(),
            method: self.verb.method(),
            request,
            answer_by: self.ctx.answer_by(),
            lost: self.licence.lost.clone(),
        }
    }

    /// The call as its work sees it.
    fn led(&self) -> CallContext {
        self.ctx.clone().led(self.licence.epoch, self.licence.lost.clone())
    }
}

/// Changes one route, once there is a place for it.
async fn one(part: RoutesPart, ctx: CallContext, change: Change, places: Arc<Semaphore>) -> Result<Progress<Made>> {
    // Nobody closes the semaphore.
    let _place = places.acquire().await.ok();
    change::alone(&part, &ctx, change).await
}

fn messages(list: &RouteList) -> Vec<v1::ListRoutesResponse> {
    let observed_at = list.read_at.map(Into::into);
    list.routes.chunks(ROUTES_PER_MESSAGE).map(|part| v1::ListRoutesResponse { routes: part.to_vec(), observed_at }).collect()
}

impl RoutesPart {
    async fn list(&self, ctx: &CallContext) -> Result<RouteList> {
        match self {
            Self::Single(part) => part.list(ctx).await,
            Self::Batches(part) => part.list(ctx).await,
        }
    }

    /// How many calls there are at once for one batch. What of a batch had to wait is a call of its own.
    fn concurrency(&self) -> usize {
        match self {
            Self::Single(part) => part.route_concurrency().max(1),
            Self::Batches(_) => DEFAULT_CONCURRENCY,
        }
    }
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
