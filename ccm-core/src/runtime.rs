//! Composition: what runs, in which order, and how it ends. No decision about the cluster is made here.
pub mod acceptance;
pub mod candidacy;
pub mod health;
pub mod kubernetes;
pub mod leader_election;
pub mod logging;
pub mod metrics;
pub mod serving;
pub mod shutdown;
pub mod tenure;

use std::sync::Arc;

use kube::Client;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::cluster::events::Events;
use crate::config::Config;
use crate::model::term::Term;
use crate::provider::metrics::ProviderMetrics;
use crate::provider::session::{self, Session, SessionConfig};
use acceptance::Acceptance;
use candidacy::Candidacy;
use health::Health;
use leader_election::{Elector, ElectorConfig, Leading};
use metrics::{NodeMetrics, ProcessMetrics};
use tenure::Tenures;

/// Why the process cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The API server cannot be reached or used.
    #[error(transparent)]
    Kubernetes(#[from] kubernetes::ConnectError),
    /// Health and metrics cannot be served.
    #[error(transparent)]
    Serving(#[from] serving::ServingError),
}

/// Runs until `shutdown` is cancelled: then the controllers stop, running writes end, and the lease is given back.
pub async fn run(config: Config, shutdown: CancellationToken) -> Result<(), RunError> {
    config.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let mut registry = Registry::default();
    let metrics = Metrics::new(&mut registry);
    let health = Health::default();
    let mut background = JoinSet::new();
    if let Some(address) = config.serving.address {
        let server = serving::Server::bind(address, health.clone(), registry, &config).await?;
        background.spawn(server.run());
    }
    let client = kubernetes::client(&config.kubernetes).await?;
    let Some(cluster_uid) = kubernetes::cluster_uid(&client, &health, &shutdown).await? else { return Ok(()) };
    let identity = leader_election::identity();
    let parts = Parts { config, client, cluster_uid, identity, metrics, health };
    parts.run(&mut background, shutdown).await;
    background.shutdown().await;
    tracing::info!("stopped");
    Ok(())
}

struct Metrics {
    nodes: NodeMetrics,
    provider: ProviderMetrics,
    process: ProcessMetrics,
}

impl Metrics {
    fn new(registry: &mut Registry) -> Self {
        Self { nodes: NodeMetrics::new(registry), provider: ProviderMetrics::new(registry), process: ProcessMetrics::new(registry) }
    }
}

/// What is known once the API server has answered.
struct Parts {
    config: Config,
    client: Client,
    cluster_uid: String,
    identity: String,
    metrics: Metrics,
    health: Health,
}

impl Parts {
    async fn run(self, background: &mut JoinSet<()>, shutdown: CancellationToken) {
        let (term, terms) = watch::channel::<Option<Term>>(None);
        let (events, writer) = Events::start(self.client.clone(), "ccm-core", &self.identity);
        background.spawn(writer);
        let judge = Acceptance::new(self.client.clone(), &self.config.provider, events);
        let (handle, session) =
            Session::start(self.session_config(), Arc::new(judge), terms.clone(), self.metrics.provider.clone());
        background.spawn(session);
        let (candidate, candidates) = watch::channel(false);
        let candidacy = Candidacy::new(handle.state(), self.config.provider.grace, self.health.clone(), self.metrics.process.clone());
        background.spawn(candidacy.run(candidate));

        let (leading, leadings) = watch::channel::<Option<Leading>>(None);
        let release = CancellationToken::new();
        let election = tokio::spawn(elect(self.elector(), candidates, leading, release.clone()));
        Tenures::new(self, handle, term, terms).serve(leadings, &shutdown).await;
        release.cancel();
        drop(election.await);
    }

    fn session_config(&self) -> SessionConfig {
        let kubernetes = &self.config.kubernetes;
        SessionConfig {
            cluster: session::Cluster {
                name: kubernetes.cluster_name.clone(),
                uid: self.cluster_uid.clone(),
                pod_cidrs: kubernetes.cluster_cidrs.iter().map(ToString::to_string).collect(),
                service_cidrs: kubernetes.service_cidrs.iter().map(ToString::to_string).collect(),
            },
            ..SessionConfig::new(self.config.provider.endpoint.path())
        }
    }

    /// The elector, or none where `--leader-elect=false`.
    fn elector(&self) -> Option<Elector> {
        let config = &self.config.leader_election;
        let elector = ElectorConfig {
            namespace: config.resource_namespace.clone(),
            name: config.resource_name.clone(),
            identity: self.identity.clone(),
            lease_duration: config.lease_duration,
            renew_deadline: config.renew_deadline,
            retry_period: config.retry_period,
        };
        config.enabled.then(|| Elector::new(self.client.clone(), elector))
    }
}

async fn elect(
    elector: Option<Elector>,
    candidate: watch::Receiver<bool>,
    leading: watch::Sender<Option<Leading>>,
    release: CancellationToken,
) {
    match elector {
        Some(elector) => elector.run(candidate, leading, release).await,
        None => leader_election::lead_alone(candidate, leading, release).await,
    }
}
