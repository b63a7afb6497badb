//! The service Routes without the SDK: each answer is what its script says. It keeps no table.
use ccm_proto::v1;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tonic::{Request, Response};
use v1::route_result::Outcome;
use v1::routes_server::{Routes, RoutesServer};

use super::Answer;
use crate::fake::Script;

/// Scripted routes. Clones share the scripts.
#[derive(Clone)]
pub struct RawRoutes {
    /// Answers ListRoutes, message by message; an error ends the stream.
    pub list: Script<v1::ListRoutesRequest, Vec<Answer<v1::ListRoutesResponse>>>,
    /// Answers CreateRoutes.
    pub create: Script<v1::CreateRoutesRequest, Answer<v1::CreateRoutesResponse>>,
    /// Answers DeleteRoutes.
    pub delete: Script<v1::DeleteRoutesRequest, Answer<v1::DeleteRoutesResponse>>,
}

impl Default for RawRoutes {
    /// The table is empty, and every item is done at once.
    fn default() -> Self {
        let done = |key| v1::RouteResult { key, outcome: Some(Outcome::Done(v1::RouteDone {})) };
        Self {
            list: Script::new(|_| Vec::new()),
            create: Script::new(move |request: v1::CreateRoutesRequest| {
                let results = request.items.into_iter().map(|item| done(item.key)).collect();
                Ok(v1::CreateRoutesResponse { results })
            }),
            delete: Script::new(move |request: v1::DeleteRoutesRequest| {
                let results = request.items.into_iter().map(|item| done(item.key)).collect();
                Ok(v1::DeleteRoutesResponse { results })
            }),
        }
    }
}

impl RawRoutes {
    pub(super) fn server(self) -> RoutesServer<Self> {
        RoutesServer::new(self)
    }
}

#[tonic::async_trait]
impl Routes for RawRoutes {
    type ListRoutesStream = BoxStream<'static, Answer<v1::ListRoutesResponse>>;

    async fn list_routes(&self, request: Request<v1::ListRoutesRequest>) -> Answer<Response<Self::ListRoutesStream>> {
        Ok(Response::new(stream::iter(self.list.call(request.into_inner()).await).boxed()))
    }

    async fn create_routes(&self, request: Request<v1::CreateRoutesRequest>) -> Answer<Response<v1::CreateRoutesResponse>> {
        self.create.call(request.into_inner()).await.map(Response::new)
    }

    async fn delete_routes(&self, request: Request<v1::DeleteRoutesRequest>) -> Answer<Response<v1::DeleteRoutesResponse>> {
        self.delete.call(request.into_inner()).await.map(Response::new)
    }
}
