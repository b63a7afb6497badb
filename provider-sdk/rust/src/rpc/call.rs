//! One call from its arrival to its log line: request id, trace, deadline and outcome. It never looks into messages.
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use ccm_proto::v1;
use futures::FutureExt as _;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::metadata::MetadataValue;
use tonic::{Code, Request, Response, Status};
use tracing::{Instrument as _, Span};

use super::metadata;
use crate::context::CallContext;
use crate::error::ProviderError;
use crate::mutations::panicked;
use crate::provider::Result;

/// What sets a call's default deadline.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Read,
    Mutation,
}

impl Kind {
    const fn default_timeout(self) -> Duration {
        match self {
            Self::Read => Duration::from_secs(10),
            Self::Mutation => Duration::from_secs(30),
        }
    }
}

/// A call that runs. Dropped before its end it logs that the caller went away.
pub(super) struct Call {
    method: &'static str,
    context: CallContext,
    started: Instant,
    span: Span,
    ended: bool,
    _cancels: DropGuard,
}

impl Call {
    pub(super) fn begin<Q>(method: &'static str, kind: Kind, request: &Request<Q>, cluster: v1::ClusterRef) -> Self {
        let request_id = metadata::request_id(request.metadata());
        let trace_parent = metadata::trace_parent(request.metadata());
        let timeout = metadata::timeout(request.metadata()).unwrap_or(kind.default_timeout());
        let span = tracing::info_span!("call", method, request_id, trace_parent);
        let cancelled = CancellationToken::new();
        let context = CallContext::new(request_id, cluster)
            .with_timeout(timeout)
            .with_trace_parent(trace_parent)
            .with_cancellation(cancelled.clone());
        let started = Instant::now();
        Self { method, context, started, span, ended: false, _cancels: cancelled.drop_guard() }
    }

    pub(super) fn context(&self) -> CallContext {
        self.context.clone()
    }

    /// Runs `work` to its end, its panic, or the moment when no answer would arrive in time.
    pub(super) async fn guard<A>(&self, work: impl Future<Output = Result<A>>) -> Result<A> {
        let caught = AssertUnwindSafe(work).catch_unwind().instrument(self.span.clone());
        let give_up = self.context.give_up().unwrap_or(self.started);
        match timeout_at(give_up, caught).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(panicked(self.method)),
            Err(_) => {
                let waited = self.started.elapsed().as_secs_f32();
                Err(ProviderError::deadline_exceeded(format!("{} had no answer after {waited:.1} s", self.method)))
            }
        }
    }

    /// Logs the outcome and puts it into the form of the wire.
    pub(super) fn end<A>(mut self, result: Result<A>) -> Result<Response<A>, Status> {
        self.ended = true;
        match result {
            Ok(answer) => {
                self.log(Code::Ok, None);
                let mut response = Response::new(answer);
                self.name_request(response.metadata_mut());
                Ok(response)
            }
            Err(error) => {
                self.log(error.code, Some(error.chain()));
                let mut status = Status::from(error);
                self.name_request(status.metadata_mut());
                Err(status)
            }
        }
    }

    fn name_request(&self, metadata: &mut tonic::metadata::MetadataMap) {
        if let Ok(id) = MetadataValue::try_from(self.context.request_id()) {
            metadata.insert(metadata::REQUEST_ID, id);
        }
    }

    fn log(&self, code: Code, error: Option<String>) {
        let duration_ms = self.started.elapsed().as_millis();
        self.span.in_scope(|| match error {
            None => tracing::info!(?code, duration_ms, "answered"),
            Some(error) => tracing::warn!(?code, duration_ms, error, "failed"),
        });
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.ended {
            self.log(Code::Cancelled, Some("the caller went away".to_owned()));
        }
    }
}
