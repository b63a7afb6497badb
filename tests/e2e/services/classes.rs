//! `loadBalancerClass`: whose a Service is.
use std::time::Duration;

use anyhow::{Result, ensure};
use ccm_test_support::services::{CLASS, Wish, is_held};
use ccm_test_support::wait::{PATIENCE, eventually, throughout};
use kube::ResourceExt;

use super::{Market, name};

const OURS: &str = "example.com/ours";
const THEIRS: &str = "example.com/theirs";

/// How long it is watched that nothing happens.
const A_WHILE: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn a_class_that_is_not_served_costs_neither_call_nor_write() -> Result<()> {
    let market = Market::between(1, |provider| provider, |core| core.flag(&format!("--load-balancer-classes={OURS}"))).await?;
    market.services.create([Wish::new("theirs").class(THEIRS), Wish::new("ours").class(OURS), Wish::new("plain")]).await?;
    market.served(&["ours", "plain"].map(str::to_owned)).await?;
    throughout("the other's Service is left alone", A_WHILE, async || {
        let untouched = !market.herd.world.audit().service_writes()?.contains_key("theirs");
        ensure!(untouched, "it was written");
        market.herd.provider.cloud().sells(2).await
    })
    .await?;
    assert_eq!(market.calls().await?.of("EnsureLoadBalancer"), 2);
    let noted = market.services.get("ours").await?.annotations().get(CLASS).cloned();
    assert_eq!(noted.as_deref(), Some(OURS));
    market.services.delete(&["theirs".to_owned()]).await?;
    market.services.gone(&name("theirs")).await?;
    market.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_class_that_is_served_no_more_freezes_its_services_until_it_is_again() -> Result<()> {
    let served = format!("--load-balancer-classes={OURS}");
    let market = Market::between(1, |provider| provider, |core| core.flag(&served)).await?;
    market.services.create(["one", "two"].map(|name| Wish::new(name).class(OURS))).await?;
    let both = ["one", "two"].map(str::to_owned);
    market.served(&both).await?;

    let before = market.rest().await?;
    let market = market.renew(|core| core.flag("--load-balancer-classes=")).await?;
    let told = market.herd.world.event("LoadBalancerClassNotServed").await?;
    ensure!(told.contains(OURS) && told.contains("--load-balancer-classes"), "it says {told}");
    market.services.delete(&name("one")).await?;
    market.services.listen(&name("two"), 8080).await?;
    market.herd.joined("late").await?;
    throughout("both are frozen", A_WHILE, async || {
        ensure!(is_held(&market.services.get("one").await?), "the deletion did not wait");
        market.herd.provider.cloud().sells(2).await
    })
    .await?;
    assert_eq!(market.calls().await?.since(&before).mutations(), 0);

    let market = market.renew(|core| core.flag(&served)).await?;
    eventually("the deletion to end", PATIENCE, async || market.services.gone(&name("one")).await).await?;
    market.becomes("two", "port 8080 and the late node", |one| one.listeners[0].port == 8080 && one.targets.len() == 2).await?;
    market.herd.provider.cloud().sells(1).await?;
    market.end().await
}
