//! Queries about machines, and their answers.
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::node::{Address, Node};
use super::provider_info::ProviderInfo;

/// Which machine to look up; see `InstanceQuery` in the contract.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeQuery {
    /// The node's name.
    pub node_name: String,
    /// `spec.providerID`, if the node has one.
    pub provider_id: Option<String>,
    /// `status.nodeInfo.systemUUID`.
    pub system_uuid: Option<String>,
    /// The node's present addresses.
    pub addresses: Vec<Address>,
    /// The labels that the provider requests.
    pub labels: BTreeMap<String, String>,
    /// The annotations that the provider requests.
    pub annotations: BTreeMap<String, String>,
}

impl NodeQuery {
    /// The query for a node, with the labels and annotations that this provider reads.
    pub fn about(node: &Node, provider: &ProviderInfo) -> Self {
        Self {
            node_name: node.name.clone(),
            provider_id: node.provider_id.clone(),
            system_uuid: node.system_uuid.clone(),
            addresses: node.addresses.clone(),
            labels: provider.node_labels.select(&node.labels),
            annotations: provider.node_annotations.select(&node.annotations),
        }
    }
}

/// The power state of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceState {
    /// Being created or started.
    Pending,
    /// Running.
    Running,
    /// Stopped, and can be started again.
    Stopped,
    /// Deleted for good; the cloud still knows its record.
    Deleted,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// What becomes `spec.providerID`; `None` if the provider gave none.
    pub provider_id: Option<String>,
    /// The power state.
    pub state: InstanceState,
    /// The instance type.
    pub instance_type: Option<String>,
    /// The failure zone.
    pub zone: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// Addresses in the order in which the node shall have them; empty means "not known".
    pub addresses: Vec<Address>,
    /// Further labels for the node.
    pub additional_labels: BTreeMap<String, String>,
    /// Pod CIDRs from the cloud.
    pub pod_cidrs: Vec<String>,
    /// Things the user should know, those included that were wrong in the answer itself.
    pub warnings: Vec<Warning>,
}

/// Something that becomes an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// A word in CamelCase.
    pub reason: String,
    /// The message.
    pub message: String,
}

/// What the cloud knows of a machine. "Could not be determined" is an error, not one of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Known.
    Found(Box<Instance>),
    /// The cloud answered that it does not know it.
    NotFound,
    /// It belongs to another provider; this provider's message for the log.
    NotMine(String),
    /// Several machines match: their ids.
    Ambiguous(Vec<String>),
}

/// An answer, with the data that decides whether it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The answer.
    pub lookup: Lookup,
    /// When the cloud's data behind it was read, by the provider's clock. Only ever compared with other such times.
    pub observed_at: Timestamp,
    /// The identity of the cloud that answered.
    pub cloud_identity: Arc<str>,
}
