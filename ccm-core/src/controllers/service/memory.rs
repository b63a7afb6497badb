//! What is remembered of one Service between two looks at it. How the end of a call changes it is the table in [`outcome`].
use std::sync::Arc;
use std::time::Instant;

use super::decide::{fingerprint, seen};
use super::targets::Targets;
use crate::controllers::scheduler::retry::Retry;
use crate::model::service::Service;

mod outcome;

pub use self::outcome::{Attempt, Call, Failure, Outcome};

/// What is remembered of one Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Which Service it is.
    pub uid: String,
    /// What it was like when it was last worked on, or first seen.
    pub seen: u64,
    /// The candidates' hash when it was first seen.
    pub first_candidates: Option<Arc<str>>,
    /// What is known of its load balancer, targets apart.
    pub definition: Definition,
    /// When Ensure, a deletion or a plan is made again, and the pause in which the cloud is at work.
    pub definition_retry: Retry,
    /// What is known of its load balancer's targets.
    pub targets: Given,
    /// When the same targets are given again.
    pub targets_retry: Retry,
    /// When it is compared with the cloud next; `None` where drift is not looked for.
    pub check_at: Option<Instant>,
    /// Whether the provider answers no plans for this very Service.
    pub plans_unimplemented: bool,
    /// The call that is made, or was last due.
    pub attempt: Option<Attempt>,
}

/// What this process knows of a load balancer, its targets apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Definition {
    /// Nothing: it was never ensured.
    #[default]
    NeverEnsured,
    /// Nothing is known to be wrong, and no plan could tell: it is ensured in its turn, at a pace.
    InTurn,
    /// A plan said that it is not in the desired state.
    Differs,
    /// The provider said that it is in the desired state.
    InDesiredState {
        /// Of the Service that it was made for.
        fingerprint: u64,
        /// Whether drift was found and reported, and not repaired.
        drifted: bool,
    },
    /// A call was begun, and its outcome is unknown.
    Unknown,
    /// The cloud was there and did not do it. It may take other targets.
    Refused,
    /// The provider said that another implementation makes it.
    ImplementedElsewhere {
        /// Of the Service for which it said so.
        fingerprint: u64,
    },
}

/// The targets of a load balancer, as far as this process knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Those that it was last given.
    pub had: Option<Targets>,
    /// Whether others were begun to be given since, with an unknown outcome.
    pub unsure: bool,
}

impl Given {
    /// Whether the load balancer is to be given the present targets.
    pub fn calls_for(&self, present: &Targets) -> bool {
        self.unsure || self.had.as_ref().is_none_or(|had| present.replace(had))
    }
}

impl Memory {
    /// Of a Service that is seen for the first time.
    pub fn new(service: &Service) -> Self {
        Self { uid: service.uid.clone(), seen: seen(service), ..Self::default() }
    }

    /// Takes in the targets as they are now. Equal ones were given under the present candidates as well as under those of then.
    pub fn see_targets(&mut self, present: &Targets) {
        self.first_candidates.get_or_insert_with(|| Arc::clone(&present.candidates));
        self.targets.had.iter_mut().filter(|had| had.set == present.set).for_each(|had| had.clone_from(present));
    }

    /// Another provider is connected, or the same one again: what one refused another may do.
    pub fn end_pauses(&mut self) {
        self.definition_retry.end_pause();
        self.targets_retry.end_pause();
        self.plans_unimplemented = false;
    }

    /// The provider says something else of itself. What it left to another implementation it may make itself now;
    /// and another build may make load balancers otherwise, so that it is asked about all, as after a restart.
    pub fn verify(&mut self, service: Option<&Service>, another_build: bool) {
        match self.definition {
            Definition::ImplementedElsewhere { .. } => {}
            Definition::InDesiredState { fingerprint: made_for, .. } if another_build => {
                // What was written to it since is no change of the user's.
                let unchanged = service.filter(|service| fingerprint(service) == made_for);
                self.seen = unchanged.map_or(self.seen, seen);
            }
            _ => return,
        }
        self.definition = Definition::NeverEnsured;
        self.first_candidates = None;
        self.targets.unsure = true;
    }

    /// The cloud is back after an outage: what failed meanwhile is tried now. Says whether anything waited for that.
    pub fn retry_now(&mut self) -> bool {
        self.definition_retry.retry_now()
    }

    /// Until when work on the Service pauses that was not changed since.
    pub fn definition_pause(&self, service: &Service, now: Instant) -> Option<Instant> {
        self.definition_retry.not_before(seen(service), now)
    }

    /// Whether the cloud has something for it, as far as this process has seen.
    pub fn has_load_balancer(&self) -> bool {
        self.targets.had.is_some()
    }
}
