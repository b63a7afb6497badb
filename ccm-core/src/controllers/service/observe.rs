//! What is known of a Service before a decision. Data only: the driver keeps it up to date.
use std::sync::Arc;

use super::decide::{Classes, seen};
use super::memory::Memory;
use super::targets::Targets;
use crate::config::services::Drift;
use crate::model::provider_info::{Capability, ProviderInfo};
use crate::model::service::Service;

/// All that a decision about one Service rests on.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The Service, as the watch last showed it.
    pub service: Arc<Service>,
    /// What the provider says of itself.
    pub provider: Arc<ProviderInfo>,
    /// Which classes are served.
    pub classes: Arc<Classes>,
    /// The nodes that count; none are read for a Service that wants no load balancer.
    pub targets: Targets,
    /// What this process knows of the load balancer.
    pub memory: Memory,
    /// What is done about drift.
    pub drift: Drift,
}

impl Observed {
    /// Whether a user has changed the Service since it was last worked on, or first seen.
    pub fn is_changed(&self) -> bool {
        self.memory.seen != seen(&self.service)
    }

    /// Whether nodes came or went since this Service was first seen.
    pub fn nodes_changed(&self) -> bool {
        self.memory.first_candidates.as_ref().is_some_and(|first| *first != self.targets.candidates)
    }

    /// Whether the provider answers plans for this Service.
    pub fn has_plans(&self) -> bool {
        self.provider.capabilities.contains(&Capability::PlanLoadBalancer) && !self.memory.plans_unimplemented
    }
}
