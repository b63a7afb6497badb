//! A cloud that is of no use for a while, each in its way. The soak makes them last for a minute.
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use ccm_test_support::outage::{KNOWN, Outage};
use ccm_test_support::world::World;

async fn outage(fault: &'static str) -> Result<()> {
    let (_, words) = KNOWN.into_iter().find(|(known, _)| *known == fault).context("nobody knows it")?;
    let world = World::start().await?;
    let report = Outage { fault, words, lasts: Duration::from_secs(10), services: 20 }.run(&world).await?;
    println!("{fault}: {report:?}");
    ensure!(report.warnings <= 2, "{} warnings about one Service", report.warnings);
    world.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_about_load_balancers_that_all_fail_tear_nothing_down() -> Result<()> {
    outage("lb-error").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cloud_that_is_out_of_order_tears_nothing_down() -> Result<()> {
    outage("error-all").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cloud_that_is_always_at_work_tears_nothing_down() -> Result<()> {
    outage("lb-in-progress").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_up_quota_tears_nothing_down() -> Result<()> {
    outage("lb-quota").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capability_that_is_lost_and_regained_tears_nothing_down() -> Result<()> {
    outage("lb-off").await
}
