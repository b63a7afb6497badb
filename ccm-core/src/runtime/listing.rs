//! `ccm-core load-balancers`: the load balancers of this cluster in the cloud, with the Services that claim them. Reads only.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use serde::Serialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::kubernetes::{self, ConnectError};
use crate::cluster::services;
use crate::config::{ListingConfig, Output};
use crate::model::load_balancer::{IngressAddress, LoadBalancerStatus, OwnedLoadBalancer};
use crate::model::service::Service;
use crate::provider::grpc::Deadlines;
use crate::provider::metrics::ProviderMetrics;
use crate::provider::session::{self, Cluster, Session, SessionConfig};
use crate::provider::{Anyone, LoadBalancers, ProviderError, ProviderState};
use crate::telemetry::health::Health;

/// How long a provider may take to answer for the first time.
const PATIENCE: Duration = Duration::from_secs(15);

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
pub enum ListingError {
    /// The API server cannot be reached or used.
    #[error(transparent)]
    Kubernetes(#[from] ConnectError),
    /// The Services cannot be read.
    #[error("the Services cannot be read: {0}; grant this account `list` on services")]
    Services(#[source] kube::Error),
    /// The provider cannot be reached or used.
    #[error("--provider-endpoint: {0}")]
    NoProvider(String),
    /// The provider did not answer the list.
    #[error("the provider did not list its load balancers: {0}")]
    Provider(#[from] ProviderError),
    /// The list cannot be printed.
    #[error("the list cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// One line of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Its name in the cloud.
    pub name: String,
    /// The Service of its ownership tag, as `NAMESPACE/NAME`, or the part of it that is known.
    pub service: String,
    /// That Service's UID.
    pub service_uid: String,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// Whether that Service exists and has to do with load balancers.
    pub claimed: bool,
}

/// Reads the load balancers and the Services, and returns the text to print.
pub async fn list(config: &ListingConfig) -> Result<String, ListingError> {
    let client = kubernetes::clients(&config.kubernetes).await?.requests;
    let uid = kubernetes::cluster_uid(&client, &Health::default(), &CancellationToken::new()).await?.unwrap_or_default();
    let services = services::all(&client).await.map_err(ListingError::Services)?;
    let (cloud, owned) = owned(config, uid).await?;
    let mut rows = rows(owned, &services);
    rows.retain(|row| !(config.unclaimed && row.claimed));
    print(&cloud, &rows, config.output)
}

/// The identity of the cloud, and the load balancers of this cluster in it.
async fn owned(config: &ListingConfig, cluster_uid: String) -> Result<(String, Vec<OwnedLoadBalancer>), ListingError> {
    let (_no_term, terms) = watch::channel(None);
    let cluster = Cluster { name: config.kubernetes.cluster_name.clone(), uid: cluster_uid, ..Cluster::default() };
    let session = SessionConfig {
        endpoint: config.endpoint.clone(),
        peer_uids: config.peer_uids.clone(),
        cluster,
        core_version: env!("CARGO_PKG_VERSION").to_owned(),
        deadlines: Deadlines::default(),
        handshake_interval: session::HANDSHAKE_INTERVAL,
        metrics: ProviderMetrics::unregistered(),
    };
    let (handle, work) = Session::start(session, Arc::new(Anyone), terms);
    let asking = async {
        let mut state = handle.state();
        match tokio::time::timeout(PATIENCE, state.wait_for(|state| state.ready().is_some())).await {
            Ok(_) => Ok((handle.current()?.identity.to_string(), handle.load_balancers().list().await?)),
            Err(_) => Err(ListingError::NoProvider(standing(&handle.state().borrow()))),
        }
    };
    tokio::select! {
        () = work => Err(ListingError::NoProvider("the session ended".to_owned())),
        owned = asking => owned,
    }
}

fn standing(state: &ProviderState) -> String {
    match state {
        ProviderState::Disconnected { message, .. }
        | ProviderState::Unusable { message }
        | ProviderState::Unconfirmed { message, .. } => message.clone(),
        _ => "it did not become ready".to_owned(),
    }
}

/// Each load balancer with the Service of its ownership tag; those that no Service claims come first.
fn rows(owned: Vec<OwnedLoadBalancer>, services: &[Service]) -> Vec<Row> {
    let by_uid: BTreeMap<_, _> = services.iter().map(|service| (service.uid.as_str(), service)).collect();
    let mut rows: Vec<_> = owned.into_iter().map(|owned| row(owned, &by_uid)).collect();
    rows.sort_by(|a, b| (a.claimed, &a.service, &a.name).cmp(&(b.claimed, &b.service, &b.name)));
    rows
}

fn row(owned: OwnedLoadBalancer, services: &BTreeMap<&str, &Service>) -> Row {
    let service_uid = owned.service_uid.unwrap_or_default();
    let claimant = services.get(service_uid.as_str()).filter(|it| it.is_load_balancer || it.has_finalizer());
    let marked = || match (owned.service_namespace, owned.service_name) {
        (Some(namespace), Some(name)) => format!("{namespace}/{name}"),
        (_, name) => name.unwrap_or_default(),
    };
    Row {
        name: owned.name,
        service: claimant.map_or_else(marked, |service| service.key()),
        service_uid,
        addresses: addresses(&owned.status),
        claimed: claimant.is_some(),
    }
}

fn addresses(status: &LoadBalancerStatus) -> Vec<String> {
    let texts = |address: &IngressAddress| {
        let ip = address.ip().map(|(ip, _)| ip.to_string());
        ip.into_iter().chain(address.hostname().map(str::to_owned)).collect::<Vec<_>>()
    };
    status.ingress.iter().flat_map(|ingress| texts(&ingress.address)).collect()
}

fn print(cloud: &str, rows: &[Row], output: Output) -> Result<String, ListingError> {
    if output == Output::Json {
        return Ok(serde_json::to_string_pretty(rows)?);
    }
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(["NAME", "SERVICE", "SERVICE-UID", "ADDRESSES", "CLAIMED"]);
    for row in rows {
        let claimed = if row.claimed { "yes" } else { "no" };
        table.add_row([&row.name, &row.service, &row.service_uid, &row.addresses.join(","), claimed]);
    }
    let unclaimed = rows.iter().filter(|row| !row.claimed).count();
    Ok(format!("{table}\n{} load balancers in the cloud {cloud}; {unclaimed} that no Service claims", rows.len()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cluster::scripted::service_model;
    use crate::model::load_balancer::Ingress;

    fn owned(name: &str, uid: &str) -> OwnedLoadBalancer {
        let address = IngressAddress::Ip("198.18.0.1".parse().unwrap(), None);
        OwnedLoadBalancer {
            name: name.to_owned(),
            service_uid: Some(uid.to_owned()),
            service_namespace: Some("shop".to_owned()),
            service_name: Some("web".to_owned()),
            status: LoadBalancerStatus { ingress: vec![Ingress { address, ports: Vec::new() }] },
        }
    }

    fn service(uid: &str, kind: &str) -> Service {
        let object = serde_json::json!({
            "metadata": { "namespace": "shop", "name": "web", "uid": uid }, "spec": { "type": kind }
        });
        service_model(&object)
    }

    #[test]
    fn a_load_balancer_is_claimed_by_the_service_of_its_mark_as_long_as_that_has_to_do_with_load_balancers() {
        let services = [service("u1", "LoadBalancer"), service("u2", "ClusterIP")];
        let rows = rows(vec![owned("a", "u1"), owned("b", "u2"), owned("c", "gone")], &services);
        let told: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.claimed)).collect();
        assert_eq!(told, [("b", false), ("c", false), ("a", true)]);
    }

    #[test]
    fn the_table_says_how_many_nobody_claims() {
        let rows = rows(vec![owned("a", "u1"), owned("c", "gone")], &[service("u1", "LoadBalancer")]);
        let table = print("here/1", &rows, Output::Table).unwrap();
        assert!(table.contains("198.18.0.1") && table.contains("shop/web"), "{table}");
        assert!(table.ends_with("2 load balancers in the cloud here/1; 1 that no Service claims"), "{table}");
    }
}
