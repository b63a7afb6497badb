//! A core that starts anew on a cluster in which nothing has changed.
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use ccm_test_support::kubelet::names;
use ccm_test_support::wait::{PATIENCE, eventually, throughout};

use super::Market;

/// How long it is watched that nothing more happens.
const A_WHILE: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_on_two_hundred_unchanged_services_reads_and_changes_nothing() -> Result<()> {
    let market = Market::of(5).await?;
    let names = names("web", 200);
    let before = market.serve_all(&names).await?;
    let (mutations, writes) = (market.mutations().await?, market.herd.world.audit().service_writes()?);
    let market = market.renew(|core| core).await?;
    eventually("every load balancer to be looked at", PATIENCE, async || {
        let plans = market.calls().await?.since(&before).of("PlanLoadBalancer");
        ensure!(plans >= 200, "{plans} of 200");
        Ok(())
    })
    .await?;
    throughout("it only looks", A_WHILE, async || {
        let calls = market.calls().await?.since(&before);
        ensure!(calls.mutations() == 0 && calls.of("PlanLoadBalancer") == 200, "{calls:?}");
        Ok(())
    })
    .await?;
    assert_eq!(market.herd.world.audit().service_writes()?, writes, "nor is any Service written");
    assert_eq!(market.mutations().await?, mutations);
    market.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_without_plans_ensures_each_load_balancer_once_and_one_after_another() -> Result<()> {
    const SERVICES: u32 = 30;
    const PACE: Duration = Duration::from_millis(100);
    let market = Market::between(2, |provider| provider.flag("--load-balancer-plan=false"), |core| core).await?;
    let before = market.serve_all(&names("web", SERVICES as usize)).await?;
    let mutations = market.mutations().await?;
    let market = market.renew(|core| core).await?;
    let ensured = async || anyhow::Ok(market.calls().await?.since(&before).of("EnsureLoadBalancer"));
    eventually("the first", PATIENCE, async || {
        ensure!(ensured().await? > 0, "not yet");
        Ok(())
    })
    .await?;
    let (first, done) = (Instant::now(), ensured().await?);
    eventually("the last", PATIENCE, async || {
        let count = ensured().await?;
        ensure!(count >= u64::from(SERVICES), "{count} of {SERVICES}");
        Ok(())
    })
    .await?;
    let pauses = SERVICES - 1 - u32::try_from(done)?;
    assert!(first.elapsed() >= PACE * pauses, "{pauses} pauses in {:?}", first.elapsed());
    throughout("once was enough", A_WHILE, async || {
        let calls = market.calls().await?.since(&before);
        ensure!(calls.mutations() == u64::from(SERVICES), "{calls:?}");
        Ok(())
    })
    .await?;
    assert_eq!(market.mutations().await?, mutations, "nothing had to change");
    market.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changed_while_no_core_was_there_is_made_up_for() -> Result<()> {
    let market = Market::of(2).await?;
    let all = names("web", 4);
    market.serve_all(&all).await?;
    market.herd.core.stop().await?;
    market.services.delete(&all[..1]).await?;
    market.services.retype(&all[1..2], "ClusterIP").await?;
    market.services.listen(&all[2..3], 8080).await?;
    let herd = crate::herd::Herd { core: market.herd.core_spec.start().await?, ..market.herd };
    let market = Market { herd, services: market.services };
    market.becomes("web-2", "the other port", |one| one.listeners[0].port == 8080).await?;
    eventually("the others' to go", PATIENCE, async || {
        market.services.gone(&all[..1]).await?;
        market.services.are_free(&all[1..2]).await?;
        market.herd.provider.cloud().sells(2).await
    })
    .await?;
    market.served(&all[2..]).await?;
    market.end().await
}
