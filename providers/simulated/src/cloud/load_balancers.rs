//! Load balancers, as the cloud sells them: kept one file each, marked with whom they belong to, changed one mutation at a
//! time. What stands before them is [`LoadBalancerApi`].
use async_trait::async_trait;

use super::CloudError;
use model::{Edit, Found, LoadBalancer, Mark, Search, Wanted};

pub mod addresses;
pub mod kept;
pub mod model;
pub mod rules;
pub mod store;
pub mod turns;
pub mod validate;

pub use turns::Origin;

/// The cloud's API for load balancers, within the process or over HTTP. The first three methods are what a provider sees:
/// paced, limited and subject to faults. The others are for people and scripts, and take effect at once.
#[async_trait]
pub trait LoadBalancerApi: Send + Sync + 'static {
    /// The load balancers that are looked for, by name.
    async fn find_load_balancers(&self, search: &Search) -> Result<Found, CloudError>;

    /// Makes the load balancer of this name be as wanted, creating it if need be. Refused where one of this name is marked
    /// as somebody else's.
    async fn put_load_balancer(&self, origin: &Origin, name: &str, wanted: Wanted) -> Result<LoadBalancer, CloudError>;

    /// Removes the load balancer of this name if it is marked so; there being none is a success.
    async fn delete_load_balancer(&self, origin: &Origin, name: &str, mark: &Mark) -> Result<(), CloudError>;

    /// All load balancers, by name.
    async fn load_balancers(&self) -> Result<Vec<LoadBalancer>, CloudError>;

    /// Changes or removes a load balancer behind its owner's back; answers what is left of it.
    async fn edit_load_balancer(&self, name: &str, edit: Edit) -> Result<Option<LoadBalancer>, CloudError>;
}
