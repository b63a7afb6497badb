//! Routes are handed through.
use async_trait::async_trait;

use super::Watched;
use crate::cloud::CloudError;
use crate::cloud::load_balancers::Origin;
use crate::cloud::routes::RouteApi;
use crate::cloud::routes::model::{Edit, Listed, Listing, Outcome, Removal, Wanted};

#[async_trait]
impl RouteApi for Watched {
    async fn list_routes(&self) -> Result<Listing, CloudError> {
        self.cloud.list_routes().await
    }

    async fn put_routes(&self, origin: &Origin, cluster_uid: &str, wanted: Vec<Wanted>) -> Result<Vec<Outcome>, CloudError> {
        self.cloud.put_routes(origin, cluster_uid, wanted).await
    }

    async fn remove_routes(&self, origin: &Origin, cluster_uid: &str, gone: Vec<Removal>) -> Result<Vec<Outcome>, CloudError> {
        self.cloud.remove_routes(origin, cluster_uid, gone).await
    }

    async fn route_records(&self) -> Result<Vec<Listed>, CloudError> {
        self.cloud.route_records().await
    }

    async fn edit_route(&self, edit: Edit) -> Result<Option<Listed>, CloudError> {
        self.cloud.edit_route(edit).await
    }
}
