//! An API server for tests of stages: it holds nodes in memory, checks UIDs and resourceVersions as the real one does, applies
//! the patches that this crate makes, remembers every request, and can be told to fail. It validates nothing else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc)]
use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::sync::Arc;

use http::{Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::convert;
use super::nodes::Nodes;
use crate::model::node::Node;

/// A request that came.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// `GET`, `PATCH`, ….
    pub method: String,
    /// Without the query.
    pub path: String,
    /// The query.
    pub query: String,
    /// The body; null if there was none.
    pub body: Value,
}

/// What happens just before a write is carried out.
type Before = Box<dyn FnOnce(&mut BTreeMap<String, Value>) -> Option<u16> + Send>;

#[derive(Default)]
struct State {
    nodes: BTreeMap<String, Value>,
    calls: Vec<Call>,
    before_writes: VecDeque<Before>,
    feeds: Option<Nodes>,
    version: u64,
}

/// The server. Clones share it.
#[derive(Clone, Default)]
pub struct ApiServer {
    state: Arc<Mutex<State>>,
}

impl ApiServer {
    /// A server with these nodes, and its client. The server lives as long as the client does.
    pub fn start(nodes: impl IntoIterator<Item = Value>) -> (Self, Client) {
        let server = Self::default();
        nodes.into_iter().for_each(|node| server.put(node));
        let (service, handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
        let answering = server.clone();
        tokio::spawn(async move {
            let mut handle = pin!(handle);
            while let Some((request, respond)) = handle.next_request().await {
                let (code, body) = answering.answer(request).await;
                let response = Response::builder().status(code).header("content-type", "application/json");
                respond.send_response(
                    response.body(Body::from(body.to_string().into_bytes())).expect("a status, a header and a body"),
                );
            }
        });
        (server, Client::new(service, "default"))
    }

    /// Adds or replaces a node, giving it the next resourceVersion.
    pub fn put(&self, node: Value) {
        let mut state = self.state.lock();
        let name = node["metadata"]["name"].as_str().expect("a node has a name").to_owned();
        state.nodes.insert(name.clone(), node);
        state.changed(&name);
    }

    /// The node as it is now.
    pub fn node(&self, name: &str) -> Node {
        model(&self.state.lock().nodes[name])
    }

    /// All nodes as they are now.
    pub fn all(&self) -> Vec<Node> {
        self.state.lock().nodes.values().map(model).collect()
    }

    /// From now on, whatever changes is shown in this view, as a watch would.
    pub fn feed(&self, nodes: &Nodes) {
        self.state.lock().feeds = Some(nodes.clone());
    }

    /// Before the next write is carried out (each call adds one for the next), somebody else changes the nodes, or the
    /// server answers with the code returned instead.
    pub fn before_write(&self, before: impl FnOnce(&mut BTreeMap<String, Value>) -> Option<u16> + Send + 'static) {
        self.state.lock().before_writes.push_back(Box::new(before));
    }

    /// Everything that was asked so far.
    pub fn calls(&self) -> Vec<Call> {
        self.state.lock().calls.clone()
    }

    /// The writes to a node so far, each as `PATCH` or `PATCH status`.
    pub fn writes(&self, name: &str) -> Vec<&'static str> {
        let path = format!("/api/v1/nodes/{name}");
        let calls = self.calls();
        let writes = calls.iter().filter(|call| call.method == "PATCH" && call.path.starts_with(&path));
        writes.map(|call| if call.path.ends_with("/status") { "PATCH status" } else { "PATCH" }).collect()
    }

    async fn answer(&self, request: Request<Body>) -> (u16, Value) {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.expect("bodies are in memory").to_bytes();
        let call = Call {
            method: parts.method.to_string(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        };
        self.state.lock().answer(call)
    }
}

impl State {
    fn answer(&mut self, call: Call) -> (u16, Value) {
        self.calls.push(call.clone());
        let Some(name) = call.path.strip_prefix("/api/v1/nodes/").map(|rest| rest.trim_end_matches("/status").to_owned()) else {
            return (201, call.body);
        };
        let Some(node) = self.nodes.get(&name).cloned() else { return status(404, "NotFound") };
        if call.method == "GET" {
            return (200, node);
        }
        let code = self.before_writes.pop_front().and_then(|before| before(&mut self.nodes));
        if let Some(code) = code {
            return status(code, "scripted");
        }
        self.write(&call, &name)
    }

    fn write(&mut self, call: &Call, name: &str) -> (u16, Value) {
        let Some(node) = self.nodes.get_mut(name) else { return status(404, "NotFound") };
        let asked = if call.method == "DELETE" { &call.body["preconditions"] } else { &call.body["metadata"] };
        let differs = |field: &str| !asked[field].is_null() && asked[field] != node["metadata"][field];
        if differs("uid") || differs("resourceVersion") {
            return status(409, "Conflict");
        }
        if call.method == "DELETE" {
            self.nodes.remove(name);
            self.feeds.iter().for_each(|view| view.hide(name));
            return (200, json!({ "kind": "Status", "apiVersion": "v1", "status": "Success" }));
        }
        merge(node, &call.body);
        self.changed(name);
        (200, self.nodes[name].clone())
    }

    fn changed(&mut self, name: &str) {
        self.version += 1;
        let node = self.nodes.get_mut(name).expect("it was just there");
        node["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let node = model(node);
        self.feeds.iter().for_each(|view| view.show(node.clone()));
    }
}

/// The node in the model's terms.
pub fn model(node: &Value) -> Node {
    convert::node(serde_json::from_value(node.clone()).expect("tests hold valid nodes"))
}

/// A strategic merge, as far as lists with `$patch: replace` and atomic lists go.
fn merge(target: &mut Value, patch: &Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            patch.iter().for_each(|(key, value)| merge(target.entry(key.clone()).or_insert(Value::Null), value));
        }
        (target, Value::Object(_)) => {
            *target = json!({});
            merge(target, patch);
        }
        (target, Value::Array(list)) => {
            *target = list.iter().filter(|entry| entry["$patch"].is_null()).cloned().collect();
        }
        (target, value) => target.clone_from(value),
    }
}

fn status(code: u16, reason: &str) -> (u16, Value) {
    (
        code,
        json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason }),
    )
}
