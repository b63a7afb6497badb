//! The provider's answers about routes: mistakes are refused here, with a name for the field, and outcomes become messages.
use std::time::SystemTime;

use ccm_proto::v1;
use ccm_proto::v1::route_result::Outcome;

use super::change::Made;
use crate::error::ProviderError;
use crate::provider::{Progress, Result};
use crate::routes::{RouteList, destination};

/// Refuses a list that breaks the contract, as a defect of the provider.
pub(super) fn check(list: &RouteList, now: SystemTime) -> Result<()> {
    if let Some(ahead) = list.read_at.and_then(|read_at| read_at.duration_since(now).ok()).filter(|ahead| !ahead.is_zero()) {
        return refuse("read_at", &format!("the provider says that it read the list {ahead:.1?} in the future"));
    }
    for (at, route) in list.routes.iter().enumerate() {
        check_route(&format!("routes[{at}]"), route)?;
    }
    Ok(())
}

fn check_route(path: &str, route: &v1::Route) -> Result<()> {
    if destination(route).is_err() {
        return refuse(&format!("{path}.destination_cidr"), &format!("{:?} is no CIDR", route.destination_cidr));
    }
    if route.owner() == v1::RouteOwner::Unspecified {
        return refuse(&format!("{path}.owner"), "a listed route has an owner: `ClusterTag::owner` says whose a tagged one is");
    }
    if route.target_provider_id.as_deref() == Some("") {
        return refuse(&format!("{path}.target_provider_id"), "is empty; a target that cannot be resolved has none");
    }
    Ok(())
}

fn refuse(field: &str, problem: &str) -> Result<()> {
    Err(ProviderError::internal(format!("the provider's list of routes is not valid: {field}: {problem}")))
}

/// One result for each outcome. If the cloud's rate limit refused every item, the call fails by it, so that the core pauses.
pub(super) fn results(outcomes: Vec<(String, Result<Progress<Made>>)>) -> Result<Vec<v1::RouteResult>> {
    let limited = |outcome: &Result<_>| outcome.as_ref().err().filter(|it| it.reason == v1::ErrorReason::RateLimited).cloned();
    let limits: Option<Vec<_>> = outcomes.iter().map(|(_, outcome)| limited(outcome)).collect();
    match limits.and_then(|limits| limits.into_iter().max_by_key(|error| error.retry_after)) {
        Some(longest) => Err(longest),
        None => Ok(outcomes.into_iter().map(|(key, outcome)| result(key, outcome)).collect()),
    }
}

fn result(key: String, outcome: Result<Progress<Made>>) -> v1::RouteResult {
    let outcome = match outcome {
        Ok(Progress::Done(Made::AsRequested)) => Outcome::Done(v1::RouteDone {}),
        Ok(Progress::Done(Made::TargetNotFound)) => Outcome::TargetNotFound(v1::RouteTargetNotFound {}),
        Ok(Progress::InProgress(progress)) => Outcome::InProgress(progress),
        Ok(Progress::ImplementedElsewhere(_)) => {
            Outcome::Error(ProviderError::internal("routes cannot be implemented elsewhere").into())
        }
        Err(error) => Outcome::Error(error.into()),
    };
    v1::RouteResult { key, outcome: Some(outcome) }
}
