//! Dialling: what can be wrong with a socket, with the remedy, and a stream that reports its end.
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::UnixStream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint as HttpEndpoint, Uri};

use super::{Connection, Shared};
use crate::provider::classify;
use crate::provider::count::Count;
use crate::provider::endpoint::Endpoint;
use watched::Watched;

mod peer;
mod watched;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The path does not exist.
    #[error(
        "there is no socket at {0}: is the provider sidecar running? It is expected to listen there (its --endpoint, the core's --provider-endpoint, and a volume that both containers mount)"
    )]
    Missing(Endpoint),
    /// Something that is not a socket is in the way.
    #[error("{0} is not a socket: remove what is there, or give another path to both the provider and the core")]
    NotASocket(Endpoint),
    /// A socket file without a listener.
    #[error(
        "nothing listens on {0}: the socket file was left behind by a provider that is gone, and a new one will take its place"
    )]
    Refused(Endpoint),
    /// The file system refuses the connection.
    #[error(
        "permission denied at {0}: run both containers as one user (runAsUser), or in one group (fsGroup) where the provider takes other users, \
         since the socket is open to its owner and group only"
    )]
    Denied(Endpoint),
    /// A process of a user that is not trusted.
    #[error(
        "what listens at {endpoint} is refused: it was started by user {uid} ({}), and this process, of user {own}, takes its own user, root, and \
         those of --provider-peer-uid. Run both containers as one user (runAsUser); or, if that process is your provider, start the core with \
         --provider-peer-uid={uid}; or end that process and find out who started it",
        peer::process(*.pid)
    )]
    Foreign {
        /// Where.
        endpoint: Endpoint,
        /// Its user, when it began to listen.
        uid: u32,
        /// Its process, if the system reports it.
        pid: Option<i32>,
        /// This process's user.
        own: u32,
    },
    /// The listener's user cannot be determined.
    #[error("the process that listens at {endpoint} is refused because its user cannot be determined: {source}")]
    UnknownPeer {
        /// Where.
        endpoint: Endpoint,
        /// Why.
        source: io::Error,
    },
    /// Anything else.
    #[error("cannot connect to {endpoint}: {source}")]
    Io {
        /// Where.
        endpoint: Endpoint,
        /// Why.
        source: io::Error,
    },
    /// The socket was there, and HTTP/2 could not begin.
    #[error("connected to {endpoint}, and what listens there either stopped or does not speak gRPC: {}", classify::chain(source))]
    Http {
        /// Where.
        endpoint: Endpoint,
        /// Why.
        source: tonic::transport::Error,
    },
}

impl Connection {
    /// Dials once. Nothing is sent before the listener's user is known to be this process's own, root, or one of `peer_uids`.
    pub async fn dial(endpoint: &Endpoint, peer_uids: &[u32], shared: Shared) -> Result<Self, DialError> {
        let stream = UnixStream::connect(endpoint.path()).await.map_err(|source| explain(endpoint, source))?;
        peer::check(&stream, endpoint, peer_uids)?;
        let ended = CancellationToken::new();
        let closed = ended.child_token();
        let channel =
            channel(stream, &closed, &ended).await.map_err(|source| DialError::Http { endpoint: endpoint.clone(), source })?;
        let answered = Arc::new(Mutex::new(Instant::now()));
        Ok(Self { channel, closed, ended, answered, running: Count::default(), shared, node_sets: Arc::default() })
    }
}

/// A channel over this one stream. When tonic requests another stream, the connection is over: another stream may lead to another
/// provider, without a handshake.
async fn channel(
    stream: UnixStream,
    closed: &CancellationToken,
    ended: &CancellationToken,
) -> Result<Channel, tonic::transport::Error> {
    let first = Arc::new(Mutex::new(Some(Watched::new(stream, ended.clone().drop_guard()))));
    let closed = closed.clone();
    let connector = tower::service_fn(move |_: Uri| {
        let stream = first.lock().take();
        if stream.is_none() {
            closed.cancel();
        }
        async move {
            stream.map(TokioIo::new).ok_or_else(|| io::Error::new(ErrorKind::NotConnected, "the provider closed the connection"))
        }
    });
    // The authority is `localhost`: an encoded socket path breaks several gRPC servers.
    HttpEndpoint::from_static("http://localhost").connect_with_connector(connector).await
}

fn explain(endpoint: &Endpoint, source: io::Error) -> DialError {
    let at = endpoint.clone();
    match source.kind() {
        ErrorKind::NotFound => DialError::Missing(at),
        ErrorKind::PermissionDenied => DialError::Denied(at),
        ErrorKind::ConnectionRefused if !is_socket(endpoint.path()) => DialError::NotASocket(at),
        ErrorKind::ConnectionRefused => DialError::Refused(at),
        _ => DialError::Io { endpoint: at, source },
    }
}

fn is_socket(path: &Path) -> bool {
    path.metadata().is_ok_and(|it| it.file_type().is_socket())
}
