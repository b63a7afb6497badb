//! What to do about one Service. Pure: whatever is decided follows from [`Observed`] and a time.
//!
//! Who gets a load balancer and when one is changed are Go's rules. A load balancer is removed only for a Service that says
//! so itself (it is being deleted, or is of another type now) while it holds our finalizer; never because something is absent.
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use super::observe::{Applied, Failed, Known, Observed, Turn};
use super::targets::Targets;
use crate::config::services::Drift;
use crate::model::provider_info::Capability;
use crate::model::service::Service;
use crate::model::target::TargetSet;
use crate::names;

mod class;
mod settle;
#[cfg(test)]
mod tests;

pub use class::{Classes, Standing, standing};
pub use settle::{adopt, annotations, failing, pending, removed};

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing: it is as asked, or not ours.
    Nothing,
    /// Nothing, although it is ours.
    Frozen(Frozen),
    /// Nothing for this long: the targets have just vanished.
    Wait(Duration),
    /// Nothing until its pause is over.
    Rest,
    /// Remove the load balancer, then the finalizer unless it is another's too.
    Delete {
        /// Another controller's class is asked for now, and its controller shares our finalizer.
        keeps_finalizer: bool,
        /// How urgent that is.
        lane: Lane,
    },
    /// Make the load balancer be as asked.
    Ensure {
        /// With these targets.
        set: TargetSet,
        /// How urgent that is.
        lane: Lane,
    },
    /// Give the load balancer the present targets.
    Update {
        /// How urgent that is.
        lane: Lane,
    },
    /// Ask what Ensure would do.
    Check(Purpose),
}

/// Why a Service of ours is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frozen {
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
    /// It may have been changed behind our back.
    Drift,
}

/// What goes first when there is more to do than the provider takes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Somebody changed, made or deleted a Service.
    Change,
    /// Nodes came or went, for all Services at once.
    Targets,
    /// What was begun before goes on: the cloud has been at work, or failed.
    Again,
    /// Nothing is known to be wrong; it is looked at.
    Check,
    /// Nothing is known to be wrong, and looking is done by writing: one at a time, with a pause after each.
    Paced,
}

impl Step {
    /// In which lane it waits; `None` if there is nothing to wait for.
    pub fn lane(&self) -> Option<Lane> {
        match self {
            Self::Nothing | Self::Frozen(_) | Self::Wait(_) | Self::Rest => None,
            Self::Delete { lane, .. } | Self::Ensure { lane, .. } | Self::Update { lane } => Some(*lane),
            Self::Check(_) => Some(Lane::Check),
        }
    }
}

/// What to do now.
pub fn decide(observed: &Observed, now: Instant) -> Step {
    match standing(&observed.service, &observed.classes) {
        Standing::NotOurs => Step::Nothing,
        Standing::ClassNotServed(class) => Step::Frozen(Frozen::Class(class)),
        Standing::Wanted if !serves(observed) && !unfinished(observed) => Step::Nothing,
        Standing::Wanted | Standing::Unneeded { .. } if !serves(observed) => Step::Frozen(Frozen::Unsupported),
        Standing::Wanted if observed.turn == Turn::Pause => paused(observed, now),
        Standing::Unneeded { .. } if observed.turn == Turn::Pause => Step::Rest,
        Standing::Unneeded { keeps_finalizer } => Step::Delete { keeps_finalizer, lane: new_or_again(observed) },
        Standing::Wanted => wanted(observed, now),
    }
}

fn serves(observed: &Observed) -> bool {
    observed.provider.capabilities.contains(&Capability::LoadBalancers)
}

/// Whether something would be done about a wanted load balancer.
fn unfinished(observed: &Observed) -> bool {
    match &observed.known {
        Known::Applied(applied) => applied.fingerprint != fingerprint(&observed.service),
        _ => observed.changed || !has_load_balancer(&observed.service),
    }
}

fn new_or_again(observed: &Observed) -> Lane {
    match observed.known {
        Known::Doubt | Known::Failed(_) if !observed.changed => Lane::Again,
        _ => Lane::Change,
    }
}

/// While the whole is left alone for a time: one refused annotation must not leave a load balancer with dead targets.
fn paused(observed: &Observed, now: Instant) -> Step {
    let (Known::Failed(Failed { refused: true, applied, tried }), targets) = (&observed.known, &observed.targets) else {
        return Step::Rest;
    };
    let called_for = applied.as_ref().is_none_or(|applied| calls_for(applied, targets));
    if !called_for || tried.as_ref() == Some(&targets.set) || !holds_addresses(&observed.service) {
        return Step::Rest;
    }
    targets.doubt(now).map_or(Step::Update { lane: Lane::Targets }, Step::Wait)
}

fn wanted(observed: &Observed, now: Instant) -> Step {
    let (service, targets) = (&observed.service, &observed.targets);
    let doubt = targets.doubt(now);
    match &observed.known {
        Known::Elsewhere(seen) if *seen == fingerprint(service) => Step::Nothing,
        // Without our finalizer the load balancer would be left behind some day.
        Known::Applied(applied) if applied.fingerprint != fingerprint(service) || !service.has_finalizer() => {
            let set = if doubt.is_some() { &applied.set } else { &targets.set };
            Step::Ensure { set: set.clone(), lane: Lane::Change }
        }
        Known::Applied(applied) if calls_for(applied, targets) => {
            let lane = if applied.unsure { Lane::Again } else { Lane::Targets };
            doubt.filter(|_| !applied.set.is_empty()).map_or(Step::Update { lane }, Step::Wait)
        }
        Known::Applied(_) if observed.turn == Turn::Check && observed.drift != Drift::Off && observed.plans => {
            Step::Check(Purpose::Drift)
        }
        Known::Applied(_) => Step::Nothing,
        _ => first(observed, doubt),
    }
}

/// Whether load balancers that were made of these targets are to be given the present ones: where nodes came or went, or where
/// one that was left out because it was about to go has stayed after all.
fn calls_for(applied: &Applied, targets: &Targets) -> bool {
    let differ = applied.set != targets.set;
    applied.unsure || (differ && (applied.trigger != targets.trigger || !applied.set.contains(&targets.set)))
}

/// A load balancer of which this process does not know how it is.
fn first(observed: &Observed, doubt: Option<Duration>) -> Step {
    let service = &observed.service;
    if let Some(left) = doubt.filter(|_| holds_addresses(service)) {
        return Step::Wait(left);
    }
    let ensure = |lane| Step::Ensure { set: observed.targets.set.clone(), lane };
    match observed.known {
        _ if observed.changed => ensure(Lane::Change),
        Known::Differs => ensure(Lane::Targets),
        Known::Nothing if has_load_balancer(service) && observed.plans => Step::Check(Purpose::Restart),
        Known::Nothing if !has_load_balancer(service) => ensure(Lane::Change),
        Known::Nothing | Known::InTurn => ensure(if observed.nodes_changed { Lane::Targets } else { Lane::Paced }),
        _ => ensure(new_or_again(observed)),
    }
}

/// Whether somebody brought it to its end before: its condition says so. Go's controller leaves none, but addresses.
fn has_load_balancer(service: &Service) -> bool {
    let settled = service.condition.as_ref().map_or(!service.status.ingress.is_empty(), |condition| condition.ready);
    service.has_finalizer() && settled
}

/// Whether traffic may depend on it, however it stands.
fn holds_addresses(service: &Service) -> bool {
    service.has_finalizer() && !service.status.ingress.is_empty()
}

/// Of what a load balancer is made, but for its targets: as long as it is the same, Ensure has nothing new to say. These are
/// the fields by which Go's controller decides, and the class.
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

/// What a pause after a failure is bound to: it ends when a person has changed something, and not when a node has,
/// or when we have added our finalizer or written the status.
pub fn seen(service: &Service) -> u64 {
    let mut hasher = DefaultHasher::new();
    (fingerprint(service), service.deleted_at.is_some()).hash(&mut hasher);
    hasher.finish()
}
