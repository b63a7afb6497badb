//! The simulated cloud: machines, zones, disks, load balancers and routes that behave like a real cloud's. It knows nothing of
//! Kubernetes, gRPC or the provider protocol; what stands before it is [`CloudApi`].
use std::error::Error;

use async_trait::async_trait;

use faults::{Fault, FaultName, FaultSpec};
use load_balancers::LoadBalancerApi;
use model::{Answer, Change, CloudInfo, Failure, Instance, Query, Volume};
use routes::RouteApi;
use store::StoreError;

pub mod config;
pub mod counters;
pub mod derive;
pub mod engine;
pub mod faults;
pub mod kept;
pub mod load_balancers;
pub mod model;
pub mod pace;
pub mod routes;
pub mod store;
pub mod validate;
pub mod world;

/// What the cloud's API failed with.
#[derive(Debug, thiserror::Error)]
pub enum CloudError {
    /// The cloud answered, and refused.
    #[error(transparent)]
    Refused(#[from] Failure),
    /// The change could not be kept, so it was not made.
    #[error("nothing was changed, since it could not be kept: {0}")]
    Storage(#[from] StoreError),
    /// There was no answer, or none of this API.
    #[error("the cloud at {url} did not answer as it should")]
    Unreachable {
        /// Where it was looked for.
        url: String,
        /// What happened.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The work was cut off by the end of the process.
    #[error("the cloud is shutting down")]
    ShuttingDown,
}

/// The cloud's API, within the process or over HTTP: this, and those for load balancers
/// and routes. The first three methods are what a provider sees: paced, lagging and
/// subject to faults. The others are for people and scripts, and tell the truth at once.
#[async_trait]
pub trait CloudApi: LoadBalancerApi + RouteApi {
    /// Who the cloud is.
    async fn info(&self) -> Result<CloudInfo, CloudError>;

    /// Looks up machines in one call: one item for each query, in their order.
    async fn look_up(&self, queries: &[Query]) -> Result<Answer, CloudError>;

    /// A disk, if it is known.
    async fn volume(&self, id: &str) -> Result<Option<Volume>, CloudError>;

    /// These machines as they truly are, those that are not there left out; without names, all that are stored.
    async fn instances(&self, names: &[String]) -> Result<Vec<Instance>, CloudError>;

    /// Makes a change, to all machines of it or to none, and answers them as they are then.
    async fn change(&self, change: Change) -> Result<Vec<Instance>, CloudError>;

    /// The faults that are set.
    async fn faults(&self) -> Result<Vec<Fault>, CloudError>;

    /// Sets a fault.
    async fn set_fault(&self, spec: FaultSpec) -> Result<(), CloudError>;

    /// Clears all faults, or those of one name.
    async fn clear_faults(&self, name: Option<FaultName>) -> Result<(), CloudError>;
}
