//! The provider port: the calls that controllers make to a cloud, in the types of [`crate::model`]. Only the modules below know gRPC.
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::watch;

use crate::model::instance::{Answer, NodeQuery};
use crate::model::load_balancer::{Ensured, Extras, OwnedLoadBalancer, Planned, Progress};
use crate::model::provider_info::ProviderInfo;
use crate::model::route::{Route, RouteOutcome, RouteTable, WantedRoute};
use crate::model::service::Service;
use crate::model::target::TargetSet;

pub mod backoff;
pub mod batch;
pub mod capabilities;
pub mod classify;
pub mod convert;
mod count;
pub mod description;
pub mod endpoint;
pub mod grpc;
pub mod hints;
pub mod instances;
pub mod lead;
pub mod load_balancers;
pub mod metrics;
pub mod routes;
#[cfg(test)]
pub(crate) mod scripted;
pub mod session;
mod zones;

/// The status of the provider. Controllers change nothing unless it is [`ProviderState::Ready`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderState {
    /// There is no connection, or no handshake yet; the message says what was tried and why it failed.
    Disconnected {
        /// Since when.
        since: Instant,
        /// For readiness and the log.
        message: String,
    },
    /// It answers, and cannot be used: another protocol version, an invalid description, a wrong name.
    Unusable {
        /// What is wrong, and the remedy.
        message: String,
    },
    /// It is another cloud than the accepted one: everything stops until the operator accepts it.
    IdentityChanged {
        /// What was accepted.
        accepted: String,
        /// What it is now.
        found: Arc<ProviderInfo>,
    },
    /// It could be used, and has completed no handshake for too long: its connection, running calls and look-ups stay, and
    /// nothing new is changed until it completes one.
    Unconfirmed {
        /// Its description in the last completed handshake.
        info: Arc<ProviderInfo>,
        /// When that was.
        since: Instant,
        /// For readiness and the log.
        message: String,
    },
    /// It can be used.
    Ready(Arc<ProviderInfo>),
}

impl ProviderState {
    /// The provider's description, if changes may be made with it.
    pub fn ready(&self) -> Option<&Arc<ProviderInfo>> {
        match self {
            Self::Ready(info) => Some(info),
            _ => None,
        }
    }
}

/// The latest state, and how to wait for another.
pub type StateReceiver = watch::Receiver<ProviderState>;

/// Which look-ups go first when there are more than a batch takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// A node that waits to be initialised.
    Initialize,
    /// A node that is not ready: does its machine still exist?
    Lifecycle,
    /// The periodic refresh.
    Refresh,
}

/// Machines.
#[async_trait]
pub trait Instances: Send + Sync + 'static {
    /// Looks up one machine. Concurrent look-ups become batches; two for one node become one.
    async fn look_up(&self, query: NodeQuery, priority: Priority) -> Result<Answer, ProviderError>;
}

/// Load balancers. Each mutating call carries the epoch of the write guard's permit; a provider that has seen a later epoch refuses
/// it. Callers must not make two calls for one Service at a time; the provider serialises them.
#[async_trait]
pub trait LoadBalancers: Send + Sync + 'static {
    /// Brings the load balancer into the state that the Service and the targets describe.
    async fn ensure(&self, epoch: u64, service: &Service, targets: &TargetSet) -> Result<Progress<Ensured>, ProviderError>;

    /// Sets the targets of the existing load balancer, and leaves the rest unchanged.
    async fn update(&self, epoch: u64, service: &Service, targets: &TargetSet) -> Result<Progress<Extras>, ProviderError>;

    /// Removes the load balancer; nothing to remove is a success. It is never implemented elsewhere.
    async fn delete(&self, epoch: u64, service: &Service) -> Result<Progress<()>, ProviderError>;

    /// What [`Self::ensure`] would change; it changes nothing.
    async fn plan(&self, service: &Service, targets: &TargetSet) -> Result<Progress<Planned>, ProviderError>;

    /// Every load balancer with this cluster's ownership tag.
    async fn list(&self) -> Result<Vec<OwnedLoadBalancer>, ProviderError>;
}

/// Routes. Each mutating call carries the epoch of the write guard's permit. Callers must not make two calls for one destination at
/// a time. A call of any length becomes batches within the provider's limits; it answers one result for each route, in order.
#[async_trait]
pub trait Routes: Send + Sync + 'static {
    /// The whole table, complete or an error.
    async fn list(&self) -> Result<RouteTable, ProviderError>;

    /// Makes each route, and replaces a route of this cluster that has the same destination and leads elsewhere.
    async fn create(&self, epoch: u64, routes: &[WantedRoute]) -> Vec<Result<RouteOutcome, ProviderError>>;

    /// Removes each route, as [`Self::list`] returned it; one that does not exist is done.
    async fn delete(&self, epoch: u64, routes: &[Route]) -> Vec<Result<RouteOutcome, ProviderError>>;
}

/// Who the provider is.
#[async_trait]
pub trait Identity: Send + Sync + 'static {
    /// Makes another handshake now, publishes what that changes, and returns the provider's description in this handshake if the
    /// provider was accepted in it. A handshake that is not answered or not judged in time is an error and changes nothing else.
    /// Called before every deletion: a sidecar can get other credentials without losing its connection.
    async fn confirm(&self) -> Result<Arc<ProviderInfo>, ProviderError>;
}

/// Decides at every handshake whether the core may use the provider that has described itself.
#[async_trait]
pub trait Judge: Send + Sync + 'static {
    /// `Ok` if it may be used. Called again at each handshake, so that an operator's acceptance is noticed.
    async fn judge(&self, info: &ProviderInfo) -> Result<(), Verdict>;
}

/// A judge that accepts every provider: for commands that change nothing.
#[derive(Clone, Copy, Debug)]
pub struct Anyone;

#[async_trait]
impl Judge for Anyone {
    async fn judge(&self, _: &ProviderInfo) -> Result<(), Verdict> {
        Ok(())
    }
}

/// Why a provider may not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the wrong one, or lacks something; the message names the remedy.
    Unusable(String),
    /// It is another cloud than the accepted one.
    IdentityChanged {
        /// What was accepted.
        accepted: String,
    },
    /// It cannot be judged now (the API server does not answer); a provider that was judged before keeps its state.
    Later(String),
}

/// What to do about a failed call; decided in one place, `provider/classify.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A retry fails in the same way until a person changes something; retry slowly.
    Terminal,
    /// A retry may succeed, but not before `after` if the provider gives it.
    Retry {
        /// The provider's `RetryInfo`.
        after: Option<Duration>,
    },
    /// The provider does not serve this.
    Unsupported,
    /// It is unknown whether the call was carried out (a lost connection, a deadline).
    Unknown,
}

/// Why a provider could not answer. It never means "does not exist".
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{message} ({reason})")]
pub struct ProviderError {
    /// What to do about it.
    pub outcome: Outcome,
    /// The contract's reason (`RATE_LIMITED`), otherwise the gRPC code's name (`UNAVAILABLE`).
    pub reason: String,
    /// The provider's words, fit for an event.
    pub message: String,
}

impl ProviderError {
    /// Whether the cloud limits the rate of all calls. A bare RESOURCE_EXHAUSTED does not mean that: gRPC libraries also return it
    /// for a message that is too large.
    pub fn is_rate_limit(&self) -> bool {
        self.reason == "RATE_LIMITED"
    }

    /// Whether there was no provider to answer, or it went away: nothing is wrong with the call itself.
    pub fn is_absence(&self) -> bool {
        matches!(self.reason.as_str(), classify::CONNECTION_LOST | "PROVIDER_NOT_READY" | "STOPPED")
    }

    /// Whether the provider failed at this one call, as the contract's tables define for these codes. Other calls may succeed; none
    /// succeeds while the cloud is away.
    pub fn is_defect(&self) -> bool {
        matches!(self.reason.as_str(), "INTERNAL" | "UNKNOWN" | "NOT_FOUND" | "DATA_LOSS")
    }
}
