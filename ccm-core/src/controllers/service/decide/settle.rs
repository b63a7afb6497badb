//! What is written to a Service once the provider has answered. What the Service has already is not written.
use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::cluster::patch::{ConditionChange, ServicePatch, StatusPatch};
use crate::model::load_balancer::{Ensured, IngressAddress, IpMode, LoadBalancerStatus};
use crate::model::service::{Condition, Service};
use crate::names;
use crate::provider::ProviderError;

/// The condition's reason where all is well.
const READY: &str = "Ready";
/// The condition's reason while the cloud is at work.
const IN_PROGRESS: &str = "InProgress";

/// The load balancer is in the desired state. The provider's annotations are written with the status, which says so.
pub fn in_desired_state(service: &Service, ensured: &Ensured, now: Timestamp) -> StatusPatch {
    let mut annotations = annotations(service, &ensured.extras.annotations).annotations;
    annotations.extend(missing_class(service));
    StatusPatch {
        load_balancer: (!same(&service.status, &ensured.status)).then(|| ensured.status.clone()),
        condition: condition(service, true, READY, "", now),
        annotations,
    }
}

/// A Service that was taken over has the finalizer without our annotation of its class, and loses the class with its type.
fn missing_class(service: &Service) -> Option<(String, Option<String>)> {
    let class = service.load_balancer_class.clone()?;
    let noted = service.annotations.contains_key(names::annotations::LOAD_BALANCER_CLASS);
    (!noted).then(|| (names::annotations::LOAD_BALANCER_CLASS.to_owned(), Some(class)))
}

/// Those of the provider's annotations that the Service does not have.
pub fn annotations(service: &Service, wanted: &BTreeMap<String, String>) -> ServicePatch {
    let missing = wanted.iter().filter(|(key, value)| service.annotations.get(*key) != Some(value));
    ServicePatch { finalizer: None, annotations: missing.map(|(key, value)| (key.clone(), Some(value.clone()))).collect() }
}

/// The cloud is at work, in the provider's words.
pub fn in_progress(service: &Service, message: &str, now: Timestamp) -> StatusPatch {
    let message = if message.is_empty() { "the cloud is at work on the load balancer" } else { message };
    StatusPatch { condition: condition(service, false, IN_PROGRESS, message, now), ..StatusPatch::default() }
}

/// The provider refused, or could not.
pub fn failed(service: &Service, error: &ProviderError, now: Timestamp) -> StatusPatch {
    let condition = condition(service, false, &camel_case(&error.reason), &error.message, now);
    StatusPatch { condition, ..StatusPatch::default() }
}

/// The load balancer is gone: the status of a Service that stays, then its finalizer and our annotation of the class.
pub fn removed(service: &Service, keeps_finalizer: bool) -> (StatusPatch, ServicePatch) {
    let stays = service.deleted_at.is_none();
    let status = StatusPatch {
        // Between our class and another's there was another type, with which the API server took our addresses away.
        load_balancer: (stays && !keeps_finalizer && !service.status.ingress.is_empty()).then(LoadBalancerStatus::default),
        condition: (stays && service.condition.is_some()).then_some(ConditionChange::Remove),
        annotations: BTreeMap::new(),
    };
    let noted = service.annotations.contains_key(names::annotations::LOAD_BALANCER_CLASS);
    let patch = ServicePatch {
        finalizer: (!keeps_finalizer).then_some(false),
        annotations: noted.then(|| (names::annotations::LOAD_BALANCER_CLASS.to_owned(), None)).into_iter().collect(),
    };
    (status, patch)
}

fn condition(service: &Service, ready: bool, reason: &str, message: &str, now: Timestamp) -> Option<ConditionChange> {
    let before = service.condition.as_ref();
    if before.is_some_and(|it| it.ready == ready && it.reason == reason && it.message == message) {
        return None;
    }
    let since = before.filter(|it| it.ready == ready).map_or(now, |it| it.since);
    let (reason, message) = (reason.to_owned(), message.to_owned());
    Some(ConditionChange::Set(Condition { ready, reason, message, observed_generation: service.generation, since }))
}

/// The API server fills in the mode that it takes by default.
fn same(one: &LoadBalancerStatus, other: &LoadBalancerStatus) -> bool {
    let plain = |status: &LoadBalancerStatus| {
        let mut status = status.clone();
        for ingress in &mut status.ingress {
            if let IngressAddress::Ip(_, mode) | IngressAddress::IpAndHostname(_, mode, _) = &mut ingress.address {
                mode.get_or_insert(IpMode::Vip);
            }
        }
        status
    };
    plain(one) == plain(other)
}

/// `RATE_LIMITED` as conditions write it: `RateLimited`. They begin with a letter.
fn camel_case(reason: &str) -> String {
    let words = reason.split('_').filter_map(|word| word.split_at_checked(1));
    let word: String = words.map(|(first, rest)| first.to_ascii_uppercase() + &rest.to_ascii_lowercase()).collect();
    if word.starts_with(|first: char| first.is_ascii_alphabetic()) { word } else { "Failed".to_owned() }
}
