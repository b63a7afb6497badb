//! The table of outcomes: what the end of each call says of a load balancer's definition and of its targets, and when what is retried.
//! Pure but for the jitter of pauses.
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use super::{Definition, Given, Memory};
use crate::cluster::patch::WriteError;
use crate::controllers::scheduler::Answered;
use crate::controllers::scheduler::retry::Pause;
use crate::controllers::service::PAUSES;
use crate::controllers::service::decide::{Purpose, Step, fingerprint, seen};
use crate::controllers::service::observe::Observed;
use crate::controllers::service::priority::Priority;
use crate::controllers::service::targets::Targets;
use crate::provider::{self, ProviderError};
use crate::telemetry::cloud_health::is_about_credentials;

/// Reasons of errors with a meaning of their own.
const CONFLICT: &str = "CONFLICT";
const DEADLINE_EXCEEDED: &str = "DEADLINE_EXCEEDED";

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Ensure.
    Ensure {
        /// Only because no plan can tell whether it is in the desired state.
        paced: bool,
    },
    /// `UpdateLoadBalancer`.
    UpdateTargets,
    /// `EnsureLoadBalancerDeleted`.
    Delete {
        /// Another controller's class is asked for now, and its controller shares our finalizer.
        keeps_finalizer: bool,
    },
    /// `PlanLoadBalancer`.
    Plan(Purpose),
}

/// A call and what it was made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Which call.
    pub call: Call,
    /// What a pause after it is bound to.
    pub seen: u64,
    /// The Service's fingerprint.
    pub fingerprint: u64,
    /// The targets that it names.
    pub targets: Targets,
}

impl Attempt {
    /// The call that a step makes; `None` if it makes none.
    pub fn of(observed: &Observed, step: &Step) -> Option<Self> {
        let present = || observed.targets.clone();
        let (call, targets) = match step {
            Step::Nothing | Step::LeftUnmanaged(_) | Step::NotBefore(_) => return None,
            Step::Ensure { targets, priority } => (Call::Ensure { paced: *priority == Priority::Paced }, targets.clone()),
            Step::UpdateTargets { .. } => (Call::UpdateTargets, present()),
            Step::Delete { keeps_finalizer, .. } => (Call::Delete { keeps_finalizer: *keeps_finalizer }, Targets::none()),
            Step::Plan(Purpose::Restart) => (Call::Plan(Purpose::Restart), present()),
            Step::Plan(Purpose::Drift) => {
                (Call::Plan(Purpose::Drift), observed.memory.targets.had.clone().unwrap_or_else(present))
            }
        };
        let service = &observed.service;
        Some(Self { call, seen: seen(service), fingerprint: fingerprint(service), targets })
    }
}

/// How a call ended, with the writes that followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done, or planned without changes.
    Done {
        /// Of the Service with the annotations that the provider gave it, which are no change of the user's.
        fingerprint: u64,
    },
    /// The load balancer is gone.
    Deleted,
    /// A plan has changes, which are to be made.
    Differs,
    /// A plan found drift, which was reported and is not repaired.
    DriftReported,
    /// The cloud is at work; the same call again after this.
    InProgress(Duration),
    /// Another implementation makes the load balancers of such Services.
    ImplementedElsewhere,
    /// It failed.
    Failed(Failure),
}

/// How a call failed. `after` is the provider's `RetryInfo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Only a person can fix it.
    Terminal,
    /// The same, and the cloud refuses the credentials.
    Credentials,
    /// The provider failed at this very call.
    Defect(Option<Duration>),
    /// It may pass by itself.
    Retry(Option<Duration>),
    /// There is no load balancer where one was expected.
    Conflict(Option<Duration>),
    /// The cloud limits the rate of all calls.
    RateLimited(Option<Duration>),
    /// The provider does not serve this call for this Service.
    Unsupported,
    /// No answer came in time.
    Deadline,
    /// No answer came, or none that says what became of the call.
    Unknown,
    /// The API server did not take a write.
    NotWritten,
    /// The API server has another Service of that name, or none.
    Gone,
    /// The work panicked.
    Panicked,
}

impl From<&ProviderError> for Failure {
    fn from(error: &ProviderError) -> Self {
        match error.outcome {
            _ if error.is_absence() => Self::Unknown,
            provider::Outcome::Terminal if is_about_credentials(error) => Self::Credentials,
            provider::Outcome::Terminal => Self::Terminal,
            provider::Outcome::Retry { after } if error.is_rate_limit() => Self::RateLimited(after),
            provider::Outcome::Retry { after } if error.is_defect() => Self::Defect(after),
            provider::Outcome::Retry { after } if error.reason == CONFLICT => Self::Conflict(after),
            provider::Outcome::Retry { after } => Self::Retry(after),
            provider::Outcome::Unsupported => Self::Unsupported,
            provider::Outcome::Unknown if error.is_defect() => Self::Defect(None),
            provider::Outcome::Unknown if error.reason == DEADLINE_EXCEEDED => Self::Deadline,
            provider::Outcome::Unknown => Self::Unknown,
        }
    }
}

impl From<&WriteError> for Failure {
    fn from(error: &WriteError) -> Self {
        if matches!(error, WriteError::Gone) { Self::Gone } else { Self::NotWritten }
    }
}

impl Failure {
    /// Whether the cloud was there and did not do it.
    fn is_refusal(self) -> bool {
        matches!(self, Self::Terminal | Self::Credentials | Self::Defect(_))
    }

    /// Whether it may pass by itself, so that an outage may be the cause.
    pub fn may_pass(self) -> bool {
        matches!(self.pause(), Some(Pause::BackOff { .. }))
    }

    /// When the call is made again. The pause after a rate limit is for all and the scheduler's; what is gone is not asked about.
    fn pause(self) -> Option<Pause> {
        match self {
            Self::RateLimited(_) | Self::Gone => None,
            Self::Terminal | Self::Credentials => Some(Pause::Terminal),
            Self::Defect(at_least) | Self::Retry(at_least) | Self::Conflict(at_least) => Some(Pause::BackOff { at_least }),
            Self::Unsupported | Self::Deadline | Self::Unknown | Self::NotWritten | Self::Panicked => {
                Some(Pause::BackOff { at_least: None })
            }
        }
    }
}

impl Outcome {
    /// What it says of the calls that all Services share.
    pub fn answered(self) -> Answered {
        match self {
            Self::Failed(Failure::RateLimited(after)) => Answered::RateLimited(after),
            Self::Failed(Failure::Unknown | Failure::Deadline | Failure::NotWritten | Failure::Gone | Failure::Panicked) => {
                Answered::No
            }
            _ => Answered::Yes,
        }
    }
}

impl Memory {
    /// What is known after a call ended so.
    #[must_use]
    pub fn after(self, attempt: &Attempt, outcome: Outcome, now: Instant) -> Self {
        let memory = Self { seen: attempt.seen, ..self };
        match outcome {
            Outcome::Done { fingerprint } => memory.done(attempt, fingerprint),
            Outcome::Deleted => memory.settled(Definition::NeverEnsured, Given::default()),
            Outcome::Differs => memory.defined(Definition::Differs),
            Outcome::DriftReported => {
                let definition = memory.definition.drifted();
                memory.defined(definition)
            }
            Outcome::InProgress(poll_after) => memory.in_progress(attempt, poll_after, now),
            Outcome::ImplementedElsewhere if matches!(attempt.call, Call::Delete { .. }) => {
                memory.defined(Definition::Unknown).repeat(Some(Pause::BackOff { at_least: None }), attempt, now)
            }
            Outcome::ImplementedElsewhere => {
                let definition = Definition::ImplementedElsewhere { fingerprint: attempt.fingerprint };
                memory.settled(definition, Given::default())
            }
            Outcome::Failed(failure) => memory.failed(attempt, failure, now),
        }
    }

    fn failed(self, attempt: &Attempt, failure: Failure, now: Instant) -> Self {
        match attempt.call {
            Call::Plan(_) if failure == Failure::Unsupported => Self { plans_unimplemented: true, ..self },
            // The next round looks again.
            Call::Plan(Purpose::Drift) => self,
            Call::Plan(Purpose::Restart) => {
                let definition = self.definition.unplanned(failure);
                self.defined(definition).repeat(failure.pause(), attempt, now)
            }
            Call::UpdateTargets if self.definition == Definition::Refused => self.update_failed_too(attempt, failure),
            Call::UpdateTargets => self.update_failed(attempt, failure, now),
            Call::Ensure { paced } => {
                let unsure = self.targets.unsure || !failure.is_refusal();
                let mut memory = Self { targets: Given { unsure, ..self.targets.clone() }, ..self };
                memory.targets_retry.reset();
                memory.defined(unmade(failure, paced)).repeat(failure.pause(), attempt, now)
            }
            // Nothing was begun.
            Call::Delete { .. } if matches!(failure, Failure::RateLimited(_)) => self,
            Call::Delete { .. } => self.defined(Definition::Unknown).repeat(failure.pause(), attempt, now),
        }
    }

    fn done(mut self, attempt: &Attempt, fingerprint: u64) -> Self {
        let given = Given { had: Some(attempt.targets.clone()), unsure: false };
        if attempt.call == Call::UpdateTargets && self.definition == Definition::Refused {
            self.targets = given;
            self.targets_retry.reset();
            return self;
        }
        self.settled(Definition::InDesiredState { fingerprint, drifted: false }, given)
    }

    /// The worker is free until the cloud is done. Then the same call asks how far it is.
    fn in_progress(mut self, attempt: &Attempt, poll_after: Duration, now: Instant) -> Self {
        match attempt.call {
            // What the cloud is at work on is looked at in the next round.
            Call::Plan(Purpose::Drift) => return self,
            Call::Plan(Purpose::Restart) => return self.defined(Definition::Unknown),
            Call::Delete { .. } => {}
            Call::Ensure { .. } | Call::UpdateTargets => self.targets.unsure = true,
        }
        if attempt.call == Call::UpdateTargets {
            self.definition_retry.hold(now + poll_after, attempt.seen);
            self.targets_retry.again(Pause::Exactly(poll_after), attempt.targets.retry_key(), &PAUSES, now);
            return self;
        }
        self.defined(Definition::Unknown).repeat(Some(Pause::Exactly(poll_after)), attempt, now)
    }

    fn update_failed(mut self, attempt: &Attempt, failure: Failure, now: Instant) -> Self {
        // There is nothing to update: Ensure makes it, at once.
        if matches!(failure, Failure::Conflict(_)) {
            return self.defined(Definition::Unknown);
        }
        self.targets.unsure = true;
        let mut memory = self.defined(unmade(failure, false)).repeat(failure.pause(), attempt, now);
        memory.targets_retry.wait_with(&memory.definition_retry, attempt.targets.retry_key());
        memory
    }

    /// An update failed while Ensure is refused. The same targets are not tried again before the next Ensure.
    fn update_failed_too(mut self, attempt: &Attempt, failure: Failure) -> Self {
        if !matches!(failure, Failure::RateLimited(_)) {
            self.targets.unsure = true;
            self.targets_retry.wait_with(&self.definition_retry, attempt.targets.retry_key());
        }
        self
    }

    fn settled(mut self, definition: Definition, targets: Given) -> Self {
        self.definition_retry.reset();
        self.targets_retry.reset();
        Self { definition, targets, ..self }
    }

    fn defined(self, definition: Definition) -> Self {
        Self { definition, ..self }
    }

    fn repeat(mut self, pause: Option<Pause>, attempt: &Attempt, now: Instant) -> Self {
        if let Some(pause) = pause {
            self.definition_retry.again(pause, attempt.seen, &PAUSES, now);
        }
        self
    }
}

impl Definition {
    fn drifted(self) -> Self {
        match self {
            Self::InDesiredState { fingerprint, .. } => Self::InDesiredState { fingerprint, drifted: true },
            other => other,
        }
    }

    /// What is known where a plan failed after a restart. What is not looked at must not stay so for ever: where only the plan fails,
    /// Ensure, which has more time, looks in its turn.
    fn unplanned(self, failure: Failure) -> Self {
        match failure {
            Failure::Terminal => Self::Refused,
            Failure::Defect(_) | Failure::Deadline | Failure::Panicked => Self::InTurn,
            _ => self,
        }
    }
}

/// What is known of a load balancer that Ensure or an update failed at. Where nothing was known to be wrong before, its next call is
/// no more urgent.
fn unmade(failure: Failure, paced: bool) -> Definition {
    match failure {
        _ if failure.is_refusal() => Definition::Refused,
        Failure::Gone => Definition::Unknown,
        _ if paced => Definition::InTurn,
        _ => Definition::Unknown,
    }
}
