//! A small provider for tests, written by hand on the generated traits and served on a real Unix socket; and in `routes` the port
//! itself, scripted.
#![allow(clippy::unwrap_used)]
use std::collections::VecDeque;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ccm_proto::v1;
use futures::{Stream, StreamExt};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::net::UnixListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_stream::wrappers::{UnixListenerStream, WatchStream};
use tonic::metadata::MetadataMap;
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};
use v1::identity_server::{Identity, IdentityServer};
use v1::instances_server::{Instances, InstancesServer};
use v1::zones_server::{Zones, ZonesServer};

use super::description;
use super::grpc::Deadlines;
use super::metrics::ProviderMetrics;
use super::session::{Cluster, SessionConfig};
use crate::model::provider_info::ProviderInfo;

pub mod routes;
pub mod scenario;

/// The metadata of a call and the names that it asked for.
type Batch = (MetadataMap, Vec<String>);
type Edit = fn(Vec<v1::InstanceResult>) -> Result<Vec<v1::InstanceResult>, Status>;
type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Its answers, and the requests that it received.
#[derive(Clone)]
pub struct Scripted {
    pub info: Arc<Mutex<Result<v1::ProviderInfo, Status>>>,
    pub handshakes: Arc<watch::Sender<Vec<v1::GetProviderInfoRequest>>>,
    /// Held while a handshake is answered: without permits it hangs, and then says what was true when it was asked.
    pub handshake_gate: Arc<Semaphore>,
    /// Every word on every Lead stream; `None` where a stream ended.
    pub led: Arc<watch::Sender<Vec<Option<v1::LeadRequest>>>>,
    /// What the next Lead streams answer instead.
    pub lead_failures: Arc<Mutex<VecDeque<Status>>>,
    pub batches: Arc<Mutex<Vec<Batch>>>,
    /// What becomes of each batch's results before they are sent.
    pub edit: Arc<Mutex<Edit>>,
    /// Held while a batch is answered, where a test wants to come in between.
    pub gate: Arc<Semaphore>,
    pub seen: Arc<watch::Sender<Vec<String>>>,
}

/// A served provider with a runtime of its own: dropping it is kill -9, connections and all.
pub struct Serving(Option<Runtime>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

/// A session with whatever listens in a folder, at `p.sock`.
pub fn session_in(folder: &Path) -> SessionConfig {
    SessionConfig {
        endpoint: format!("unix://{}", folder.join("p.sock").display()).parse().unwrap(),
        cluster: Cluster { name: "kubernetes".to_owned(), uid: "uid".to_owned(), ..Cluster::default() },
        core_version: "test".to_owned(),
        peer_uids: Vec::new(),
        deadlines: Deadlines::default(),
        handshake_interval: Duration::from_millis(200),
        metrics: ProviderMetrics::unregistered(),
    }
}

pub fn info() -> v1::ProviderInfo {
    v1::ProviderInfo {
        name: "simulated".to_owned(),
        version: "0.1".to_owned(),
        protocol_version: "v1".to_owned(),
        capabilities: vec![v1::Capability::Lead.into(), v1::Capability::Instances.into(), v1::Capability::WatchInstances.into()],
        provider_id_prefixes: vec!["simulated://".to_owned()],
        cloud_identity: "here".to_owned(),
        ..Default::default()
    }
}

pub fn model_info() -> ProviderInfo {
    description::read(v1::GetProviderInfoResponse { info: Some(info()) }).unwrap()
}

impl Scripted {
    pub fn new(info: v1::ProviderInfo) -> Self {
        Self {
            info: Arc::new(Mutex::new(Ok(info))),
            handshakes: Arc::default(),
            handshake_gate: Arc::new(Semaphore::new(1000)),
            led: Arc::default(),
            lead_failures: Arc::default(),
            batches: Arc::default(),
            edit: Arc::new(Mutex::new(Ok)),
            gate: Arc::new(Semaphore::new(1000)),
            seen: Arc::default(),
        }
    }

    /// Handshakes hang until the answer is dropped.
    pub async fn hang_handshakes(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.handshake_gate).acquire_many_owned(1000).await.unwrap()
    }

    /// Waits until hands were shaken so many times.
    pub async fn shaken(&self, times: usize) {
        let mut handshakes = self.handshakes.subscribe();
        let shaken = tokio::time::timeout(Duration::from_secs(20), handshakes.wait_for(|it| it.len() >= times)).await;
        drop(shaken.unwrap().unwrap());
    }

    /// Serves at a path, in place of whatever socket file is there.
    pub fn serve(&self, path: &Path) -> Serving {
        drop(std::fs::remove_file(path));
        let listener = std::os::unix::net::UnixListener::bind(path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let server = Server::builder()
            .add_service(IdentityServer::new(self.clone()))
            .add_service(InstancesServer::new(self.clone()))
            .add_service(ZonesServer::new(self.clone()));
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.spawn(async move {
            let sockets = UnixListenerStream::new(UnixListener::from_std(listener).unwrap());
            server.serve_with_incoming(sockets).await.unwrap();
        });
        Serving(Some(runtime))
    }

    fn result(query: v1::InstanceQuery) -> v1::InstanceResult {
        let found = v1::Instance {
            provider_id: format!("simulated://{}", query.node_name),
            state: v1::InstanceState::Running.into(),
            ..Default::default()
        };
        v1::InstanceResult {
            node_name: query.node_name,
            observed_at: Some(prost_types::Timestamp { seconds: Timestamp::now().as_second(), nanos: 0 }),
            outcome: Some(v1::instance_result::Outcome::Instance(found)),
        }
    }
}

#[tonic::async_trait]
impl Identity for Scripted {
    async fn get_provider_info(
        &self,
        request: Request<v1::GetProviderInfoRequest>,
    ) -> Result<Response<v1::GetProviderInfoResponse>, Status> {
        let info = self.info.lock().clone();
        self.handshakes.send_modify(|it| it.push(request.into_inner()));
        drop(self.handshake_gate.acquire().await);
        let info = info?;
        Ok(Response::new(v1::GetProviderInfoResponse { info: Some(info) }))
    }

    type LeadStream = Answers<v1::LeadResponse>;

    async fn lead(&self, request: Request<Streaming<v1::LeadRequest>>) -> Result<Response<Self::LeadStream>, Status> {
        if let Some(failure) = self.lead_failures.lock().pop_front() {
            return Err(failure);
        }
        let led = Arc::clone(&self.led);
        let ended = Arc::clone(&self.led);
        let words = request.into_inner().map(move |word| {
            let word = word?;
            led.send_modify(|it| it.push(Some(word.clone())));
            Ok(v1::LeadResponse { epoch: word.epoch })
        });
        let end = futures::stream::once(async move { ended.send_modify(|it| it.push(None)) }).filter_map(|()| async { None });
        Ok(Response::new(Box::pin(words.chain(end))))
    }
}

#[tonic::async_trait]
impl Instances for Scripted {
    async fn batch_get_instances(
        &self,
        request: Request<v1::BatchGetInstancesRequest>,
    ) -> Result<Response<v1::BatchGetInstancesResponse>, Status> {
        let (metadata, queries) = (request.metadata().clone(), request.into_inner().queries);
        self.batches.lock().push((metadata, queries.iter().map(|it| it.node_name.clone()).collect()));
        drop(self.gate.acquire().await);
        let edit = *self.edit.lock();
        let results = edit(queries.into_iter().map(Self::result).collect())?;
        Ok(Response::new(v1::BatchGetInstancesResponse { results }))
    }

    type WatchInstancesStream = Answers<v1::WatchInstancesResponse>;

    async fn watch_instances(
        &self,
        _: Request<v1::WatchInstancesRequest>,
    ) -> Result<Response<Self::WatchInstancesStream>, Status> {
        let seen = WatchStream::from_changes(self.seen.subscribe());
        Ok(Response::new(Box::pin(seen.map(|node_names| Ok(v1::WatchInstancesResponse { node_names, provider_ids: vec![] })))))
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

#[tonic::async_trait]
impl Zones for Scripted {
    async fn get_zone(&self, request: Request<v1::GetZoneRequest>) -> Result<Response<v1::GetZoneResponse>, Status> {
        use v1::get_zone_request::Target;
        use v1::get_zone_response::Outcome;
        let outcome = match request.into_inner().target {
            Some(Target::ProviderId(id)) if id.ends_with("/broken") => return Err(Status::unavailable("the zones are away")),
            Some(Target::ProviderId(id)) if id.ends_with("/gone") => Outcome::NotFound(v1::ZoneNotFound {}),
            _ => Outcome::Zone(v1::Zone { zone: Some("zone-a".to_owned()), region: Some("not a label".to_owned()) }),
        };
        Ok(Response::new(v1::GetZoneResponse { outcome: Some(outcome) }))
    }
}
