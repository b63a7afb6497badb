//! What is known of a Service before a decision. Data only: the driver keeps it up to date.
use std::sync::Arc;

use super::decide::Classes;
use super::targets::Targets;
use crate::config::services::Drift;
use crate::model::provider_info::ProviderInfo;
use crate::model::service::Service;
use crate::model::target::TargetSet;

/// All that a decision about one Service rests on.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The Service, as the watch last showed it.
    pub service: Arc<Service>,
    /// Who the provider is.
    pub provider: Arc<ProviderInfo>,
    /// Which classes are served.
    pub classes: Arc<Classes>,
    /// The nodes that count.
    pub targets: Targets,
    /// What this process knows of the load balancer.
    pub known: Known,
    /// Whether somebody has changed the Service since it was last worked at, or first seen.
    pub changed: bool,
    /// Whether nodes came or went since this Service was first seen.
    pub nodes_changed: bool,
    /// Why it is looked at.
    pub turn: Turn,
    /// Whether the provider answers plans.
    pub plans: bool,
    /// What is done about drift.
    pub drift: Drift,
}

/// Why a Service is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Something may be different.
    Usual,
    /// It is to be compared with the cloud.
    Check,
    /// It was named while it pauses after a failure, and nothing that mattered then has changed.
    Pause,
}

/// What this process knows of a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Known {
    /// Nothing yet.
    #[default]
    Nothing,
    /// Nothing is known to be wrong, and no plan says whether it is right: it is made sure of when its turn comes.
    InTurn,
    /// Something was begun, and how it ended is not known.
    Doubt,
    /// It could not be made as asked. Its targets follow the nodes all the same.
    Failed(Failed),
    /// A plan said that it is not as asked.
    Differs,
    /// The provider said that it is as asked.
    Applied(Applied),
    /// The provider said that somebody else makes it, for a Service of this fingerprint.
    Elsewhere(u64),
}

/// What a load balancer was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The Service's part.
    pub fingerprint: u64,
    /// What the nodes were like; see [`Targets::trigger`].
    pub trigger: Arc<str>,
    /// The targets.
    pub set: TargetSet,
    /// Whether drift was found and reported, and not repaired.
    pub drifted: bool,
    /// Whether other targets were begun to be applied since, and how that ended is not known.
    pub unsure: bool,
}

/// What is left of a load balancer that could not be made as asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failed {
    /// Whether the cloud was there and did not do it. Then it may take other targets.
    pub refused: bool,
    /// What it was made of when that last succeeded, if this process has seen that.
    pub applied: Option<Applied>,
    /// The targets that it was given in vain: the same ones are not tried again before the pause is over.
    pub tried: Option<TargetSet>,
}
