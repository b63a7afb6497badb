//! A provider served on a socket of the test's own, clients of it, and requests that keep the contract.
use std::path::PathBuf;
use std::time::Duration;

use ccm_provider_sdk::fake::{FakeProvider, Serving};
use ccm_provider_sdk::v1::identity_client::IdentityClient;
use ccm_provider_sdk::v1::instances_client::InstancesClient;
use ccm_provider_sdk::v1::load_balancers_client::LoadBalancersClient;
use ccm_provider_sdk::{Server, v1};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};
use tonic_types::StatusExt as _;

/// Longer than anything here should take; only a failing test waits for it.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A deadline that shall pass, with room for a slow machine between 90 % of it and its end.
pub const SHORT: Duration = Duration::from_secs(2);

pub struct Fixture {
    pub dir: TempDir,
    pub serving: Serving,
}

impl Fixture {
    pub async fn of(provider: &FakeProvider) -> Self {
        Self::of_server(Server::new(provider.clone())).await
    }

    pub async fn of_server(server: Server) -> Self {
        let dir = TempDir::new().unwrap();
        let serving = Serving::start(server, &endpoint_in(&dir)).await.unwrap();
        Self { dir, serving }
    }

    pub fn path(&self) -> PathBuf {
        self.serving.endpoint().path().to_owned()
    }

    pub fn channel(&self) -> Channel {
        self.serving.endpoint().channel()
    }

    pub fn identity(&self) -> IdentityClient<Channel> {
        IdentityClient::new(self.channel())
    }

    pub fn instances(&self) -> InstancesClient<Channel> {
        InstancesClient::new(self.channel())
    }

    pub fn load_balancers(&self) -> LoadBalancersClient<Channel> {
        LoadBalancersClient::new(self.channel())
    }

    /// Leads with a word that holds for long.
    pub async fn lead(&self, epoch: u64) -> Lead {
        let mut lead = self.open_lead(word(epoch, "core-a", PATIENCE)).await;
        assert_eq!(lead.acknowledged().await.unwrap(), epoch);
        lead
    }

    /// Opens a stream with one word sent.
    pub async fn open_lead(&self, word: v1::LeadRequest) -> Lead {
        let (words, stream) = mpsc::channel(4);
        words.send(word).await.unwrap();
        let answers = self.identity().lead(ReceiverStream::new(stream)).await.unwrap().into_inner();
        Lead { words, answers }
    }
}

pub struct Lead {
    pub words: mpsc::Sender<v1::LeadRequest>,
    pub answers: Streaming<v1::LeadResponse>,
}

impl Lead {
    /// The epoch of the next acknowledgement; an end of the stream is an error.
    pub async fn acknowledged(&mut self) -> Result<u64, Status> {
        let answer = tokio::time::timeout(PATIENCE, self.answers.message()).await.unwrap()?;
        answer.map(|answer| answer.epoch).ok_or_else(|| Status::ok("the stream ended"))
    }
}

pub fn endpoint_in(dir: &TempDir) -> String {
    format!("unix://{}/p.sock", dir.path().display())
}

pub fn cluster() -> v1::ClusterRef {
    v1::ClusterRef { name: "kubernetes".into(), uid: "cluster-uid".into() }
}

pub fn word(epoch: u64, holder: &str, valid_for: Duration) -> v1::LeadRequest {
    v1::LeadRequest { epoch, valid_for: valid_for.try_into().ok(), holder: holder.into(), cluster: Some(cluster()) }
}

pub fn handshake() -> v1::GetProviderInfoRequest {
    v1::GetProviderInfoRequest {
        cluster: Some(cluster()),
        core_version: "test".into(),
        protocol_versions: vec!["v2".into(), "v1".into()],
        ..v1::GetProviderInfoRequest::default()
    }
}

pub fn batch<'a>(names: impl IntoIterator<Item = &'a str>) -> v1::BatchGetInstancesRequest {
    let query = |name: &str| v1::InstanceQuery { node_name: name.into(), ..v1::InstanceQuery::default() };
    v1::BatchGetInstancesRequest { queries: names.into_iter().map(query).collect() }
}

/// Two wishes are two different requests.
pub fn ensure(uid: &str, epoch: u64, wish: u32) -> v1::EnsureLoadBalancerRequest {
    let labels = [("wish".to_owned(), wish.to_string())].into();
    v1::EnsureLoadBalancerRequest {
        cluster: Some(cluster()),
        leadership: Some(v1::Leadership { epoch }),
        service: Some(v1::Service { uid: uid.into(), labels, ..v1::Service::default() }),
        nodes: Some(v1::NodeSetRef { set: Some(v1::node_set_ref::Set::Inline(v1::NodeSet::default())) }),
    }
}

/// A request with a deadline.
pub fn within<T>(timeout: Duration, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(timeout);
    request
}

/// The reason in a status's details; empty if there is none.
pub fn reason(status: &Status) -> String {
    status.get_details_error_info().map(|info| info.reason).unwrap_or_default()
}
