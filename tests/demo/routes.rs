//! The chapters about routes: each node's Pod CIDR gets one, and it goes with the node.
use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use ccm_test_support::kubelet::Registration;
use ccm_test_support::wait::{PATIENCE, eventually};

use crate::news::PREFIX;
use crate::screen::{Screen, Tone};
use crate::stage::Stage;

/// The Pods' CIDR, for ccm-core. It is of the shared range that providers use among themselves, which clusters hardly do.
pub const CLUSTER_CIDR: &str = "100.127.0.0/16";

/// A node of the demo as it registers, with a Pod CIDR of its own.
pub fn registration(number: usize) -> Registration {
    Registration::new(format!("{PREFIX}{number}")).pod_cidrs(&[&pod_cidr(number)])
}

/// Every node that is there has its route, and says so.
pub async fn appear(stage: &Stage, screen: &Screen) -> Result<String> {
    let present = stage.news.present();
    let routes = eventually("a route to each node", PATIENCE, async || {
        let routes = routes(stage).await?;
        let nodes: Vec<_> = routes.values().cloned().collect();
        ensure!(nodes == present, "there are routes to {nodes:?}, and the nodes {present:?}");
        Ok(routes)
    })
    .await?;
    for (destination, node) in &routes {
        screen.news(node, Tone::Good, &format!("has the route {destination}"));
    }
    eventually("NetworkUnavailable False", PATIENCE, async || {
        let nodes = stage.kubelets.all().await?;
        let waiting = present.iter().find(|name| nodes.get(*name).is_none_or(|node| !ccm_test_support::kubelet::has_route(node)));
        ensure!(waiting.is_none(), "{waiting:?} still waits");
        Ok(())
    })
    .await?;
    let calls = stage.provider.calls().await?.of("CreateRoutes");
    Ok(format!("{} routes in {calls} calls; NetworkUnavailable is False", routes.len()))
}

/// The route of a node that was deleted goes.
pub async fn disappears(stage: &Stage, screen: &Screen, number: usize) -> Result<String> {
    let gone = pod_cidr(number);
    eventually("the route to go", PATIENCE, async || {
        ensure!(!routes(stage).await?.contains_key(&gone), "{gone} is still there");
        Ok(())
    })
    .await?;
    screen.news(&format!("{PREFIX}{number}"), Tone::Good, &format!("route {gone} is gone, after a look past every cache"));
    let left = routes(stage).await?.len();
    ensure!(left == stage.news.present().len(), "{left} routes are left");
    Ok(format!("{gone} is gone, {left} routes stay"))
}

/// The node of each destination.
async fn routes(stage: &Stage) -> Result<BTreeMap<String, String>> {
    let routes = stage.provider.cloud().routes().await?;
    routes.into_iter().map(|route| Ok((route.destination, route.node.context("a route leads to no node")?))).collect()
}

fn pod_cidr(number: usize) -> String {
    format!("100.127.{number}.0/24")
}
