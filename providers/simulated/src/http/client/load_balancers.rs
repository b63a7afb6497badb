//! The client's calls about load balancers. Mutations say which process they come from, so that the cloud can tell two
//! providers from one that has lost count of its own work.
use async_trait::async_trait;
use reqwest::{Method, Url};

use super::{ADMIN_TIMEOUT, Client, Empty};
use crate::cloud::CloudError;
use crate::cloud::load_balancers::model::{Edit, Found, LoadBalancer, Mark, Search, Wanted};
use crate::cloud::load_balancers::{LoadBalancerApi, Origin};
use crate::http::PROVIDER_PROCESS;

/// The path of what providers see.
const SEEN: &str = "load-balancers";
/// The path of what people see.
const RECORDS: &str = "load-balancer-records";

#[async_trait]
impl LoadBalancerApi for Client {
    async fn find_load_balancers(&self, search: &Search) -> Result<Found, CloudError> {
        self.latency.pass().await;
        let text = |key, value: &Option<String>| value.clone().map(|value| (key, value));
        let narrowed =
            [text("serviceUid", &search.service_uid), text("orName", &search.or_name), text("onBehalfOf", &search.on_behalf_of)];
        let always = [("clusterUid", search.cluster_uid.clone()), ("toChange", search.to_change.to_string())];
        let url = self.with_query(&[SEEN], always.into_iter().chain(narrowed.into_iter().flatten()));
        self.send(self.http.get(url)).await
    }

    async fn put_load_balancer(&self, origin: &Origin, name: &str, wanted: Wanted) -> Result<LoadBalancer, CloudError> {
        self.latency.pass().await;
        let request = self.request(Method::PUT, &[SEEN, name]).header(PROVIDER_PROCESS, origin.as_str());
        self.send(request.json(&wanted)).await
    }

    async fn delete_load_balancer(&self, origin: &Origin, name: &str, mark: &Mark) -> Result<(), CloudError> {
        self.latency.pass().await;
        let Mark { cluster_uid, service_uid, namespace, service } = mark.clone();
        let query = [("clusterUid", cluster_uid), ("serviceUid", service_uid), ("namespace", namespace), ("service", service)];
        let url = self.with_query(&[SEEN, name], query);
        let request = self.http.delete(url).header(PROVIDER_PROCESS, origin.as_str());
        self.send::<Empty>(request).await.map(drop)
    }

    async fn load_balancers(&self) -> Result<Vec<LoadBalancer>, CloudError> {
        self.send(self.request(Method::GET, &[RECORDS]).timeout(ADMIN_TIMEOUT)).await
    }

    async fn edit_load_balancer(&self, name: &str, edit: Edit) -> Result<Option<LoadBalancer>, CloudError> {
        self.send(self.request(Method::POST, &[RECORDS, name]).json(&edit).timeout(ADMIN_TIMEOUT)).await
    }
}

impl Client {
    fn with_query(&self, path: &[&str], query: impl IntoIterator<Item = (&'static str, String)>) -> Url {
        let mut url = self.url(path);
        url.query_pairs_mut().extend_pairs(query);
        url
    }
}
