//! The service `LoadBalancers`: reads straight to the provider, mutations serialised by the service's UID.
use std::future::Future;
use std::sync::Arc;

use ccm_proto::v1;

use super::{Shared, nonempty, required, required_cluster};
use crate::context::CallContext;
use crate::error::ProviderError;
use crate::leadership::Licence;
use crate::mutations::{Mutation, Mutations};
use crate::node_sets::{Nodes, required_set};
use crate::parts::LoadBalancersPart;
use crate::provider::{Progress, Result};

mod answers;
mod server;

/// Load balancers, for any provider.
pub(super) struct Service {
    shared: Arc<Shared>,
    changes: Mutations<Change, v1::LoadBalancerReady>,
}

/// What tells one mutation from another: the method and all fields that say what is wanted.
#[derive(Clone, PartialEq)]
struct Change {
    method: &'static str,
    epoch: u64,
    cluster: v1::ClusterRef,
    service: v1::Service,
    nodes: Option<Nodes>,
}

/// What every mutation has.
struct Target {
    balancers: Arc<dyn LoadBalancersPart>,
    cluster: v1::ClusterRef,
    service: v1::Service,
}

/// A mutation that may run.
struct Admitted {
    method: &'static str,
    ctx: CallContext,
    licence: Licence,
    target: Target,
    nodes: Option<Nodes>,
}

impl Change {
    /// Without `service.status` and `service.generation`, which do not say what is wanted.
    fn new(method: &'static str, licence: &Licence, target: &Target, nodes: Option<Nodes>) -> Self {
        let service = v1::Service { generation: 0, status: None, ..target.service.clone() };
        Self { method, epoch: licence.epoch, cluster: target.cluster.clone(), service, nodes }
    }
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

    async fn ensure(&self, ctx: CallContext, request: v1::EnsureLoadBalancerRequest) -> Result<v1::EnsureLoadBalancerResponse> {
        const METHOD: &str = "EnsureLoadBalancer";
        let target = self.target(METHOD, request.cluster, request.service)?;
        let set = required_set(request.nodes)?;
        let licence = self.licence(&target, request.leadership)?;
        let nodes = self.shared.node_sets.resolve(set)?;
        let admitted = Admitted { method: METHOD, ctx, licence, target, nodes: Some(nodes.clone()) };
        let work = |ctx: CallContext, target: Target| async move { target.balancers.ensure(&ctx, &target.service, &nodes).await };
        self.change(admitted, work).await.map(answers::ensure)
    }

    async fn update(&self, ctx: CallContext, request: v1::UpdateLoadBalancerRequest) -> Result<v1::UpdateLoadBalancerResponse> {
        const METHOD: &str = "UpdateLoadBalancer";
        let target = self.target(METHOD, request.cluster, request.service)?;
        let set = required_set(request.nodes)?;
        let licence = self.licence(&target, request.leadership)?;
        let nodes = self.shared.node_sets.resolve(set)?;
        let admitted = Admitted { method: METHOD, ctx, licence, target, nodes: Some(nodes.clone()) };
        let work = |ctx: CallContext, target: Target| async move {
            target.balancers.update(&ctx, &target.service, &nodes).await.map(answers::from_updated)
        };
        self.change(admitted, work).await.map(answers::update)
    }

    async fn delete(
        &self,
        ctx: CallContext,
        request: v1::EnsureLoadBalancerDeletedRequest,
    ) -> Result<v1::EnsureLoadBalancerDeletedResponse> {
        const METHOD: &str = "EnsureLoadBalancerDeleted";
        let target = self.target(METHOD, request.cluster, request.service)?;
        let licence = self.licence(&target, request.leadership)?;
        let admitted = Admitted { method: METHOD, ctx, licence, target, nodes: None };
        let work = |ctx: CallContext, target: Target| async move {
            target.balancers.ensure_deleted(&ctx, &target.service).await.map(answers::from_deleted)
        };
        answers::delete(self.change(admitted, work).await?)
    }

    fn licence(&self, target: &Target, leadership: Option<v1::Leadership>) -> Result<Licence> {
        self.shared.leadership.admit(leadership.as_ref(), Some(&target.cluster))
    }

    async fn change<F, W>(&self, admitted: Admitted, work: F) -> Result<Progress<v1::LoadBalancerReady>>
    where
        F: FnOnce(CallContext, Target) -> W,
        W: Future<Output = Result<Progress<v1::LoadBalancerReady>>> + Send + 'static,
    {
        let Admitted { method, ctx, licence, target, nodes } = admitted;
        let mutation = Mutation {
            key: format!("service/{}", target.service.uid),
            method,
            request: Change::new(method, &licence, &target, nodes),
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
        let nodes = self.shared.node_sets.resolve(required_set(request.nodes)?)?;
        let plan = target.balancers.plan(&ctx.for_cluster(target.cluster), &target.service, &nodes).await?;
        Ok(answers::plan(plan))
    }

    async fn list(&self, ctx: CallContext, request: v1::ListLoadBalancersRequest) -> Result<answers::List> {
        let balancers = self.part(v1::Capability::ListLoadBalancers, "ListLoadBalancers")?;
        let owned = balancers.list(&ctx.for_cluster(required_cluster(request.cluster)?)).await?;
        Ok(answers::list(&owned))
    }
}
