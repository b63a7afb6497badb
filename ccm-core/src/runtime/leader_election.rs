//! Leader election on upstream's lease: contends while this process is eligible, renews while it leads, and releases the lease.
//! `decide.rs` decides what to do, without clock or network; this file does it at the right time. It starts and stops no
//! controller: the composition of the process watches [`Leading`] and does.
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{Instant as Tick, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::cluster::presence::Presence;
use crate::cluster::state::mirror::Mirror;
use crate::config::LeaderElectionConfig;
use crate::model::term::{Cloud, Term};
use crate::telemetry::metrics::LeaderMetrics;

pub mod decide;
mod lease;
#[cfg(test)]
mod tests;

use decide::{Action, Candidate, Observation, Record};
pub use lease::LeaseError;
use lease::LeaseObject;

/// As in client-go: a candidate waits longer by up to this many retry periods, so that candidates do not act in step.
const JITTER: f64 = 1.2;
/// How long a term without an election is valid without a renewal.
const ALONE: Duration = Duration::from_mins(1);
/// How often such a term is renewed.
pub const ALONE_RENEWAL: Duration = Duration::from_secs(20);

/// Which lease, under which name, and how patiently.
#[derive(Clone, Debug)]
pub struct ElectorConfig {
    /// The lease's namespace.
    pub namespace: String,
    /// The lease's name.
    pub name: String,
    /// This process's name in it: see [`identity`].
    pub identity: String,
    /// How long the others wait without seeing a renewal; whole seconds.
    pub lease_duration: Duration,
    /// How long after its last renewal the leader stops leading; less than `lease_duration`.
    pub renew_deadline: Duration,
    /// How often the lease is renewed or tried for.
    pub retry_period: Duration,
}

impl ElectorConfig {
    /// From the flags.
    pub fn new(config: &LeaderElectionConfig, identity: String) -> Self {
        Self {
            namespace: config.resource_namespace.clone(),
            name: config.resource_name.clone(),
            identity,
            lease_duration: config.lease_duration,
            renew_deadline: config.renew_deadline,
            retry_period: config.retry_period,
        }
    }
}

/// A name that no other process has: the host's and a random part, as in Go.
pub fn identity() -> String {
    let host = hostname::get().map(|name| name.to_string_lossy().into_owned());
    format!("{}_{}", host.unwrap_or_else(|_| "unknown".to_owned()), uuid::Uuid::new_v4())
}

/// What the lease carries of the latest term; nothing where there is no election.
pub async fn mirror(client: &Client, config: &LeaderElectionConfig) -> Result<Option<Mirror>, kube::Error> {
    if !config.enabled {
        return Ok(None);
    }
    let leases: Api<Lease> = Api::namespaced(client.clone(), &config.resource_namespace);
    let lease = leases.get_opt(&config.resource_name).await?;
    Ok(lease.and_then(|lease| Mirror::of(lease.metadata.annotations.as_ref())))
}

/// That this process leads, as of its last renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leading {
    /// How often the lease changed hands.
    pub transitions: u64,
    /// By the monotonic clock: the time at which the renewal was sent, plus the renew deadline. No other process takes over before
    /// the end of the lease duration, which is later.
    pub valid_until: Instant,
    /// This process's name in the lease.
    pub holder: Arc<str>,
    /// What the lease carries of the latest term, this one's or an earlier leader's.
    pub mirror: Option<Mirror>,
}

impl Leading {
    /// For `--leader-elect=false`: a term of one minute, to be renewed every [`ALONE_RENEWAL`]. Like an elected leader's term
    /// it ends by itself unless it is renewed.
    pub fn without_election(identity: &str) -> Self {
        Self { transitions: 0, valid_until: now() + ALONE, holder: identity.into(), mirror: None }
    }

    /// The term in a cloud, under the epoch that was agreed with what the cluster has stored.
    pub fn term(&self, epoch: u64, cloud: &Arc<Cloud>) -> Term {
        Term { epoch, cloud: Arc::clone(cloud), holder: Arc::clone(&self.holder), valid_until: self.valid_until }
    }
}

/// How the elector is ended, in this order.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    /// Contend no more. A lease that is held is renewed until `release`.
    pub shutdown: CancellationToken,
    /// No task writes any more: release the lease and return.
    pub release: CancellationToken,
}

/// Contends for the lease.
pub struct Elector {
    lease: LeaseObject,
    candidate: Candidate,
    config: ElectorConfig,
    holder: Arc<str>,
    known: Option<Observation>,
    metrics: Option<LeaderMetrics>,
    mirror: Option<watch::Receiver<Option<Mirror>>>,
    presence: Presence,
}

/// How holding the lease ended.
enum End {
    /// It was not renewed in time, or another has it.
    Lost,
    /// This process is no longer a candidate.
    Withdrawn,
    /// The process ends.
    Released,
}

impl Elector {
    /// An elector that has not looked at the lease yet.
    pub fn new(client: Client, config: ElectorConfig) -> Self {
        Self {
            lease: LeaseObject::new(client, &config.namespace, &config.name, config.renew_deadline / 2),
            candidate: Candidate { identity: config.identity.clone(), lease_duration: config.lease_duration },
            holder: config.identity.as_str().into(),
            config,
            known: None,
            metrics: None,
            mirror: None,
            presence: Presence::default(),
        }
    }

    /// Reports to these metrics too.
    #[must_use]
    pub fn with_metrics(mut self, metrics: LeaderMetrics) -> Self {
        metrics.set_leading(&self.config.name, false);
        self.metrics = Some(metrics);
        self
    }

    /// Writes each of these on the lease as soon as it comes, and again with every renewal, for as long as the lease is held.
    #[must_use]
    pub fn with_mirror(self, mirror: watch::Receiver<Option<Mirror>>) -> Self {
        Self { mirror: Some(mirror), ..self }
    }

    /// Contends while `candidate` is true, and publishes every renewal and loss to `leading`, until `ending`.
    ///
    /// When `candidate` turns false, the elector releases the lease at once, so the caller must have stopped every writer before. It
    /// waits one lease duration before it contends again, so that others can acquire the lease. After a lost lease it contends again
    /// at once. An error means that the lease could not be released at the end: other replicas then wait until it expires.
    pub async fn run(
        mut self,
        mut candidate: watch::Receiver<bool>,
        leading: watch::Sender<Option<Leading>>,
        ending: Ending,
    ) -> Result<(), LeaseError> {
        while let Some(first) = self.acquire(&mut candidate, &ending).await {
            self.publish(&leading, Some(first.clone()));
            let end = self.hold(first, &mut candidate, &leading, &ending).await;
            self.clear_mirror();
            self.publish(&leading, None);
            match end {
                End::Lost => warn!(lease = self.lease.describe(), "lost the lease; contending for it again"),
                End::Released => return self.release().await,
                End::Withdrawn => self.withdraw(&ending).await,
            }
        }
        Ok(())
    }

    /// Tries again at once when the API server is back.
    #[must_use]
    pub fn with_presence(mut self, presence: Presence) -> Self {
        self.presence = presence;
        self
    }

    /// Releases the lease in place of an elector of the same identity that has ended without doing so.
    pub async fn give_back(mut self) -> Result<(), LeaseError> {
        self.release().await
    }

    /// Tries until this process holds the lease; none: the process ends.
    async fn acquire(&mut self, candidate: &mut watch::Receiver<bool>, ending: &Ending) -> Option<Leading> {
        loop {
            wait_for(candidate, true, &ending.shutdown).await?;
            match self.attempt().await {
                Ok(Some(leading)) => {
                    info!(
                        lease = self.lease.describe(),
                        holder = &*self.holder,
                        transitions = leading.transitions,
                        "acquired the lease"
                    );
                    return Some(leading);
                }
                Ok(None) => debug!(lease = self.lease.describe(), "another process holds the lease"),
                Err(error) => self.failed(&error, "could not acquire the lease"),
            }
            let pause = self.config.retry_period.mul_f64(1.0 + JITTER * rand::random::<f64>());
            tokio::select! {
                () = sleep(pause) => {}
                () = self.presence.returned() => {}
                () = ending.shutdown.cancelled() => return None,
            }
        }
    }

    /// Renews until it ends.
    async fn hold(
        &mut self,
        mut held: Leading,
        candidate: &mut watch::Receiver<bool>,
        leading: &watch::Sender<Option<Leading>>,
        ending: &Ending,
    ) -> End {
        loop {
            tokio::select! {
                biased;
                () = ending.release.cancelled() => return End::Released,
                Some(()) = wait_for(candidate, false, &ending.release) => return End::Withdrawn,
                mirror = next(&mut self.mirror) => self.lease.set_mirror(mirror),
                () = sleep(self.config.retry_period) => {}
            }
            match tokio::time::timeout_at(Tick::from_std(held.valid_until), self.attempt()).await {
                Ok(Ok(Some(renewed))) => {
                    held = renewed;
                    self.publish(leading, Some(held.clone()));
                }
                Ok(Ok(None)) | Err(_) => return End::Lost,
                Ok(Err(error)) => self.failed(&error, "could not renew the lease"),
            }
            if now() >= held.valid_until {
                return End::Lost;
            }
        }
    }

    /// `presence` logs once that the API server is away.
    fn failed(&self, error: &LeaseError, what: &str) {
        if error.is_unanswered() {
            self.presence.doubt();
            debug!(%error, "{what}");
        } else {
            warn!(%error, "{what}");
        }
    }

    /// One attempt to acquire or renew; none: another process holds the lease.
    async fn attempt(&mut self) -> Result<Option<Leading>, LeaseError> {
        if decide::may_renew_unread(&self.candidate, self.known.as_ref(), now()) {
            let renewal = decide::claim(&self.candidate, self.known.as_ref().map(|known| &known.record), Timestamp::now());
            match self.write(&Action::Write(renewal)).await {
                Err(error) => debug!(%error, "could not renew the lease unread; reading it"),
                renewed => return renewed,
            }
        }
        let found = self.read().await?;
        let action = decide::decide(&self.candidate, self.known.as_ref(), found, now(), Timestamp::now());
        self.write(&action).await
    }

    /// Reads the lease into what is known; whether there is one.
    async fn read(&mut self) -> Result<bool, LeaseError> {
        let Some(record) = self.lease.read().await? else { return Ok(false) };
        let before = self.known.take();
        let changed = before.as_ref().is_none_or(|before| before.record.holder != record.holder);
        if changed && !record.holder.is_empty() && record.holder != self.candidate.identity {
            info!(lease = self.lease.describe(), holder = record.holder, "another process leads");
        }
        self.known = Some(decide::observe(before, record, now()));
        Ok(true)
    }

    async fn write(&mut self, action: &Action) -> Result<Option<Leading>, LeaseError> {
        let sent = now();
        let record = match action {
            Action::Wait { .. } => return Ok(None),
            Action::Create(record) => self.lease.create(record).await?,
            Action::Write(record) => self.lease.replace(record).await?,
        };
        let transitions = record.transitions.into();
        self.known = Some(Observation { record, since: sent });
        Ok(Some(Leading {
            transitions,
            valid_until: sent + self.config.renew_deadline,
            holder: Arc::clone(&self.holder),
            mirror: self.lease.mirror(),
        }))
    }

    /// Releases the lease and does not contend for one lease duration.
    async fn withdraw(&mut self, ending: &Ending) {
        match self.release().await {
            Ok(()) => info!(lease = self.lease.describe(), "released the lease; contending again after one lease duration"),
            Err(error) => warn!(%error, "could not release the lease; another replica takes over when it expires"),
        }
        tokio::select! {
            () = sleep(self.config.lease_duration) => {}
            () = ending.shutdown.cancelled() => {}
        }
    }

    /// Clears the holder if it is still this process: reads the lease first, and again if a late renewal of this process intervened.
    async fn release(&mut self) -> Result<(), LeaseError> {
        let give_up_at = now() + self.config.renew_deadline;
        loop {
            let ours = self.lease.read().await?.filter(|record| record.holder == self.candidate.identity);
            let Some(held) = ours else { return Ok(()) };
            match self.lease.replace(&decide::released(&held, Timestamp::now())).await {
                Err(error) if error.is_conflict() && now() < give_up_at => debug!(%error, "releasing the lease again"),
                released => return released.map(|record| self.forget(record)),
            }
        }
    }

    /// The next holder of the lease writes its own mirror.
    fn clear_mirror(&mut self) {
        self.lease.set_mirror(None);
        if let Some(mirror) = &mut self.mirror {
            mirror.mark_unchanged();
        }
    }

    fn forget(&mut self, released: Record) {
        self.known = Some(Observation { record: released, since: now() });
    }

    fn publish(&self, leading: &watch::Sender<Option<Leading>>, state: Option<Leading>) {
        if let Some(metrics) = &self.metrics {
            metrics.set_leading(&self.config.name, state.is_some());
        }
        leading.send_replace(state);
    }
}

/// The next mirror; nothing comes where there is none.
async fn next(mirror: &mut Option<watch::Receiver<Option<Mirror>>>) -> Option<Mirror> {
    match mirror {
        Some(receiver) => match receiver.changed().await {
            Ok(()) => receiver.borrow_and_update().clone(),
            Err(_) => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

/// Waits until `candidate` has the wanted value; none: `end` came first. If the sender is gone, only `end` can come.
async fn wait_for(candidate: &mut watch::Receiver<bool>, wanted: bool, end: &CancellationToken) -> Option<()> {
    tokio::select! {
        biased;
        () = end.cancelled() => None,
        () = async {
            if candidate.wait_for(|is| *is == wanted).await.is_err() {
                std::future::pending::<()>().await;
            }
        } => Some(()),
    }
}

/// By tokio's clock, which tests can pause.
fn now() -> Instant {
    Tick::now().into_std()
}
