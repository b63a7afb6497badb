//! A provider that says what is not so, about everything at once: nothing is deleted, and people are told.
use std::time::Duration;

use anyhow::Result;
use ccm_test_support::wait::throughout;

use crate::herd::Herd;

/// Several times what a deletion takes otherwise.
const LONG: Duration = Duration::from_secs(6);

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_not_ready_nodes_outlive_every_lie_of_their_provider() -> Result<()> {
    let mut herd = Herd::of(200).await?;
    not_found_for_all(&herd).await?;
    errors_for_all(&herd).await?;
    away(&mut herd).await?;
    lost_credentials(&herd).await?;
    stale(&herd).await?;
    another_cloud(&herd).await?;
    assert_eq!(herd.world.audit().node_writes()?.deleted, Vec::<String>::new());
    herd.end().await
}

async fn nobody_goes(herd: &Herd) -> Result<()> {
    throughout("no node is deleted", LONG, async || herd.kubelets.count_is(200).await).await
}

async fn not_found_for_all(herd: &Herd) -> Result<()> {
    herd.provider.set_fault("not-found-all").await?;
    herd.kubelets.report(&herd.names, false).await?;
    herd.core.breaker_holds().await?;
    herd.core.readiness_says("release-breaker").await?;
    herd.world.event("NodeDeletionBreakerTripped").await?;
    herd.all_stay(4).await
}

async fn errors_for_all(herd: &Herd) -> Result<()> {
    herd.provider.clear_faults().await?;
    herd.provider.set_fault("error-all").await?;
    herd.world.event("NodeLookupsFailing").await?;
    nobody_goes(herd).await
}

async fn away(herd: &mut Herd) -> Result<()> {
    herd.provider.kill().await?;
    assert!(!herd.core.readiness_says("[-]provider").await?.ready);
    nobody_goes(herd).await?;
    herd.provider.restart().await
}

async fn lost_credentials(herd: &Herd) -> Result<()> {
    herd.provider.set_fault("unauthenticated").await?;
    herd.core.readiness_says("[!]cloud-credentials").await?;
    nobody_goes(herd).await
}

async fn stale(herd: &Herd) -> Result<()> {
    // What the cloud keeps answering was true once: it did not have these machines.
    herd.provider.clear_faults().await?;
    herd.provider.machines("hide", &herd.names).await?;
    herd.provider.set_fault("stale").await?;
    herd.provider.machines("unhide", &herd.names).await?;
    nobody_goes(herd).await?;
    herd.provider.clear_faults().await
}

async fn another_cloud(herd: &Herd) -> Result<()> {
    herd.provider.set_fault("other-identity").await?;
    herd.provider.machines("hide", &herd.names).await?;
    herd.core.readiness_says("accept-cloud-identity").await?;
    herd.world.event("CloudIdentityChanged").await?;
    nobody_goes(herd).await
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_were_cordoned_when_they_were_not_ready_outlive_a_lie_about_all() -> Result<()> {
    let herd = Herd::of(200).await?;
    herd.kubelets.report(&herd.names, false).await?;
    herd.kubelets.cordon(&herd.names[..99]).await?;
    herd.provider.set_fault("not-found-all").await?;
    herd.core.breaker_holds().await?;
    herd.all_stay(6).await?;
    assert_eq!(herd.world.audit().node_writes()?.deleted, Vec::<String>::new());
    herd.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_that_are_all_called_deleted_cost_no_node() -> Result<()> {
    let herd = Herd::of(12).await?;
    herd.kubelets.report(&herd.names, false).await?;
    herd.provider.machines("terminate", &herd.names).await?;
    herd.core.breaker_holds().await?;
    herd.core.readiness_says("release-breaker").await?;
    herd.all_stay(6).await?;
    herd.end().await
}
