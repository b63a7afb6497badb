//! The generated interface of `LoadBalancers`, method by method.
use ccm_proto::v1;
use tonic::{Request, Response, Status};

use super::{Service, answers};
use crate::rpc::call::Kind;

#[tonic::async_trait]
impl v1::load_balancers_server::LoadBalancers for Service {
    async fn get_load_balancer(
        &self,
        request: Request<v1::GetLoadBalancerRequest>,
    ) -> Result<Response<v1::GetLoadBalancerResponse>, Status> {
        self.shared.answer("GetLoadBalancer", Kind::Read, request, |ctx, request| self.get(ctx, request)).await
    }

    async fn get_load_balancer_name(
        &self,
        request: Request<v1::GetLoadBalancerNameRequest>,
    ) -> Result<Response<v1::GetLoadBalancerNameResponse>, Status> {
        self.shared.answer("GetLoadBalancerName", Kind::Read, request, |_, request| async { self.name(request) }).await
    }

    async fn ensure_load_balancer(
        &self,
        request: Request<v1::EnsureLoadBalancerRequest>,
    ) -> Result<Response<v1::EnsureLoadBalancerResponse>, Status> {
        self.shared.answer("EnsureLoadBalancer", Kind::Mutation, request, |ctx, request| self.ensure(ctx, request)).await
    }

    async fn update_load_balancer(
        &self,
        request: Request<v1::UpdateLoadBalancerRequest>,
    ) -> Result<Response<v1::UpdateLoadBalancerResponse>, Status> {
        self.shared.answer("UpdateLoadBalancer", Kind::Mutation, request, |ctx, request| self.update(ctx, request)).await
    }

    async fn ensure_load_balancer_deleted(
        &self,
        request: Request<v1::EnsureLoadBalancerDeletedRequest>,
    ) -> Result<Response<v1::EnsureLoadBalancerDeletedResponse>, Status> {
        self.shared.answer("EnsureLoadBalancerDeleted", Kind::Mutation, request, |ctx, request| self.delete(ctx, request)).await
    }

    async fn put_node_set(&self, request: Request<v1::PutNodeSetRequest>) -> Result<Response<v1::PutNodeSetResponse>, Status> {
        self.shared.answer("PutNodeSet", Kind::Mutation, request, |_, request| async { self.put(request) }).await
    }

    async fn plan_load_balancer(
        &self,
        request: Request<v1::PlanLoadBalancerRequest>,
    ) -> Result<Response<v1::PlanLoadBalancerResponse>, Status> {
        self.shared.answer("PlanLoadBalancer", Kind::Read, request, |ctx, request| self.plan(ctx, request)).await
    }

    type ListLoadBalancersStream = answers::List;

    async fn list_load_balancers(
        &self,
        request: Request<v1::ListLoadBalancersRequest>,
    ) -> Result<Response<answers::List>, Status> {
        self.shared.answer("ListLoadBalancers", Kind::Read, request, |ctx, request| self.list(ctx, request)).await
    }
}
