//! What a case has in its hands: connections, calls that are kept for the report, and the checks that many cases share.
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use ccm_proto::v1::{ClusterRef, Service};

use crate::case::{Checked, Ended, broken, check};
use crate::connection;
use crate::exchange::{Exchanges, describe};
use crate::rpc::{Rpc, name};
use crate::suite::Suite;

/// The domain of the contract's ErrorInfo.
const DOMAIN: &str = "ccm.provider.v1";

/// The deadline of the handshake.
pub const HANDSHAKE: Duration = Duration::from_secs(5);

/// The deadline of a reading call.
pub const READING: Duration = Duration::from_secs(10);

/// The deadline of a mutating call.
pub const MUTATING: Duration = Duration::from_secs(30);

/// One case at work.
#[derive(Debug)]
pub struct Context {
    /// What all cases share.
    pub suite: Arc<Suite>,
    /// The connection of this case.
    pub channel: Channel,
    /// What crossed the socket.
    pub exchanges: Exchanges,
    /// The load balancers that the case made, or may have made, and that were not removed yet.
    pub made: Mutex<Vec<(ClusterRef, Service)>>,
    /// The destinations of routes that the case made, or may have made.
    pub routed: Mutex<Vec<String>>,
}

impl Context {
    /// A case with a connection of its own.
    pub fn new(suite: Arc<Suite>) -> Self {
        let channel = suite.connect();
        Self { suite, channel, exchanges: Exchanges::default(), made: Mutex::default(), routed: Mutex::default() }
    }

    /// Makes a call with the usual deadline.
    pub async fn send<R: Rpc>(&self, request: R) -> Result<R::Answer, Status> {
        self.send_within(request, deadline(R::PATH)).await
    }

    /// Makes a call with this deadline.
    pub async fn send_within<R: Rpc>(&self, request: R, deadline: Duration) -> Result<R::Answer, Status> {
        self.send_on(&self.channel, request, deadline).await
    }

    /// Makes a call over another connection.
    pub async fn send_on<R: Rpc>(&self, channel: &Channel, request: R, deadline: Duration) -> Result<R::Answer, Status> {
        let start = Instant::now();
        let answer = connection::unary(channel, request.clone(), deadline).await;
        self.exchanges.add(name(R::PATH), &request, &answer, start.elapsed());
        answer
    }

    /// Makes a call that must succeed; an error breaks `rule`.
    pub async fn ok<R: Rpc>(&self, rule: &'static str, request: R) -> Checked<R::Answer> {
        self.send(request).await.map_err(|status| failed(rule, R::PATH, &status))
    }

    /// Takes all of a stream, which must end with OK; an error breaks `rule`.
    pub async fn all<R: Rpc>(&self, rule: &'static str, request: R) -> Checked<Vec<R::Answer>> {
        self.collect(request).await.map_err(|status| failed(rule, R::PATH, &status))
    }

    /// Takes all of a stream.
    pub async fn collect<R: Rpc>(&self, request: R) -> Result<Vec<R::Answer>, Status> {
        let start = Instant::now();
        let answer = connection::collected(&self.channel, request.clone(), READING).await;
        self.exchanges.add(name(R::PATH), &request, &answer, start.elapsed());
        answer
    }

    /// Makes a call that must be refused with this code and reason; an empty reason stands for any.
    pub async fn refused<R: Rpc>(&self, rule: &'static str, request: R, code: Code, reason: &str) -> Checked<Status> {
        match self.send(request).await {
            Ok(_) => Err(broken(rule, format!("{} succeeded; expected {code:?} {reason}", name(R::PATH)))),
            Err(status) => is_refusal(rule, status, code, reason),
        }
    }

    /// Ends the case as skipped.
    pub fn skip<T>(why: impl Into<String>) -> Checked<T> {
        Err(Ended::Skipped(why.into()))
    }
}

/// The deadline that the core gives a call to this method.
fn deadline(path: &str) -> Duration {
    match name(path) {
        "GetProviderInfo" => HANDSHAKE,
        method if mutates(method) => MUTATING,
        _ => READING,
    }
}

/// Whether the method changes the cloud, or is `PutNodeSet`, which has the same deadline.
fn mutates(method: &str) -> bool {
    ["EnsureLoadBalancer", "UpdateLoadBalancer", "EnsureLoadBalancerDeleted", "PutNodeSet", "CreateRoutes", "DeleteRoutes"]
        .contains(&method)
}

/// A call failed that had to succeed.
pub fn failed(rule: &'static str, path: &str, status: &Status) -> Ended {
    broken(rule, format!("{} failed: {}", name(path), describe(status)))
}

/// Whether the status has this code, and an ErrorInfo of the contract with this reason.
pub fn is_refusal(rule: &'static str, status: Status, code: Code, reason: &str) -> Checked<Status> {
    let said = describe(&status);
    check(rule, status.code() == code, format!("expected {code:?} {reason}, got {said}"))?;
    if reason.is_empty() {
        return Ok(status);
    }
    let details = status.get_error_details();
    let info = details.error_info().ok_or_else(|| broken("ERR-1", format!("there is no ErrorInfo: {said}")))?;
    check("ERR-1", info.domain == DOMAIN, format!("the domain is not {DOMAIN}: {said}"))?;
    check(rule, info.reason == reason, format!("expected the reason {reason}, got {said}"))?;
    Ok(status)
}

/// Asks again until there is a value; after `patience` the rule is broken.
pub async fn eventually<T>(
    rule: &'static str,
    what: &str,
    patience: Duration,
    mut ask: impl AsyncFnMut() -> Checked<Option<T>>,
) -> Checked<T> {
    let asking = async {
        loop {
            if let Some(value) = ask().await? {
                return Ok(value);
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(patience, asking).await.unwrap_or_else(|_| Err(broken(rule, format!("{what} within {patience:?}"))))
}
