//! From what the API server sends to the model.
mod service;

use std::collections::BTreeMap;

use jiff::Timestamp;

pub use self::service::service;
use super::wire::node as wire;
use crate::model::node::{Address, AddressType, Condition, ConditionStatus, NetworkUnavailable, Node, Ready, Taint};
use crate::names::network_unavailable as network;

/// Annotations that are large and that nobody here reads.
const DROPPED_ANNOTATIONS: [&str; 1] = ["kubectl.kubernetes.io/last-applied-configuration"];

/// A node as the API server sent it.
pub fn node(node: wire::Node) -> Node {
    let wire::Node { metadata, spec, status } = node;
    let spec = spec.unwrap_or_default();
    let status = status.unwrap_or_default();
    let network_unavailable = network_unavailable(status.conditions.as_deref().unwrap_or_default());
    let conditions = each(status.conditions, |it| Some(condition(it)));
    Node {
        name: metadata.name,
        uid: metadata.uid.unwrap_or_default(),
        resource_version: metadata.resource_version.unwrap_or_default(),
        created_at: metadata.creation_timestamp.unwrap_or(Timestamp::UNIX_EPOCH),
        deleted_at: metadata.deletion_timestamp,
        labels: metadata.labels.unwrap_or_default(),
        annotations: annotations(metadata.annotations),
        provider_id: spec.provider_id.filter(|id| !id.is_empty()),
        taints: each(spec.taints, |it| Some(taint(it))),
        unschedulable: spec.unschedulable.unwrap_or_default(),
        ready: ready(&conditions),
        conditions,
        network_unavailable,
        pod_cidrs: each(spec.pod_cidrs, Some),
        addresses: each(status.addresses, address),
        system_uuid: status.node_info.and_then(|info| info.system_uuid).filter(|uuid| !uuid.is_empty()),
    }
}

/// What becomes of a list, without the spare places that it got while it was parsed: they are a third of a small node.
fn each<T, U>(list: Option<Vec<T>>, convert: impl FnMut(T) -> Option<U>) -> Vec<U> {
    let mut converted: Vec<_> = list.unwrap_or_default().into_iter().filter_map(convert).collect();
    converted.shrink_to_fit();
    converted
}

fn annotations(all: Option<BTreeMap<String, String>>) -> BTreeMap<String, String> {
    let mut annotations = all.unwrap_or_default();
    annotations.retain(|key, _| !DROPPED_ANNOTATIONS.contains(&key.as_str()));
    annotations
}

fn taint(taint: wire::Taint) -> Taint {
    Taint { key: taint.key, value: taint.value, effect: taint.effect, time_added: taint.time_added }
}

fn condition(condition: wire::Condition) -> Condition {
    let status = match condition.status.as_str() {
        "True" => ConditionStatus::True,
        "False" => ConditionStatus::False,
        _ => ConditionStatus::Unknown,
    };
    Condition { kind: condition.kind, status }
}

fn network_unavailable(conditions: &[wire::Condition]) -> NetworkUnavailable {
    let Some(condition) = conditions.iter().find(|condition| condition.kind == network::TYPE) else {
        return NetworkUnavailable::Absent;
    };
    match (condition.status.as_str(), condition.reason) {
        ("False", Some(wire::Reason::RouteCreated)) => NetworkUnavailable::RouteCreated,
        ("True", Some(wire::Reason::NoRouteCreated)) => NetworkUnavailable::NoRouteCreated,
        ("True", _) => NetworkUnavailable::ForAnotherReason,
        _ => NetworkUnavailable::NotForAnotherReason,
    }
}

fn ready(conditions: &[Condition]) -> Ready {
    match conditions.iter().find(|condition| condition.kind == "Ready").map(|condition| condition.status) {
        Some(ConditionStatus::True) => Ready::True,
        Some(ConditionStatus::False) => Ready::False,
        _ => Ready::Unknown,
    }
}

fn address(address: wire::Address) -> Option<Address> {
    Some(Address { kind: AddressType::from_name(&address.kind)?, value: address.address })
}
