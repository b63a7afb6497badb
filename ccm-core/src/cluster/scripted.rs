//! For tests of stages: an API server in memory that checks UIDs, versions and preconditions as the real one does, fails where
//! a test wants it to, and records its requests. It validates nothing, and of objects it knows no more than what
//! `scripted/objects.rs` and the lists in `scripted/merge.rs` say.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc)]
mod merge;
mod objects;

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

pub use self::objects::{model, service_model};

/// A request that came.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// `GET`, `PATCH`, ….
    pub method: Method,
    /// Without the query.
    pub path: String,
    /// The query.
    pub query: String,
    /// The body; null if there was none.
    pub body: Value,
    /// By tokio's clock, which tests may pause.
    pub at: tokio::time::Instant,
}

/// What is stored, by path: `/api/v1/nodes/a`.
pub type Objects = BTreeMap<String, Value>;

/// What happens just before a write is carried out.
type Before = Box<dyn FnOnce(&mut Objects) -> Option<u16> + Send>;

/// Receives the new state of an object, by its path; nothing: it is gone.
type Listener = Box<dyn Fn(&str, Option<&Value>) + Send>;

#[derive(Default)]
struct State {
    objects: Objects,
    version: u64,
    calls: Vec<Call>,
    failures: Vec<(Method, String, u16)>,
    before_writes: VecDeque<Before>,
    listeners: Vec<Listener>,
}

/// The server. Clones share it.
#[derive(Clone, Default)]
pub struct ApiServer {
    state: Arc<Mutex<State>>,
}

impl ApiServer {
    /// A client of it.
    pub fn client(&self) -> Client {
        let state = Arc::clone(&self.state);
        let service = tower::service_fn(move |request: Request<Body>| {
            let state = Arc::clone(&state);
            async move {
                let call = read(request).await;
                let (code, answer) = state.lock().answer(call);
                let response = Response::builder().status(code).header("content-type", "application/json");
                Ok::<_, Infallible>(response.body(Body::from(answer.to_string().into_bytes())).unwrap())
            }
        });
        Client::new(service, "default")
    }

    /// Puts an object there, giving it the next resourceVersion.
    pub fn put(&self, path: &str, object: Value) {
        self.state.lock().store(path, object);
    }

    /// An object as it is now.
    pub fn object(&self, path: &str) -> Option<Value> {
        self.state.lock().objects.get(path).cloned()
    }

    /// Removes an object without a request.
    pub fn remove(&self, path: &str) {
        self.state.lock().forget(path);
    }

    /// How many objects there are under a path.
    pub fn count(&self, prefix: &str) -> usize {
        self.state.lock().objects.keys().filter(|path| path.starts_with(prefix)).count()
    }

    /// The next request of this method whose path begins so is answered with this code.
    pub fn fail_once(&self, method: Method, prefix: &str, code: u16) {
        self.state.lock().failures.push((method, prefix.to_owned(), code));
    }

    /// Before the next patch or deletion is carried out (each call adds one for the next), another client changes the objects,
    /// or the server answers with the code returned instead.
    pub fn before_write(&self, before: impl FnOnce(&mut Objects) -> Option<u16> + Send + 'static) {
        self.state.lock().before_writes.push_back(Box::new(before));
    }

    /// Everything that was asked so far.
    pub fn calls(&self) -> Vec<Call> {
        self.state.lock().calls.clone()
    }

    /// The requests so far of one method whose path begins so.
    pub fn seen(&self, method: &Method, prefix: &str) -> Vec<Call> {
        self.calls().into_iter().filter(|call| call.method == *method && call.path.starts_with(prefix)).collect()
    }

    /// All writes so far, in order: method and path.
    pub fn writes(&self) -> Vec<String> {
        let calls = self.calls();
        let writes = calls.iter().filter(|call| call.method != Method::GET);
        writes.map(|call| format!("{} {}", call.method, call.path)).collect()
    }

    fn listen(&self, listener: impl Fn(&str, Option<&Value>) + Send + 'static) {
        self.state.lock().listeners.push(Box::new(listener));
    }
}

async fn read(request: Request<Body>) -> Call {
    let (parts, body) = request.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    Call {
        method: parts.method,
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        body: if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() },
        at: tokio::time::Instant::now(),
    }
}

impl State {
    fn answer(&mut self, call: Call) -> (u16, Value) {
        self.calls.push(call.clone());
        let Call { method, path, body, .. } = call;
        if let Some(index) = self.failures.iter().position(|(of, prefix, _)| *of == method && path.starts_with(prefix)) {
            return status(self.failures.remove(index).2);
        }
        match method.as_str() {
            "POST" => self.create(&path, &body),
            "GET" if path == objects::ALL_NODES => self.list_nodes(),
            "GET" => self.objects.get(&path).map_or_else(|| status(404), |object| (200, object.clone())),
            "PUT" => self.replace(&path, body),
            "PATCH" => self.patch(&path, &body),
            "DELETE" => self.delete(&path, &body),
            other => panic!("{other} {path} is not scripted"),
        }
    }

    fn list_nodes(&self) -> (u16, Value) {
        let prefix = format!("{}/", objects::ALL_NODES);
        let items: Vec<_> = self.objects.iter().filter(|(path, _)| path.starts_with(&prefix)).map(|(_, node)| node).collect();
        (200, json!({ "kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": items }))
    }

    fn create(&mut self, collection: &str, body: &Value) -> (u16, Value) {
        let path = format!("{collection}/{}", body["metadata"]["name"].as_str().unwrap());
        if self.objects.contains_key(&path) {
            return status(409);
        }
        let mut object = body.clone();
        object["metadata"]["uid"] = json!(format!("uid-of-{path}"));
        (201, self.store(&path, object))
    }

    /// What a write would work on, or why there is none.
    fn writable(&mut self, path: &str, asked: &Value) -> Result<Value, (u16, Value)> {
        if !self.objects.contains_key(path) {
            return Err(status(404));
        }
        if let Some(code) = self.before_writes.pop_front().and_then(|before| before(&mut self.objects)) {
            return Err(status(code));
        }
        let object = self.objects.get(path).ok_or_else(|| status(404))?;
        let agrees = |field: &&str| asked[field].is_null() || asked[field] == object["metadata"][field];
        if ["uid", "resourceVersion"].iter().all(agrees) { Ok(object.clone()) } else { Err(status(409)) }
    }

    /// Whether a patch that names no other version than the present one names another UID.
    fn is_another(&self, path: &str, asked: &Value) -> bool {
        let differs = |field: &str| self.objects.get(path).is_some_and(|it| asked[field] != it["metadata"][field]);
        !asked["uid"].is_null() && differs("uid") && (asked["resourceVersion"].is_null() || !differs("resourceVersion"))
    }

    /// The subresource takes the status and metadata, the object all but the status.
    fn patch(&mut self, path: &str, body: &Value) -> (u16, Value) {
        let (path, only_status) = path.strip_suffix("/status").map_or((path, false), |path| (path, true));
        let mut object = match self.writable(path, &body["metadata"]) {
            Ok(object) => object,
            Err(answer) => return if self.is_another(path, &body["metadata"]) { another_uid() } else { answer },
        };
        let is_taken = |part: &str| part == "metadata" || (part == "status") == only_status;
        let parts = body.as_object().unwrap().iter().filter(|(part, _)| is_taken(part));
        parts.for_each(|(part, patch)| merge::merge(&mut object, part, patch));
        let object = self.store(path, object);
        if !object["metadata"]["deletionTimestamp"].is_null() && has_no_finalizer(&object) {
            self.forget(path);
        }
        (200, object)
    }

    fn replace(&mut self, path: &str, body: Value) -> (u16, Value) {
        match self.writable(path, &body["metadata"]) {
            Ok(_) => (200, self.store(path, body)),
            Err(answer) => answer,
        }
    }

    fn delete(&mut self, path: &str, body: &Value) -> (u16, Value) {
        let mut object = match self.writable(path, &body["preconditions"]) {
            Ok(object) => object,
            Err(answer) => return answer,
        };
        if !has_no_finalizer(&object) {
            object["metadata"]["deletionTimestamp"] = json!("2024-05-06T07:08:09Z");
            return (200, self.store(path, object));
        }
        self.forget(path);
        (200, json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success" }))
    }

    fn store(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(path.to_owned(), object.clone());
        self.listeners.iter().for_each(|listener| listener(path, Some(&object)));
        object
    }

    fn forget(&mut self, path: &str) {
        self.objects.remove(path);
        self.listeners.iter().for_each(|listener| listener(path, None));
    }
}

fn has_no_finalizer(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty)
}

/// As a real API server refuses a patch of an object that has another UID.
fn another_uid() -> (u16, Value) {
    let (code, mut answer) = status(422);
    answer["details"] = json!({ "causes": [{ "reason": "FieldValueInvalid", "field": "metadata.uid" }] });
    (code, answer)
}

fn status(code: u16) -> (u16, Value) {
    let reason = match code {
        404 => "NotFound",
        409 => "Conflict",
        403 => "Forbidden",
        _ => "InternalError",
    };
    let message = format!("scripted {reason}");
    (
        code,
        json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason, "code": code }),
    )
}
