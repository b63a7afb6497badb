//! The provider's outcomes as messages of the service `LoadBalancers`. Nothing is decided here.
use ccm_proto::v1;
use futures::stream::{self, BoxStream, StreamExt as _};
use tonic::Status;

use crate::error::ProviderError;
use crate::provider::{Progress, Result};

/// Load balancers in one message of a list.
const PER_MESSAGE: usize = 200;

/// The stream of a list.
pub(super) type List = BoxStream<'static, Result<v1::ListLoadBalancersResponse, Status>>;

pub(super) fn get(found: Option<Progress<v1::LoadBalancerStatus>>) -> v1::GetLoadBalancerResponse {
    use v1::get_load_balancer_response::Outcome;
    let outcome = match found {
        None => Outcome::NotFound(v1::LoadBalancerNotFound {}),
        Some(Progress::Done(status)) => Outcome::Found(status),
        Some(Progress::InProgress(progress)) => Outcome::InProgress(progress),
        Some(Progress::ImplementedElsewhere(message)) => Outcome::ImplementedElsewhere(v1::ImplementedElsewhere { message }),
    };
    v1::GetLoadBalancerResponse { outcome: Some(outcome) }
}

pub(super) fn ensure(done: Progress<v1::LoadBalancerReady>) -> v1::EnsureLoadBalancerResponse {
    use v1::ensure_load_balancer_response::Outcome;
    let outcome = match done {
        Progress::Done(ready) => Outcome::Ready(ready),
        Progress::InProgress(progress) => Outcome::InProgress(progress),
        Progress::ImplementedElsewhere(message) => Outcome::ImplementedElsewhere(v1::ImplementedElsewhere { message }),
    };
    v1::EnsureLoadBalancerResponse { outcome: Some(outcome) }
}

/// All mutations of a service share one kind of result; an update has no status in it.
pub(super) fn from_updated(done: Progress<v1::LoadBalancerUpdated>) -> Progress<v1::LoadBalancerReady> {
    match done {
        Progress::Done(v1::LoadBalancerUpdated { warnings, annotations }) => {
            Progress::Done(v1::LoadBalancerReady { status: None, warnings, annotations })
        }
        Progress::InProgress(progress) => Progress::InProgress(progress),
        Progress::ImplementedElsewhere(message) => Progress::ImplementedElsewhere(message),
    }
}

pub(super) fn update(done: Progress<v1::LoadBalancerReady>) -> v1::UpdateLoadBalancerResponse {
    use v1::update_load_balancer_response::Outcome;
    let outcome = match done {
        Progress::Done(v1::LoadBalancerReady { warnings, annotations, .. }) => {
            Outcome::Updated(v1::LoadBalancerUpdated { warnings, annotations })
        }
        Progress::InProgress(progress) => Outcome::InProgress(progress),
        Progress::ImplementedElsewhere(message) => Outcome::ImplementedElsewhere(v1::ImplementedElsewhere { message }),
    };
    v1::UpdateLoadBalancerResponse { outcome: Some(outcome) }
}

/// A deletion has nothing in its result.
pub(super) fn from_deleted(done: Progress<()>) -> Progress<v1::LoadBalancerReady> {
    match done {
        Progress::Done(()) => Progress::Done(v1::LoadBalancerReady::default()),
        Progress::InProgress(progress) => Progress::InProgress(progress),
        Progress::ImplementedElsewhere(message) => Progress::ImplementedElsewhere(message),
    }
}

pub(super) fn delete(done: Progress<v1::LoadBalancerReady>) -> Result<v1::EnsureLoadBalancerDeletedResponse> {
    use v1::ensure_load_balancer_deleted_response::Outcome;
    let outcome = match done {
        Progress::Done(_) => Outcome::Done(v1::LoadBalancerDeleted {}),
        Progress::InProgress(progress) => Outcome::InProgress(progress),
        Progress::ImplementedElsewhere(_) => {
            return Err(ProviderError::internal(
                "the provider answered a deletion with \"implemented elsewhere\", which it never may",
            ));
        }
    };
    Ok(v1::EnsureLoadBalancerDeletedResponse { outcome: Some(outcome) })
}

pub(super) fn plan(plan: Progress<v1::LoadBalancerPlan>) -> v1::PlanLoadBalancerResponse {
    use v1::plan_load_balancer_response::Outcome;
    let outcome = match plan {
        Progress::Done(plan) => Outcome::Plan(plan),
        Progress::InProgress(progress) => Outcome::InProgress(progress),
        Progress::ImplementedElsewhere(message) => Outcome::ImplementedElsewhere(v1::ImplementedElsewhere { message }),
    };
    v1::PlanLoadBalancerResponse { outcome: Some(outcome) }
}

pub(super) fn list(owned: &[v1::OwnedLoadBalancer]) -> List {
    let parts = owned.chunks(PER_MESSAGE);
    let messages: Vec<_> = parts.map(|part| Ok(v1::ListLoadBalancersResponse { load_balancers: part.to_vec() })).collect();
    stream::iter(messages).boxed()
}
