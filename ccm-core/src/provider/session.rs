//! The session with the provider: dials for ever, shakes hands, has the provider judged, and publishes how it stands.
//! Every other use of the connection hangs on what is published here. It decides nothing about nodes.
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ccm_proto::v1::ClusterRef;
use tokio::sync::{Notify, broadcast, mpsc, oneshot, watch};

use crate::model::provider_info::{Capability, ProviderInfo};
use crate::model::term::Term;

use super::batch::Batcher;
use super::endpoint::Endpoint;
use super::grpc::{Connection, Deadlines, Shared};
use super::hints::{self, Hint};
use super::instances::ProviderInstances;
use super::lead::LeadStatus;
use super::load_balancers::ProviderLoadBalancers;
use super::metrics::ProviderMetrics;
use super::routes::ProviderRoutes;
use super::{Identity, Judge, ProviderError, ProviderState, StateReceiver, capabilities, lead};
use board::Board;
use driver::Driver;

mod board;
mod driver;
mod handshake;
#[cfg(test)]
mod tests;

/// The cluster, as it is introduced to the provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// `--cluster-name`.
    pub name: String,
    /// The UID of the namespace `kube-system`.
    pub uid: String,
    /// `--cluster-cidr`.
    pub pod_cidrs: Vec<String>,
    /// `--service-cluster-ip-range`.
    pub service_cidrs: Vec<String>,
}

impl Cluster {
    /// How calls name it.
    pub fn reference(&self) -> ClusterRef {
        ClusterRef { name: self.name.clone(), uid: self.uid.clone() }
    }
}

/// What a session needs to know.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Where the provider listens.
    pub endpoint: Endpoint,
    /// The users that may listen there, besides this process's own and root.
    pub peer_uids: Vec<u32>,
    /// The cluster that is served.
    pub cluster: Cluster,
    /// The core's version, for the provider's log.
    pub core_version: String,
    /// How long calls may take.
    pub deadlines: Deadlines,
    /// How often hands are shaken again while nothing happens; [`HANDSHAKE_INTERVAL`] unless a test wants it otherwise.
    pub handshake_interval: Duration,
    /// Where calls are counted.
    pub metrics: ProviderMetrics,
}

/// The usual time between handshakes.
pub const HANDSHAKE_INTERVAL: Duration = Duration::from_secs(30);

/// A provider that may be used: a connection and what was said on it.
#[derive(Debug)]
pub struct Live {
    /// The connection.
    pub connection: Connection,
    /// What the provider said of itself.
    pub info: Arc<ProviderInfo>,
    /// Its cloud identity.
    pub identity: Arc<str>,
}

/// What is known of the session at one moment.
#[derive(Clone, Debug)]
pub struct Published {
    /// For people and controllers.
    pub state: ProviderState,
    /// The provider that may be used, if there is one.
    pub live: Option<Arc<Live>>,
}

/// The latest usable provider, and each change of it.
#[derive(Clone, Debug)]
pub struct LiveReceiver {
    session: watch::Receiver<Published>,
    seen: Option<Arc<Live>>,
}

impl LiveReceiver {
    fn new(session: watch::Receiver<Published>) -> Self {
        let seen = session.borrow().live.clone();
        Self { session, seen }
    }

    /// The provider as it is now.
    pub fn see(&mut self) -> Option<Arc<Live>> {
        self.seen = self.session.borrow_and_update().live.clone();
        self.seen.clone()
    }

    /// Returns when the provider is another than the one that was seen last; false where the session has ended.
    pub async fn changed(&mut self) -> bool {
        let seen = self.seen.clone();
        let is_seen = |now: &Option<Arc<Live>>| now.as_ref().map(Arc::as_ptr) == seen.as_ref().map(Arc::as_ptr);
        let changed = self.until(|now| !is_seen(now)).await;
        self.see();
        changed
    }

    /// Returns when this holds of the provider; false where the session has ended.
    pub async fn until(&mut self, mut holds: impl FnMut(&Option<Arc<Live>>) -> bool) -> bool {
        self.session.wait_for(|now| holds(&now.live)).await.is_ok()
    }
}

/// What answers a request for a handshake.
type Confirmation = oneshot::Sender<Result<Arc<ProviderInfo>, ProviderError>>;

/// The session.
#[derive(Debug)]
pub struct Session;

impl Session {
    /// A handle for everybody, and the task that holds the session; it ends only by being dropped. `term` is this process's
    /// leadership, passed on to the provider for as long as it lasts.
    pub fn start(
        config: SessionConfig,
        judge: Arc<dyn Judge>,
        term: watch::Receiver<Option<Term>>,
    ) -> (Handle, impl Future<Output = ()> + Send) {
        let board = Arc::new(Board::new(&config.endpoint));
        let (confirm, confirmations) = mpsc::channel(1024);
        let hints = broadcast::Sender::new(hints::KEPT);
        let lead_status = watch::Sender::new(LeadStatus::default());
        let handle = Handle {
            state: board.state(),
            session: board.session(),
            lead: lead_status.subscribe(),
            confirm,
            hints: hints.clone(),
            metrics: config.metrics.clone(),
            cluster: Arc::new(config.cluster.clone()),
        };
        let cluster = handle.cluster();
        let doubt = Arc::new(Notify::new());
        let shared = Shared { deadlines: config.deadlines, metrics: config.metrics.clone(), doubt };
        let (for_lead, for_hints, limit) = (board.live(), board.live(), config.deadlines.confirmation);
        let driver = Driver::new(config, shared, judge, Arc::clone(&board), confirmations);
        let work = async move {
            // None of them ends by itself. Where one does, the session is over, which its owner sees.
            tokio::select! {
                () = driver.run() => {}
                () = board.watch_confirmations(limit) => {}
                () = lead::keep(for_lead, term, cluster, lead_status) => {}
                () = hints::keep(for_hints, hints) => {}
            }
        };
        (handle, work)
    }
}

/// The session as the rest of the core sees it. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Handle {
    state: StateReceiver,
    session: watch::Receiver<Published>,
    lead: watch::Receiver<LeadStatus>,
    confirm: mpsc::Sender<Confirmation>,
    hints: broadcast::Sender<Hint>,
    metrics: ProviderMetrics,
    cluster: Arc<Cluster>,
}

impl Handle {
    /// How the provider stands, and every change of it.
    pub fn state(&self) -> StateReceiver {
        self.state.clone()
    }

    /// How the provider took this process's leadership, and every change of it.
    pub fn lead_status(&self) -> watch::Receiver<LeadStatus> {
        self.lead.clone()
    }

    /// The provider that may be used now, or how it stands that there is none.
    pub fn current(&self) -> Result<Arc<Live>, ProviderError> {
        let now = self.session.borrow();
        now.live.clone().ok_or_else(|| capabilities::standing(&now.state))
    }

    /// The same, if the provider serves all of this.
    pub fn current_with(&self, needed: &[Capability]) -> Result<Arc<Live>, ProviderError> {
        let live = self.current()?;
        needed.iter().try_for_each(|capability| capabilities::require(&live.info, *capability))?;
        Ok(live)
    }

    /// An error if another cloud is behind the socket than when the call was made: its answer does not count. It counts where
    /// there is none, since the provider may have answered and gone. Whether anything may be written is for the gate to say.
    pub fn still_the_same_cloud(&self, then: &Live) -> Result<(), ProviderError> {
        let now = self.session.borrow();
        match (&now.live, &now.state) {
            (Some(live), _) if live.identity == then.identity => return Ok(()),
            (Some(_), _) => {}
            (None, ProviderState::Disconnected { .. }) => return Ok(()),
            (None, state) => return Err(capabilities::standing(state)),
        }
        Err(capabilities::retry(
            "CLOUD_IDENTITY_CHANGED",
            "the provider's cloud changed while it answered; the answer was discarded",
        ))
    }

    /// Machines whose state may have changed; nothing while the provider does not serve it. Who lags behind loses some,
    /// which costs no more than waiting for the next regular look.
    pub fn hints(&self) -> broadcast::Receiver<Hint> {
        self.hints.subscribe()
    }

    /// Batched look-ups over whichever provider is connected, and the task that does their work.
    pub fn instances(&self) -> (Batcher, impl Future<Output = ()> + Send + use<>) {
        let source = ProviderInstances::new(self.clone(), LiveReceiver::new(self.session.clone()));
        Batcher::start(Arc::new(source), self.metrics.clone())
    }

    /// Load balancers of whichever provider is connected. Make one and share it: it keeps what it encoded last.
    pub fn load_balancers(&self) -> ProviderLoadBalancers {
        ProviderLoadBalancers::new(self.clone())
    }

    /// Routes of whichever provider is connected. Make one and share it: it bounds the calls that are made at one time.
    pub fn routes(&self) -> ProviderRoutes {
        ProviderRoutes::new(self.clone())
    }

    /// The cluster that is served, as calls name it.
    pub fn cluster(&self) -> ClusterRef {
        self.cluster.reference()
    }
}

#[async_trait]
impl Identity for Handle {
    async fn confirm(&self) -> Result<Arc<ProviderInfo>, ProviderError> {
        let (reply, answer) = oneshot::channel();
        if self.confirm.send(reply).await.is_ok()
            && let Ok(answer) = answer.await
        {
            return answer;
        }
        Err(capabilities::retry("STOPPED", "ccm-core is shutting down"))
    }
}
