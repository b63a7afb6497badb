//! Routes over whichever provider is connected: lists, and batches within the provider's limits. An answer counts only if the same
//! cloud is still behind the socket. Each call is made once: the controller decides about retries.
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use ccm_proto::v1;
use futures::future::join_all;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tonic::Status;

use super::convert::{self, LeftOut};
use super::grpc::Method;
use super::session::{Handle, Live};
use super::{ProviderError, Routes, classify};
use crate::model::provider_info::Capability;
use crate::model::route::{Route, RouteOutcome, RouteTable, WantedRoute};

#[cfg(test)]
mod tests;

type Answer = Result<RouteOutcome, ProviderError>;

/// The connected provider's routes.
#[derive(Debug)]
pub struct ProviderRoutes {
    handle: Handle,
    left_out: LeftOut,
    places: Places,
}

impl ProviderRoutes {
    /// Over a session's handle.
    pub fn new(handle: Handle) -> Self {
        Self { handle, left_out: LeftOut::default(), places: Places::default() }
    }

    /// Without Lead a provider cannot tell who may change things.
    fn mutable_provider(&self) -> Result<Arc<Live>, ProviderError> {
        self.handle.current_with(&[Capability::Routes, Capability::Lead])
    }

    async fn create_batch(&self, batch: Batch<'_>, request: v1::CreateRoutesRequest) -> Vec<Answer> {
        let (items, connection) = (request.items.len(), &batch.live.connection);
        let mut client = connection.routes();
        let call = connection.call(Method::CreateRoutes, request, |it| async move { client.create_routes(it).await });
        self.answers(batch, items, async { Ok(call.await?.results) }).await
    }

    async fn delete_batch(&self, batch: Batch<'_>, request: v1::DeleteRoutesRequest) -> Vec<Answer> {
        let (items, connection) = (request.items.len(), &batch.live.connection);
        let mut client = connection.routes();
        let call = connection.call(Method::DeleteRoutes, request, |it| async move { client.delete_routes(it).await });
        let answers = self.answers(batch, items, async { Ok(call.await?.results) }).await;
        answers.into_iter().map(|answer| answer.and_then(deleted)).collect()
    }

    /// Makes the call of a batch, unless another batch has shown that it would fail.
    async fn answers(
        &self,
        batch: Batch<'_>,
        items: usize,
        call: impl Future<Output = Result<Vec<v1::RouteResult>, Status>>,
    ) -> Vec<Answer> {
        let places = self.places.of(batch.live);
        let _place = places.acquire().await;
        if let Some(error) = batch.obstacle.get() {
            return each(items, error);
        }
        let answered = call.await.map_err(|status| classify::status(&status));
        match answered.and_then(|results| self.handle.still_the_same_cloud(batch.live).map(|()| results)) {
            Ok(results) => convert::route_results(items, results),
            Err(error) => {
                if error.is_rate_limit() || error.is_absence() {
                    batch.obstacle.get_or_init(|| error.clone());
                }
                each(items, &error)
            }
        }
    }
}

/// What the batches of one call have in common.
#[derive(Clone, Copy)]
struct Batch<'a> {
    live: &'a Live,
    /// Why no further call of them can succeed now.
    obstacle: &'a OnceLock<ProviderError>,
}

/// The bound on concurrent calls, as the connected provider has it.
#[derive(Debug, Default)]
struct Places(Mutex<Option<(usize, Arc<Semaphore>)>>);

impl Places {
    fn of(&self, live: &Live) -> Arc<Semaphore> {
        let limit = live.info.limits.max_concurrent_route_calls;
        let mut places = self.0.lock();
        let (_, known) =
            places.take().filter(|(size, _)| *size == limit).unwrap_or_else(|| (limit, Arc::new(Semaphore::new(limit))));
        *places = Some((limit, Arc::clone(&known)));
        known
    }
}

/// An error of a call is that of each of its items.
fn each(items: usize, error: &ProviderError) -> Vec<Answer> {
    vec![Err(error.clone()); items]
}

fn deleted(outcome: RouteOutcome) -> Answer {
    match outcome {
        RouteOutcome::TargetNotFound => Err(convert::invalid("results.target_not_found", "is no result of DeleteRoutes")),
        outcome => Ok(outcome),
    }
}

#[async_trait]
impl Routes for ProviderRoutes {
    async fn list(&self) -> Result<RouteTable, ProviderError> {
        let live = self.handle.current_with(&[Capability::Routes])?;
        let places = self.places.of(&live);
        let _place = places.acquire().await;
        let mut client = live.connection.routes();
        let request = v1::ListRoutesRequest { cluster: Some(self.handle.cluster()) };
        let items = |message: &v1::ListRoutesResponse| message.routes.len();
        let list = live.connection.collect(Method::ListRoutes, request, items, |it| async move { client.list_routes(it).await });
        let messages = list.await.map_err(|status| classify::status(&status))?;
        self.handle.still_the_same_cloud(&live)?;
        convert::route_table(messages, Timestamp::now(), &self.left_out)
    }

    async fn create(&self, epoch: u64, routes: &[WantedRoute]) -> Vec<Answer> {
        let live = match self.mutable_provider() {
            Ok(live) => live,
            Err(error) => return each(routes.len(), &error),
        };
        let batch = Batch { live: &live, obstacle: &OnceLock::new() };
        let requests = routes.chunks(live.info.limits.max_batch_size).map(|chunk| v1::CreateRoutesRequest {
            cluster: Some(self.handle.cluster()),
            leadership: Some(v1::Leadership { epoch }),
            items: chunk.iter().enumerate().map(convert::creation).collect(),
        });
        let calls: Vec<_> = requests.map(|request| self.create_batch(batch, request)).collect();
        join_all(calls).await.concat()
    }

    async fn delete(&self, epoch: u64, routes: &[Route]) -> Vec<Answer> {
        let live = match self.mutable_provider() {
            Ok(live) => live,
            Err(error) => return each(routes.len(), &error),
        };
        let batch = Batch { live: &live, obstacle: &OnceLock::new() };
        let requests = routes.chunks(live.info.limits.max_batch_size).map(|chunk| v1::DeleteRoutesRequest {
            cluster: Some(self.handle.cluster()),
            leadership: Some(v1::Leadership { epoch }),
            items: chunk.iter().enumerate().map(convert::deletion).collect(),
        });
        let calls: Vec<_> = requests.map(|request| self.delete_batch(batch, request)).collect();
        join_all(calls).await.concat()
    }
}
