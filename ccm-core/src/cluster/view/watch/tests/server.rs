//! An API server that gives scripted answers to watches and lists, one after the other, and remembers what it was asked. When it
//! has no more, a watch stays open and silent.
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response};
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch as signal;

use crate::cluster::nodes::Nodes;
use crate::cluster::presence::Presence;

/// What becomes of a connection after the text of an answer.
#[derive(Clone, Copy)]
enum End {
    Close,
    Cut,
    Open,
}

/// An answer.
pub struct Answer {
    code: u16,
    text: String,
    end: End,
}

impl Answer {
    /// These events; then the server ends the watch.
    pub fn events(events: impl IntoIterator<Item = Value>) -> Self {
        let text = events.into_iter().fold(String::new(), |text, event| text + &event.to_string() + "\n");
        Self { code: 200, text, end: End::Close }
    }

    /// The same, and the connection stays.
    pub fn open(self) -> Self {
        Self { end: End::Open, ..self }
    }

    /// The same, and the connection breaks.
    pub fn cut(self) -> Self {
        Self { end: End::Cut, ..self }
    }

    /// The same, and then this text.
    pub fn and(self, text: &str) -> Self {
        Self { text: self.text + text, ..self }
    }

    /// A streamed list of these nodes with this resourceVersion.
    pub fn streamed(nodes: impl IntoIterator<Item = Value>, version: &str) -> Self {
        Self::events(nodes.into_iter().map(|node| event("ADDED", node)).chain([end(version)])).open()
    }

    /// A page of a list.
    pub fn page(nodes: impl IntoIterator<Item = Value>, version: &str, next: &str) -> Self {
        let items: Vec<_> = nodes.into_iter().collect();
        let list = json!({ "metadata": { "resourceVersion": version, "continue": next }, "items": items });
        Self { code: 200, text: list.to_string(), end: End::Close }
    }

    /// A refusal.
    pub fn refusal(code: u16) -> Self {
        Self { code, text: status(code).to_string(), end: End::Close }
    }

    fn response(self) -> Response<Body> {
        let text = stream::iter([Ok(Bytes::from(self.text))]);
        let end = match self.end {
            End::Close => stream::empty().boxed(),
            End::Cut => stream::iter([Err(io::Error::other("cut"))]).boxed(),
            End::Open => stream::pending().boxed(),
        };
        Response::builder().status(self.code).body(Body::from_stream(text.chain(end))).unwrap()
    }
}

/// The server.
pub struct Server {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    queries: signal::Sender<Vec<String>>,
}

impl Server {
    /// One with these answers, and the view of nodes that a watch of it fills.
    pub fn watched(answers: impl IntoIterator<Item = Answer>) -> (Arc<Self>, Nodes) {
        let queries = signal::Sender::new(Vec::new());
        let server = Arc::new(Self { answers: Arc::new(Mutex::new(answers.into_iter().collect())), queries });
        let this = Arc::clone(&server);
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let answer = this.answer(request.uri().query().unwrap_or_default());
            async move { Ok::<_, Infallible>(answer.response()) }
        });
        let (view, watch) = Nodes::watch(Client::new(service, "default"), Presence::default());
        tokio::spawn(watch);
        (server, view)
    }

    fn answer(&self, query: &str) -> Answer {
        let answer = self.answers.lock().pop_front();
        self.queries.send_modify(|queries| queries.push(query.to_owned()));
        answer.unwrap_or_else(|| Answer::events([]).open())
    }

    /// The query of the request of this number, as soon as it comes.
    pub async fn query(&self, number: usize) -> String {
        let mut queries = self.queries.subscribe();
        let asked = queries.wait_for(|queries| queries.len() > number).await.unwrap();
        asked[number].clone()
    }
}

/// What happened to a node.
pub fn event(kind: &str, node: Value) -> Value {
    let mut event = json!({ "type": kind });
    event["object"] = node;
    event
}

/// A bookmark.
pub fn bookmark(version: &str) -> Value {
    event("BOOKMARK", json!({ "kind": "Node", "apiVersion": "v1", "metadata": { "resourceVersion": version } }))
}

/// The bookmark at the end of a streamed list.
pub fn end(version: &str) -> Value {
    let mut end = bookmark(version);
    end["object"]["metadata"]["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
    end
}

/// What a server answers that does not do as asked.
pub fn status(code: u16) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "scripted", "reason": "Scripted", "code": code })
}
