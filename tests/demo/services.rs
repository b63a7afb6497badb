//! The chapters about Services: one gets a load balancer, its targets follow the nodes, it goes and leaves nothing behind.
use anyhow::{Context, Result, ensure};
use ccm_test_support::services::{Services, Wish, addresses, is_served};
use ccm_test_support::wait::{PATIENCE, eventually};

use kube::Client;

use crate::news::PREFIX;
use crate::routes;
use crate::screen::{Screen, Tone};
use crate::stage::Stage;

/// The demo's Service.
pub const SERVICE: &str = "ccm-demo-web";

/// A Service asks for a load balancer and gets an address.
pub async fn serve(stage: &Stage, screen: &Screen) -> Result<String> {
    let services = Services::new(stage.client.clone());
    screen.act(&format!("kubectl create service loadbalancer {SERVICE} --tcp=80"));
    let began = std::time::Instant::now();
    services.create([Wish::new(SERVICE)]).await?;
    let service = eventually("an address", PATIENCE, async || {
        let service = services.get(SERVICE).await?;
        ensure!(is_served(&service), "{SERVICE} has none");
        Ok(service)
    })
    .await?;
    let (address, ms) = (addresses(&service).join(" "), began.elapsed().as_millis());
    screen.news(SERVICE, Tone::Good, &format!("has the address {address} after {ms} ms"));
    let targets = targets_are(stage, &stage.news.present()).await?;
    screen.news(SERVICE, Tone::Neutral, &format!("sends traffic to {targets} nodes"));
    Ok(format!("{address} after {ms} ms, with {targets} targets"))
}

/// A node joins and leaves, and the targets follow.
pub async fn follow(stage: &Stage, screen: &Screen) -> Result<String> {
    let late = [format!("{PREFIX}9")];
    stage.provider.machines("add", &late).await?;
    stage.kubelets.register([routes::registration(9)]).await?;
    let mut with = stage.news.present();
    with.extend(late.clone());
    with.sort();
    with.dedup();
    let more = targets_are(stage, &with).await?;
    screen.news(SERVICE, Tone::Good, &format!("sends traffic to {more} nodes: {} joined", late[0]));
    screen.act(&format!("provider-simulated ctl terminate {}", late[0]));
    eventually("the node to be initialised", PATIENCE, async || stage.kubelets.initialised(&late).await).await?;
    stage.provider.machines("terminate", &late).await?;
    stage.kubelets.report(&late, false).await?;
    with.retain(|name| *name != late[0]);
    let fewer = targets_are(stage, &with).await?;
    screen.news(SERVICE, Tone::Good, &format!("sends traffic to {fewer} nodes: {} left", late[0]));
    Ok(format!("{more} targets with it, {fewer} without"))
}

/// The Service is deleted, and the cloud has nothing left of it.
pub async fn remove(stage: &Stage, screen: &Screen) -> Result<String> {
    let (services, name) = (Services::new(stage.client.clone()), [SERVICE.to_owned()]);
    screen.act(&format!("kubectl delete service {SERVICE}"));
    services.delete(&name).await?;
    eventually("the Service to go", PATIENCE, async || services.gone(&name).await).await?;
    let left = stage.provider.cloud().load_balancers().await?;
    ensure!(left.is_empty(), "the cloud still has {} load balancers", left.len());
    screen.news(SERVICE, Tone::Good, "is gone, and the cloud has no load balancer");
    Ok("the Service is gone, the cloud is empty".to_owned())
}

/// Removes the demo's Service if it is still there.
pub async fn clear(client: &Client) -> Result<()> {
    let (services, name) = (Services::new(client.clone()), [SERVICE.to_owned()]);
    if services.all().await?.contains_key(SERVICE) {
        services.delete(&name).await?;
        eventually("the Service to go", PATIENCE, async || services.gone(&name).await).await?;
    }
    Ok(())
}

async fn targets_are(stage: &Stage, nodes: &[String]) -> Result<usize> {
    eventually("the targets to follow the nodes", PATIENCE, async || {
        let balancers = stage.provider.cloud().load_balancers().await?;
        let mut targets = balancers.into_iter().next().context("the cloud has no load balancer")?.targets;
        targets.sort();
        ensure!(targets == nodes, "the targets are {targets:?} and the nodes {nodes:?}");
        Ok(targets.len())
    })
    .await
}
