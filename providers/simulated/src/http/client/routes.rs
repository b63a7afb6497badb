//! The client's calls about routes.
use async_trait::async_trait;
use reqwest::Method;

use super::{ADMIN_TIMEOUT, Client};
use crate::cloud::CloudError;
use crate::cloud::load_balancers::Origin;
use crate::cloud::routes::RouteApi;
use crate::cloud::routes::model::{Edit, Listed, Listing, Outcome, Removal, Wanted};
use crate::http::PROVIDER_PROCESS;

/// The path of what providers see.
const SEEN: &str = "routes";
/// The path of what people see.
const RECORDS: &str = "route-records";

#[async_trait]
impl RouteApi for Client {
    async fn list_routes(&self) -> Result<Listing, CloudError> {
        self.latency.pass().await;
        self.send(self.request(Method::GET, &[SEEN])).await
    }

    async fn put_routes(&self, origin: &Origin, cluster_uid: &str, wanted: Vec<Wanted>) -> Result<Vec<Outcome>, CloudError> {
        self.latency.pass().await;
        let request = self.request(Method::POST, &[SEEN, cluster_uid]).header(PROVIDER_PROCESS, origin.as_str());
        self.send(request.json(&wanted)).await
    }

    async fn remove_routes(&self, origin: &Origin, cluster_uid: &str, gone: Vec<Removal>) -> Result<Vec<Outcome>, CloudError> {
        self.latency.pass().await;
        let request = self.request(Method::POST, &[SEEN, cluster_uid, "removals"]).header(PROVIDER_PROCESS, origin.as_str());
        self.send(request.json(&gone)).await
    }

    async fn route_records(&self) -> Result<Vec<Listed>, CloudError> {
        self.send(self.request(Method::GET, &[RECORDS]).timeout(ADMIN_TIMEOUT)).await
    }

    async fn edit_route(&self, edit: Edit) -> Result<Option<Listed>, CloudError> {
        self.send(self.request(Method::POST, &[RECORDS]).json(&edit).timeout(ADMIN_TIMEOUT)).await
    }
}
