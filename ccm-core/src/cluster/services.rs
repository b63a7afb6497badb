//! The Services of the cluster that have to do with load balancers. Keys are `NAMESPACE/NAME`.
use kube::{Client, Error};

use super::view::{View, Viewed};
use super::{convert, pages, wire};
use crate::model::service::Service;

/// A view of the Services that have a load balancer, want one, or once did since this view began. Clones share it.
pub type Services = View<Service>;

impl Viewed for Service {
    type Object = wire::service::Service;
    const PATH: &'static str = "/api/v1/services";
    const PLURAL: &'static str = "Services";

    fn from_object(object: wire::service::Service) -> Self {
        convert::service(object)
    }

    fn key(&self) -> String {
        Self::key(self)
    }

    fn version(&self) -> &str {
        &self.resource_version
    }

    /// The condition counts, too: it is taken away last, and what is left of it by a process that died must be found.
    fn is_of_use(&self) -> bool {
        self.is_load_balancer || self.has_finalizer() || self.condition.is_some()
    }
}

/// All Services of the cluster, past every cache.
pub async fn all(client: &Client) -> Result<Vec<Service>, Error> {
    pages::all(client, Service::PATH, convert::service).await
}
