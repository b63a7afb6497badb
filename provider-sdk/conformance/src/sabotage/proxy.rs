//! The proxy: takes every call on one socket, makes it on another, and edits what crosses. It knows no message.
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http::uri::PathAndQuery;
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::{UnboundedReceiverStream, UnixListenerStream};
use tonic::metadata::MetadataMap;
use tonic::service::Routes;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status, Streaming};
use tower::Service;

use super::Sabotage;
use super::raw::Raw;
use crate::connection::channel;
use crate::rpc::name;

/// The largest message that passes, in bytes.
const LARGEST: usize = 64 << 20;

type Answers = UnboundedReceiverStream<Result<Bytes, Status>>;

/// A running proxy; it ends when this is dropped.
#[derive(Debug)]
pub struct Proxy {
    socket: PathBuf,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Serves at `front` what the provider at `back` answers, but for the sabotage.
    pub fn start(front: &Path, back: &Path, sabotage: Sabotage) -> io::Result<Self> {
        let listener = UnixListener::bind(front)?;
        let (back, sabotage) = (back.to_owned(), Arc::new(sabotage));
        let handle = move |request: http::Request<Body>| {
            let forward = Forward::new(&back, &sabotage, &request);
            async move {
                let mut server = tonic::server::Grpc::new(Raw).max_decoding_message_size(LARGEST);
                server.streaming(forward, request).await.map(Body::new)
            }
        };
        let router = axum::Router::new().fallback(handle);
        let serving = Server::builder().add_routes(Routes::from(router)).serve_with_incoming(UnixListenerStream::new(listener));
        // It ends when the task is dropped; then nobody asks why.
        let task = tokio::spawn(async move { drop(serving.await) });
        Ok(Self { socket: front.to_owned(), task })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
        // It may never have been there.
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// One call.
#[derive(Clone)]
struct Forward {
    back: Channel,
    sabotage: Arc<Sabotage>,
    path: String,
}

impl Forward {
    /// A connection for each call, so that a connection that ends at one side ends at the other.
    fn new(back: &Path, sabotage: &Arc<Sabotage>, request: &http::Request<Body>) -> Self {
        Self { back: channel(back), sabotage: Arc::clone(sabotage), path: request.uri().path().to_owned() }
    }

    async fn forward(self, request: Request<Streaming<Bytes>>) -> Result<Response<Answers>, Status> {
        let (metadata, _, mut requests) = request.into_parts();
        let first = requests.message().await?.unwrap_or_default();
        let edits = &self.sabotage.edits;
        if let Some((_, delay)) = edits.delay.filter(|(method, _)| *method == name(&self.path))
            && edits.delayed.fetch_add(1, Ordering::Relaxed) > 0
        {
            tokio::time::sleep(delay).await;
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        if let Some(answer) = edits.instead.as_ref().and_then(|instead| instead(&self.path, &first)) {
            // The receiver is returned below.
            let _ = sender.send(answer);
            return Ok(Response::new(UnboundedReceiverStream::new(receiver)));
        }
        let answers = self.clone().send(metadata, first.clone(), requests).await;
        match answers {
            Err(status) => drop(sender.send(self.edited(&first, Err(status)))),
            Ok(answers) => drop(tokio::spawn(self.relay(first, answers, sender))),
        }
        Ok(Response::new(UnboundedReceiverStream::new(receiver)))
    }

    async fn send(self, metadata: MetadataMap, first: Bytes, mut requests: Streaming<Bytes>) -> Result<Streaming<Bytes>, Status> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let _ = sender.send(self.requested(first));
        let mut client = tonic::client::Grpc::new(self.back.clone()).max_decoding_message_size(LARGEST);
        client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let path: PathAndQuery = self.path.parse().map_err(|_| Status::internal("no path"))?;
        tokio::spawn(async move {
            while let Ok(Some(message)) = requests.message().await {
                if sender.send(self.requested(message)).is_err() {
                    return;
                }
            }
            if self.sabotage.edits.lead_outlives && name(&self.path) == "Lead" {
                // The provider is not told that the stream has ended.
                std::future::pending::<()>().await;
            }
        });
        let mut request = Request::new(UnboundedReceiverStream::new(receiver));
        *request.metadata_mut() = metadata;
        Ok(client.streaming(request, path, Raw).await?.into_inner())
    }

    async fn relay(self, first: Bytes, mut answers: Streaming<Bytes>, sender: mpsc::UnboundedSender<Result<Bytes, Status>>) {
        loop {
            let next = tokio::select! {
                next = answers.message() => next,
                () = sender.closed(), if !self.sabotage.edits.lead_outlives => return,
            };
            let ended = !matches!(next, Ok(Some(_)));
            let sent = next.transpose().map_or(Ok(()), |answer| sender.send(self.edited(&first, answer)));
            if sent.is_err() && !self.sabotage.edits.lead_outlives {
                return;
            }
            if ended {
                return;
            }
        }
    }

    fn requested(&self, message: Bytes) -> Bytes {
        match &self.sabotage.edits.request {
            Some(edit) => edit(&self.path, message),
            None => message,
        }
    }

    fn edited(&self, request: &Bytes, answer: Result<Bytes, Status>) -> Result<Bytes, Status> {
        match &self.sabotage.edits.answer {
            Some(edit) => edit(&self.path, request, answer),
            None => answer,
        }
    }
}

impl Service<Request<Streaming<Bytes>>> for Forward {
    type Response = Response<Answers>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Answers>, Status>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        Box::pin(self.clone().forward(request))
    }
}
