//! A cloud somewhere else: its API over TCP or a Unix socket. It adds no retries: whoever calls has a deadline and a policy.
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::{Method, RequestBuilder, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cloud::faults::{Fault, FaultName, FaultSpec};
use crate::cloud::model::{Answer, Change, CloudInfo, Failure, Instance, Query, Volume};
use crate::cloud::pace::Latency;
use crate::cloud::{CloudApi, CloudError};

mod load_balancers;
mod routes;

/// A cloud somewhere else.
pub struct Client {
    http: reqwest::Client,
    base: Url,
    /// Where it is, for messages.
    place: String,
    /// How long every call of a provider takes on its way.
    latency: Latency,
}

/// Why there can be no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is none.
    #[error("--cloud: {0:?} must have the form http://HOST:PORT")]
    Address(String),
    /// The HTTP library refused to start.
    #[error("no HTTP client: {0}")]
    Http(#[from] reqwest::Error),
}

impl Client {
    /// A client of the cloud at `http://HOST:PORT`.
    pub fn tcp(address: &str) -> Result<Self, ClientError> {
        let bad = || ClientError::Address(address.to_owned());
        let base: Url = address.parse().map_err(|_| bad())?;
        if base.scheme() != "http" || !base.has_host() {
            return Err(bad());
        }
        // Straight there: a proxy of the environment is not meant for it.
        let http = reqwest::Client::builder().no_proxy().build()?;
        Ok(Self { http, base, place: address.to_owned(), latency: Latency::default() })
    }

    /// A client of the cloud whose API is on this socket.
    pub fn unix(path: &Path) -> Result<Self, ClientError> {
        let http = reqwest::Client::builder().no_proxy().unix_socket(path).build()?;
        let base = "http://localhost/".parse().map_err(|_| ClientError::Address("localhost".into()))?;
        Ok(Self { http, base, place: format!("unix://{}", path.display()), latency: Latency::default() })
    }

    /// The same client, whose provider calls take so much longer.
    #[must_use]
    pub fn with_latency(self, latency: Latency) -> Self {
        Self { latency, ..self }
    }

    /// The counters of who answers there.
    pub async fn calls(&self) -> Result<BTreeMap<String, u64>, CloudError> {
        self.send(self.request(Method::GET, &["calls"])).await
    }

    /// The counters, which start again at zero.
    pub async fn take_calls(&self) -> Result<BTreeMap<String, u64>, CloudError> {
        self.send(self.request(Method::DELETE, &["calls"])).await
    }

    fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        self.http.request(method, self.url(path))
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("v1").extend(path);
        }
        url
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, body: &(impl Serialize + ?Sized + Sync)) -> Result<T, CloudError> {
        self.send(self.request(Method::POST, &[path]).json(body)).await
    }

    async fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, CloudError> {
        let response = request.send().await.map_err(|error| self.unreachable(error))?;
        if response.status().is_success() {
            return response.json().await.map_err(|error| self.unreachable(error));
        }
        let failure: Failure = response.json().await.map_err(|error| self.unreachable(error))?;
        Err(failure.into())
    }

    fn unreachable(&self, source: reqwest::Error) -> CloudError {
        CloudError::Unreachable { url: self.place.clone(), source: source.into() }
    }
}

/// The longest that a call of a person or a script may take.
pub const ADMIN_TIMEOUT: Duration = Duration::from_secs(30);

/// Nothing of interest in the body.
#[derive(serde::Deserialize)]
struct Empty {}

#[async_trait]
impl CloudApi for Client {
    async fn info(&self) -> Result<CloudInfo, CloudError> {
        self.send(self.request(Method::GET, &["cloud"]).timeout(ADMIN_TIMEOUT)).await
    }

    async fn look_up(&self, queries: &[Query]) -> Result<Answer, CloudError> {
        self.latency.pass().await;
        self.post("lookup", queries).await
    }

    async fn volume(&self, id: &str) -> Result<Option<Volume>, CloudError> {
        self.latency.pass().await;
        self.send(self.request(Method::GET, &["volumes", id])).await
    }

    async fn instances(&self, names: &[String]) -> Result<Vec<Instance>, CloudError> {
        let mut url = self.url(&["instances"]);
        if !names.is_empty() {
            url.query_pairs_mut().append_pair("names", &names.join(","));
        }
        self.send(self.http.get(url).timeout(ADMIN_TIMEOUT)).await
    }

    async fn change(&self, change: Change) -> Result<Vec<Instance>, CloudError> {
        self.send(self.request(Method::POST, &["changes"]).json(&change).timeout(ADMIN_TIMEOUT)).await
    }

    async fn faults(&self) -> Result<Vec<Fault>, CloudError> {
        self.send(self.request(Method::GET, &["faults"]).timeout(ADMIN_TIMEOUT)).await
    }

    async fn set_fault(&self, spec: FaultSpec) -> Result<(), CloudError> {
        self.post::<Empty>("faults", &spec).await.map(drop)
    }

    async fn clear_faults(&self, name: Option<FaultName>) -> Result<(), CloudError> {
        let path: Vec<_> = ["faults"].into_iter().chain(name.map(FaultName::as_str)).collect();
        self.send::<Empty>(self.request(Method::DELETE, &path).timeout(ADMIN_TIMEOUT)).await.map(drop)
    }
}
