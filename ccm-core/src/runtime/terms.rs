//! What happens between gaining the lease and losing it: the epoch is stored, the cloud's identity accepted, the controllers
//! run, and stop before the lease is another's. Another accepted cloud, or a provider that refuses the epoch, ends a term and
//! not the lease: another term follows.
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::acceptance::{Records, RecordsError};
use super::leader_election::Leading;
use super::state_guard::guard;
use super::supervisor::{Ended, Supervisor};
use super::{LAST_EVENTS, Parts};
use crate::cluster::events::{Event, EventType, Events, Subject};
use crate::cluster::gate::Gate;
use crate::cluster::state::accepted::Accepted;
use crate::cluster::state::mirror::Mirror;
use crate::cluster::state::{Beginning, StateError, StateStore, TermStore};
use crate::model::provider_info::ProviderInfo;
use crate::model::term::{Cloud, Term};
use crate::names;
use crate::provider::backoff::Backoff;
use crate::provider::lead::{LeadStatus, Refusal};
use crate::provider::session::Handle;
use crate::provider::{Identity, Instances};
use crate::telemetry::health::Check;
use crate::telemetry::term::TermReports;

mod broken;
mod controllers;
#[cfg(test)]
pub(super) mod tests;

use broken::Failures;
use controllers::Running;

/// How long until a state that could not be read or written is tried again.
const PAUSE: Duration = Duration::from_secs(1);
/// The first pause and the longest between terms that a provider refuses, or that end because another leader wrote the state.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));
/// The check's name in `/readyz`.
const LEAD: &str = "provider-lead";

/// Serves one term after another.
pub(super) struct Terms {
    parts: Parts,
    wires: Wires,
    records: Records,
    gate: Gate,
    /// What starts the tasks of a term.
    start: Start,
    /// Writers of the last events of terms that have ended.
    farewells: TaskTracker,
}

/// Starts the tasks of a term, which stop with the token.
type Start = fn(&Terms, TermStore, TermReports, &CancellationToken) -> Running;

/// What terms are connected to.
pub(super) struct Wires {
    /// The session with the provider.
    pub handle: Handle,
    /// Look-ups.
    pub instances: Arc<dyn Instances>,
    /// Until when all look-ups pause because the cloud limits their rate.
    pub rate_limit: watch::Receiver<Option<tokio::time::Instant>>,
    /// Events about terms.
    pub events: Events,
    /// What the gate and the Lead stream follow.
    pub term: watch::Sender<Option<Term>>,
    /// What the elector puts on the lease.
    pub mirror: watch::Sender<Option<Mirror>>,
    /// Whether this replica leaves the lease to others for now.
    pub resting: watch::Sender<bool>,
}

/// How a term ended.
enum End {
    /// The lease is lost.
    Lost,
    /// The process ends.
    Shutdown,
    /// Another accepted cloud is behind the socket.
    AnotherCloud,
    /// The provider does not take the term's epoch.
    Refused(Refusal),
    /// Another leader has written the state, under this epoch.
    Superseded(u64),
    /// A task of the term panicked, or ended early.
    Broken(Ended),
}

/// What one term leaves to the next.
struct Between {
    /// The highest epoch that the provider is known to have seen.
    seen: u64,
    /// Whether the provider refused the last term.
    refused: bool,
    /// Grow while terms fail one after another.
    pauses: Backoff,
    /// Terms that a task ended.
    failures: Failures,
}

impl Terms {
    pub(super) fn new(parts: Parts, wires: Wires) -> Self {
        let gate = Gate::new(wires.term.subscribe(), wires.handle.state()).while_present(parts.clients.presence.clone());
        let (start, farewells): (Start, _) = (Self::controllers, TaskTracker::new());
        Self { records: parts.records(), parts, wires, gate, start, farewells }
    }

    /// Until `shutdown`; on return the controllers have stopped and nothing more is written. A term that ends while the lease is
    /// held is followed by another.
    pub(super) async fn serve(&self, mut leading: watch::Receiver<Option<Leading>>, shutdown: &CancellationToken) {
        let mut between =
            Between { seen: 0, refused: false, pauses: Backoff::new(PAUSES.0, PAUSES.1), failures: Failures::default() };
        while !shutdown.is_cancelled() {
            let gained = tokio::select! {
                () = shutdown.cancelled() => return,
                gained = leading.wait_for(Option::is_some) => gained.ok().and_then(|leading| leading.clone()),
            };
            let Some(gained) = gained else { return };
            let end = self.one_term(&gained, &mut leading, &mut between, shutdown).await;
            if let End::Broken(ended) = &end {
                self.rest(ended, &mut between.failures, leading.clone(), shutdown).await;
                continue;
            }
            let pause = self.ended(end, &mut between);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = lost(leading.clone()) => {}
                () = shutdown.cancelled() => return,
            }
        }
    }

    /// Nothing leads any more, whatever became of the terms.
    pub(super) fn withdraw(&self) {
        self.wires.term.send_replace(None);
    }

    /// Waits until the last events of all terms are written, or their time is over.
    pub(super) async fn end(self) {
        let Self { farewells, .. } = self;
        farewells.close();
        farewells.wait().await;
    }

    /// Notes the end of a term; answers how long to wait before another one begins.
    fn ended(&self, end: End, between: &mut Between) -> Duration {
        match end {
            End::Lost => {
                tracing::warn!("the lease is lost; the controllers have stopped");
                self.parts.health.clear(LEAD);
                Duration::ZERO
            }
            End::Shutdown | End::Broken(_) => Duration::ZERO,
            End::AnotherCloud => {
                tracing::warn!("another cloud was accepted: the term has ended, and another begins in that cloud");
                Duration::ZERO
            }
            End::Refused(refusal) => {
                between.seen = between.seen.max(refusal.highest.unwrap_or_default());
                // The next epoch is right by what the provider says. A provider that refuses that one, too, has to wait.
                let first = !std::mem::replace(&mut between.refused, true);
                if first && refusal.highest.is_some() { Duration::ZERO } else { between.pauses.delay() }
            }
            End::Superseded(epoch) => {
                tracing::warn!(
                    epoch,
                    "another leader has written the state: the term has ended, and begins anew if the lease is held"
                );
                between.pauses.delay()
            }
        }
    }

    fn tell(&self, refusal: &Refusal, subject: Option<Subject>) {
        let seen = refusal.highest.map_or_else(String::new, |highest| format!(" and has seen epoch {highest}"));
        let message = format!(
            "the provider refuses to be led under epoch {}{seen}: {}; the term begins anew under a higher one, and nothing is changed in the \
             cloud meanwhile",
            refusal.epoch, refusal.message
        );
        tracing::warn!("{message}");
        self.parts.health.set(LEAD, Check::Warning(message.clone()));
        if let Some(subject) = subject {
            let reason = names::events::LEAD_REFUSED.to_owned();
            self.wires.events.publish(Event { subject, event_type: EventType::Warning, reason, message });
        }
    }

    async fn one_term(
        &self,
        gained: &Leading,
        leading: &mut watch::Receiver<Option<Leading>>,
        between: &mut Between,
        shutdown: &CancellationToken,
    ) -> End {
        let prepared = tokio::select! {
            prepared = self.prepare(leading.clone(), between.seen) => prepared,
            () = lost(leading.clone()) => return End::Lost,
            () = shutdown.cancelled() => return End::Shutdown,
        };
        let Prepared { store, epoch, cloud } = &prepared;
        tracing::info!(epoch, cloud = cloud.identity, state = store.name(), "leading");
        self.publish(&prepared, gained);
        let stop = CancellationToken::new();
        let reports = self.reports();
        let Running { mut tasks, mut writers, reports } = (self.start)(self, store.clone(), reports, &stop);
        let began = tokio::time::Instant::now();
        let end = tokio::select! {
            () = self.follow(&prepared, gained.transitions, leading) => End::Lost,
            () = shutdown.cancelled() => End::Shutdown,
            () = self.another_cloud(cloud) => End::AnotherCloud,
            refusal = self.led(*epoch, between) => End::Refused(refusal),
            later = guard(store, &self.parts.health) => End::Superseded(later),
            ended = tasks.next() => End::Broken(ended),
            ended = writers.next() => End::Broken(ended),
            never = self.forgets_failures() => match never {},
        };
        if let End::Broken(ended) = &end {
            tracing::error!(task = ended.task, "{ended}; the leadership term ends, and this replica gives the lease back");
        }
        if !matches!(end, End::Lost) {
            stop.cancel();
            // Renewals go on, and the provider is led, until running work has ended.
            tokio::select! {
                () = self.finish(&mut tasks) => {}
                () = self.follow(&prepared, gained.transitions, leading) => {}
            }
        }
        self.wires.term.send_replace(None);
        stop.cancel();
        tasks.shutdown().await;
        self.farewells.spawn(async move {
            if !writers.finish(LAST_EVENTS).await {
                tracing::warn!("the last events of the term were not written in time");
            }
        });
        between.failures.lasted(began.elapsed());
        drop(reports);
        if let End::Refused(refusal) = &end {
            self.tell(refusal, store.subject().await);
        }
        end
    }

    fn reports(&self) -> TermReports {
        let metrics = &self.parts.metrics;
        TermReports::begin(&self.parts.health, &metrics.nodes, &metrics.routes, &metrics.controllers)
    }

    /// Tries until it succeeds: without a stored epoch nothing may be changed.
    async fn prepare(&self, mut leading: watch::Receiver<Option<Leading>>, seen: u64) -> Prepared {
        let mut provider = self.wires.handle.state();
        loop {
            let ready = provider.wait_for(|state| state.ready().is_some()).await.ok().and_then(|state| state.ready().cloned());
            let held = leading.borrow().clone();
            if let (Some(info), Some(held)) = (ready, held) {
                match self.begin(&info, &held, seen).await {
                    Ok(Some(prepared)) => {
                        if self.mirrored(&prepared, &mut leading).await {
                            return prepared;
                        }
                    }
                    Ok(None) => drop(self.wires.handle.confirm().await),
                    Err(error) => tracing::warn!(%error, "the term cannot begin; trying again"),
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Writes down which cloud the term is for, and its epoch; none where another cloud was accepted since the handshake.
    async fn begin(&self, info: &ProviderInfo, held: &Leading, seen: u64) -> Result<Option<Prepared>, BeginError> {
        let stored = self.records.stored(&info.name).await?;
        let accepted = Accepted::of(&info.name, stored.as_ref(), held.mirror.as_ref()).map_err(StateError::from)?;
        let found = &info.cloud_identity;
        if self.records.judge(&accepted, found).await?.is_err() {
            return Ok(None);
        }
        let beginning = Beginning::after(&accepted, found, seen, held.transitions);
        let epoch = beginning.epoch;
        let store = StateStore::new(self.parts.client.clone(), &info.name);
        let store = TermStore::begin(store, stored, beginning, self.gate.clone(), self.wires.events.clone()).await?;
        Ok(Some(Prepared { store, epoch, cloud: Arc::new(Cloud::of(info)) }))
    }

    /// Waits until the lease carries the term, too. False: it carries a later one.
    async fn mirrored(&self, prepared: &Prepared, leading: &mut watch::Receiver<Option<Leading>>) -> bool {
        if !self.parts.config.leader_election.enabled {
            return true;
        }
        let Prepared { epoch, cloud, .. } = prepared;
        let mirror = Mirror { provider: cloud.provider.clone(), cloud_identity: cloud.identity.clone(), epoch: *epoch };
        self.wires.mirror.send_replace(Some(mirror.clone()));
        let on_the_lease = |held: &Option<Leading>| held.as_ref().and_then(|held| held.mirror.clone());
        let settled =
            leading.wait_for(|held| on_the_lease(held).is_some_and(|there| there == mirror || there.epoch > *epoch)).await;
        settled.is_ok_and(|held| on_the_lease(&held) == Some(mirror))
    }

    fn publish(&self, prepared: &Prepared, leading: &Leading) {
        self.wires.term.send_replace(Some(leading.term(prepared.epoch, &prepared.cloud)));
    }

    /// Passes each renewal on; returns when the lease is lost, or was another's meanwhile.
    async fn follow(&self, prepared: &Prepared, transitions: u64, leading: &mut watch::Receiver<Option<Leading>>) {
        while leading.changed().await.is_ok() {
            match &*leading.borrow_and_update() {
                Some(renewed) if renewed.transitions == transitions => self.publish(prepared, renewed),
                _ => return,
            }
        }
    }

    /// Returns when a provider may be used that serves another cloud than the term's.
    async fn another_cloud(&self, cloud: &Cloud) {
        let mut provider = self.wires.handle.state();
        if provider.wait_for(|state| state.ready().is_some_and(|info| !cloud.is(info))).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Notes that the provider is led under this epoch; returns when it refuses that.
    async fn led(&self, epoch: u64, between: &mut Between) -> Refusal {
        let mut lead = self.wires.handle.lead_status();
        lead.mark_changed();
        while lead.changed().await.is_ok() {
            match lead.borrow_and_update().clone() {
                LeadStatus::Accepted { epoch: accepted } if accepted == epoch => {
                    self.parts.health.clear(LEAD);
                    between.refused = false;
                    between.pauses.reset();
                }
                LeadStatus::Refused(refusal) if refusal.epoch == epoch => return refusal,
                _ => {}
            }
        }
        std::future::pending().await
    }

    async fn finish(&self, tasks: &mut Supervisor) {
        let grace = self.parts.config.leader_election.shutdown_grace;
        if !tasks.finish(grace).await {
            tracing::warn!(?grace, "running work did not end within --shutdown-grace");
        }
    }
}

/// What a term begins with.
struct Prepared {
    store: TermStore,
    epoch: u64,
    cloud: Arc<Cloud>,
}

/// Why a term cannot begin.
#[derive(Debug, thiserror::Error)]
enum BeginError {
    #[error(transparent)]
    Records(#[from] RecordsError),
    #[error(transparent)]
    State(#[from] StateError),
}

async fn lost(mut leading: watch::Receiver<Option<Leading>>) {
    drop(leading.wait_for(Option::is_none).await);
}
