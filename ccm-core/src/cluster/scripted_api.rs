//! For tests of stages: an API server in memory that checks versions and preconditions as the real one does, fails where it is
//! told to, and remembers what it was asked. It knows nothing of any kind of object.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// The server. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct ScriptedApi {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    objects: BTreeMap<String, Value>,
    version: u64,
    seen: Vec<Seen>,
    failures: Vec<(Method, String, u16)>,
}

/// A request that was made.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub method: Method,
    pub path: String,
    pub body: Value,
    /// By tokio's clock, which tests may pause.
    pub at: tokio::time::Instant,
}

impl ScriptedApi {
    /// A client of it.
    pub fn client(&self) -> Client {
        let inner = Arc::clone(&self.inner);
        let service = tower::service_fn(move |request: Request<Body>| {
            let inner = Arc::clone(&inner);
            async move {
                let (parts, body) = request.into_parts();
                let bytes = body.collect().await.unwrap().to_bytes();
                let body = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() };
                let (code, answer) = inner.lock().answer(&parts.method, parts.uri.path(), &body);
                let response = Response::builder().status(code).header("content-type", "application/json");
                Ok::<_, Infallible>(response.body(Body::from(answer.to_string().into_bytes())).unwrap())
            }
        });
        Client::new(service, "default")
    }

    /// Puts an object there; its version grows.
    pub fn put(&self, path: &str, object: Value) {
        self.inner.lock().store(path, object);
    }

    /// An object as it is now.
    pub fn object(&self, path: &str) -> Option<Value> {
        self.inner.lock().objects.get(path).cloned()
    }

    /// Removes an object behind everybody's back.
    pub fn remove(&self, path: &str) {
        self.inner.lock().objects.remove(path);
    }

    /// How many objects there are under a path.
    pub fn count(&self, prefix: &str) -> usize {
        self.inner.lock().objects.keys().filter(|path| path.starts_with(prefix)).count()
    }

    /// The next request of this method whose path begins so is answered with this code.
    pub fn fail_once(&self, method: Method, prefix: &str, code: u16) {
        self.inner.lock().failures.push((method, prefix.to_owned(), code));
    }

    /// The requests so far of one method whose path begins so.
    pub fn seen(&self, method: &Method, prefix: &str) -> Vec<Seen> {
        let inner = self.inner.lock();
        inner.seen.iter().filter(|seen| seen.method == *method && seen.path.starts_with(prefix)).cloned().collect()
    }

    /// All writes so far, in order: method and path.
    pub fn writes(&self) -> Vec<String> {
        let inner = self.inner.lock();
        let writes = inner.seen.iter().filter(|seen| seen.method != Method::GET);
        writes.map(|seen| format!("{} {}", seen.method, seen.path)).collect()
    }
}

impl Inner {
    fn answer(&mut self, method: &Method, path: &str, body: &Value) -> (u16, Value) {
        let at = tokio::time::Instant::now();
        self.seen.push(Seen { method: method.clone(), path: path.to_owned(), body: body.clone(), at });
        if let Some(index) = self.failures.iter().position(|(of, prefix, _)| of == method && path.starts_with(prefix)) {
            let (_, _, code) = self.failures.remove(index);
            return status(code);
        }
        match method.as_str() {
            "POST" => self.create(path, body),
            "GET" => self.objects.get(path).map_or_else(|| status(404), |object| (200, object.clone())),
            "PATCH" => self.patch(path, body),
            "DELETE" => self.delete(path, body),
            other => panic!("{other} {path} is not scripted"),
        }
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

    fn patch(&mut self, path: &str, body: &Value) -> (u16, Value) {
        let Some(object) = self.objects.get(path) else { return status(404) };
        if !agrees(&object["metadata"], &body["metadata"]) {
            return status(409);
        }
        let mut object = object.clone();
        merge(&mut object, body);
        (200, self.store(path, object))
    }

    fn delete(&mut self, path: &str, body: &Value) -> (u16, Value) {
        let Some(object) = self.objects.get(path) else { return status(404) };
        if !agrees(&object["metadata"], &body["preconditions"]) {
            return status(409);
        }
        self.objects.remove(path);
        (200, json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success" }))
    }

    fn store(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(path.to_owned(), object.clone());
        object
    }
}

fn agrees(metadata: &Value, wanted: &Value) -> bool {
    ["uid", "resourceVersion"].iter().all(|key| wanted.get(key).is_none_or(|value| *value == metadata[key]))
}

fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else { return into.clone_from(patch) };
    for (key, value) in patch {
        if value.is_null() {
            into.as_object_mut().map(|object| object.remove(key));
        } else {
            merge(&mut into[key.as_str()], value);
        }
    }
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
