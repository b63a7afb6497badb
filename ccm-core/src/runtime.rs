//! Composition: what runs, in which order, and how it ends. No decision about the cluster is made here.
pub mod acceptance;
pub mod eligibility;
pub mod kubernetes;
pub mod leader_election;
pub mod listing;
pub mod logging;
mod process;
pub mod serving;
pub mod shutdown;
mod state_guard;
pub mod supervisor;
mod terms;

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::cluster::events::Events;
use crate::cluster::state::mirror::Mirror;
use crate::config::Config;
use crate::model::term::Term;
use crate::provider::batch::Batcher;
use crate::provider::grpc::Deadlines;
use crate::provider::metrics::ProviderMetrics;
use crate::provider::session::{self, Handle, Session, SessionConfig};
use crate::telemetry::health::{Check, Health};
use crate::telemetry::metrics::routes::RouteMetrics;
use crate::telemetry::metrics::{ControllerMetrics, LeaderMetrics, NodeMetrics, ProcessMetrics, ServiceMetrics};
use acceptance::{Acceptance, Records};
use eligibility::Eligibility;
use kubernetes::clients::Clients;
use leader_election::{Elector, ElectorConfig, Ending, Leading};
use process::{govern, tasks};
use serving::{Endpoints, Server};
use supervisor::{Ended, How, Supervisor};
use terms::Terms;

/// How long the last events may take to be written when a term or the process ends.
const LAST_EVENTS: Duration = Duration::from_secs(5);

/// Why the process cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The API server cannot be reached or used.
    #[error(transparent)]
    Kubernetes(#[from] kubernetes::ConnectError),
    /// Health and metrics cannot be served.
    #[error(transparent)]
    Serving(#[from] serving::ServingError),
    /// A task of the process ended unexpectedly. The lease was released.
    #[error("{0}; the process ends to be started again")]
    Task(#[from] Ended),
}

/// Runs until `shutdown` is cancelled: then the controllers stop, running writes end, the lease is released, and the last events
/// are written. If a task of the process ends early, the same happens, with an error.
pub async fn run(config: Config, shutdown: CancellationToken) -> Result<(), RunError> {
    config.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let mut registry = Registry::default();
    let metrics = Metrics::new(&mut registry);
    let health = Health::default();
    health.set(eligibility::CHECK, Check::Failed("there is no connection to the provider yet".to_owned()));
    let mut background = Supervisor::new(health.liveness().clone());
    serve(&config, &health, registry, &mut background).await?;
    let clients = kubernetes::clients(&config.kubernetes).await?;
    let client = clients.requests.clone();
    background.spawn(tasks::PRESENCE, clients.presence.clone().watch(clients.probe.clone()));
    let cluster_uid = tokio::select! {
        uid = kubernetes::cluster_uid(&client, &health, &shutdown) => uid?,
        ended = background.next() => return Err(ended.into()),
    };
    let Some(cluster_uid) = cluster_uid else { return Ok(()) };
    let identity = leader_election::identity();
    let parts = Parts { config, client, clients, cluster_uid, identity, metrics, health };
    let ran = Box::pin(parts.run(&mut background, shutdown)).await;
    background.shutdown().await;
    tracing::info!("stopped");
    Ok(ran?)
}

/// Health and metrics, from before anything else and until the very end.
async fn serve(config: &Config, health: &Health, registry: Registry, background: &mut Supervisor) -> Result<(), RunError> {
    let Some(address) = config.serving.address else { return Ok(()) };
    let endpoints = Endpoints::new(config, health.clone(), Arc::new(registry))?;
    let server = Server::bind(address).await?;
    background.spawn(tasks::SERVING, async move {
        if let Err(error) = server.serve_apart(endpoints).await {
            tracing::error!("{error}");
        }
    });
    Ok(())
}

struct Metrics {
    nodes: NodeMetrics,
    services: ServiceMetrics,
    routes: RouteMetrics,
    provider: ProviderMetrics,
    leader: LeaderMetrics,
    controllers: ControllerMetrics,
}

impl Metrics {
    fn new(registry: &mut Registry) -> Self {
        ProcessMetrics::register(registry);
        Self {
            nodes: NodeMetrics::new(registry),
            services: ServiceMetrics::new(registry),
            routes: RouteMetrics::new(registry),
            provider: ProviderMetrics::new(registry),
            leader: LeaderMetrics::new(registry),
            controllers: ControllerMetrics::new(registry),
        }
    }
}

/// What is known once the API server has answered.
struct Parts {
    config: Config,
    /// That for requests.
    client: Client,
    clients: Clients,
    cluster_uid: String,
    identity: String,
    metrics: Metrics,
    health: Health,
}

impl Parts {
    async fn run(self, background: &mut Supervisor, shutdown: CancellationToken) -> Result<(), Ended> {
        let stop = shutdown.child_token();
        let (term, terms) = watch::channel::<Option<Term>>(None);
        let (events, writer) = Events::start(self.client.clone(), self.clients.presence.clone(), "ccm-core", &self.identity);
        background.spawn(tasks::EVENTS, writer);
        let (handle, instances) = self.session(terms, events.clone(), background);
        let rate_limit = instances.rate_limit();
        let (resting, rests) = watch::channel(false);
        let candidates = self.eligibility(&handle, rests, background);
        let (leading, leadings) = watch::channel::<Option<Leading>>(None);
        let lease = leadings.clone();
        self.health.liveness().watch_lease(move || lease.borrow().as_ref().map(|leading| leading.valid_until));
        let ending = Ending { shutdown: stop.clone(), release: CancellationToken::new() };
        let (mirror, mirrors) = watch::channel(None);
        background.spawn(tasks::ELECTION, self.election(candidates, leading, mirrors, ending.clone()));
        let replacement = self.elector();

        let wires = terms::Wires { handle, instances: Arc::new(instances), rate_limit, events, term, mirror, resting };
        let terms = Terms::new(self, wires);
        let ended = govern(background, &stop, terms.serve(leadings, &stop)).await;
        terms.withdraw();
        ending.release.cancel();
        if let Some(How::Panicked(_)) | None = background.finished(tasks::ELECTION).await
            && let Some(elector) = replacement
            && let Err(error) = elector.give_back().await
        {
            tracing::warn!(%error, "the lease was not given back; another replica takes over when it has expired");
        }
        terms.end().await;
        // The writer of events ends with those who have some.
        [tasks::SESSION, tasks::BATCHES, tasks::PROVIDER_ELIGIBILITY, tasks::ELIGIBILITY]
            .iter()
            .for_each(|task| background.abort(task));
        if timeout(LAST_EVENTS, background.finished(tasks::EVENTS)).await.is_err() {
            tracing::warn!("the last events were not written in time");
        }
        ended.map_or(Ok(()), Err)
    }

    fn eligibility(&self, handle: &Handle, rests: watch::Receiver<bool>, background: &mut Supervisor) -> watch::Receiver<bool> {
        let ((usable, usables), (candidate, candidates)) = (watch::channel(false), watch::channel(false));
        let provider = self.metrics.provider.clone();
        let eligibility = Eligibility::new(handle.state(), self.config.provider.grace, self.health.clone(), provider);
        background.spawn(tasks::PROVIDER_ELIGIBILITY, eligibility.run(usable));
        background.spawn(tasks::ELIGIBILITY, eligibility::eligibility(usables, rests, candidate));
        candidates
    }

    /// The session with the provider and everything that lives as long.
    fn session(&self, terms: watch::Receiver<Option<Term>>, events: Events, background: &mut Supervisor) -> (Handle, Batcher) {
        let judge = Acceptance::new(self.records(), &self.config.provider, events, &self.cluster_uid, terms.clone());
        let (handle, session) = Session::start(self.session_config(), Arc::new(judge), terms);
        background.spawn(tasks::SESSION, session);
        let (instances, batches) = handle.instances();
        background.spawn(tasks::BATCHES, batches);
        (handle, instances)
    }

    fn records(&self) -> Records {
        let accept = self.config.provider.accept_cloud_identity.as_ref();
        Records::new(self.client.clone(), &self.config.leader_election, accept)
    }

    /// None where there is no election.
    fn elector(&self) -> Option<Elector> {
        let config = || ElectorConfig::new(&self.config.leader_election, self.identity.clone());
        self.config
            .leader_election
            .enabled
            .then(|| Elector::new(self.clients.election.clone(), config()).with_presence(self.clients.presence.clone()))
    }

    fn session_config(&self) -> SessionConfig {
        let kubernetes = &self.config.kubernetes;
        SessionConfig {
            endpoint: self.config.provider.endpoint.clone(),
            peer_uids: self.config.provider.peer_uids.clone(),
            cluster: session::Cluster {
                name: kubernetes.cluster_name.clone(),
                uid: self.cluster_uid.clone(),
                pod_cidrs: kubernetes.cluster_cidrs.iter().map(ToString::to_string).collect(),
                service_cidrs: kubernetes.service_cidrs.iter().map(ToString::to_string).collect(),
            },
            core_version: env!("CARGO_PKG_VERSION").to_owned(),
            deadlines: Deadlines::default(),
            handshake_interval: session::HANDSHAKE_INTERVAL,
            metrics: self.metrics.provider.clone(),
        }
    }

    /// Contends for the lease, or leads alone where `--leader-elect=false`.
    fn election(
        &self,
        candidates: watch::Receiver<bool>,
        leading: watch::Sender<Option<Leading>>,
        mirrors: watch::Receiver<Option<Mirror>>,
        ending: Ending,
    ) -> impl Future<Output = ()> + Send + 'static {
        let elector = self.elector().map(|elector| elector.with_metrics(self.metrics.leader.clone()).with_mirror(mirrors));
        let identity = self.identity.clone();
        async move {
            let Some(elector) = elector else { return lead_alone(&identity, candidates, &leading, &ending).await };
            if let Err(error) = elector.run(candidates, leading, ending).await {
                tracing::warn!(%error, "the lease was not given back; another replica takes over when it has expired");
            }
        }
    }
}

/// Leads while the provider can be used, in one term that it renews.
async fn lead_alone(
    identity: &str,
    mut candidates: watch::Receiver<bool>,
    leading: &watch::Sender<Option<Leading>>,
    ending: &Ending,
) {
    loop {
        let candidate = *candidates.borrow_and_update();
        leading.send_replace(candidate.then(|| Leading::without_election(identity)));
        tokio::select! {
            changed = candidates.changed() => if changed.is_err() { return },
            () = ending.release.cancelled() => return,
            () = sleep(leader_election::ALONE_RENEWAL), if candidate => {}
        }
    }
}

#[cfg(test)]
mod tests;
