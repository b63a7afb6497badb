//! One call for one Service, with the writes that follow. Many run at once, as many as the provider says it can take.
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::PAUSES;
use super::act::{Write, act, add_finalizer};
use super::decide::{Purpose, fingerprint};
use super::memory::{Attempt, Call, Definition, Failure, Outcome};
use super::status::{self, Status};
use crate::cluster::gate::Closed;
use crate::cluster::patch::{ServiceWriter, WriteError};
use crate::config::services::Drift;
use crate::controllers::written::{later_than, version};
use crate::model::load_balancer::{Ensured, Extras, Planned, Progress};
use crate::model::service::Service;
use crate::model::target::TargetSet;
use crate::provider::{self, Identity, LoadBalancers, ProviderError};
use crate::telemetry::metrics::ServiceMetrics;

/// The reason of an error that the next term resolves.
const NOT_LEADING: &str = "NOT_LEADING";

/// One call to make.
pub struct Job {
    /// The Service as it was observed.
    pub service: Arc<Service>,
    /// The call.
    pub attempt: Attempt,
    /// What was known of the load balancer.
    pub definition: Definition,
    /// What is done about drift.
    pub drift: Drift,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// What that says of the load balancer.
    pub outcome: Outcome,
    /// The resourceVersion of the last write.
    pub written: Option<u64>,
}

/// What work at any Service needs.
pub struct Worker {
    /// The way to write to Services.
    pub writer: ServiceWriter,
    /// The provider's load balancers.
    pub load_balancers: Arc<dyn LoadBalancers>,
    /// Asks for another handshake: before a finalizer is removed, and where the provider refuses what it said it serves.
    pub identity: Arc<dyn Identity>,
    /// Reports to people.
    pub status: Status,
    /// What is counted.
    pub metrics: ServiceMetrics,
    /// Ends calls that change nothing. A call that changes the cloud is waited for.
    pub shutdown: CancellationToken,
}

/// Why work failed.
#[derive(Debug, thiserror::Error)]
enum WorkError {
    #[error(transparent)]
    Provider(#[from] ProviderError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl From<Closed> for WorkError {
    fn from(error: Closed) -> Self {
        Self::Write(error.into())
    }
}

type Worked = Result<Ended, WorkError>;

impl Worker {
    /// Makes the call.
    pub async fn work(&self, job: Job) -> Ended {
        let worked = match job.attempt.call {
            Call::Ensure { .. } => self.ensure(&job).await,
            Call::UpdateTargets => self.update(&job).await,
            Call::Delete { keeps_finalizer } => self.delete(&job.service, keeps_finalizer).await,
            Call::Plan(purpose) => {
                let planned = self.shutdown.run_until_cancelled(self.plan(&job, purpose)).await;
                planned.unwrap_or(Ok(Ended::of(Outcome::Failed(Failure::Unknown))))
            }
        };
        match worked {
            Ok(ended) => ended,
            Err(error) => self.failed(&job, &job.service, &error).await,
        }
    }

    async fn ensure(&self, job: &Job) -> Worked {
        self.status.ensuring(&job.service);
        let service = self.with_finalizer(&job.service).await?;
        match self.ensured(&service, &job.attempt.targets.set).await {
            Err(_) if !job.service.has_finalizer() && self.has_vanished(&service).await => Ok(self.undo(&service).await),
            Err(error) => Ok(self.failed(job, &service, &error).await),
            ended => ended,
        }
    }

    /// The Service, kept until its load balancer is gone. Nothing is made for one that is not.
    async fn with_finalizer(&self, service: &Service) -> Result<Service, WriteError> {
        if service.has_finalizer() { Ok(service.clone()) } else { add_finalizer(&self.writer, service).await }
    }

    async fn ensured(&self, service: &Service, set: &TargetSet) -> Worked {
        let epoch = self.writer.gate().check()?.epoch;
        let answer = self.load_balancers.ensure(epoch, service, set).await?;
        self.status.answered(service);
        match answer {
            Progress::Done(ensured) => {
                let after = act(&self.writer, service, Write::InDesiredState(&ensured)).await?;
                self.status.ensured(service, set.targets().len());
                self.status.warned(service, &ensured.extras.warnings);
                Ok(Ended::done(service, &ensured.extras, &after))
            }
            Progress::InProgress { poll_after, message } => self.in_progress(service, poll_after, &message).await,
            Progress::ImplementedElsewhere(who) => Ok(elsewhere(service, &who)),
        }
    }

    /// Whether the API server itself says that there is no such Service any more.
    async fn has_vanished(&self, service: &Service) -> bool {
        matches!(self.writer.get(service).await, Err(WriteError::Gone))
    }

    /// Removes what was just made for a Service that has vanished although it has just got our finalizer. The API server
    /// lets that happen where the deletion had begun before the finalizer came. Nothing else knows of this load balancer.
    async fn undo(&self, service: &Service) -> Ended {
        tracing::info!(service = service.key(), uid = service.uid, "a Service was deleted while its load balancer was made");
        if !self.undone(service).await {
            tracing::warn!(service = service.key(), uid = service.uid, "its load balancer may be left in the cloud");
        }
        Ended::failed(service, &WriteError::Gone.into())
    }

    /// Asks until the load balancer is gone, asking is of no use, or the process ends.
    async fn undone(&self, service: &Service) -> bool {
        let mut pause = PAUSES.first;
        loop {
            let wait = match self.writer.gate().check() {
                Err(_) => pause,
                Ok(term) => match self.load_balancers.delete(term.epoch, service).await {
                    Ok(Progress::Done(())) => return true,
                    Ok(Progress::InProgress { poll_after, .. }) => poll_after,
                    Err(ProviderError { outcome: provider::Outcome::Terminal | provider::Outcome::Unsupported, .. }) => {
                        return false;
                    }
                    Ok(Progress::ImplementedElsewhere(_)) | Err(_) => pause,
                },
            };
            if self.shutdown.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
                return false;
            }
            pause = pause.saturating_mul(2).min(PAUSES.longest);
        }
    }

    async fn update(&self, job: &Job) -> Worked {
        let started = Instant::now();
        let updated = self.updated(job).await;
        self.metrics.update_latency.observe(started.elapsed().as_secs_f64());
        updated
    }

    async fn updated(&self, job: &Job) -> Worked {
        let (service, set) = (&job.service, &job.attempt.targets.set);
        self.metrics.syncs.inc();
        let epoch = self.writer.gate().check()?.epoch;
        let answer = self.load_balancers.update(epoch, service, set).await?;
        self.status.answered(service);
        match answer {
            Progress::Done(extras) => {
                let after = act(&self.writer, service, Write::Annotations(&extras.annotations)).await?;
                self.status.updated(service, set.targets().len(), job.definition != Definition::Refused);
                self.status.warned(service, &extras.warnings);
                Ok(Ended::done(service, &extras, &after))
            }
            Progress::InProgress { poll_after, message } => {
                tracing::debug!(service = service.key(), ?poll_after, message, "the cloud is at work on other targets");
                Ok(Ended::of(Outcome::InProgress(poll_after)))
            }
            Progress::ImplementedElsewhere(who) => Ok(elsewhere(service, &who)),
        }
    }

    async fn delete(&self, service: &Service, keeps_finalizer: bool) -> Worked {
        self.status.deleting(service);
        let epoch = self.writer.gate().check()?.epoch;
        let answer = self.load_balancers.delete(epoch, service).await?;
        self.status.answered(service);
        match answer {
            Progress::InProgress { poll_after, message } => self.in_progress(service, poll_after, &message).await,
            // The contract has no such answer to a deletion: the finalizer stays until the answer is "done".
            Progress::ImplementedElsewhere(_) => Ok(Ended::of(Outcome::ImplementedElsewhere)),
            Progress::Done(()) => {
                // Nothing is left where the provider looked: that must still be the cloud that the load balancer was in.
                self.identity.confirm().await?;
                let after = act(&self.writer, service, Write::RemoveFinalizer { keeps_finalizer }).await?;
                self.status.deleted(service);
                Ok(Ended::written(Outcome::Deleted, &after))
            }
        }
    }

    async fn plan(&self, job: &Job, purpose: Purpose) -> Worked {
        let service = &job.service;
        let answer = self.load_balancers.plan(service, &job.attempt.targets.set).await?;
        self.status.answered(service);
        match answer {
            Progress::Done(Planned::AsAsked(ensured)) => self.without_changes(job, &ensured).await,
            Progress::Done(Planned::Changes(changes)) if purpose == Purpose::Drift => Ok(self.drifted(job, &changes)),
            Progress::Done(Planned::Changes(changes)) => {
                tracing::info!(service = service.key(), ?changes, "a load balancer is not in the desired state");
                Ok(Ended::of(Outcome::Differs))
            }
            Progress::InProgress { poll_after, .. } => Ok(Ended::of(Outcome::InProgress(poll_after))),
            Progress::ImplementedElsewhere(who) => Ok(elsewhere(service, &who)),
        }
    }

    async fn without_changes(&self, job: &Job, ensured: &Ensured) -> Worked {
        let service = &job.service;
        let after = act(&self.writer, service, Write::InDesiredState(ensured)).await?;
        if matches!(job.definition, Definition::InDesiredState { drifted: true, .. }) {
            self.status.forget(&service.key());
        }
        self.status.warned(service, &ensured.extras.warnings);
        Ok(Ended::done(service, &ensured.extras, &after))
    }

    fn drifted(&self, job: &Job, changes: &[String]) -> Ended {
        let repair = job.drift == Drift::Repair;
        self.status.drifted(&job.service, changes, repair);
        Ended::of(if repair { Outcome::Differs } else { Outcome::DriftReported })
    }

    async fn in_progress(&self, service: &Service, poll_after: Duration, message: &str) -> Worked {
        tracing::debug!(service = service.key(), ?poll_after, message, "the cloud is at work on a load balancer");
        let after = act(&self.writer, service, Write::InProgress(message)).await?;
        Ok(Ended::written(Outcome::InProgress(poll_after), &after))
    }

    /// Reports a failure, to those whom it concerns.
    async fn failed(&self, job: &Job, service: &Service, error: &WorkError) -> Ended {
        let (ended, report) = (Ended::failed(service, error), job.report(Failure::from(error)));
        let doing = job.doing();
        if job.attempt.call == Call::UpdateTargets && report != Report::Nothing {
            self.metrics.node_sync_errors.inc();
        }
        match (error, report) {
            (WorkError::Provider(error), Report::Readiness) => {
                self.status.plan_failed(service, error);
                self.ask_who_it_is(error).await;
            }
            (WorkError::Provider(error), Report::Event | Report::EventAndCondition) if is_of_this_service(error) => {
                self.status.failed(service, doing, error);
                let writes = report == Report::EventAndCondition;
                let after = if writes { act(&self.writer, service, Write::Failed(error)).await.ok() } else { None };
                self.ask_who_it_is(error).await;
                return Ended { written: after.and_then(|after| version(&after.resource_version)).or(ended.written), ..ended };
            }
            (WorkError::Write(error @ WriteError::Api(_)), _) if !error.is_unanswered() => {
                tracing::warn!(service = service.key(), %error, "Service patch failed, retrying after a pause");
                if error.is_refused() && report == Report::EventAndCondition {
                    self.status.not_written(service, doing, error);
                }
            }
            _ => {}
        }
        ended
    }

    /// A provider that refuses what it said it serves may be another by now.
    async fn ask_who_it_is(&self, error: &ProviderError) {
        if error.outcome == provider::Outcome::Unsupported {
            drop(self.identity.confirm().await);
        }
    }
}

/// Whether an error is about this Service: not that there is no provider, or another leader.
fn is_of_this_service(error: &ProviderError) -> bool {
    error.reason != NOT_LEADING && !error.is_absence()
}

/// To whom a failure is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Report {
    /// Another call follows at once.
    Nothing,
    /// Nothing was changed, and nothing is known to be wrong with this Service: readiness says what concerns all.
    Readiness,
    /// The condition says already why Ensure is refused.
    Event,
    /// The user.
    EventAndCondition,
}

impl Job {
    fn report(&self, failure: Failure) -> Report {
        let ensure_is_refused = self.definition == Definition::Refused;
        match (self.attempt.call, failure) {
            // There is nothing to update: Ensure makes it.
            (Call::UpdateTargets, Failure::Conflict(_)) => Report::Nothing,
            (Call::UpdateTargets, Failure::RateLimited(_)) if ensure_is_refused => Report::Nothing,
            (Call::UpdateTargets, _) if ensure_is_refused => Report::Event,
            // The user can fix it, and Ensure will be refused alike.
            (Call::Plan(Purpose::Restart), Failure::Terminal) => Report::EventAndCondition,
            (Call::Plan(_), _) => Report::Readiness,
            _ => Report::EventAndCondition,
        }
    }

    fn doing(&self) -> status::Doing {
        match self.attempt.call {
            Call::Ensure { .. } | Call::Plan(_) => status::SYNCING,
            Call::UpdateTargets => status::UPDATING,
            Call::Delete { .. } => status::DELETING,
        }
    }
}

impl From<&WorkError> for Failure {
    fn from(error: &WorkError) -> Self {
        match error {
            WorkError::Provider(error) => error.into(),
            WorkError::Write(error) => error.into(),
        }
    }
}

impl Ended {
    /// Without a write.
    pub fn of(outcome: Outcome) -> Self {
        Self { outcome, written: None }
    }

    fn written(outcome: Outcome, after: &Service) -> Self {
        Self { outcome, written: version(&after.resource_version) }
    }

    /// Remembered for the Service as it was sent, with the annotations that it has got for it: they are no change of the user's.
    fn done(service: &Service, extras: &Extras, after: &Service) -> Self {
        let mut service = service.clone();
        service.annotations.extend(extras.annotations.clone());
        Self::written(Outcome::Done { fingerprint: fingerprint(&service) }, after)
    }

    /// Where the API server knows that the Service is another by now, or gone, nothing follows from what the watch still shows of it.
    fn failed(service: &Service, error: &WorkError) -> Self {
        let failure = Failure::from(error);
        let newer = || later_than(&service.resource_version);
        Self { outcome: Outcome::Failed(failure), written: (failure == Failure::Gone).then(newer).flatten() }
    }
}

fn elsewhere(service: &Service, who: &str) -> Ended {
    tracing::debug!(service = service.key(), who, "another implementation makes the load balancer");
    Ended::of(Outcome::ImplementedElsewhere)
}
