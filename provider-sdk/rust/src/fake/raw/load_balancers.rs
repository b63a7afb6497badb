//! The service LoadBalancers without the SDK: each answer is what its script says. It keeps no node sets.
use ccm_proto::v1;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tonic::{Request, Response};
use v1::load_balancers_server::{LoadBalancers, LoadBalancersServer};

use super::Answer;
use crate::error::ProviderError;
use crate::fake::{Script, status_of};

/// The largest message that is taken, as the contract has it.
const MAX_DECODED: usize = 64 << 20;

/// Scripted load balancers. Clones share the scripts.
#[derive(Clone)]
pub struct RawLoadBalancers {
    /// Answers EnsureLoadBalancer.
    pub ensure: Script<v1::EnsureLoadBalancerRequest, Answer<v1::EnsureLoadBalancerResponse>>,
    /// Answers UpdateLoadBalancer.
    pub update: Script<v1::UpdateLoadBalancerRequest, Answer<v1::UpdateLoadBalancerResponse>>,
    /// Answers EnsureLoadBalancerDeleted.
    pub delete: Script<v1::EnsureLoadBalancerDeletedRequest, Answer<v1::EnsureLoadBalancerDeletedResponse>>,
    /// Answers PutNodeSet.
    pub put: Script<v1::PutNodeSetRequest, Answer<v1::PutNodeSetResponse>>,
    /// Answers PlanLoadBalancer.
    pub plan: Script<v1::PlanLoadBalancerRequest, Answer<v1::PlanLoadBalancerResponse>>,
    /// Answers ListLoadBalancers, message by message; an error ends the stream.
    pub list: Script<v1::ListLoadBalancersRequest, Vec<Answer<v1::ListLoadBalancersResponse>>>,
}

impl Default for RawLoadBalancers {
    /// Every mutation is done at once, nothing is to do, and there is nothing.
    fn default() -> Self {
        use v1::{ensure_load_balancer_deleted_response as deleted, ensure_load_balancer_response as ensured};
        use v1::{plan_load_balancer_response as planned, update_load_balancer_response as updated};
        let status = || Some(status_of("192.0.2.1"));
        Self {
            ensure: Script::new(move |_| {
                let ready = v1::LoadBalancerReady { status: status(), ..Default::default() };
                Ok(v1::EnsureLoadBalancerResponse { outcome: Some(ensured::Outcome::Ready(ready)) })
            }),
            update: Script::new(|_| {
                let done = updated::Outcome::Updated(v1::LoadBalancerUpdated::default());
                Ok(v1::UpdateLoadBalancerResponse { outcome: Some(done) })
            }),
            delete: Script::new(|_| {
                let done = deleted::Outcome::Done(v1::LoadBalancerDeleted {});
                Ok(v1::EnsureLoadBalancerDeletedResponse { outcome: Some(done) })
            }),
            put: Script::new(|_| Ok(v1::PutNodeSetResponse {})),
            plan: Script::new(move |_| {
                let plan = v1::LoadBalancerPlan { status: status(), ..Default::default() };
                Ok(v1::PlanLoadBalancerResponse { outcome: Some(planned::Outcome::Plan(plan)) })
            }),
            list: Script::new(|_| Vec::new()),
        }
    }
}

impl RawLoadBalancers {
    pub(super) fn server(self) -> LoadBalancersServer<Self> {
        LoadBalancersServer::new(self).max_decoding_message_size(MAX_DECODED)
    }
}

#[tonic::async_trait]
impl LoadBalancers for RawLoadBalancers {
    async fn get_load_balancer(&self, _: Request<v1::GetLoadBalancerRequest>) -> Answer<Response<v1::GetLoadBalancerResponse>> {
        Err(ProviderError::not_implemented("GetLoadBalancer").into())
    }

    async fn get_load_balancer_name(
        &self,
        _: Request<v1::GetLoadBalancerNameRequest>,
    ) -> Answer<Response<v1::GetLoadBalancerNameResponse>> {
        Err(ProviderError::not_implemented("GetLoadBalancerName").into())
    }

    async fn ensure_load_balancer(
        &self,
        request: Request<v1::EnsureLoadBalancerRequest>,
    ) -> Answer<Response<v1::EnsureLoadBalancerResponse>> {
        self.ensure.call(request.into_inner()).await.map(Response::new)
    }

    async fn update_load_balancer(
        &self,
        request: Request<v1::UpdateLoadBalancerRequest>,
    ) -> Answer<Response<v1::UpdateLoadBalancerResponse>> {
        self.update.call(request.into_inner()).await.map(Response::new)
    }

    async fn ensure_load_balancer_deleted(
        &self,
        request: Request<v1::EnsureLoadBalancerDeletedRequest>,
    ) -> Answer<Response<v1::EnsureLoadBalancerDeletedResponse>> {
        self.delete.call(request.into_inner()).await.map(Response::new)
    }

    async fn put_node_set(&self, request: Request<v1::PutNodeSetRequest>) -> Answer<Response<v1::PutNodeSetResponse>> {
        self.put.call(request.into_inner()).await.map(Response::new)
    }

    async fn plan_load_balancer(
        &self,
        request: Request<v1::PlanLoadBalancerRequest>,
    ) -> Answer<Response<v1::PlanLoadBalancerResponse>> {
        self.plan.call(request.into_inner()).await.map(Response::new)
    }

    type ListLoadBalancersStream = BoxStream<'static, Answer<v1::ListLoadBalancersResponse>>;

    async fn list_load_balancers(
        &self,
        request: Request<v1::ListLoadBalancersRequest>,
    ) -> Answer<Response<Self::ListLoadBalancersStream>> {
        Ok(Response::new(stream::iter(self.list.call(request.into_inner()).await).boxed()))
    }
}
