//! Load balancers, as a provider implements them. Whether plans and lists are served is said by traits, never by a flag; who
//! may change a load balancer, and when, is `rpc`'s and `mutations`' business.
use async_trait::async_trait;
use ccm_proto::v1;

use crate::context::CallContext;
use crate::error::ProviderError;
use crate::parts::sealed::Token;
use crate::provider::{Progress, Result};

/// Load balancers. No two mutating calls for one service run at once: the SDK sees to it.
///
/// A type that implements it also says whether the provider serves plans ([`PlanLoadBalancers`] or [`WithoutPlan`]) and lists
/// ([`ListLoadBalancers`] or [`WithoutList`]).
#[async_trait]
pub trait LoadBalancers: Send + Sync + 'static {
    /// The status of the service's load balancer; `None` where the cloud has none.
    async fn get(&self, ctx: &CallContext, service: &v1::Service) -> Result<Option<Progress<v1::LoadBalancerStatus>>>;

    /// The name that the service's load balancer has or would have.
    fn name(&self, _cluster: &v1::ClusterRef, service: &v1::Service) -> String {
        default_load_balancer_name(&service.uid)
    }

    /// Makes the load balancer be as asked.
    async fn ensure(
        &self,
        ctx: &CallContext,
        service: &v1::Service,
        nodes: &[v1::Node],
    ) -> Result<Progress<v1::LoadBalancerReady>>;

    /// Makes the targets be these nodes.
    async fn update(
        &self,
        ctx: &CallContext,
        service: &v1::Service,
        nodes: &[v1::Node],
    ) -> Result<Progress<v1::LoadBalancerUpdated>>;

    /// Removes the load balancer; nothing to remove is a success.
    async fn ensure_deleted(&self, ctx: &CallContext, service: &v1::Service) -> Result<Progress<()>>;
}

/// Plans (`CAPABILITY_PLAN_LOAD_BALANCER`). A provider that cannot plan is [`WithoutPlan`].
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whether it serves `PlanLoadBalancer`",
    note = "implement `PlanLoadBalancers` for it, or declare the method absent: `impl WithoutPlan for ... {{}}`"
)]
pub trait PlanLoadBalancers: Send + Sync + 'static {
    /// The changes that `ensure` would make, making none. Where `ensure` works out a difference before it changes anything,
    /// this is the same difference in words: [`planned`](crate::plan::planned) makes the answer of it.
    async fn plan(&self, ctx: &CallContext, service: &v1::Service, nodes: &[v1::Node]) -> Result<Progress<v1::LoadBalancerPlan>>;

    #[doc(hidden)]
    fn served(&self, _: Token) -> bool {
        true
    }
}

/// Lists (`CAPABILITY_LIST_LOAD_BALANCERS`). A provider that cannot list is [`WithoutList`].
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whether it serves `ListLoadBalancers`",
    note = "implement `ListLoadBalancers` for it, or declare the method absent: `impl WithoutList for ... {{}}`"
)]
pub trait ListLoadBalancers: Send + Sync + 'static {
    /// Every load balancer that is tagged as this cluster's.
    async fn list(&self, ctx: &CallContext) -> Result<Vec<v1::OwnedLoadBalancer>>;

    #[doc(hidden)]
    fn served(&self, _: Token) -> bool {
        true
    }
}

/// Declares that the provider does not serve [`PlanLoadBalancers`]: `impl WithoutPlan for MyCloud {}`. A type that has a plan
/// cannot be it: that is a conflict of implementations, so a plan that is written is served.
///
/// ```compile_fail,E0119
/// # use ccm_provider_sdk::{CallContext, PlanLoadBalancers, Progress, Result, WithoutPlan, async_trait, v1};
/// # struct MyCloud;
/// impl WithoutPlan for MyCloud {}
///
/// #[async_trait]
/// impl PlanLoadBalancers for MyCloud {
///     async fn plan(&self, _: &CallContext, _: &v1::Service, _: &[v1::Node]) -> Result<Progress<v1::LoadBalancerPlan>> {
///         Ok(Progress::Done(v1::LoadBalancerPlan::default()))
///     }
/// }
/// ```
pub trait WithoutPlan: Send + Sync + 'static {}

/// Declares that the provider does not serve [`ListLoadBalancers`]: `impl WithoutList for MyCloud {}`.
pub trait WithoutList: Send + Sync + 'static {}

#[async_trait]
impl<T: WithoutPlan> PlanLoadBalancers for T {
    async fn plan(&self, _: &CallContext, _: &v1::Service, _: &[v1::Node]) -> Result<Progress<v1::LoadBalancerPlan>> {
        Err(ProviderError::not_implemented("PlanLoadBalancer"))
    }

    fn served(&self, _: Token) -> bool {
        false
    }
}

#[async_trait]
impl<T: WithoutList> ListLoadBalancers for T {
    async fn list(&self, _: &CallContext) -> Result<Vec<v1::OwnedLoadBalancer>> {
        Err(ProviderError::not_implemented("ListLoadBalancers"))
    }

    fn served(&self, _: Token) -> bool {
        false
    }
}

/// Go's `DefaultLoadBalancerName`: `a` and the UID without dashes, cut to 32 characters.
pub fn default_load_balancer_name(uid: &str) -> String {
    std::iter::once('a').chain(uid.chars().filter(|c| *c != '-')).take(32).collect()
}
