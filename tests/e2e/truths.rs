//! Machines that are truly gone: their nodes go, without anybody's help.
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use ccm_test_support::kubelet::{SHUTDOWN, has_taint};
use ccm_test_support::wait::{PATIENCE, eventually};

use crate::herd::Herd;

#[tokio::test(flavor = "multi_thread")]
async fn one_forgotten_machine_among_two_hundred_costs_its_node_in_time() -> Result<()> {
    let (confirmation, monitor) = (Duration::from_secs(4), Duration::from_secs(2));
    let herd = Herd::under(200, |core| core.flag("--node-deletion-confirmation=4s").flag("--node-monitor-period=2s")).await?;
    let gone = ["node-77".to_owned()];
    herd.provider.machines("forget", &gone).await?;
    herd.kubelets.report(&gone, false).await?;
    let seen = Instant::now();
    eventually("the node to be deleted", PATIENCE, async || herd.kubelets.count_is(199).await).await?;
    let took = seen.elapsed();
    assert!(took <= confirmation + 2 * monitor, "it took {took:?}");
    assert!(took >= confirmation, "it took only {took:?}, which leaves no time to confirm");
    assert_eq!(herd.world.audit().node_writes()?.deleted, gone);
    herd.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_third_of_the_nodes_goes_unaided_when_the_cloud_still_has_the_records() -> Result<()> {
    let herd = Herd::of(200).await?;
    let third = &herd.names[..67];
    herd.provider.machines("terminate", third).await?;
    herd.kubelets.report(third, false).await?;
    herd.shrinks_to(133).await?;
    assert!(herd.core.breakers().await? < 1.0, "a breaker holds");
    herd.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_third_of_the_nodes_goes_unaided_when_it_was_cordoned_before() -> Result<()> {
    let herd = Herd::of(200).await?;
    let third = &herd.names[..67];
    herd.kubelets.cordon(third).await?;
    herd.kubelets.report(third, false).await?;
    herd.provider.machines("forget", third).await?;
    herd.shrinks_to(133).await?;
    assert!(herd.core.breakers().await? < 1.0, "a breaker holds");
    herd.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_machine_costs_its_node_a_taint_that_goes_when_it_starts_again() -> Result<()> {
    let herd = Herd::of(3).await?;
    let stopped = ["node-1".to_owned()];
    herd.provider.machines("stop", &stopped).await?;
    herd.kubelets.report(&stopped, false).await?;
    eventually("the shutdown taint", PATIENCE, async || {
        ensure!(has_taint(&herd.kubelets.get("node-1").await?, SHUTDOWN), "not there");
        Ok(())
    })
    .await?;
    herd.provider.machines("start", &stopped).await?;
    herd.kubelets.report(&stopped, true).await?;
    eventually("the shutdown taint to go", PATIENCE, async || {
        ensure!(!has_taint(&herd.kubelets.get("node-1").await?, SHUTDOWN), "still there");
        Ok(())
    })
    .await?;
    herd.kubelets.count_is(3).await?;
    herd.end().await
}
