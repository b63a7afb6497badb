//! `ccm-core load-balancers`: the load balancers of this cluster in the cloud, with the Services that claim them.
use std::collections::BTreeMap;

use kube::Client;
use serde::Serialize;

use super::{ListingError, from_provider, print};
use crate::cluster::services;
use crate::config::{ListingConfig, Output};
use crate::model::load_balancer::{IngressAddress, LoadBalancerStatus, OwnedLoadBalancer};
use crate::model::service::Service;
use crate::provider::LoadBalancers;
use crate::provider::session::Handle;

/// One line of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    /// Its name in the cloud.
    name: String,
    /// The Service of its ownership tag, as `NAMESPACE/NAME`, or the part of it that is known.
    service: String,
    /// That Service's UID.
    service_uid: String,
    /// Its addresses.
    addresses: Vec<String>,
    /// Whether that Service exists and has to do with load balancers.
    claimed: bool,
}

/// Reads the load balancers and the Services, and returns the text to print.
pub(super) async fn list(config: &ListingConfig, client: &Client, cluster_uid: String) -> Result<String, ListingError> {
    let services = services::all(client).await;
    let services = services.map_err(|error| ListingError::Objects { resource: "services", error })?;
    let list = |handle: Handle| async move { handle.load_balancers().list().await };
    let (cloud, owned) = from_provider(config, cluster_uid, "load balancers", list).await?;
    let mut rows = rows(owned, &services);
    rows.retain(|row| !(config.unclaimed && row.claimed));
    text(&cloud, &rows, config.output)
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

fn text(cloud: &str, rows: &[Row], output: Output) -> Result<String, ListingError> {
    let header = ["NAME", "SERVICE", "SERVICE-UID", "ADDRESSES", "CLAIMED"];
    let cells = |row: &Row| {
        let claimed = if row.claimed { "yes" } else { "no" };
        [row.name.clone(), row.service.clone(), row.service_uid.clone(), row.addresses.join(","), claimed.to_owned()]
    };
    let unclaimed = rows.iter().filter(|row| !row.claimed).count();
    let counts = format!("{} load balancers in the cloud {cloud}; {unclaimed} that no Service claims", rows.len());
    print(rows, output, header, cells, &counts)
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
    fn a_load_balancer_is_claimed_by_the_service_of_its_tag_as_long_as_that_has_to_do_with_load_balancers() {
        let services = [service("u1", "LoadBalancer"), service("u2", "ClusterIP")];
        let rows = rows(vec![owned("a", "u1"), owned("b", "u2"), owned("c", "gone")], &services);
        let told: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.claimed)).collect();
        assert_eq!(told, [("b", false), ("c", false), ("a", true)]);
    }

    #[test]
    fn the_table_says_how_many_no_service_claims() {
        let rows = rows(vec![owned("a", "u1"), owned("c", "gone")], &[service("u1", "LoadBalancer")]);
        let table = text("here/1", &rows, Output::Table).unwrap();
        assert!(table.contains("198.18.0.1") && table.contains("shop/web"), "{table}");
        assert!(table.ends_with("2 load balancers in the cloud here/1; 1 that no Service claims"), "{table}");
    }
}
