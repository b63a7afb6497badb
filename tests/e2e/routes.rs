//! Routes in a simulated cloud, for the Pod CIDRs of nodes on the real API server.
use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use ccm_test_support::core::CoreSpec;
use ccm_test_support::ctl::Ctl;
use ccm_test_support::kubelet::names;
use ccm_test_support::wait::{PATIENCE, eventually};
use k8s_openapi::api::core::v1::Node;
use serde::Deserialize;
use serde_json::json;

use crate::herd::Herd;

/// A route of the cloud's table.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Route {
    destination: String,
    provider_id: Option<String>,
    cluster_uid: Option<String>,
}

/// With routes, and times that a test can wait for.
fn routed(core: CoreSpec) -> CoreSpec {
    let core = core.flag("--cluster-cidr=10.240.0.0/13,fd00:240::/32").flag("--route-reconciliation-period=3s");
    core.flag("--route-deletion-window=6s").flag("--route-deletion-fraction=1")
}

/// As they are written in short.
fn cidrs(number: usize) -> [String; 2] {
    [format!("10.{}.{}.0/24", 240 + number / 256, number % 256), format!("fd00:240:0:{:x}::/64", number + 1)]
}

async fn table(cloud: &Ctl) -> Result<Vec<Route>> {
    let text = cloud.run(&["routes", "--output", "json"]).await?;
    serde_json::from_str(&text).with_context(|| format!("ctl routes printed {text}"))
}

impl Herd {
    /// As an IPAM controller does, `number` being the first one's.
    async fn get_pod_cidrs(&self, nodes: &[String], number: usize) -> Result<()> {
        for (at, name) in nodes.iter().enumerate() {
            let cidrs = cidrs(number + at);
            let spec = json!({ "spec": { "podCIDR": cidrs[0], "podCIDRs": cidrs } });
            self.kubelets.merge(std::slice::from_ref(name), &spec).await?;
        }
        Ok(())
    }

    /// Whether the routes of this cluster are those of the nodes, and every node's condition says so.
    async fn is_routed(&self) -> Result<()> {
        let (nodes, routes) = (self.kubelets.all().await?, table(self.provider.cloud()).await?);
        let mut wanted = BTreeMap::new();
        for (name, node) in &nodes {
            ensure!(is_available(node), "the condition of {name} does not say that its routes are made");
            let spec = node.spec.clone().unwrap_or_default();
            wanted.extend(spec.pod_cidrs.unwrap_or_default().into_iter().map(|cidr| (cidr, spec.provider_id.clone())));
        }
        let ours = routes.into_iter().filter(|route| route.cluster_uid.is_some());
        let found: BTreeMap<_, _> = ours.map(|route| (route.destination, route.provider_id)).collect();
        ensure!(found == wanted, "the table has {found:?} instead of {wanted:?}");
        Ok(())
    }

    async fn becomes_routed(&self) -> Result<()> {
        eventually("the routes to be those of the nodes", PATIENCE, async || self.is_routed().await).await
    }

    /// Their machines and their nodes go.
    async fn leave(&self, nodes: &[String]) -> Result<()> {
        self.provider.machines("forget", nodes).await?;
        self.kubelets.remove(nodes).await
    }
}

fn is_available(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut network = conditions.filter(|condition| condition.type_ == "NetworkUnavailable");
    network.any(|condition| condition.status == "False" && condition.reason.as_deref() == Some("RouteCreated"))
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_come_and_go_with_nodes_and_those_of_others_stay() -> Result<()> {
    let herd = Herd::under(10, routed).await?;
    let others = ["10.240.3.0/25", "10.241.0.0/24", "192.168.0.0/24"];
    for other in others {
        herd.provider.cloud().run(&["route", "add", other]).await?;
    }
    herd.get_pod_cidrs(&herd.names, 0).await?;
    herd.becomes_routed().await?;
    herd.leave(&herd.names[..3]).await?;
    herd.becomes_routed().await?;
    // Another machine under the name of one that is gone, with its Pod CIDRs; and under another's with others.
    herd.joined(&herd.names[0]).await?;
    herd.joined(&herd.names[1]).await?;
    herd.get_pod_cidrs(&herd.names[..1], 0).await?;
    herd.get_pod_cidrs(&herd.names[1..2], 100).await?;
    herd.becomes_routed().await?;
    let routes = table(herd.provider.cloud()).await?;
    ensure!(others.iter().all(|other| routes.iter().any(|it| it.destination == *other && it.cluster_uid.is_none())));
    herd.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn five_kills_while_nodes_come_and_go_end_with_exactly_the_right_routes() -> Result<()> {
    let mut herd = Herd::under(10, routed).await?;
    herd.provider.cloud().run(&["route", "add", "10.247.0.0/24"]).await?;
    herd.get_pod_cidrs(&herd.names, 0).await?;
    let mut leavers = herd.names[..5].to_vec();
    for round in 0..5 {
        let joiners = names(&format!("round-{round}"), 20);
        herd.provider.machines("add", &joiners).await?;
        herd.kubelets.join(&joiners).await?;
        herd.get_pod_cidrs(&joiners[..10], 50 * (round + 1)).await?;
        if round % 2 == 0 {
            herd.core.kill().await?;
        } else {
            herd.provider.kill().await?;
        }
        herd.get_pod_cidrs(&joiners[10..], 50 * (round + 1) + 10).await?;
        if round % 2 == 0 {
            herd.core = herd.core_spec.start().await?;
        } else {
            herd.provider.restart().await?;
        }
        herd.leave(&leavers).await?;
        leavers = joiners.into_iter().step_by(2).collect();
    }
    herd.becomes_routed().await?;
    ensure!(table(herd.provider.cloud()).await?.iter().any(|route| route.destination == "10.247.0.0/24"));
    herd.end().await
}
