//! What shall happen to a node, from what is known of it. Pure: it waits for nothing, writes nothing, and knows no time.
mod addresses;
mod labels;
#[cfg(test)]
mod tests;

pub use labels::Discarded;

use super::observe::Observed;
use crate::cluster::events::EventType;
use crate::cluster::patch::{NetworkCondition, NodePatch, NodeStatusPatch};
use crate::model::instance::{Instance, InstanceState, Lookup};
use crate::model::node::{NetworkUnavailable, Node};
use crate::model::ownership::Ownership;
use crate::model::provider_info::{Capability, ProviderInfo};
use crate::names::{annotations, events, taints};
use crate::provider::Priority;

/// What shall happen. The default is nothing at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Ask the provider, then decide again.
    pub look_up: Option<Priority>,
    /// First write: the node's status.
    pub status: NodeStatusPatch,
    /// Second write: everything else.
    pub patch: NodePatch,
    /// Whether the second write ends the node's initialisation.
    pub initializes: bool,
    /// What a person should know of the node.
    pub warnings: Vec<NodeWarning>,
    /// Labels from the provider that were not set.
    pub discarded: Vec<Discarded>,
    /// Whether to come back without being woken.
    pub again: Again,
}

/// Whether to come back without being woken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Again {
    /// No.
    #[default]
    No,
    /// After a while that grows from time to time.
    BackOff,
    /// After minutes: a person must do something first.
    Slowly,
}

/// Something to tell about a node, once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeWarning {
    /// The reason of the event.
    pub reason: String,
    /// For people.
    pub message: String,
}

impl NodeWarning {
    /// A warning under a reason of [`crate::names::events`].
    pub fn new(reason: &str, message: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), message: message.into() }
    }

    /// All warnings ask somebody to look.
    pub const GRADE: EventType = EventType::Warning;
}

/// Why an answer cannot be used. The node stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A node without a providerID could never be told from another again.
    #[error("the answer has no provider_id and the node has no spec.providerID: the provider must set Instance.provider_id")]
    NoProviderId,
    /// It is about another machine.
    #[error(
        "the answer has provider_id {answered:?} but the node has spec.providerID {present:?}, which never changes: \
         the provider must look machines up by InstanceQuery.provider_id, or the node must be deleted and join again"
    )]
    OtherProviderId {
        /// The node's.
        present: String,
        /// The answer's.
        answered: String,
    },
    /// It would make the node a stranger's.
    #[error("the answer has provider_id {0:?}, which begins with none of the provider's ProviderInfo.provider_id_prefixes")]
    ForeignProviderId(String),
    /// kubelet asks for an address that the machine does not have.
    #[error("annotation {key}: {0}", key = annotations::PROVIDED_NODE_IP)]
    NodeIp(#[from] addresses::NodeIpError),
}

impl Refusal {
    fn warning(&self) -> NodeWarning {
        let reason = match self {
            Self::NodeIp(_) => events::INVALID_NODE_IP,
            _ => events::INVALID_PROVIDER_ANSWER,
        };
        NodeWarning::new(reason, self.to_string())
    }
}

impl Plan {
    /// Whether there is anything to write.
    pub fn writes(&self) -> bool {
        !self.status.is_empty() || !self.patch.is_empty()
    }

    /// Whether there is nothing to do, say or come back for.
    pub fn is_idle(&self) -> bool {
        *self == Self::default()
    }

    fn ask(priority: Priority) -> Self {
        Self { look_up: Some(priority), ..Self::default() }
    }

    fn again(again: Again) -> Self {
        Self { again, ..Self::default() }
    }
}

/// Decides. Without an answer: whether one is needed, and what the node itself shows to be wrong.
pub fn decide(observed: &Observed) -> Plan {
    let node = &*observed.node;
    if !is_concerned(node, &observed.provider) {
        return Plan::default();
    }
    match &observed.answer {
        None if node.is_uninitialized() => Plan::ask(Priority::Initialize),
        None if observed.refresh => Plan::ask(Priority::Refresh),
        None => Plan { patch: labels::reconciled(node, None), ..Plan::default() },
        Some(lookup) => answered(observed, lookup),
    }
}

/// Whether this controller has anything to do with the node. A node without a providerID is left unmanaged unless it waits for a
/// cloud to initialise it.
fn is_concerned(node: &Node, provider: &ProviderInfo) -> bool {
    match provider.ownership(node) {
        Ownership::Unclaimed => node.is_uninitialized(),
        other => other.is_managed(),
    }
}

fn answered(observed: &Observed, lookup: &Lookup) -> Plan {
    let mut plan = match lookup {
        Lookup::Found(instance) => found(observed, instance),
        Lookup::NotMine(_) => return Plan::default(),
        // The cloud may not show a new machine yet.
        Lookup::NotFound => Plan::again(Again::BackOff),
        Lookup::Ambiguous(ids) => {
            let message = format!("more than one machine fits this node: {}; set spec.providerID", ids.join(", "));
            let warnings = vec![NodeWarning::new(events::AMBIGUOUS_INSTANCE, message)];
            Plan { warnings, ..Plan::again(Again::Slowly) }
        }
    };
    if !observed.node.is_uninitialized() {
        // The next refresh comes anyway; whether the machine is gone is the lifecycle controller's business.
        plan.again = Again::No;
    }
    plan
}

fn found(observed: &Observed, instance: &Instance) -> Plan {
    let (node, provider) = (&*observed.node, &*observed.provider);
    let planned = match node.is_uninitialized() {
        // A record of a deleted machine is not this node's: a new machine of the same name will show up.
        true if instance.state == InstanceState::Deleted => Ok(Plan::again(Again::BackOff)),
        true => initialize(observed, instance),
        false => refresh(node, provider, instance),
    };
    let mut plan = planned.unwrap_or_else(|refusal| Plan { warnings: vec![refusal.warning()], ..Plan::again(Again::BackOff) });
    plan.warnings.extend(instance.warnings.iter().map(|warning| NodeWarning::new(&warning.reason, &warning.message)));
    plan
}

fn initialize(observed: &Observed, instance: &Instance) -> Result<Plan, Refusal> {
    let node = &*observed.node;
    let provider_id = provider_id(node, &observed.provider, instance)?;
    let status = NodeStatusPatch { addresses: addresses::changed(node, instance)?, network: network(observed) };
    let initial = labels::initial(node, instance);
    let taints = node.taints.iter().filter(|taint| taint.key != taints::UNINITIALIZED).cloned().collect();
    let patch = NodePatch { provider_id, taints: Some(taints), ..initial.patch };
    Ok(Plan { status, patch, initializes: true, discarded: initial.discarded, ..Plan::default() })
}

fn refresh(node: &Node, provider: &ProviderInfo, instance: &Instance) -> Result<Plan, Refusal> {
    provider_id(node, provider, instance)?;
    // Labels do not depend on addresses: a bad address must not hold them up.
    let (addresses, refusal) = match addresses::changed(node, instance) {
        Ok(addresses) => (addresses, None),
        Err(error) => (None, Some(Refusal::from(error).warning())),
    };
    let warnings = labels::drift(node, instance).into_iter().chain(refusal).collect();
    let status = NodeStatusPatch { addresses, network: None };
    Ok(Plan { status, patch: labels::reconciled(node, Some(instance)), warnings, ..Plan::default() })
}

/// Where node-route-controller runs, a node that is initialised has no network until its routes exist. What the condition says
/// already of routes, or of a network that is not available, stays.
fn network(observed: &Observed) -> Option<NetworkCondition> {
    let is_unset = match observed.node.network_unavailable {
        NetworkUnavailable::Absent | NetworkUnavailable::NotForAnotherReason => true,
        NetworkUnavailable::RouteCreated | NetworkUnavailable::NoRouteCreated | NetworkUnavailable::ForAnotherReason => false,
    };
    let waits = observed.configures_routes && observed.provider.capabilities.contains(&Capability::Routes) && is_unset;
    waits.then_some(NetworkCondition::NoRouteYet)
}

/// The providerID to write, if the node has none yet.
fn provider_id(node: &Node, provider: &ProviderInfo, instance: &Instance) -> Result<Option<String>, Refusal> {
    match (&node.provider_id, &instance.provider_id) {
        (None, None) => Err(Refusal::NoProviderId),
        (None, Some(id)) if !provider.owns(id) => Err(Refusal::ForeignProviderId(id.clone())),
        (None, Some(id)) => Ok(Some(id.clone())),
        (Some(present), Some(answered)) if present != answered => {
            Err(Refusal::OtherProviderId { present: present.clone(), answered: answered.clone() })
        }
        (Some(_), _) => Ok(None),
    }
}
