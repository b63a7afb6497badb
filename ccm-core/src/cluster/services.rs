//! The Services of the cluster that have to do with load balancers. Keys are `NAMESPACE/NAME`.
use k8s_openapi::api::core::v1 as core;

use super::convert;
use super::view::{View, Viewed};
use crate::model::service::Service;

/// A view of the Services that have a load balancer, want one, or once did since this view began. Clones share it.
pub type Services = View<Service>;

impl Viewed for Service {
    type Object = core::Service;
    const PLURAL: &'static str = "Services";

    fn from_object(object: core::Service) -> Self {
        convert::service(object)
    }

    fn key(&self) -> String {
        Self::key(self)
    }

    /// The condition counts, too: it is taken away last, and what is left of it by a process that died must be found.
    fn is_of_use(&self) -> bool {
        self.is_load_balancer || self.has_finalizer() || self.condition.is_some()
    }
}
