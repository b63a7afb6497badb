//! The service `LoadBalancers`: reads straight to the provider, mutations serialised by the service's UID.
use std::future::Future;
use std::sync::Arc;

use ccm_proto::v1;

use super::{Shared, nonempty, required, required_cluster};
use crate::context::CallContext;
use crate::error::ProviderError;
use crate::mutations::{Mutation, Mutations};
use crate::node_sets::Nodes;
use crate::parts::LoadBalancersPart;
use crate::provider::{Progress, Result};

mod answers;
mod server;

/// Load balancers, for any provider.
pub(super) struct Service {
    shared: Arc<Shared>,
    changes: Mutations<Change, v1::LoadBalancerReady>,
}

/// What tells one mutation from another: all of its request. The nodes are taken out of it, so that they are held once.
#[derive(Clone, PartialEq)]
enum Change {
    Ensure(v1::EnsureLoadBalancerRequest, Nodes),
    Update(v1::UpdateLoadBalancerRequest, Nodes),
    Delete(v1::EnsureLoadBalancerDeletedRequest),
}

/// What every mutation has.
struct Target {
    balancers: Arc<dyn LoadBalancersPart>,
    cluster: v1::ClusterRef,
    service: v1::Service,
}

impl Service {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), changes: Mutations::new(shared.running.clone()) }
    }

    fn part(&self, capability: v1::Capability, method: &str) -> Result<Arc<dyn LoadBalancersPart>> {
        self.shared.part(capability, method, |parts| parts.load_balancers)
    }

    fn target(&self, method: &str, cluster: Option<v1::ClusterRef>, service: Option<v1::Service>) -> Result<Target> {
        let balancers = self.part(v1::Capability::LoadBalancers, method)?;
        Self::target_of(balancers, cluster, service)
    }

    fn target_of(
        balancers: Arc<dyn LoadBalancersPart>,
        cluster: Option<v1::ClusterRef>,
        service: Option<v1::Service>,
    ) -> Result<Target> {
        let cluster = required_cluster(cluster)?;
        let service = required("service", service)?;
        nonempty("service.uid", &service.uid)?;
        Ok(Target { balancers, cluster, service })
    }

    async fn get(&self, ctx: CallContext, request: v1::GetLoadBalancerRequest) -> Result<v1::GetLoadBalancerResponse> {
        let target = self.target("GetLoadBalancer", request.cluster, request.service)?;
        let found = target.balancers.get(&ctx.for_cluster(target.cluster), &target.service).await?;
        Ok(answers::get(found))
    }

    fn name(&self, request: v1::GetLoadBalancerNameRequest) -> Result<v1::GetLoadBalancerNameResponse> {
        let target = self.target("GetLoadBalancerName", request.cluster, request.service)?;
        Ok(v1::GetLoadBalancerNameResponse { name: target.balancers.name(&target.cluster, &target.service) })
    }

    async fn ensure(
        &self,
        ctx: CallContext,
        mut request: v1::EnsureLoadBalancerRequest,
    ) -> Result<v1::EnsureLoadBalancerResponse> {
        const METHOD: &str = "EnsureLoadBalancer";
        let target = self.target(METHOD, request.cluster.clone(), request.service.clone())?;
        let (leadership, nodes) = (request.leadership, self.shared.node_sets.resolve(request.nodes.take())?);
        let change = Change::Ensure(request, nodes.clone());
        let work = |ctx: CallContext, target: Target| async move { target.balancers.ensure(&ctx, &target.service, &nodes).await };
        self.change(METHOD, ctx, target, leadership, change, work).await.map(answers::ensure)
    }

    async fn update(
        &self,
        ctx: CallContext,
        mut request: v1::UpdateLoadBalancerRequest,
    ) -> Result<v1::UpdateLoadBalancerResponse> {
        const METHOD: &str = "UpdateLoadBalancer";
        let target = self.target(METHOD, request.cluster.clone(), request.service.clone())?;
        let (leadership, nodes) = (request.leadership, self.shared.node_sets.resolve(request.nodes.take())?);
        let change = Change::Update(request, nodes.clone());
        let work = |ctx: CallContext, target: Target| async move {
            target.balancers.update(&ctx, &target.service, &nodes).await.map(answers::from_updated)
        };
        self.change(METHOD, ctx, target, leadership, change, work).await.map(answers::update)
    }

    async fn delete(
        &self,
        ctx: CallContext,
        request: v1::EnsureLoadBalancerDeletedRequest,
    ) -> Result<v1::EnsureLoadBalancerDeletedResponse> {
        const METHOD: &str = "EnsureLoadBalancerDeleted";
        let target = self.target(METHOD, request.cluster.clone(), request.service.clone())?;
        let leadership = request.leadership;
        let work = |ctx: CallContext, target: Target| async move {
            target.balancers.ensure_deleted(&ctx, &target.service).await.map(answers::from_deleted)
        };
        answers::delete(self.change(METHOD, ctx, target, leadership, Change::Delete(request), work).await?)
    }

    async fn change<F, W>(
        &self,
        method: &'static str,
        ctx: CallContext,
        target: Target,
        leadership: Option<v1::Leadership>,
        request: Change,
        work: F,
    ) -> Result<Progress<v1::LoadBalancerReady>>
    where
        F: FnOnce(CallContext, Target) -> W,
        W: Future<Output = Result<Progress<v1::LoadBalancerReady>>> + Send + 'static,
    {
        let licence = self.shared.leadership.admit(leadership.as_ref(), Some(&target.cluster))?;
        let mutation = Mutation {
            key: format!("service/{}", target.service.uid),
            method,
            request,
            answer_by: ctx.answer_by(),
            lost: licence.lost.clone(),
        };
        let ctx = ctx.for_cluster(licence.cluster).led(licence.epoch, licence.lost);
        self.changes.run(mutation, work(ctx, target)).await
    }

    fn put(&self, request: v1::PutNodeSetRequest) -> Result<v1::PutNodeSetResponse> {
        let parts = self.shared.parts();
        if !parts.serves(v1::Capability::NodeSets) {
            return Err(ProviderError::not_implemented("PutNodeSet"));
        }
        nonempty("hash", &request.hash)?;
        let set = required("set", request.set)?;
        self.shared.node_sets.put(request.hash, set.nodes);
        if let Some(intercept) = parts.intercept {
            intercept.node_set_put();
        }
        Ok(v1::PutNodeSetResponse {})
    }

    async fn plan(&self, ctx: CallContext, request: v1::PlanLoadBalancerRequest) -> Result<v1::PlanLoadBalancerResponse> {
        let balancers = self.part(v1::Capability::PlanLoadBalancer, "PlanLoadBalancer")?;
        let target = Self::target_of(balancers, request.cluster, request.service)?;
        let nodes = self.shared.node_sets.resolve(request.nodes)?;
        let plan = target.balancers.plan(&ctx.for_cluster(target.cluster), &target.service, &nodes).await?;
        Ok(answers::plan(plan))
    }

    async fn list(&self, ctx: CallContext, request: v1::ListLoadBalancersRequest) -> Result<answers::List> {
        let balancers = self.part(v1::Capability::ListLoadBalancers, "ListLoadBalancers")?;
        let owned = balancers.list(&ctx.for_cluster(required_cluster(request.cluster)?)).await?;
        Ok(answers::list(&owned))
    }
}
