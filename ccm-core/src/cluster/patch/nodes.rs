//! Writes to nodes.
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::Client;
use kube::api::{DeleteParams, GetParams, Patch, Preconditions};
use kube::core::Request;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

pub use self::status::{NetworkCondition, NodeStatusPatch};
use super::{WriteError, identity, params};
use crate::cluster::gate::Gate;
use crate::cluster::nodes::all_pod_cidrs;
use crate::cluster::view::Viewed;
use crate::cluster::{answer, convert};
use crate::model::node::{Node, Taint};
use crate::model::ownership::Ownership;

/// What changes of a node's metadata and spec, in one write; absent means "as it is".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodePatch {
    /// Labels to set.
    pub labels: BTreeMap<String, String>,
    /// Annotations to set.
    pub annotations: BTreeMap<String, String>,
    /// `spec.providerID`; it can be set once.
    pub provider_id: Option<String>,
    /// The whole list of taints.
    pub taints: Option<Vec<Taint>>,
}

impl NodePatch {
    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The only way to write to nodes.
#[derive(Clone)]
pub struct NodeWriter {
    client: Client,
    gate: Gate,
}

impl NodeWriter {
    /// A writer behind a gate.
    pub fn new(client: Client, gate: Gate) -> Self {
        Self { client, gate }
    }

    /// The gate, for those who want to know before they begin.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The node as the API server has it now, past every cache.
    pub async fn get(&self, name: &str) -> Result<Node, WriteError> {
        Ok(convert::node(answer::object(&self.client, nodes().get(name, &GetParams::default())).await?))
    }

    /// Changes labels, annotations, providerID and taints at once, if the node is still at the resourceVersion that was read.
    pub async fn patch(&self, node: &Node, patch: &NodePatch) -> Result<Node, WriteError> {
        self.allowed(node, Ownership::is_managed).await?;
        let body = Patch::Strategic(node_body(node, patch));
        Ok(convert::node(answer::object(&self.client, nodes().patch(&node.name, &params(), &body)).await?))
    }

    /// Changes the node's status, if the node is still at the resourceVersion that was read.
    pub async fn patch_status(&self, node: &Node, patch: &NodeStatusPatch) -> Result<Node, WriteError> {
        self.write_status(node, identity(&node.uid, &node.resource_version), patch).await
    }

    /// Sets the condition `NetworkUnavailable`, whatever else changed of the node meanwhile, kubelet's heartbeats included. If the
    /// node has been replaced under its name, it is gone.
    pub async fn network_condition(&self, node: &Node, has_routes: bool) -> Result<Node, WriteError> {
        let network = if has_routes { NetworkCondition::RouteCreated } else { NetworkCondition::NoRoute };
        let metadata = Map::from_iter([("uid".to_owned(), json!(node.uid))]);
        self.write_status(node, metadata, &NodeStatusPatch { network: Some(network), ..NodeStatusPatch::default() }).await
    }

    async fn write_status(&self, node: &Node, metadata: Map<String, Value>, patch: &NodeStatusPatch) -> Result<Node, WriteError> {
        self.allowed(node, Ownership::is_managed).await?;
        let body = json!({ "metadata": metadata, "status": status::body(patch, Timestamp::now()) });
        let request = nodes().patch_subresource("status", &node.name, &params(), &Patch::Strategic(body));
        Ok(convert::node(answer::object(&self.client, request).await?))
    }

    /// The name and the Pod CIDRs of every node, past every cache.
    pub async fn list_pod_cidrs(&self) -> Result<Vec<(String, Vec<String>)>, WriteError> {
        Ok(all_pod_cidrs(&self.client).await?)
    }

    /// Deletes exactly this node, at exactly this resourceVersion.
    pub async fn delete(&self, node: &Node) -> Result<(), WriteError> {
        self.allowed(node, Ownership::is_deletable).await?;
        let preconditions = Preconditions { uid: Some(node.uid.clone()), resource_version: Some(node.resource_version.clone()) };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let IgnoredAny = answer::object(&self.client, nodes().delete(&node.name, &params)).await?;
        Ok(())
    }

    /// Asks the gate, and refuses a node whose ownership does not allow what is to be done, whatever a controller decided.
    async fn allowed(&self, node: &Node, suffices: fn(Ownership) -> bool) -> Result<(), WriteError> {
        let ownership = self.gate.check_when_present().await?.provider.ownership(node);
        if suffices(ownership) { Ok(()) } else { Err(WriteError::NotOurs(ownership)) }
    }
}

fn nodes() -> Request {
    Request::new(Node::PATH)
}

fn node_body(node: &Node, patch: &NodePatch) -> Value {
    let mut metadata = identity(&node.uid, &node.resource_version);
    let mut spec = Map::new();
    if !patch.labels.is_empty() {
        metadata.insert("labels".into(), json!(patch.labels));
    }
    if !patch.annotations.is_empty() {
        metadata.insert("annotations".into(), json!(patch.annotations));
    }
    if let Some(provider_id) = &patch.provider_id {
        spec.insert("providerID".into(), json!(provider_id));
    }
    if let Some(taints) = &patch.taints {
        spec.insert("taints".into(), taints.iter().map(taint_body).collect());
    }
    let mut body = Map::new();
    body.insert("metadata".into(), metadata.into());
    if !spec.is_empty() {
        body.insert("spec".into(), spec.into());
    }
    body.into()
}

fn taint_body(taint: &Taint) -> Value {
    let mut body = Map::new();
    body.insert("key".into(), json!(taint.key));
    body.insert("effect".into(), json!(taint.effect));
    if let Some(value) = &taint.value {
        body.insert("value".into(), json!(value));
    }
    if let Some(time) = &taint.time_added {
        body.insert("timeAdded".into(), json!(time.to_string()));
    }
    body.into()
}
