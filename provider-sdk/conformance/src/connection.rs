//! Connections to the provider's socket, and calls over them. It knows tonic and the generated bindings, and no rule.
use std::path::Path;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::time::timeout;
use tokio_stream::{Stream, StreamExt as _};
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;
use uuid::Uuid;

use crate::rpc::Rpc;

/// The largest message to a client, in bytes.
const LARGEST: usize = 16 << 20;

/// How much later than its deadline a call is given up here, where the library does not.
const LATE: Duration = Duration::from_secs(1);

/// A channel that connects when it is first used, and again when the connection was lost.
pub fn channel(socket: &Path) -> Channel {
    let path = socket.to_owned();
    let connector = tower::service_fn(move |_: http::Uri| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    Endpoint::from_static("http://localhost").connect_with_connector_lazy(connector)
}

/// Makes one call with one answer.
pub async fn unary<R: Rpc>(channel: &Channel, request: R, deadline: Duration) -> Result<R::Answer, Status> {
    let call = async {
        let mut client = ready(channel).await?;
        let codec = ProstCodec::<R, R::Answer>::default();
        Ok(client.unary(prepared(request, Some(deadline)), path::<R>(), codec).await?.into_inner())
    };
    timeout(deadline + LATE, call).await.unwrap_or_else(|_| Err(Status::deadline_exceeded("the suite gave the call up")))
}

/// Makes a call whose answer is a stream, and takes all of it.
pub async fn collected<R: Rpc>(channel: &Channel, request: R, deadline: Duration) -> Result<Vec<R::Answer>, Status> {
    let call = async {
        let mut client = ready(channel).await?;
        let codec = ProstCodec::<R, R::Answer>::default();
        let stream = client.server_streaming(prepared(request, Some(deadline)), path::<R>(), codec).await?.into_inner();
        stream.collect::<Result<Vec<_>, _>>().await
    };
    timeout(deadline + LATE, call).await.unwrap_or_else(|_| Err(Status::deadline_exceeded("the suite gave the call up")))
}

/// Opens a stream in both directions, without a deadline.
pub async fn both_ways<R: Rpc>(
    channel: &Channel,
    requests: impl Stream<Item = R> + Send + 'static,
) -> Result<Streaming<R::Answer>, Status> {
    let mut client = ready(channel).await?;
    let codec = ProstCodec::<R, R::Answer>::default();
    Ok(client.streaming(prepared(requests, None), path::<R>(), codec).await?.into_inner())
}

async fn ready(channel: &Channel) -> Result<Grpc<Channel>, Status> {
    let mut client = Grpc::new(channel.clone()).max_decoding_message_size(LARGEST);
    client.ready().await.map_err(|error| Status::unavailable(format!("no connection: {error}")))?;
    Ok(client)
}

fn path<R: Rpc>() -> http::uri::PathAndQuery {
    http::uri::PathAndQuery::from_static(R::PATH)
}

/// The request with the metadata that the core sends.
fn prepared<T>(message: T, deadline: Option<Duration>) -> Request<T> {
    let mut request = Request::new(message);
    if let Some(deadline) = deadline {
        request.set_timeout(deadline);
    }
    let id = Uuid::new_v4();
    let traceparent = format!("00-{}-{}-01", id.simple(), &id.simple().to_string()[..16]);
    for (key, value) in [("x-request-id", id.to_string()), ("traceparent", traceparent)] {
        if let Ok(value) = value.parse() {
            request.metadata_mut().insert(key, value);
        }
    }
    request
}
