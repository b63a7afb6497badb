//! Load balancers that somebody changes behind the core's back.
use std::time::Duration;

use anyhow::{Result, ensure};
use ccm_test_support::wait::{PATIENCE, eventually, throughout};

use super::{Market, name};

const QUICK: &str = "--load-balancer-drift-period=1s";

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_told_and_left_by_default_and_repaired_where_that_is_asked_for() -> Result<()> {
    let market = Market::between(2, |provider| provider, |core| core.flag(QUICK)).await?;
    market.serve_all(&["web", "other"].map(str::to_owned)).await?;
    let cloud = market.herd.provider.cloud().clone();
    let mutations = cloud.load_balancer("web").await?.mutations;
    cloud.tamper("web", &["--remove-target", "node-1"]).await?;
    let told = market.herd.world.event("LoadBalancerDrift").await?;
    ensure!(told.contains("node-1") && told.contains("--load-balancer-drift"), "it says {told}");
    let found = market.herd.core.metric("ccm_core_load_balancer_drift_found_total").await?;
    ensure!(found.is_some_and(|found| found >= 1.0), "the metric says {found:?}");
    throughout("it is left, and told once", Duration::from_secs(3), async || {
        let one = cloud.load_balancer("web").await?;
        ensure!(one.targets == ["node-0"] && one.mutations == mutations, "it is {one:?}");
        let events = market.herd.world.events("LoadBalancerDrift").await?;
        ensure!(events.len() == 1 && events[0].series.is_none(), "{} events", events.len());
        Ok(())
    })
    .await?;

    let market = market.renew(|core| core.flag("--load-balancer-drift=repair")).await?;
    market.becomes("web", "both targets", |one| one.targets.len() == 2).await?;
    cloud.tamper("web", &["--max-qps", "7"]).await?;
    market.becomes("web", "no limit", |one| one.max_qps.is_none()).await?;
    cloud.steal("other").await?;
    eventually("the stolen one to be there again", PATIENCE, async || cloud.sells(2).await).await?;
    market.served(&name("other")).await?;
    let one = cloud.load_balancer("web").await?;
    assert_eq!(one.mutations, mutations + 2, "nothing but the repairs: {one:?}");
    market.end().await
}
