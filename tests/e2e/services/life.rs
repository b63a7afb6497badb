//! How a load balancer comes, changes and goes with its Service.
use anyhow::{Context, Result, ensure};
use ccm_test_support::services::{CLASS, NAME, Wish, addresses, condition, ingress, is_held};
use ccm_test_support::wait::{PATIENCE, eventually};
use kube::ResourceExt;
use serde_json::json;

use super::{Market, name};

#[tokio::test(flavor = "multi_thread")]
async fn a_service_gets_its_load_balancer_and_all_that_tells_of_it_and_takes_it_along() -> Result<()> {
    let market = Market::of(2).await?;
    market.serve("web").await?;
    let service = market.services.get("web").await?;
    let one = market.herd.provider.cloud().load_balancer("web").await?;
    assert_eq!(addresses(&service), one.addresses);
    assert_eq!(ingress(&service)[0].ip_mode.as_deref(), Some("VIP"));
    assert!(is_held(&service));
    assert_eq!(service.annotations().get(CLASS).map(String::as_str), Some(""));
    assert_eq!(service.annotations().get(NAME), Some(&one.name));
    assert_eq!(condition(&service).context("a condition")?.status, "True");
    assert_eq!((one.targets.as_slice(), one.state.as_str()), (["node-0".to_owned(), "node-1".to_owned()].as_slice(), "ready"));
    assert_eq!(Some(one.service_uid), service.uid());
    for reason in ["EnsuringLoadBalancer", "EnsuredLoadBalancer"] {
        assert_eq!(told(&market, reason).await?, "service-controller");
    }

    market.services.delete(&name("web")).await?;
    market.cleared(&name("web")).await?;
    for reason in ["DeletingLoadBalancer", "DeletedLoadBalancer"] {
        told(&market, reason).await?;
    }
    market.end().await
}

/// Waits for an event about the Service; answers who told.
async fn told(market: &Market, reason: &str) -> Result<String> {
    market.herd.world.event(reason).await?;
    let event = market.herd.world.events(reason).await?.pop().context("there was one")?;
    assert_eq!(event.regarding.and_then(|about| about.name).as_deref(), Some("web"));
    event.reporting_controller.context("nobody told")
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_follow_the_service_and_the_address_stays() -> Result<()> {
    let market = Market::of(1).await?;
    market.serve("web").await?;
    market.rest().await?;
    let before = market.herd.provider.cloud().load_balancer("web").await?;
    let ports = json!({ "spec": { "ports": [{ "name": "a", "port": 443 }, { "name": "b", "port": 53, "protocol": "UDP" }] } });
    market.services.merge(&name("web"), &ports).await?;
    let wanted = [(443, "TCP"), (53, "UDP")];
    market
        .becomes("web", "the new ports, at the old address", |one| {
            let mut listeners: Vec<_> = one.listeners.iter().map(|it| (it.port, it.protocol.as_str())).collect();
            listeners.sort_unstable_by_key(|(_, protocol)| *protocol);
            listeners == wanted && one.addresses == before.addresses && one.mutations == before.mutations + 1
        })
        .await?;
    market.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_of_another_type_keeps_nothing_of_its_load_balancer_and_may_have_one_again() -> Result<()> {
    let market = Market::of(1).await?;
    market.serve("web").await?;
    market.services.retype(&name("web"), "ClusterIP").await?;
    eventually("nothing to be left", PATIENCE, async || {
        market.services.are_free(&name("web")).await?;
        market.herd.provider.cloud().sells(0).await
    })
    .await?;
    market.services.retype(&name("web"), "LoadBalancer").await?;
    market.served(&name("web")).await?;
    market.herd.provider.cloud().sells(1).await?;
    market.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finalizer_of_somebody_else_outlives_ours() -> Result<()> {
    const FOREIGN: &str = "example.com/keeps-it";
    let market = Market::of(1).await?;
    market.services.create([Wish::new("web").finalizer(FOREIGN)]).await?;
    market.served(&name("web")).await?;
    market.services.delete(&name("web")).await?;
    eventually("our finalizer to go", PATIENCE, async || {
        ensure!(!is_held(&market.services.get("web").await?), "it is still there");
        Ok(())
    })
    .await?;
    market.herd.provider.cloud().sells(0).await?;
    assert_eq!(market.services.get("web").await?.finalizers(), [FOREIGN]);
    market.services.merge(&name("web"), &json!({ "metadata": { "finalizers": null } })).await?;
    market.cleared(&name("web")).await?;
    market.end().await
}
