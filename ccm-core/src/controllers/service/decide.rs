//! What to do about one Service. Pure: every decision follows from [`Observed`] and a time.
//!
//! Which Service gets a load balancer and when one is changed are upstream's rules. A load balancer is removed only for a Service that
//! says so itself (it is being deleted, or is of another type now) while it has our finalizer; never because something is absent.
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use super::memory::Definition;
use super::observe::Observed;
use super::priority::Priority;
use super::targets::Targets;
use crate::model::provider_info::Capability;
use crate::model::service::Service;
use crate::names;

mod ownership;
mod settle;
#[cfg(test)]
mod tests;

pub use ownership::{Classes, Ownership, ownership};
pub use settle::{annotations, failed, in_desired_state, in_progress, removed};

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing: it is in the desired state, or not ours.
    Nothing,
    /// Nothing, although it is ours.
    LeftUnmanaged(LeftUnmanaged),
    /// Nothing before this time.
    NotBefore(Instant),
    /// Remove the load balancer, then the finalizer unless another controller needs it.
    Delete {
        /// Another controller's class is asked for now, and its controller shares our finalizer.
        keeps_finalizer: bool,
        /// How urgent that is.
        priority: Priority,
    },
    /// Make the load balancer be in the desired state.
    Ensure {
        /// With these targets.
        targets: Targets,
        /// How urgent that is.
        priority: Priority,
    },
    /// Give the load balancer the present targets.
    UpdateTargets {
        /// How urgent that is.
        priority: Priority,
    },
    /// Ask what Ensure would do.
    Plan(Purpose),
}

/// Why a Service of ours is left unmanaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftUnmanaged {
    /// Its class is not served any more.
    Class(String),
    /// The provider serves no load balancers.
    Unsupported,
}

/// What a plan is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// This process has not seen the load balancer yet.
    Restart,
    /// Something other than this controller may have changed it.
    Drift,
}

impl Step {
    /// How urgent it is; `None` if there is nothing to do now.
    pub fn priority(&self) -> Option<Priority> {
        match self {
            Self::Nothing | Self::LeftUnmanaged(_) | Self::NotBefore(_) => None,
            Self::Delete { priority, .. } | Self::Ensure { priority, .. } | Self::UpdateTargets { priority } => Some(*priority),
            Self::Plan(_) => Some(Priority::Check),
        }
    }
}

/// What to do now.
pub fn decide(observed: &Observed, now: Instant) -> Step {
    let pause = observed.memory.definition_pause(&observed.service, now);
    match (ownership(&observed.service, &observed.classes), pause) {
        (Ownership::NotOurs, _) => Step::Nothing,
        (Ownership::ClassNotServed(class), _) => Step::LeftUnmanaged(LeftUnmanaged::Class(class)),
        (Ownership::Wanted, _) if !serves(observed) && !is_unfinished(observed) => Step::Nothing,
        (Ownership::Wanted | Ownership::Unneeded { .. }, _) if !serves(observed) => {
            Step::LeftUnmanaged(LeftUnmanaged::Unsupported)
        }
        (Ownership::Wanted, Some(until)) => paused(observed, until, now),
        (Ownership::Wanted, None) => wanted(observed, now),
        (Ownership::Unneeded { .. }, Some(until)) => Step::NotBefore(until),
        (Ownership::Unneeded { keeps_finalizer }, None) => {
            let priority = if is_repeated(observed) { Priority::Again } else { Priority::Deletion };
            Step::Delete { keeps_finalizer, priority }
        }
    }
}

fn serves(observed: &Observed) -> bool {
    observed.provider.capabilities.contains(&Capability::LoadBalancers)
}

/// Whether something would be done about a wanted load balancer.
fn is_unfinished(observed: &Observed) -> bool {
    match observed.memory.definition {
        Definition::InDesiredState { fingerprint: made_for, .. } => made_for != fingerprint(&observed.service),
        _ => observed.is_changed() || !has_load_balancer(&observed.service),
    }
}

/// Whether a call that failed, or that the cloud is at work on, is made again, and the user has changed nothing since.
fn is_repeated(observed: &Observed) -> bool {
    matches!(observed.memory.definition, Definition::Unknown | Definition::Refused) && !observed.is_changed()
}

/// While Ensure, a deletion or a plan waits. One refused annotation must not leave a load balancer with dead targets: where the cloud
/// is there and refuses Ensure, targets follow the nodes meanwhile.
fn paused(observed: &Observed, until: Instant, now: Instant) -> Step {
    let (memory, targets) = (&observed.memory, &observed.targets);
    let follows = memory.definition == Definition::Refused && has_addresses(&observed.service);
    if !follows || !memory.targets.calls_for(targets) {
        return Step::NotBefore(until);
    }
    let tried = memory.targets_retry.not_before(targets.retry_key(), now);
    match targets.empty_target_grace(now).max(tried) {
        Some(at) => Step::NotBefore(at.min(until)),
        None => Step::UpdateTargets { priority: Priority::Targets },
    }
}

fn wanted(observed: &Observed, now: Instant) -> Step {
    let (service, memory, targets) = (&observed.service, &observed.memory, &observed.targets);
    let grace = targets.empty_target_grace(now);
    let had = memory.targets.had.as_ref();
    match memory.definition {
        Definition::ImplementedElsewhere { fingerprint: said_for } if said_for == fingerprint(service) => Step::Nothing,
        // Without our finalizer the load balancer would be left behind some day.
        Definition::InDesiredState { fingerprint: made_for, .. }
            if made_for != fingerprint(service) || !service.has_finalizer() =>
        {
            let targets = had.filter(|_| grace.is_some()).unwrap_or(targets).clone();
            Step::Ensure { targets, priority: Priority::Change }
        }
        Definition::InDesiredState { .. } if memory.targets.calls_for(targets) => {
            let priority = if memory.targets.unsure { Priority::Again } else { Priority::Targets };
            let grace = grace.filter(|_| had.is_some_and(|had| !had.set.is_empty()));
            grace.map_or(Step::UpdateTargets { priority }, Step::NotBefore)
        }
        Definition::InDesiredState { .. } => match memory.check_at.filter(|_| observed.has_plans()) {
            Some(at) if at <= now => Step::Plan(Purpose::Drift),
            at => at.map_or(Step::Nothing, Step::NotBefore),
        },
        _ => unsettled(observed, grace),
    }
}

/// A load balancer that is not known to be in the desired state.
fn unsettled(observed: &Observed, grace: Option<Instant>) -> Step {
    let service = &observed.service;
    if let Some(until) = grace.filter(|_| has_addresses(service)) {
        return Step::NotBefore(until);
    }
    let ensure = |priority| Step::Ensure { targets: observed.targets.clone(), priority };
    let in_turn = if observed.nodes_changed() { Priority::Targets } else { Priority::Paced };
    match observed.memory.definition {
        _ if observed.is_changed() => ensure(Priority::Change),
        Definition::Differs => ensure(Priority::Targets),
        Definition::NeverEnsured if !has_load_balancer(service) => ensure(Priority::Change),
        Definition::NeverEnsured if observed.has_plans() => Step::Plan(Purpose::Restart),
        Definition::NeverEnsured | Definition::InTurn => ensure(in_turn),
        _ if is_repeated(observed) => ensure(Priority::Again),
        _ => ensure(Priority::Change),
    }
}

/// Whether it was in the desired state before this process began: its condition says so. Upstream's controller leaves none, but
/// addresses.
fn has_load_balancer(service: &Service) -> bool {
    let settled = service.condition.as_ref().map_or(!service.status.ingress.is_empty(), |condition| condition.ready);
    service.has_finalizer() && settled
}

/// Whether traffic may depend on it.
fn has_addresses(service: &Service) -> bool {
    service.has_finalizer() && !service.status.ingress.is_empty()
}

/// Of what a load balancer is made, but for its targets: as long as it is the same, there is no reason for Ensure. These are the
/// fields by which upstream's controller decides, and the class.
pub fn fingerprint(service: &Service) -> u64 {
    let annotations = service.annotations.iter().filter(|(key, _)| *key != names::annotations::LOAD_BALANCER_CLASS);
    let mut hasher = DefaultHasher::new();
    (&service.uid, service.is_load_balancer, &service.load_balancer_class, &service.ports).hash(&mut hasher);
    (&service.load_balancer_source_ranges, &service.load_balancer_ip, &service.external_ips).hash(&mut hasher);
    (service.session_affinity, service.session_affinity_timeout_seconds).hash(&mut hasher);
    (service.external_traffic_policy, service.health_check_node_port, service.ip_families.len()).hash(&mut hasher);
    annotations.collect::<Vec<_>>().hash(&mut hasher);
    hasher.finish()
}

/// What a pause after a failure is bound to: it ends when a person has changed something, and not when a node has, or when we have
/// added our finalizer or written the status.
pub fn seen(service: &Service) -> u64 {
    let mut hasher = DefaultHasher::new();
    (fingerprint(service), service.deleted_at.is_some()).hash(&mut hasher);
    hasher.finish()
}
