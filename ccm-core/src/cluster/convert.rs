//! From Kubernetes' types to the model's. Whatever the controllers do not use is left behind, to save memory.
mod service;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as core;

pub use self::service::service;
use crate::model::node::{Address, AddressType, Condition, ConditionStatus, Node, Ready, Taint};

/// Annotations that are large and that nobody here reads.
const DROPPED_ANNOTATIONS: [&str; 1] = ["kubectl.kubernetes.io/last-applied-configuration"];

/// A node as the API server sent it.
pub fn node(node: core::Node) -> Node {
    let core::Node { metadata, spec, status } = node;
    let spec = spec.unwrap_or_default();
    let status = status.unwrap_or_default();
    let conditions: Vec<_> = status.conditions.unwrap_or_default().into_iter().map(condition).collect();
    Node {
        name: metadata.name.unwrap_or_default(),
        uid: metadata.uid.unwrap_or_default(),
        resource_version: metadata.resource_version.unwrap_or_default(),
        created_at: metadata.creation_timestamp.map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        deleted_at: metadata.deletion_timestamp.map(|time| time.0),
        labels: metadata.labels.unwrap_or_default(),
        annotations: annotations(metadata.annotations),
        provider_id: spec.provider_id.filter(|id| !id.is_empty()),
        taints: spec.taints.unwrap_or_default().into_iter().map(taint).collect(),
        unschedulable: spec.unschedulable.unwrap_or_default(),
        ready: ready(&conditions),
        conditions,
        pod_cidrs: spec.pod_cidrs.unwrap_or_default(),
        addresses: status.addresses.unwrap_or_default().into_iter().filter_map(address).collect(),
        system_uuid: status.node_info.map(|info| info.system_uuid).filter(|uuid| !uuid.is_empty()),
    }
}

fn annotations(all: Option<BTreeMap<String, String>>) -> BTreeMap<String, String> {
    let mut annotations = all.unwrap_or_default();
    annotations.retain(|key, _| !DROPPED_ANNOTATIONS.contains(&key.as_str()));
    annotations
}

fn taint(taint: core::Taint) -> Taint {
    Taint { key: taint.key, value: taint.value, effect: taint.effect, time_added: taint.time_added.map(|time| time.0) }
}

fn condition(condition: core::NodeCondition) -> Condition {
    let status = match condition.status.as_str() {
        "True" => ConditionStatus::True,
        "False" => ConditionStatus::False,
        _ => ConditionStatus::Unknown,
    };
    Condition { kind: condition.type_, status }
}

fn ready(conditions: &[Condition]) -> Ready {
    match conditions.iter().find(|condition| condition.kind == "Ready").map(|condition| condition.status) {
        Some(ConditionStatus::True) => Ready::True,
        Some(ConditionStatus::False) => Ready::False,
        _ => Ready::Unknown,
    }
}

fn address(address: core::NodeAddress) -> Option<Address> {
    Some(Address { kind: AddressType::from_name(&address.type_)?, value: address.address })
}
