//! Load balancers are handed through.
use async_trait::async_trait;

use super::Watched;
use crate::cloud::CloudError;
use crate::cloud::load_balancers::model::{Edit, Found, LoadBalancer, Mark, Search, Wanted};
use crate::cloud::load_balancers::{LoadBalancerApi, Origin};

#[async_trait]
impl LoadBalancerApi for Watched {
    async fn find_load_balancers(&self, search: &Search) -> Result<Found, CloudError> {
        self.cloud.find_load_balancers(search).await
    }

    async fn put_load_balancer(&self, origin: &Origin, name: &str, wanted: Wanted) -> Result<LoadBalancer, CloudError> {
        self.cloud.put_load_balancer(origin, name, wanted).await
    }

    async fn delete_load_balancer(&self, origin: &Origin, name: &str, mark: &Mark) -> Result<(), CloudError> {
        self.cloud.delete_load_balancer(origin, name, mark).await
    }

    async fn load_balancers(&self) -> Result<Vec<LoadBalancer>, CloudError> {
        self.cloud.load_balancers().await
    }

    async fn edit_load_balancer(&self, name: &str, edit: Edit) -> Result<Option<LoadBalancer>, CloudError> {
        self.cloud.edit_load_balancer(name, edit).await
    }
}
