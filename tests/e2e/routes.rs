//! Routes in a simulated cloud, for the Pod CIDRs of nodes on the real API server.
use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use ccm_test_support::core::CoreSpec;
use ccm_test_support::kubelet::has_route;
use ccm_test_support::wait::{PATIENCE, eventually};
use serde_json::json;

use crate::herd::Herd;

/// With routes, and times that a test can wait for.
fn routed(core: CoreSpec) -> CoreSpec {
    let core = core.flag("--cluster-cidr=10.240.0.0/13,fd00:240::/32").flag("--route-reconciliation-period=3s");
    core.flag("--route-deletion-window=6s").flag("--route-deletion-fraction=1")
}

/// As they are written in short.
fn cidrs(number: usize) -> [String; 2] {
    [format!("10.{}.{}.0/24", 240 + number / 256, number % 256), format!("fd00:240:0:{:x}::/64", number + 1)]
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
        let (nodes, routes) = (self.kubelets.all().await?, self.provider.cloud().routes().await?);
        let mut wanted = BTreeMap::new();
        for (name, node) in &nodes {
            ensure!(has_route(node), "the condition of {name} does not say that its routes are made");
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
    let routes = herd.provider.cloud().routes().await?;
    ensure!(others.iter().all(|other| routes.iter().any(|it| it.destination == *other && it.cluster_uid.is_none())));
    herd.end().await
}

/// What a provider may get wrong about the table or the machines.
const LIES: [&str; 6] = ["route-empty", "route-stale-unsaid", "route-list-broken", "route-error", "not-found-all", "throttle"];
/// Lists that the core has made under each of them.
const LISTS: u64 = 3;

#[tokio::test(flavor = "multi_thread")]
async fn no_lie_about_the_table_or_the_machines_takes_a_route_from_a_node() -> Result<()> {
    let herd = Herd::under(10, routed).await?;
    herd.get_pod_cidrs(&herd.names, 0).await?;
    herd.becomes_routed().await?;
    for lie in LIES {
        let before = herd.provider.calls().await?.of("ListRoutes");
        herd.provider.set_fault(lie).await?;
        eventually(&format!("lists under {lie}"), PATIENCE, async || {
            let routes = herd.provider.cloud().routes().await?.len();
            ensure!(routes == 2 * herd.names.len(), "{lie} left {routes} routes");
            let lists = herd.provider.calls().await?.of("ListRoutes") - before;
            ensure!(lists >= LISTS, "{lists} so far");
            Ok(())
        })
        .await?;
        herd.provider.clear_faults().await?;
        herd.is_routed().await?;
    }
    ensure!(herd.provider.calls().await?.of("DeleteRoutes") == 0, "a route was deleted");
    let warned = herd.world.warnings("route_controller").await?;
    ensure!(warned.is_empty(), "what was made twice is no error: {warned:?}");
    herd.kubelets.count_is(herd.names.len()).await?;
    herd.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_machines_blackhole_stays_and_a_new_address_moves_the_routes() -> Result<()> {
    let herd = Herd::between(5, |provider| provider.flag("--routes-to-addresses=true"), routed).await?;
    let (cloud, nodes) = (herd.provider.cloud(), &herd.names);
    // Its machines have IPv4 addresses alone, which no IPv6 route leads to.
    for (number, name) in nodes.iter().enumerate() {
        let [cidr, _] = cidrs(number);
        let spec = json!({ "spec": { "podCIDR": cidr, "podCIDRs": [cidr] } });
        herd.kubelets.merge(std::slice::from_ref(name), &spec).await?;
    }
    herd.becomes_routed().await?;
    let before = herd.provider.calls().await?;
    herd.provider.machines("stop", &nodes[..1]).await?;
    eventually("lists with the blackhole", PATIENCE, async || {
        let blackholes = cloud.routes().await?.into_iter().filter(|route| route.blackhole).count();
        let lists = herd.provider.calls().await?.since(&before).of("ListRoutes");
        ensure!(blackholes == 1 && lists >= LISTS, "{blackholes} blackholes, {lists} lists");
        Ok(())
    })
    .await?;
    let calls = herd.provider.calls().await?.since(&before);
    ensure!(calls.of("CreateRoutes") + calls.of("DeleteRoutes") == 0, "the blackhole was not left alone: {calls:?}");
    let routes_of_the_second = async || {
        let routes = cloud.routes().await?.into_iter().filter(|route| route.node.as_deref() == Some(nodes[1].as_str()));
        anyhow::Ok(routes.collect::<Vec<_>>())
    };
    let id = routes_of_the_second().await?.into_iter().find_map(|route| route.provider_id).context("its machine is not known")?;
    let id = id.rsplit('/').next().unwrap_or_default();
    // The very same machine with another address.
    cloud.run(&["forget", &nodes[1]]).await?;
    cloud.run(&["add", &nodes[1], "--id", id, "--address", "10.99.0.1"]).await?;
    eventually("the routes to lead to the new address", PATIENCE, async || {
        let routes = routes_of_the_second().await?;
        let all = cloud.routes().await?.len();
        ensure!(all == nodes.len(), "{all} routes");
        ensure!(routes.iter().all(|route| route.address.as_deref() == Some("10.99.0.1")) && routes.len() == 1, "{routes:?}");
        Ok(())
    })
    .await?;
    ensure!(herd.provider.calls().await?.of("DeleteRoutes") == 0, "a route was deleted");
    herd.end().await
}
