//! What a provider is told about the call it answers and about the leadership it works under. It only carries facts; who
//! leads, and when a call is cancelled, is decided elsewhere.
use std::time::Duration;

use ccm_proto::v1;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The share of a caller's deadline after which the SDK answers with what it has.
const ANSWER_SHARE: f64 = 0.9;

/// One call, as the provider sees it. Cloning is cheap and keeps the cancellation shared.
#[derive(Clone, Debug)]
pub struct CallContext {
    request_id: String,
    trace_parent: Option<String>,
    cluster: v1::ClusterRef,
    epoch: Option<u64>,
    deadline: Option<Instant>,
    answer_by: Option<Instant>,
    cancelled: CancellationToken,
}

impl CallContext {
    /// A call without deadline and leadership, on behalf of `cluster`. The SDK makes these; providers need it in tests.
    pub fn new(request_id: impl Into<String>, cluster: v1::ClusterRef) -> Self {
        Self {
            request_id: request_id.into(),
            trace_parent: None,
            cluster,
            epoch: None,
            deadline: None,
            answer_by: None,
            cancelled: CancellationToken::new(),
        }
    }

    /// The same call with a deadline `timeout` from now.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        let now = Instant::now();
        self.deadline = Some(now + timeout);
        self.answer_by = Some(now + timeout.mul_f64(ANSWER_SHARE));
        self
    }

    /// The same call as part of a W3C trace: `traceparent` as it came.
    #[must_use]
    pub fn with_trace_parent(mut self, trace_parent: Option<String>) -> Self {
        self.trace_parent = trace_parent;
        self
    }

    /// The same call, cancelled with `cancelled`.
    #[must_use]
    pub fn with_cancellation(mut self, cancelled: CancellationToken) -> Self {
        self.cancelled = cancelled;
        self
    }

    /// The same call as a mutation under a leader: it has no deadline, since its work outlives the caller's, and it is
    /// cancelled with `cancelled`.
    #[must_use]
    pub fn led(mut self, epoch: u64, cancelled: CancellationToken) -> Self {
        self.epoch = Some(epoch);
        self.deadline = None;
        self.answer_by = None;
        self.cancelled = cancelled;
        self
    }

    /// The same call on behalf of another cluster.
    #[must_use]
    pub fn for_cluster(mut self, cluster: v1::ClusterRef) -> Self {
        self.cluster = cluster;
        self
    }

    /// The id under which both sides log the call.
    pub fn request_id(&self) -> &str {
        &self.request_id
    }

    /// The W3C `traceparent` of the call, to be handed on to the cloud.
    pub fn trace_parent(&self) -> Option<&str> {
        self.trace_parent.as_deref()
    }

    /// The cluster on whose behalf the call is made; both fields are empty before the first handshake.
    pub fn cluster(&self) -> &v1::ClusterRef {
        &self.cluster
    }

    /// The leader's epoch, for mutations.
    pub fn epoch(&self) -> Option<u64> {
        self.epoch
    }

    /// When the caller stops waiting. `None` for mutations: their work goes on until it is done or the leader is lost.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// How long until the deadline; zero if it has passed.
    pub fn remaining(&self) -> Option<Duration> {
        self.deadline.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// When the SDK answers with what it has: 90 % of the caller's deadline. `None` for mutations.
    pub fn answer_by(&self) -> Option<Instant> {
        self.answer_by
    }

    /// When the SDK gives up on the items of a batch: somewhat after `answer_by`, so that a provider which keeps to that is
    /// heard.
    pub(crate) fn items_by(&self) -> Option<Instant> {
        self.answer_by.map(|answer_by| answer_by + self.slack() / 3)
    }

    /// When the SDK gives up on the call: somewhat before the deadline, so that the error still reaches the caller.
    pub(crate) fn give_up(&self) -> Option<Instant> {
        self.answer_by.map(|answer_by| answer_by + self.slack() * 2 / 3)
    }

    /// The time between `answer_by` and the deadline.
    fn slack(&self) -> Duration {
        let (Some(answer_by), Some(deadline)) = (self.answer_by, self.deadline) else { return Duration::ZERO };
        deadline.saturating_duration_since(answer_by)
    }

    /// The same call without a deadline and with a cancellation of its own: a stream that stays open.
    pub(crate) fn unbounded(self) -> Self {
        Self { deadline: None, answer_by: None, cancelled: CancellationToken::new(), ..self }
    }

    /// Fires when the result is of no more use: a read's caller is gone or its deadline has passed, or a mutation's leader
    /// is lost. The SDK drops the provider's future at that moment; work in tasks of its own must watch this itself.
    pub fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }
}

/// The core behind the socket leads the cluster. Background work may run until [`lost`](Self::lost) completes.
#[derive(Clone, Debug)]
pub struct LeaderContext {
    epoch: u64,
    holder: String,
    cluster: v1::ClusterRef,
    lost: CancellationToken,
}

impl LeaderContext {
    /// A leadership that ends with `lost`. The SDK makes these; providers need it in tests.
    pub fn new(epoch: u64, holder: impl Into<String>, cluster: v1::ClusterRef, lost: CancellationToken) -> Self {
        Self { epoch, holder: holder.into(), cluster, lost }
    }

    /// Grows with every change of leader.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The leader's name in the lease.
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// The cluster that is led.
    pub fn cluster(&self) -> &v1::ClusterRef {
        &self.cluster
    }

    /// Completes when the leadership has ended: the stream closed, its word expired, or another leader came.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Whether it has ended.
    pub fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }
}
