//! One call: its deadline, the ids by which both sides log it, and its place in the metrics.
use std::time::{Duration, Instant};

use tonic::metadata::MetadataValue;
use tonic::{Code, Request, Response, Status, Streaming};
use uuid::Uuid;

use super::{Connection, Deadlines};
use crate::provider::classify;

/// The most items of one list: twice the routes of 50,000 nodes with two Pod CIDRs each.
pub const MAX_LISTED: usize = 200_000;

/// The methods that the core calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `Identity.GetProviderInfo`.
    GetProviderInfo,
    /// `Identity.Lead`.
    Lead,
    /// `Instances.BatchGetInstances`.
    BatchGetInstances,
    /// `Instances.WatchInstances`.
    WatchInstances,
    /// `Zones.GetZone`.
    GetZone,
    /// `LoadBalancers.EnsureLoadBalancer`.
    EnsureLoadBalancer,
    /// `LoadBalancers.UpdateLoadBalancer`.
    UpdateLoadBalancer,
    /// `LoadBalancers.EnsureLoadBalancerDeleted`.
    EnsureLoadBalancerDeleted,
    /// `LoadBalancers.PutNodeSet`.
    PutNodeSet,
    /// `LoadBalancers.PlanLoadBalancer`.
    PlanLoadBalancer,
    /// `LoadBalancers.ListLoadBalancers`; read to its end within the deadline.
    ListLoadBalancers,
    /// `Routes.ListRoutes`; read to its end within the deadline.
    ListRoutes,
    /// `Routes.CreateRoutes`.
    CreateRoutes,
    /// `Routes.DeleteRoutes`.
    DeleteRoutes,
}

impl Method {
    /// Its name in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GetProviderInfo => "GetProviderInfo",
            Self::Lead => "Lead",
            Self::BatchGetInstances => "BatchGetInstances",
            Self::WatchInstances => "WatchInstances",
            Self::GetZone => "GetZone",
            Self::EnsureLoadBalancer => "EnsureLoadBalancer",
            Self::UpdateLoadBalancer => "UpdateLoadBalancer",
            Self::EnsureLoadBalancerDeleted => "EnsureLoadBalancerDeleted",
            Self::PutNodeSet => "PutNodeSet",
            Self::PlanLoadBalancer => "PlanLoadBalancer",
            Self::ListLoadBalancers => "ListLoadBalancers",
            Self::ListRoutes => "ListRoutes",
            Self::CreateRoutes => "CreateRoutes",
            Self::DeleteRoutes => "DeleteRoutes",
        }
    }

    /// Whether it is a stream that stays open after the first answer; its deadline then applies to the opening only.
    const fn is_stream(self) -> bool {
        matches!(self, Self::Lead | Self::WatchInstances)
    }

    const fn deadline(self, deadlines: &Deadlines) -> Duration {
        match self {
            Self::GetProviderInfo => deadlines.handshake,
            Self::EnsureLoadBalancer
            | Self::UpdateLoadBalancer
            | Self::EnsureLoadBalancerDeleted
            | Self::PutNodeSet
            | Self::CreateRoutes
            | Self::DeleteRoutes => deadlines.mutation,
            Self::Lead
            | Self::BatchGetInstances
            | Self::WatchInstances
            | Self::GetZone
            | Self::PlanLoadBalancer
            | Self::ListLoadBalancers
            | Self::ListRoutes => deadlines.read,
        }
    }
}

/// By what both sides log a call: a request id, and a trace as W3C Trace Context has it.
struct Ids {
    request: String,
    trace: String,
}

impl Ids {
    fn new() -> Self {
        let (trace, span) = (Uuid::new_v4().simple().to_string(), Uuid::new_v4().simple().to_string());
        Self { request: Uuid::new_v4().to_string(), trace: format!("00-{trace}-{}-01", &span[..16]) }
    }

    fn write<T>(&self, request: &mut Request<T>) {
        for (key, value) in [("x-request-id", &self.request), ("traceparent", &self.trace)] {
            if let Ok(value) = MetadataValue::try_from(value) {
                request.metadata_mut().insert(key, value);
            }
        }
    }
}

impl Connection {
    /// Makes one call within the method's deadline; both sides keep it.
    pub async fn call<T, R, F>(&self, method: Method, message: T, send: impl FnOnce(Request<T>) -> F) -> Result<R, Status>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let _running = self.running.add();
        let (ids, deadline, started) = (Ids::new(), method.deadline(&self.shared.deadlines), Instant::now());
        let mut request = Request::new(message);
        ids.write(&mut request);
        if !method.is_stream() {
            request.set_timeout(deadline);
        }
        let answer = match tokio::time::timeout(deadline, send(request)).await {
            Ok(Err(status)) if status.code() == Code::Cancelled && started.elapsed() >= deadline => Err(late(method, deadline)),
            Ok(answer) => {
                if answer.as_ref().err().is_none_or(|status| !classify::is_lost(status)) {
                    self.heard();
                }
                answer.map(Response::into_inner)
            }
            Err(_) => Err(late(method, deadline)),
        };
        self.note_end(method, &ids, started.elapsed(), answer.as_ref().err());
        answer
    }

    /// Makes one call that answers a stream, and reads it to its end within the method's deadline. A stream that breaks off is an
    /// error, and so is one with more than [`MAX_LISTED`] items; `items` says how many a message has.
    pub async fn collect<T, M, F>(
        &self,
        method: Method,
        message: T,
        items: impl Fn(&M) -> usize,
        open: impl FnOnce(Request<T>) -> F,
    ) -> Result<Vec<M>, Status>
    where
        F: Future<Output = Result<Response<Streaming<M>>, Status>>,
    {
        self.call(method, message, |request| async move {
            let mut stream = open(request).await?.into_inner();
            let (mut messages, mut listed) = (Vec::new(), 0);
            while let Some(message) = stream.message().await? {
                listed += items(&message);
                if listed > MAX_LISTED {
                    let name = method.as_str();
                    return Err(Status::internal(format!(
                        "the provider's answer is not valid: {name} lists more than {MAX_LISTED}"
                    )));
                }
                messages.push(message);
            }
            Ok(Response::new(messages))
        })
        .await
    }

    fn note_end(&self, method: Method, ids: &Ids, elapsed: Duration, status: Option<&Status>) {
        let code = status.map_or(Code::Ok, Status::code);
        let message = status.map(Status::message);
        let (method, code_name) = (method.as_str(), classify::name(code));
        tracing::debug!(
            method,
            code = code_name,
            ?elapsed,
            request_id = ids.request,
            traceparent = ids.trace,
            message,
            "provider call"
        );
        self.shared.metrics.ended(method, code_name, elapsed.as_secs_f64());
        if matches!(code, Code::Unauthenticated | Code::DeadlineExceeded) && method != Method::GetProviderInfo.as_str() {
            self.shared.doubt.notify_one();
        }
    }
}

fn late(method: Method, deadline: Duration) -> Status {
    Status::deadline_exceeded(format!("{} was not answered within {}", method.as_str(), humantime::format_duration(deadline)))
}
