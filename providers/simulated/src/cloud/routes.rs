//! Routes: the one table of the cloud, in which clusters tag what they make. Kept on disk in a journal, changed by batches,
//! each item as a whole. What stands before it is [`RouteApi`].
use async_trait::async_trait;

use super::CloudError;
use super::load_balancers::Origin;
use model::{Edit, Listed, Listing, Outcome, Removal, Wanted};

pub mod journal;
pub mod kept;
pub mod model;
pub mod resolve;
pub mod table;

/// The cloud's API for routes, within the process or over HTTP. The first three methods are what a provider sees: paced,
/// limited and subject to faults. The others are for people and scripts, and take effect at once.
#[async_trait]
pub trait RouteApi: Send + Sync + 'static {
    /// The table.
    async fn list_routes(&self) -> Result<Listing, CloudError>;

    /// Makes these routes be there for a cluster: one outcome for each, in their order.
    async fn put_routes(&self, origin: &Origin, cluster_uid: &str, wanted: Vec<Wanted>) -> Result<Vec<Outcome>, CloudError>;

    /// Removes a cluster's routes: one outcome for each, in their order.
    async fn remove_routes(&self, origin: &Origin, cluster_uid: &str, gone: Vec<Removal>) -> Result<Vec<Outcome>, CloudError>;

    /// All routes as they truly are, by destination.
    async fn route_records(&self) -> Result<Vec<Listed>, CloudError>;

    /// Changes the table behind its owners' backs; answers the route that was added or changed.
    async fn edit_route(&self, edit: Edit) -> Result<Option<Listed>, CloudError>;
}
