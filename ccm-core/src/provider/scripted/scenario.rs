//! A session with a raw provider over a real socket, for tests of what crosses it.
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ccm_proto::v1;
use ccm_provider_sdk::fake::{RawServer, Serving};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tonic::Status;

use super::session_in;
use crate::model::term::{Cloud, Term};
use crate::provider::load_balancers::ProviderLoadBalancers;
use crate::provider::routes::ProviderRoutes;
use crate::provider::session::{Handle, Session};
use crate::provider::{Anyone, ProviderState};

/// Longer than anything here takes; only a failing test waits for it.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A session whose provider is not there yet.
pub struct Scenario {
    pub dir: TempDir,
    pub handle: Handle,
    pub balancers: Arc<ProviderLoadBalancers>,
    pub routes: Arc<ProviderRoutes>,
    pub term: watch::Sender<Option<Term>>,
    work: JoinHandle<()>,
}

impl Drop for Scenario {
    fn drop(&mut self) {
        self.work.abort();
    }
}

impl Scenario {
    /// Nothing listens yet.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let term = watch::Sender::new(None);
        let (handle, work) = Session::start(session_in(dir.path()), Arc::new(Anyone), term.subscribe());
        let balancers = Arc::new(handle.load_balancers());
        let routes = Arc::new(handle.routes());
        Self { dir, handle, balancers, routes, term, work: tokio::spawn(work) }
    }

    /// A raw provider with these capabilities, ready.
    pub async fn with_raw(capabilities: &[v1::Capability]) -> (Self, RawServer, Serving<tonic::transport::Error>) {
        let (scenario, raw) = (Self::new(), RawServer::default());
        describe(&raw, "here", capabilities);
        let serving = scenario.serve(&raw);
        scenario.until(|state| state.ready().is_some()).await;
        (scenario, raw, serving)
    }

    /// Where the provider is to listen.
    pub fn endpoint(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// The path of that.
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("p.sock")
    }

    /// Serves in place of whatever was there.
    pub fn serve(&self, raw: &RawServer) -> Serving<tonic::transport::Error> {
        drop(std::fs::remove_file(self.socket()));
        raw.start(&self.endpoint().parse().unwrap()).unwrap()
    }

    /// Waits until this holds of the provider.
    pub async fn until(&self, holds: impl FnMut(&ProviderState) -> bool) {
        let mut state = self.handle.state();
        tokio::time::timeout(PATIENCE, state.wait_for(holds)).await.unwrap().unwrap();
    }

    /// This process leads in the cloud that is connected.
    pub fn lead(&self, epoch: u64) {
        let valid_until = Instant::now() + Duration::from_secs(60);
        let cloud = Arc::new(Cloud::of(&self.handle.current().unwrap().info));
        self.term.send_replace(Some(Term { epoch, cloud, holder: "me".into(), valid_until }));
    }
}

/// From now on the provider describes itself so in handshakes.
pub fn describe(raw: &RawServer, identity: &str, capabilities: &[v1::Capability]) {
    let info = v1::ProviderInfo {
        capabilities: capabilities.iter().map(|it| (*it).into()).collect(),
        cloud_identity: identity.to_owned(),
        service_annotation_prefixes: vec!["example.com/".to_owned()],
        ..RawServer::sound_info()
    };
    raw.info.always(move |_| Ok(v1::GetProviderInfoResponse { info: Some(info.clone()) }));
}

/// The error of the contract that a provider answers.
pub fn refusal(code: tonic::Code, reason: v1::ErrorReason, after: Option<Duration>) -> Status {
    let error = ccm_provider_sdk::ProviderError::new(code, reason, "words");
    after.into_iter().fold(error, ccm_provider_sdk::ProviderError::with_retry_after).into()
}
