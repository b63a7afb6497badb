//! PlanLoadBalancer for every provider whose `ensure` works out a difference before it changes anything: the two begin alike,
//! and where one carries the steps out the other puts them into words. What the steps are is the provider's business.
use std::fmt::Display;

use ccm_proto::v1;

use crate::provider::Progress;

/// What [`PlanLoadBalancers::plan`](crate::PlanLoadBalancers::plan) answers: the steps that `ensure` would carry out, each in words
/// for a person ("add target node-7"), or, if there are none, what `ensure` would answer of the load balancer as it stands.
/// Warnings of `standing` are left to `ensure`.
pub fn planned<S: Display>(
    steps: impl IntoIterator<Item = S>,
    standing: impl FnOnce() -> v1::LoadBalancerReady,
) -> Progress<v1::LoadBalancerPlan> {
    let changes: Vec<_> = steps.into_iter().map(|step| step.to_string()).collect();
    if !changes.is_empty() {
        return Progress::Done(v1::LoadBalancerPlan { changes, ..v1::LoadBalancerPlan::default() });
    }
    let v1::LoadBalancerReady { status, annotations, .. } = standing();
    Progress::Done(v1::LoadBalancerPlan { changes, status, annotations })
}
