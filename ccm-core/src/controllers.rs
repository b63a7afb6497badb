//! The controllers. Each has the same stages in the same files: a driver that watches and queues, then `observe`, `decide`
//! (pure), `act` and `status`.
mod budget;
pub mod node;
pub mod node_lifecycle;
pub mod route;
pub mod scheduler;
pub mod service;
pub mod unmanaged;
pub mod written;

use std::sync::Arc;

use crate::cluster::events::Events;
use crate::cluster::nodes::Nodes;
use crate::cluster::patch::NodeWriter;
use crate::provider::{Identity, Instances, StateReceiver};
use crate::telemetry::cloud_health::CloudHealth;
use crate::telemetry::health::Health;
use crate::telemetry::metrics::NodeMetrics;

/// What the node controllers share. A new one is made for every term of leadership.
#[derive(Clone)]
pub struct NodeContext {
    /// The nodes.
    pub nodes: Nodes,
    /// The way to write to them.
    pub writer: NodeWriter,
    /// Where events go.
    pub events: Events,
    /// Look-ups.
    pub instances: Arc<dyn Instances>,
    /// Who the provider is.
    pub identity: Arc<dyn Identity>,
    /// How the provider stands.
    pub provider: StateReceiver,
    /// What is counted.
    pub metrics: NodeMetrics,
    /// What readiness says.
    pub health: Health,
    /// What readiness says of the cloud.
    pub cloud: CloudHealth,
}
