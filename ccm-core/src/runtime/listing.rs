//! `ccm-core load-balancers` and `ccm-core routes`: what is in the cloud, with the objects of the cluster that claim it. Reads only.
use std::sync::Arc;
use std::time::Duration;

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use serde::Serialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::kubernetes::{self, ConnectError};
use crate::config::{Listed, ListingConfig, Output};
use crate::provider::grpc::Deadlines;
use crate::provider::metrics::ProviderMetrics;
use crate::provider::session::{self, Cluster, Handle, Session, SessionConfig};
use crate::provider::{Anyone, ProviderError, ProviderState};
use crate::telemetry::health::Health;

mod load_balancers;
mod routes;

/// How long a provider may take to answer for the first time.
const PATIENCE: Duration = Duration::from_secs(15);

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
pub enum ListingError {
    /// The API server cannot be reached or used.
    #[error(transparent)]
    Kubernetes(#[from] ConnectError),
    /// The objects that may claim something cannot be read.
    #[error("the {resource} cannot be read: {error}; grant this account `list` on {resource}")]
    Objects {
        /// Their resource: `nodes`, `services`.
        resource: &'static str,
        /// Why.
        #[source]
        error: kube::Error,
    },
    /// The provider cannot be reached or used.
    #[error("--provider-endpoint: {0}")]
    NoProvider(String),
    /// The provider did not answer the list.
    #[error("the provider did not list its {what}: {error}")]
    Provider {
        /// What was to be listed, in words.
        what: &'static str,
        /// Why.
        #[source]
        error: ProviderError,
    },
    /// The list cannot be printed.
    #[error("the list cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Reads what is in the cloud and what claims it, and returns the text to print.
pub async fn list(config: &ListingConfig) -> Result<String, ListingError> {
    let client = kubernetes::clients(&config.kubernetes).await?.requests;
    let uid = kubernetes::cluster_uid(&client, &Health::default(), &CancellationToken::new()).await?.unwrap_or_default();
    match config.listed {
        Listed::LoadBalancers => load_balancers::list(config, &client, uid).await,
        Listed::Routes => routes::list(config, &client, uid).await,
    }
}

/// The identity of the cloud, and what the provider lists there.
async fn from_provider<T, F>(
    config: &ListingConfig,
    cluster_uid: String,
    what: &'static str,
    list: impl FnOnce(Handle) -> F,
) -> Result<(String, T), ListingError>
where
    F: Future<Output = Result<T, ProviderError>>,
{
    let (_no_term, terms) = watch::channel(None);
    let (handle, work) = Session::start(session(config, cluster_uid), Arc::new(Anyone), terms);
    let asking = async {
        let mut state = handle.state();
        if tokio::time::timeout(PATIENCE, state.wait_for(|state| state.ready().is_some())).await.is_err() {
            return Err(ListingError::NoProvider(why_not_ready(&handle.state().borrow())));
        }
        let listed = async { Ok((handle.current()?.identity.to_string(), list(handle.clone()).await?)) };
        listed.await.map_err(|error| ListingError::Provider { what, error })
    };
    tokio::select! {
        () = work => Err(ListingError::NoProvider("the session ended".to_owned())),
        listed = asking => listed,
    }
}

fn session(config: &ListingConfig, cluster_uid: String) -> SessionConfig {
    SessionConfig {
        endpoint: config.endpoint.clone(),
        peer_uids: config.peer_uids.clone(),
        cluster: Cluster { name: config.kubernetes.cluster_name.clone(), uid: cluster_uid, ..Cluster::default() },
        core_version: env!("CARGO_PKG_VERSION").to_owned(),
        deadlines: Deadlines::default(),
        handshake_interval: session::HANDSHAKE_INTERVAL,
        metrics: ProviderMetrics::unregistered(),
    }
}

fn why_not_ready(state: &ProviderState) -> String {
    match state {
        ProviderState::Disconnected { message, .. }
        | ProviderState::Unusable { message }
        | ProviderState::Unconfirmed { message, .. } => message.clone(),
        _ => "it did not become ready".to_owned(),
    }
}

/// The rows as JSON, or as a table with a last line that counts.
fn print<R: Serialize, const N: usize>(
    rows: &[R],
    output: Output,
    header: [&str; N],
    cells: impl Fn(&R) -> [String; N],
    counts: &str,
) -> Result<String, ListingError> {
    if output == Output::Json {
        return Ok(serde_json::to_string_pretty(rows)?);
    }
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(header).add_rows(rows.iter().map(cells));
    Ok(format!("{table}\n{counts}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use ccm_proto::v1;
    use ccm_provider_sdk::fake::RawServer;

    use super::*;
    use crate::config::Invocation;
    use crate::provider::Routes as _;

    /// A provider in a temporary folder, and the command that lists from it.
    fn command(raw: &RawServer) -> (tempfile::TempDir, impl Drop, ListingConfig) {
        let dir = tempfile::tempdir().unwrap();
        let endpoint = format!("unix://{}", dir.path().join("p.sock").display());
        let serving = raw.start(&endpoint.parse().unwrap()).unwrap();
        let args = ["ccm-core".to_owned(), "routes".to_owned(), format!("--provider-endpoint={endpoint}")];
        let Ok(Invocation::List(config)) = Invocation::from_args(args.map(Into::into)) else { panic!("no listing") };
        (dir, serving, *config)
    }

    fn serving(capabilities: &[v1::Capability]) -> RawServer {
        let raw = RawServer::default();
        let capabilities = capabilities.iter().map(|it| (*it).into()).collect();
        let info = v1::ProviderInfo { capabilities, ..RawServer::sound_info() };
        raw.info.always(move |_| Ok(v1::GetProviderInfoResponse { info: Some(info.clone()) }));
        raw
    }

    #[tokio::test]
    async fn a_list_names_the_cloud_that_it_comes_from_and_needs_no_leadership() {
        let raw = serving(&[v1::Capability::Routes]);
        let route = v1::Route { destination_cidr: "10.0.1.0/24".to_owned(), ..v1::Route::default() };
        raw.routes.list.always(move |_| vec![Ok(v1::ListRoutesResponse { routes: vec![route.clone()], observed_at: None })]);
        let (_dir, _serving, config) = command(&raw);
        let listed = from_provider(&config, "uid".to_owned(), "routes", |handle| async move { handle.routes().list().await });
        let (cloud, table) = listed.await.unwrap();
        assert_eq!((cloud.as_str(), table.routes.len()), ("fake", 1));
        assert_eq!(raw.routes.list.calls()[0].cluster.as_ref().unwrap().uid, "uid");
        assert_eq!(raw.lead.count(), 0);
    }

    #[tokio::test]
    async fn a_provider_that_cannot_list_is_an_error_that_says_what_it_lacks() {
        let raw = serving(&[]);
        let (_dir, _serving, config) = command(&raw);
        let listed = from_provider(&config, String::new(), "routes", |handle| async move { handle.routes().list().await });
        let message = listed.await.unwrap_err().to_string();
        assert!(message.starts_with("the provider did not list its routes: ") && message.contains("ROUTES"), "{message}");
    }
}
