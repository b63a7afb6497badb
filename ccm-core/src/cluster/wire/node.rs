//! A node on the wire, with the fields in use. Images, volumes, capacities and the messages of conditions are not among them.
use jiff::Timestamp;
use serde::Deserialize;

use super::{Identity, Meta};

/// A node.
#[derive(Debug, Deserialize)]
pub struct Node {
    pub metadata: Meta,
    pub spec: Option<Spec>,
    pub status: Option<Status>,
}

/// A node of which only the Pod CIDRs are read.
#[derive(Debug, Deserialize)]
pub struct Claims {
    pub metadata: Identity,
    pub spec: Option<PodCidrs>,
}

/// The Pod CIDRs in `spec`.
#[derive(Debug, Deserialize)]
pub struct PodCidrs {
    #[serde(rename = "podCIDRs")]
    pub pod_cidrs: Option<Vec<String>>,
}

/// `spec`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    #[serde(rename = "providerID")]
    pub provider_id: Option<String>,
    pub taints: Option<Vec<Taint>>,
    pub unschedulable: Option<bool>,
    #[serde(rename = "podCIDRs")]
    pub pod_cidrs: Option<Vec<String>>,
}

/// An entry of `spec.taints`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    pub key: String,
    pub value: Option<String>,
    pub effect: String,
    pub time_added: Option<Timestamp>,
}

/// `status`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub conditions: Option<Vec<Condition>>,
    pub addresses: Option<Vec<Address>>,
    pub node_info: Option<NodeInfo>,
}

/// An entry of `status.conditions`.
#[derive(Debug, Deserialize)]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub reason: Option<Reason>,
}

/// The reasons of conditions that matter; all others are one, and take no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Reason {
    RouteCreated,
    NoRouteCreated,
    #[serde(other)]
    Other,
}

/// An entry of `status.addresses`.
#[derive(Debug, Deserialize)]
pub struct Address {
    #[serde(rename = "type")]
    pub kind: String,
    pub address: String,
}

/// `status.nodeInfo`.
#[derive(Debug, Deserialize)]
pub struct NodeInfo {
    #[serde(rename = "systemUUID")]
    pub system_uuid: Option<String>,
}
