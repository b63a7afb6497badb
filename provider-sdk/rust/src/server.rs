//! The server of a provider: socket, health, reflection and a shutdown that drains. What calls mean is the business of `rpc`.
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ccm_proto::v1;
use futures::FutureExt as _;
use tokio::net::UnixListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tonic::server::NamedService;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};

use crate::description::{self, DescriptionError};
use crate::endpoint::{Endpoint, EndpointError};
use crate::provider::Provider;
use crate::rpc::{self, Hold, Shared};
use incoming::{AllowedUsers, connections};

pub use args::{LogError, LogFormat, ServeArgs};
pub use signals::termination;
pub use socket::{Socket, SocketError};

mod args;
mod incoming;
mod signals;
mod socket;

/// How long connections have to close once nothing runs any more.
const CLOSING: Duration = Duration::from_secs(1);

/// Why a server could not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// No endpoint was given.
    #[error("no endpoint was given: set --endpoint or PROVIDER_ENDPOINT")]
    NoEndpoint,
    /// The endpoint is not valid.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The provider describes itself in a way that the contract does not allow.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// The socket could not be taken.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// This process's own user could not be found out.
    #[error("cannot find out this process's own user")]
    OwnUser(#[source] io::Error),
    /// The descriptors are broken.
    #[error("cannot offer reflection")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// The transport failed.
    #[error("the server failed")]
    Transport(#[from] tonic::transport::Error),
}

/// A provider's server, to be configured.
pub struct Server {
    provider: Arc<dyn Provider>,
    endpoint: Result<Endpoint, ServeError>,
    allowed_uids: Vec<u32>,
    shutdown_grace: Duration,
    handshake: Option<Hold>,
}

impl Server {
    /// A server without an endpoint.
    pub fn new(provider: impl Provider) -> Self {
        let endpoint = Err(ServeError::NoEndpoint);
        Self {
            provider: Arc::new(provider),
            endpoint,
            allowed_uids: Vec::new(),
            shutdown_grace: Duration::from_secs(30),
            handshake: None,
        }
    }

    /// A server as the command line asks for it.
    pub fn from_args(provider: impl Provider, args: &ServeArgs) -> Self {
        let server = Self::new(provider).allow_peer_uids(args.allow_peer_uid.iter().copied()).shutdown_grace(args.shutdown_grace);
        Self { endpoint: Ok(args.endpoint.clone()), ..server }
    }

    /// Listens on `unix:///absolute/path`. What is wrong with it, [`bind`](Self::bind) says.
    #[must_use]
    pub fn endpoint(self, endpoint: &str) -> Self {
        Self { endpoint: endpoint.parse().map_err(ServeError::from), ..self }
    }

    /// Lets these users connect, besides the process's own and root.
    #[must_use]
    pub fn allow_peer_uids(mut self, uids: impl IntoIterator<Item = u32>) -> Self {
        self.allowed_uids.extend(uids);
        self
    }

    /// How long running calls may take to end at shutdown; 30 s unless set.
    #[must_use]
    pub fn shutdown_grace(self, shutdown_grace: Duration) -> Self {
        Self { shutdown_grace, ..self }
    }

    /// Waits for what `hold` returns before each handshake is answered, without a deadline: for simulations of a provider
    /// that hangs. Other calls are answered meanwhile.
    #[must_use]
    pub fn hold_handshakes<F>(self, hold: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self { handshake: Some(Arc::new(move || hold().boxed())), ..self }
    }

    /// Takes the socket. Once this has returned, connections succeed.
    pub async fn bind(self) -> Result<BoundServer, ServeError> {
        let endpoint = self.endpoint?;
        let (description, parts) = (self.provider.describe(), Arc::clone(&self.provider).parts());
        description::validate(&description, parts.serves(v1::Capability::Instances))?;
        let users = AllowedUsers::new(self.allowed_uids).map_err(ServeError::OwnUser)?;
        let (socket, listener) = Socket::bind(endpoint.path()).await?;
        let capabilities: Vec<_> = parts.capabilities().iter().map(v1::Capability::as_str_name).collect();
        tracing::info!(%endpoint, provider = description.name, ?capabilities, "serving");
        let shared = Shared::new(self.provider, self.handshake);
        Ok(BoundServer { shared, socket, listener, users, shutdown_grace: self.shutdown_grace })
    }

    /// Takes the socket and serves until `shutdown` completes and the running calls have ended.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
        self.bind().await?.serve(shutdown).await
    }
}

/// A server that has its socket.
pub struct BoundServer {
    shared: Arc<Shared>,
    socket: Socket,
    listener: UnixListener,
    users: AllowedUsers,
    shutdown_grace: Duration,
}

impl BoundServer {
    /// Serves until `shutdown` completes; then drains, and removes the socket. Dropped before, it ends everything at once.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
        let Self { shared, socket, listener, users, shutdown_grace } = self;
        let shared = EndOnDrop(shared);
        let health = HealthReporter::new();
        report(&health, ServingStatus::Serving).await;
        let reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(ccm_proto::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .build_v1()?;
        let routes = rpc::services(&shared.0)
            .add_service(HealthServer::new(HealthService::from_health_reporter(health.clone())))
            .add_service(reflection);
        let stop = CancellationToken::new();
        let server = tonic::transport::Server::builder().add_routes(routes);
        let server = server.serve_with_incoming_shutdown(connections(listener, users), stop.clone().cancelled_owned());
        let mut server = AbortOnDropHandle::new(tokio::spawn(server));
        tokio::select! {
            ended = &mut server => return ended.map_or(Ok(()), |result| result.map_err(ServeError::from)),
            () = shutdown => {}
        }
        report(&health, ServingStatus::NotServing).await;
        stop.cancel();
        drain(&shared.0, shutdown_grace).await;
        // A connection that somebody still holds open after this, by a health watch for one, ends with the process.
        let _ = timeout(CLOSING, &mut server).await;
        drop((server, socket));
        tracing::info!("ended");
        Ok(())
    }
}

/// Ends calls, streams and leadership with the server, however that ends.
struct EndOnDrop(Arc<Shared>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Waits for the running calls; then ends leadership and whatever is left.
async fn drain(shared: &Shared, grace: Duration) {
    shared.running.close();
    let running = shared.running.len();
    tracing::info!(running, grace_s = grace.as_secs(), "draining");
    if timeout(grace, shared.running.wait()).await.is_err() {
        tracing::warn!(running = shared.running.len(), "calls still run after the grace period: they are ended now");
    }
    shared.end();
}

async fn report(health: &HealthReporter, status: ServingStatus) {
    let services = [
        "",
        <v1::identity_server::IdentityServer<()> as NamedService>::NAME,
        <v1::instances_server::InstancesServer<()> as NamedService>::NAME,
        <v1::load_balancers_server::LoadBalancersServer<()> as NamedService>::NAME,
        <v1::routes_server::RoutesServer<()> as NamedService>::NAME,
        <v1::zones_server::ZonesServer<()> as NamedService>::NAME,
        <v1::clusters_server::ClustersServer<()> as NamedService>::NAME,
        <v1::volumes_server::VolumesServer<()> as NamedService>::NAME,
    ];
    for service in services {
        health.set_service_status(service, status).await;
    }
}
