//! Whether a call is possible at all: the provider's status, and what it serves. It makes no call.
use crate::model::provider_info::{Capability, ProviderInfo};

use super::{Outcome, ProviderError, ProviderState};

impl Capability {
    /// The contract's name, without its prefix.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lead => "LEAD",
            Self::Instances => "INSTANCES",
            Self::WatchInstances => "WATCH_INSTANCES",
            Self::Zones => "ZONES",
            Self::LoadBalancers => "LOAD_BALANCERS",
            Self::NodeSets => "NODE_SETS",
            Self::PlanLoadBalancer => "PLAN_LOAD_BALANCER",
            Self::ListLoadBalancers => "LIST_LOAD_BALANCERS",
            Self::Routes => "ROUTES",
        }
    }
}

/// An error unless the provider serves this.
pub fn require(info: &ProviderInfo, capability: Capability) -> Result<(), ProviderError> {
    if info.capabilities.contains(&capability) {
        return Ok(());
    }
    let message = format!("the provider {} does not list the capability {}", info.name, capability.as_str());
    Err(ProviderError { outcome: Outcome::Unsupported, reason: "NOT_IMPLEMENTED".to_owned(), message })
}

/// The error of a call that is not made because of the provider's status.
pub fn standing(state: &ProviderState) -> ProviderError {
    let message = match state {
        ProviderState::Disconnected { message, .. } => format!("the provider is not connected: {message}"),
        ProviderState::Unusable { message } => format!("the provider cannot be used: {message}"),
        ProviderState::IdentityChanged { accepted, found } => format!(
            "the provider now serves the cloud \"{}\" where \"{accepted}\" was accepted: nothing is changed until the new one is \
             accepted with --accept-cloud-identity",
            found.cloud_identity
        ),
        ProviderState::Unconfirmed { message, .. } => message.clone(),
        ProviderState::Ready(_) => "the provider's session has just changed".to_owned(),
    };
    retry("PROVIDER_NOT_READY", message)
}

/// An error after which a retry may succeed.
pub fn retry(reason: &str, message: impl Into<String>) -> ProviderError {
    ProviderError { outcome: Outcome::Retry { after: None }, reason: reason.to_owned(), message: message.into() }
}
