//! A provider that breaks the contract in one way at a time, without the SDK, which would not let it.
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use ccm_proto::v1;
use ccm_proto::v1::identity_server::{Identity, IdentityServer};
use ccm_proto::v1::instances_server::{Instances, InstancesServer};
use futures::{Stream, StreamExt};
use jiff::Timestamp;
use tokio::net::UnixListener;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_types::{ErrorDetails, StatusExt};

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// In which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strangeness {
    /// It speaks another version and refuses, as the contract says.
    RefusesVersion,
    /// It speaks another version and says so in its description.
    AnswersOtherVersion,
    /// Two different results for each query.
    Duplicates,
    /// No result at all.
    Missing,
    /// Results for names that nobody asked for.
    WrongNames,
    /// Addresses that are none.
    InvalidAddresses,
    /// A providerID with a prefix that it does not own.
    ForeignIds,
    /// A result without an outcome.
    NoOutcome,
}

/// A provider that runs within the test; it stops when dropped.
#[derive(Debug)]
pub struct StrangeProvider {
    task: JoinHandle<()>,
    calls: Arc<AtomicU64>,
}

impl StrangeProvider {
    /// Serves on a socket at `path`.
    pub fn start(path: &Path, strangeness: Strangeness) -> Result<Self> {
        let socket = UnixListenerStream::new(UnixListener::bind(path)?);
        let calls = Arc::new(AtomicU64::new(0));
        let service = Service { strangeness, calls: Arc::clone(&calls) };
        let (_, health) = tonic_health::server::health_reporter();
        let router = tonic::transport::Server::builder()
            .add_service(health)
            .add_service(IdentityServer::new(service.clone()))
            .add_service(InstancesServer::new(service));
        let task = tokio::spawn(async move {
            if let Err(error) = router.serve_with_incoming(socket).await {
                tracing::error!(%error, "the strange provider stopped");
            }
        });
        Ok(Self { task, calls })
    }

    /// Handshakes and look-ups so far.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

impl Drop for StrangeProvider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone)]
struct Service {
    strangeness: Strangeness,
    calls: Arc<AtomicU64>,
}

#[tonic::async_trait]
impl Identity for Service {
    async fn get_provider_info(
        &self,
        _: Request<v1::GetProviderInfoRequest>,
    ) -> Result<Response<v1::GetProviderInfoResponse>, Status> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let protocol_version = match self.strangeness {
            Strangeness::RefusesVersion => return Err(version_refused()),
            Strangeness::AnswersOtherVersion => "v9",
            _ => ccm_proto::PROTOCOL_VERSION,
        };
        Ok(Response::new(v1::GetProviderInfoResponse { info: Some(info(protocol_version)) }))
    }

    type LeadStream = Answers<v1::LeadResponse>;

    async fn lead(&self, request: Request<Streaming<v1::LeadRequest>>) -> Result<Response<Self::LeadStream>, Status> {
        let answers = request.into_inner().map(|word| word.map(|word| v1::LeadResponse { epoch: word.epoch }));
        Ok(Response::new(Box::pin(answers)))
    }
}

#[tonic::async_trait]
impl Instances for Service {
    async fn batch_get_instances(
        &self,
        request: Request<v1::BatchGetInstancesRequest>,
    ) -> Result<Response<v1::BatchGetInstancesResponse>, Status> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let results = request.into_inner().queries.into_iter().flat_map(|query| self.results(&query.node_name)).collect();
        Ok(Response::new(v1::BatchGetInstancesResponse { results }))
    }

    type WatchInstancesStream = Answers<v1::WatchInstancesResponse>;

    async fn watch_instances(
        &self,
        _: Request<v1::WatchInstancesRequest>,
    ) -> Result<Response<Self::WatchInstancesStream>, Status> {
        Err(Status::unimplemented("not served"))
    }

    async fn add_ssh_key_to_all_instances(
        &self,
        _: Request<v1::AddSshKeyToAllInstancesRequest>,
    ) -> Result<Response<v1::AddSshKeyToAllInstancesResponse>, Status> {
        Err(Status::unimplemented("not served"))
    }

    async fn get_current_node_name(
        &self,
        _: Request<v1::GetCurrentNodeNameRequest>,
    ) -> Result<Response<v1::GetCurrentNodeNameResponse>, Status> {
        Err(Status::unimplemented("not served"))
    }
}

impl Service {
    fn results(&self, name: &str) -> Vec<v1::InstanceResult> {
        let found = |outcome| v1::InstanceResult { node_name: name.to_owned(), observed_at: Some(now()), outcome };
        let right = instance(name);
        match self.strangeness {
            Strangeness::Missing => Vec::new(),
            Strangeness::Duplicates => {
                let not_found = v1::instance_result::Outcome::NotFound(v1::InstanceNotFound {});
                vec![found(Some(v1::instance_result::Outcome::Instance(right))), found(Some(not_found))]
            }
            Strangeness::WrongNames => {
                let other = format!("not-{name}");
                vec![v1::InstanceResult { node_name: other, ..found(Some(v1::instance_result::Outcome::Instance(right))) }]
            }
            Strangeness::ForeignIds => {
                let foreign = v1::Instance { provider_id: format!("elsewhere://{name}"), ..right };
                vec![found(Some(v1::instance_result::Outcome::Instance(foreign)))]
            }
            Strangeness::InvalidAddresses => {
                let addresses = ["999.1.1.1", "", "not an address"].map(internal).into();
                vec![found(Some(v1::instance_result::Outcome::Instance(v1::Instance { addresses, ..right })))]
            }
            Strangeness::NoOutcome => vec![found(None)],
            Strangeness::RefusesVersion | Strangeness::AnswersOtherVersion => {
                vec![found(Some(v1::instance_result::Outcome::Instance(right)))]
            }
        }
    }
}

fn version_refused() -> Status {
    let details =
        ErrorDetails::with_error_info("PROTOCOL_VERSION_UNSUPPORTED", "ccm.provider.v1", HashMap::<String, String>::new());
    Status::with_error_details(Code::FailedPrecondition, "this provider speaks v9 only", details)
}

fn info(protocol_version: &str) -> v1::ProviderInfo {
    v1::ProviderInfo {
        name: "simulated".into(),
        version: "strange".into(),
        protocol_version: protocol_version.into(),
        capabilities: vec![v1::Capability::Instances.into()],
        provider_id_prefixes: vec!["simulated://".into()],
        cloud_identity: "strange".into(),
        cluster_id: Some("strange".into()),
        ..v1::ProviderInfo::default()
    }
}

fn instance(name: &str) -> v1::Instance {
    v1::Instance {
        provider_id: format!("simulated://{name}"),
        state: v1::InstanceState::Running.into(),
        addresses: vec![internal(&IpAddr::from([10, 0, 0, 1]).to_string())],
        ..v1::Instance::default()
    }
}

fn internal(address: &str) -> v1::NodeAddress {
    v1::NodeAddress { r#type: v1::NodeAddressType::InternalIp.into(), address: address.into() }
}

fn now() -> prost_types::Timestamp {
    let now = Timestamp::now();
    prost_types::Timestamp { seconds: now.as_second(), nanos: now.subsec_nanosecond() }
}
