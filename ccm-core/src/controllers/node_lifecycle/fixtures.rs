//! For tests: nodes, answers and a provider, all unremarkable until changed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::model::instance::{Answer, Instance, InstanceState, Lookup};
use crate::model::node::{NetworkUnavailable, Node, Ready, Taint};
use crate::model::provider_info::{Limits, ProviderInfo};
use crate::names;

pub const IDENTITY: &str = "simulated/project/region";

/// Seconds after a moment at which every test begins.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

/// An initialised node of the provider's, a day old, not ready.
pub fn node(name: &str, zone: &str) -> Node {
    Node {
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        resource_version: "1".to_owned(),
        created_at: at(-86_400),
        deleted_at: None,
        labels: BTreeMap::from([(names::labels::ZONE.to_owned(), zone.to_owned())]),
        annotations: BTreeMap::new(),
        provider_id: Some(format!("sim://{name}")),
        taints: Vec::new(),
        unschedulable: false,
        ready: Ready::Unknown,
        conditions: Vec::new(),
        pod_cidrs: Vec::new(),
        network_unavailable: NetworkUnavailable::Absent,
        addresses: Vec::new(),
        system_uuid: None,
    }
}

pub fn ready(node: Node) -> Node {
    Node { ready: Ready::True, ..node }
}

pub fn cordoned(node: Node) -> Node {
    Node { unschedulable: true, ..node }
}

pub fn unmanaged(mut node: Node) -> Node {
    node.annotations.insert(names::annotations::UNMANAGED.to_owned(), "true".to_owned());
    node
}

pub fn tainted(mut node: Node, key: &str) -> Node {
    node.taints.push(Taint { key: key.to_owned(), value: None, effect: "NoSchedule".to_owned(), time_added: None });
    node
}

pub fn provider() -> ProviderInfo {
    ProviderInfo {
        name: "simulated".to_owned(),
        version: "1".to_owned(),
        capabilities: [].into(),
        provider_id_prefixes: vec!["sim://".to_owned()],
        cloud_identity: IDENTITY.to_owned(),
        limits: Limits { max_batch_size: 500, max_concurrent_instance_calls: 4, ..Limits::default() },
        ..ProviderInfo::default()
    }
}

pub fn found(state: InstanceState) -> Lookup {
    Lookup::Found(Box::new(Instance {
        provider_id: None,
        state,
        instance_type: None,
        zone: None,
        region: None,
        addresses: Vec::new(),
        additional_labels: BTreeMap::new(),
        pod_cidrs: Vec::new(),
        warnings: Vec::new(),
    }))
}

pub fn answer(lookup: Lookup, observed: i64) -> Answer {
    Answer { lookup, observed_at: at(observed), cloud_identity: Arc::from(IDENTITY) }
}
