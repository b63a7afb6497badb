//! An API server that has one lease: optimistic concurrency is real, answers can be scripted, and every call is written down.
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// What becomes of a call instead of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// None: it is answered.
    None,
    /// It is refused with this code and not carried out.
    Status(u16),
    /// It is never answered, and not carried out.
    Hang,
    /// It is carried out, and never answered.
    HangAfter,
}

#[derive(Default)]
struct State {
    lease: Option<Lease>,
    version: u64,
    calls: Vec<&'static str>,
    faults: VecDeque<Fault>,
    from_now_on: Option<Fault>,
}

/// The server. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct ApiServer {
    state: Arc<Mutex<State>>,
}

impl ApiServer {
    pub(super) fn client(&self) -> Client {
        let server = self.clone();
        let answer = move |request| {
            let server = server.clone();
            async move { Ok::<_, std::convert::Infallible>(server.answer(request).await) }
        };
        Client::new(tower::service_fn(answer), "default")
    }

    /// The verbs so far: get, create, update.
    pub(super) fn calls(&self) -> Vec<&'static str> {
        self.state.lock().calls.clone()
    }

    pub(super) fn spec(&self) -> LeaseSpec {
        self.state.lock().lease.clone().and_then(|lease| lease.spec).unwrap_or_default()
    }

    pub(super) fn holder(&self) -> String {
        self.spec().holder_identity.unwrap_or_default()
    }

    /// Another process writes the lease.
    pub(super) fn write(&self, change: impl FnOnce(&mut LeaseSpec)) {
        let mut state = self.state.lock();
        let mut lease = state.lease.take().unwrap_or_default();
        change(lease.spec.get_or_insert_default());
        state.store(lease);
    }

    /// Another process gives the lease these annotations.
    pub(super) fn annotate(&self, annotations: BTreeMap<String, String>) {
        let mut state = self.state.lock();
        let mut lease = state.lease.take().unwrap_or_default();
        lease.metadata.annotations = Some(annotations);
        state.store(lease);
    }

    pub(super) fn annotations(&self) -> BTreeMap<String, String> {
        self.state.lock().lease.clone().and_then(|lease| lease.metadata.annotations).unwrap_or_default()
    }

    /// The lease is gone.
    pub(super) fn delete(&self) {
        self.state.lock().lease = None;
    }

    /// What becomes of the next calls, one each.
    pub(super) fn script(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state.lock().faults = faults.into_iter().collect();
    }

    /// What becomes of all calls that nothing is scripted for.
    pub(super) fn always(&self, fault: Fault) {
        self.state.lock().from_now_on = Some(fault);
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let method = request.method().clone();
        let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let fault = self.state.lock().next_fault(&method);
        match fault {
            Fault::None => self.state.lock().carry_out(&method, &body),
            Fault::Status(code) => refusal(code),
            Fault::Hang => std::future::pending().await,
            Fault::HangAfter => {
                self.state.lock().carry_out(&method, &body);
                std::future::pending().await
            }
        }
    }
}

impl State {
    fn next_fault(&mut self, method: &Method) -> Fault {
        self.calls.push(match *method {
            Method::GET => "get",
            Method::POST => "create",
            _ => "update",
        });
        self.faults.pop_front().or(self.from_now_on).unwrap_or(Fault::None)
    }

    fn store(&mut self, mut lease: Lease) -> Lease {
        self.version += 1;
        lease.metadata.resource_version = Some(self.version.to_string());
        self.lease.insert(lease).clone()
    }

    fn carry_out(&mut self, method: &Method, body: &[u8]) -> Response<Body> {
        let sent = || serde_json::from_slice::<Lease>(body).unwrap_or_default();
        let current = self.lease.as_ref().map(|lease| lease.metadata.resource_version.clone());
        match (method, current) {
            (&Method::GET, Some(_)) => answer(200, &json!(self.lease)),
            (&Method::POST, None) => answer(201, &json!(self.store(sent()))),
            (&Method::PUT, Some(version)) if sent().metadata.resource_version == version => {
                answer(200, &json!(self.store(sent())))
            }
            (_, None) => refusal(404),
            (_, Some(_)) => refusal(409),
        }
    }
}

fn refusal(code: u16) -> Response<Body> {
    let reason = match code {
        404 => "NotFound",
        409 => "Conflict",
        _ => "InternalError",
    };
    let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "scripted", "reason": reason, "code": code });
    answer(code, &status)
}

fn answer(code: u16, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string().into_bytes()));
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
    response
}
