//! One Service, from its step to the last write that follows. Many run at once, as many as the provider says it can take.
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::PAUSES;
use super::act::{Deed, act, hold};
use super::decide::{Purpose, Step, fingerprint};
use super::observe::{Applied, Failed, Known, Observed, Turn};
use super::status::Status;
use crate::cluster::gate::Closed;
use crate::cluster::patch::{ServiceWriter, WriteError};
use crate::config::services::Drift;
use crate::controllers::queue::Pause;
use crate::model::load_balancer::{Ensured, Extras, Planned, Progress};
use crate::model::service::Service;
use crate::model::target::TargetSet;
use crate::names::events;
use crate::provider::{Identity, LoadBalancers, Outcome, ProviderError};
use crate::telemetry::cloud_health::is_about_credentials;
use crate::telemetry::metrics::ServiceMetrics;

/// How work at a Service ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// What is known of the load balancer now.
    pub known: Known,
    /// What is to be done next.
    pub next: Next,
    /// The resourceVersion of the last write.
    pub written: Option<u64>,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing, until something changes.
    Nothing,
    /// Decide again, now.
    Decide,
    /// The same again, later.
    Again(Pause),
    /// This was work during a pause, which goes on.
    Resume,
    /// The same, and nothing is begun before: the cloud limits the rate of calls.
    ResumeCalm(Option<Duration>),
    /// The same again, later, and nothing else before: the cloud limits the rate of calls.
    Calm(Option<Duration>),
    /// The provider does not answer plans after all.
    NoPlans,
}

/// Reasons of errors that say what to do next.
const CONFLICT: &str = "CONFLICT";
const NOT_LEADING: &str = "NOT_LEADING";
const DEADLINE_EXCEEDED: &str = "DEADLINE_EXCEEDED";

/// What an update does, for people.
const UPDATING: &str = "updating the hosts of the";

const BACK_OFF: Next = Next::Again(Pause::BackOff { at_least: None });

/// What work at any Service needs.
pub struct Worker {
    /// The way to write to Services.
    pub writer: ServiceWriter,
    /// The provider's load balancers.
    pub load_balancers: Arc<dyn LoadBalancers>,
    /// Who the provider is; asked again before a Service is let go, and when the provider refuses what it said it serves.
    pub identity: Arc<dyn Identity>,
    /// Who tells.
    pub status: Status,
    /// What is counted.
    pub metrics: ServiceMetrics,
    /// Ends calls that change nothing. A call that changes the cloud is waited for.
    pub shutdown: CancellationToken,
}

/// Why work broke off.
enum Broken {
    Provider(ProviderError),
    Write(WriteError),
}

impl From<ProviderError> for Broken {
    fn from(error: ProviderError) -> Self {
        Self::Provider(error)
    }
}

impl From<WriteError> for Broken {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

impl From<Closed> for Broken {
    fn from(error: Closed) -> Self {
        Self::Write(error.into())
    }
}

impl Worker {
    /// Takes one step.
    pub async fn work(&self, observed: Observed, step: Step) -> Ended {
        match step {
            Step::Nothing | Step::Frozen(_) | Step::Wait(_) | Step::Rest => {
                Ended { known: observed.known, next: Next::Nothing, written: None }
            }
            Step::Ensure { set, .. } => self.ensure(&observed, set).await,
            Step::Update { .. } if observed.turn == Turn::Pause => self.update_beside(&observed).await,
            Step::Update { .. } => self.update(&observed).await,
            Step::Delete { keeps_finalizer, .. } => self.delete(&observed, keeps_finalizer).await,
            Step::Check(purpose) => match self.shutdown.run_until_cancelled(self.check(&observed, purpose)).await {
                Some(ended) => ended,
                None => Ended { known: observed.known.clone(), next: Next::Nothing, written: None },
            },
        }
    }

    async fn ensure(&self, observed: &Observed, set: TargetSet) -> Ended {
        self.status.ensuring(&observed.service);
        let service = match self.held(&observed.service).await {
            Ok(service) => service,
            Err(error) => return self.failed_to_sync(&observed.service, error.into()).await,
        };
        match self.ensured(observed, &service, set).await {
            Ok(ended) => ended,
            Err(_) if !observed.service.has_finalizer() && self.has_vanished(&service).await => self.undo(&service).await,
            Err(broken) => {
                let known = broken.leaves(observed, None);
                Ended { known, ..self.failed_to_sync(&service, broken).await }
            }
        }
    }

    /// Whether the API server itself says that there is no such Service any more.
    async fn has_vanished(&self, service: &Service) -> bool {
        matches!(self.writer.get(service).await, Err(WriteError::Gone))
    }

    /// Removes what was just made for a Service that has vanished although it has just got our finalizer. The API server
    /// lets that happen where the deletion had begun before the finalizer came. Nobody knows of this load balancer yet, and
    /// nobody else ever will.
    async fn undo(&self, service: &Service) -> Ended {
        tracing::info!(service = service.key(), uid = service.uid, "a Service was deleted while its load balancer was made");
        if !self.removed(service).await {
            tracing::warn!(service = service.key(), uid = service.uid, "its load balancer may be left in the cloud");
        }
        retried(service, Broken::Write(WriteError::Gone))
    }

    /// Asks until the load balancer is gone, asking is of no use, or the process ends.
    async fn removed(&self, service: &Service) -> bool {
        let mut pause = PAUSES.first;
        loop {
            let wait = match self.writer.gate().check() {
                Err(_) => pause,
                Ok(term) => match self.load_balancers.delete(term.epoch, service).await {
                    Ok(Progress::Done(())) => return true,
                    Ok(Progress::InProgress { poll_after, .. }) => poll_after,
                    Err(ProviderError { outcome: Outcome::Terminal | Outcome::Unsupported, .. }) => return false,
                    Ok(Progress::ImplementedElsewhere(_)) | Err(_) => pause,
                },
            };
            if self.shutdown.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
                return false;
            }
            pause = pause.saturating_mul(2).min(PAUSES.longest);
        }
    }

    async fn failed_to_sync(&self, service: &Service, broken: Broken) -> Ended {
        self.broken(service, events::SYNC_LOAD_BALANCER_FAILED, "syncing", broken).await
    }

    /// The Service, kept until its load balancer is gone. Nothing is made for one that is not.
    async fn held(&self, service: &Service) -> Result<Service, WriteError> {
        if service.has_finalizer() { Ok(service.clone()) } else { hold(&self.writer, service).await }
    }

    async fn ensured(&self, observed: &Observed, service: &Service, set: TargetSet) -> Result<Ended, Broken> {
        let epoch = self.writer.gate().check()?.epoch;
        let answer = self.load_balancers.ensure(epoch, service, &set).await?;
        self.status.answered(service);
        match answer {
            Progress::Done(ensured) => {
                let after = act(&self.writer, service, Deed::Settle(&ensured)).await?;
                self.status.ensured(service, set.targets().len());
                self.status.warned(service, &ensured.extras.warnings);
                Ok(Ended::done(applied(observed, service.clone(), &ensured.extras, set), &after))
            }
            Progress::InProgress { poll_after, message } => self.in_progress(service, poll_after, &message).await,
            Progress::ImplementedElsewhere(who) => Ok(elsewhere(service, &who)),
        }
    }

    /// Other targets for a load balancer that could not be made as asked, during the pause after that.
    async fn update_beside(&self, observed: &Observed) -> Ended {
        let set = &observed.targets.set;
        let applied = previous(&observed.known).map(|applied| Applied { unsure: true, ..applied });
        let tried = Known::Failed(Failed { refused: true, applied, tried: Some(set.clone()) });
        match self.updated(observed).await {
            Ok(Ended { known: Known::Applied(applied), written, .. }) => {
                let known = Known::Failed(Failed { refused: true, applied: Some(applied), tried: None });
                Ended { known, next: Next::Resume, written }
            }
            Ok(_) | Err(Broken::Write(_)) => Ended { known: tried, next: Next::Resume, written: None },
            Err(Broken::Provider(error)) if error.is_rate_limit() => {
                let after = if let Outcome::Retry { after } = error.outcome { after } else { None };
                Ended { known: observed.known.clone(), next: Next::ResumeCalm(after), written: None }
            }
            Err(Broken::Provider(error)) => {
                if !matches!(error.reason.as_str(), CONFLICT | NOT_LEADING) && !error.is_absence() {
                    self.metrics.node_sync_errors.inc();
                    self.status.failed(&observed.service, events::UPDATE_LOAD_BALANCER_FAILED, UPDATING, &error);
                }
                Ended { known: tried, next: Next::Resume, written: None }
            }
        }
    }

    async fn update(&self, observed: &Observed) -> Ended {
        let started = Instant::now();
        let ended = self.updated(observed).await;
        self.metrics.update_latency.observe(started.elapsed().as_secs_f64());
        match ended {
            Ok(ended) => ended,
            // There is nothing to update: the next step makes it.
            Err(Broken::Provider(error)) if error.reason == CONFLICT => {
                Ended { known: Known::Doubt, next: Next::Decide, written: None }
            }
            Err(broken) => {
                self.metrics.node_sync_errors.inc();
                let known = broken.leaves(observed, Some(observed.targets.set.clone()));
                let ended = self.broken(&observed.service, events::UPDATE_LOAD_BALANCER_FAILED, UPDATING, broken).await;
                Ended { known, ..ended }
            }
        }
    }

    async fn updated(&self, observed: &Observed) -> Result<Ended, Broken> {
        let (service, set) = (&observed.service, &observed.targets.set);
        self.metrics.syncs.inc();
        let epoch = self.writer.gate().check()?.epoch;
        let answer = self.load_balancers.update(epoch, service, set).await?;
        self.status.answered(service);
        match answer {
            Progress::Done(extras) => {
                let after = act(&self.writer, service, Deed::Annotate(&extras.annotations)).await?;
                self.status.updated(service, set.targets().len(), observed.turn != Turn::Pause);
                self.status.warned(service, &extras.warnings);
                Ok(Ended::done(applied(observed, (**service).clone(), &extras, set.clone()), &after))
            }
            Progress::InProgress { poll_after, message } => {
                tracing::debug!(service = service.key(), ?poll_after, message, "the cloud is at work on other targets");
                Ok(Ended { known: unsure(&observed.known), next: Next::Again(Pause::Exactly(poll_after)), written: None })
            }
            Progress::ImplementedElsewhere(who) => Ok(elsewhere(service, &who)),
        }
    }

    async fn delete(&self, observed: &Observed, keeps_finalizer: bool) -> Ended {
        match self.deleted(&observed.service, keeps_finalizer).await {
            Ok(ended) => ended,
            Err(broken) => self.broken(&observed.service, events::SYNC_LOAD_BALANCER_FAILED, "deleting", broken).await,
        }
    }

    async fn deleted(&self, service: &Service, keeps_finalizer: bool) -> Result<Ended, Broken> {
        self.status.deleting(service);
        let epoch = self.writer.gate().check()?.epoch;
        let answer = self.load_balancers.delete(epoch, service).await?;
        self.status.answered(service);
        match answer {
            Progress::InProgress { poll_after, message } => self.in_progress(service, poll_after, &message).await,
            // The contract has no such answer to a deletion: only "done" lets go of a Service.
            Progress::ImplementedElsewhere(_) => Ok(Ended { known: Known::Doubt, next: BACK_OFF, written: None }),
            Progress::Done(()) => {
                // Nothing is left where the provider looked: that must still be the cloud that the load balancer was in.
                self.identity.confirm().await?;
                let after = act(&self.writer, service, Deed::Release { keeps_finalizer }).await?;
                self.status.deleted(service);
                Ok(Ended::done(Known::Nothing, &after))
            }
        }
    }

    async fn check(&self, observed: &Observed, purpose: Purpose) -> Ended {
        match self.checked(observed, purpose).await {
            Ok(ended) => ended,
            Err(Broken::Provider(ProviderError { outcome: Outcome::Unsupported, .. })) => {
                Ended { known: observed.known.clone(), next: Next::NoPlans, written: None }
            }
            Err(broken) if purpose == Purpose::Restart => self.unplanned(observed, broken).await,
            // The next round looks again.
            Err(broken) => match self.looked_in_vain(observed, broken) {
                ended if matches!(ended.next, Next::Calm(_)) => ended,
                ended => Ended { next: Next::Resume, ..ended },
            },
        }
    }

    /// What is not looked at is not known to be right, and must not stay so for ever.
    async fn unplanned(&self, observed: &Observed, broken: Broken) -> Ended {
        match &broken {
            Broken::Provider(error) if error.outcome == Outcome::Terminal && !is_about_credentials(error) => {
                let ended = self.failed_to_sync(&observed.service, broken).await;
                Ended { known: Known::Failed(Failed { refused: true, ..Failed::default() }), ..ended }
            }
            // Ensure, which has more time, is made sure of by the other rules.
            Broken::Provider(error) if error.is_defect() || error.reason == DEADLINE_EXCEEDED => {
                Ended { known: Known::InTurn, ..self.looked_in_vain(observed, broken) }
            }
            _ => self.looked_in_vain(observed, broken),
        }
    }

    /// Nothing was changed, and nothing is known to be wrong with this Service: its user is not told.
    fn looked_in_vain(&self, observed: &Observed, broken: Broken) -> Ended {
        if let Broken::Provider(error) = &broken {
            self.status.looked_in_vain(&observed.service, error);
        }
        Ended { known: observed.known.clone(), ..retried(&observed.service, broken) }
    }

    async fn checked(&self, observed: &Observed, purpose: Purpose) -> Result<Ended, Broken> {
        let service = &observed.service;
        let set = match (&observed.known, purpose) {
            (Known::Applied(applied), Purpose::Drift) => applied.set.clone(),
            _ => observed.targets.set.clone(),
        };
        let answer = self.load_balancers.plan(service, &set).await?;
        self.status.answered(service);
        match answer {
            Progress::Done(Planned::AsAsked(ensured)) => self.as_asked(observed, set, &ensured).await,
            Progress::Done(Planned::Changes(changes)) => Ok(self.differs(observed, purpose, &changes)),
            // What the cloud is at work on is looked at in the next round.
            Progress::InProgress { .. } if purpose == Purpose::Drift => {
                Ok(Ended { known: observed.known.clone(), next: Next::Nothing, written: None })
            }
            Progress::InProgress { .. } => Ok(Ended { known: Known::Doubt, next: Next::Decide, written: None }),
            Progress::ImplementedElsewhere(who) => Ok(elsewhere(service, &who)),
        }
    }

    async fn as_asked(&self, observed: &Observed, set: TargetSet, ensured: &Ensured) -> Result<Ended, Broken> {
        let service = &observed.service;
        let after = act(&self.writer, service, Deed::Settle(ensured)).await?;
        if matches!(&observed.known, Known::Applied(before) if before.drifted) {
            self.status.forget(&service.key());
        }
        self.status.warned(service, &ensured.extras.warnings);
        Ok(Ended::done(applied(observed, (**service).clone(), &ensured.extras, set), &after))
    }

    fn differs(&self, observed: &Observed, purpose: Purpose, changes: &[String]) -> Ended {
        let again = Ended { known: Known::Differs, next: Next::Decide, written: None };
        let (Known::Applied(applied), Purpose::Drift) = (&observed.known, purpose) else {
            tracing::info!(service = observed.service.key(), ?changes, "a load balancer is not as asked");
            return again;
        };
        let repair = observed.drift == Drift::Repair;
        self.status.drifted(&observed.service, changes, repair);
        let known = Known::Applied(Applied { drifted: true, ..applied.clone() });
        if repair { again } else { Ended { known, next: Next::Nothing, written: None } }
    }

    /// The worker is free until the cloud is done. That nothing is known makes the next step the same call.
    async fn in_progress(&self, service: &Service, poll_after: Duration, message: &str) -> Result<Ended, Broken> {
        tracing::debug!(service = service.key(), ?poll_after, message, "the cloud is at work on a load balancer");
        let after = act(&self.writer, service, Deed::Wait(message)).await?;
        Ok(Ended { next: Next::Again(Pause::Exactly(poll_after)), ..Ended::done(Known::Doubt, &after) })
    }

    async fn broken(&self, service: &Service, event: &'static str, doing: &str, broken: Broken) -> Ended {
        let mut written = None;
        if let Broken::Provider(error) = &broken
            && error.reason != NOT_LEADING
            && !error.is_absence()
        {
            self.status.failed(service, event, doing, error);
            written =
                act(&self.writer, service, Deed::Fail(error)).await.ok().and_then(|after| after.resource_version.parse().ok());
            if error.outcome == Outcome::Unsupported {
                drop(self.identity.confirm().await);
            }
        } else if let Broken::Write(WriteError::Api(error)) = &broken {
            tracing::warn!(service = service.key(), %error, "a Service was not written; it is tried again");
            if is_refusal(error) {
                self.status.not_written(service, event, doing, error);
            }
        }
        let ended = retried(service, broken);
        Ended { written: written.or(ended.written), ..ended }
    }
}

fn retried(service: &Service, broken: Broken) -> Ended {
    let next = match broken {
        Broken::Write(WriteError::Gone) => return Ended { known: Known::Doubt, next: Next::Nothing, written: newer(service) },
        Broken::Write(_) => BACK_OFF,
        Broken::Provider(error) => match error.outcome {
            Outcome::Retry { after } if error.is_rate_limit() => Next::Calm(after),
            Outcome::Retry { after } => Next::Again(Pause::BackOff { at_least: after }),
            Outcome::Terminal => Next::Again(Pause::Slow),
            Outcome::Unsupported | Outcome::Unknown => BACK_OFF,
        },
    };
    Ended { known: Known::Doubt, next, written: None }
}

/// The API server knows that the Service is another by now, or gone: nothing follows from what the watch still shows of it.
fn newer(service: &Service) -> Option<u64> {
    Some(service.resource_version.parse::<u64>().ok()?.saturating_add(1))
}

impl Ended {
    fn done(known: Known, after: &Service) -> Self {
        Self { known, next: Next::Nothing, written: after.resource_version.parse().ok() }
    }
}

impl Broken {
    /// What is known of a load balancer that was not made as asked; `tried` are targets that it was given in vain.
    fn leaves(&self, observed: &Observed, tried: Option<TargetSet>) -> Known {
        let Self::Provider(error) = self else { return Known::Doubt };
        let refused = error.outcome == Outcome::Terminal || error.is_defect();
        let unsure = |applied| Applied { unsure: !refused || tried.is_some(), ..applied };
        Known::Failed(Failed { refused, applied: previous(&observed.known).map(unsure), tried })
    }
}

/// What a load balancer was made of when that last succeeded.
fn previous(known: &Known) -> Option<Applied> {
    match known {
        Known::Applied(applied) => Some(applied.clone()),
        Known::Failed(failed) => failed.applied.clone(),
        _ => None,
    }
}

/// The cloud is at work on other targets. Should these be asked for no more by then, they are to be undone.
fn unsure(known: &Known) -> Known {
    match known {
        Known::Applied(applied) => Known::Applied(Applied { unsure: true, ..applied.clone() }),
        _ => Known::Doubt,
    }
}

/// Whether the API server, or somebody whom it asks, does not want a write. A repeat fails alike until a person mends that.
fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if (400..500).contains(&status.code) && status.code != 429)
}

fn elsewhere(service: &Service, who: &str) -> Ended {
    tracing::debug!(service = service.key(), who, "somebody else makes the load balancer");
    Ended { known: Known::Elsewhere(fingerprint(service)), next: Next::Nothing, written: None }
}

/// Remembered for the Service as it was sent, with the annotations that it has got for it: they are no change of the user's.
fn applied(observed: &Observed, mut service: Service, extras: &Extras, set: TargetSet) -> Known {
    service.annotations.extend(extras.annotations.clone());
    let trigger = match &observed.known {
        _ if set == observed.targets.set => Arc::clone(&observed.targets.trigger),
        // Older targets were kept on purpose: what they were made of is still what they were made of.
        Known::Applied(before) => Arc::clone(&before.trigger),
        _ => Arc::from(""),
    };
    Known::Applied(Applied { fingerprint: fingerprint(&service), trigger, set, drifted: false, unsure: false })
}
