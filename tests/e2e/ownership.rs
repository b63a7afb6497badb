//! Nodes that are not ours, not yet ours, or not known to be.
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use ccm_test_support::kubelet::Registration;
use ccm_test_support::wait::{PATIENCE, eventually};

use crate::herd::Herd;

/// Ends the node's machine in the plainest way and waits for the node's deletion: whatever else was to be deleted by then, was.
async fn deletes_a_node_that_is_gone(herd: &Herd, name: &str) -> Result<()> {
    let gone = [name.to_owned()];
    herd.provider.machines("terminate", &gone).await?;
    herd.kubelets.report(&gone, false).await?;
    eventually("the terminated node to be deleted", PATIENCE, async || {
        ensure!(!herd.kubelets.all().await?.contains_key(name), "{name} is there");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_a_foreign_provider_id_gets_no_write() -> Result<()> {
    let herd = Herd::of(4).await?;
    let foreign = |name: &str| Registration::new(name).provider_id(&format!("elsewhere://{name}")).not_ready();
    herd.kubelets.register([foreign("foreign-tainted"), foreign("foreign").untainted()]).await?;
    deletes_a_node_that_is_gone(&herd, "node-0").await?;
    deletes_a_node_that_is_gone(&herd, "node-1").await?;
    herd.kubelets.count_is(4).await?;
    let writes = herd.world.audit().node_writes()?;
    assert!(writes.successful.keys().all(|name| name.starts_with("node-")), "{writes:?}");
    assert_eq!(writes.deleted, ["node-0", "node-1"]);
    herd.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_a_provider_id_is_initialised_and_never_deleted() -> Result<()> {
    let herd = Herd::of(4).await?;
    let known = ["known".to_owned()];
    herd.provider.machines("add", &known).await?;
    let nodes = [Registration::new("known"), Registration::new("unknown"), Registration::new("unknown-untainted").untainted()];
    herd.kubelets.register(nodes.map(Registration::not_ready)).await?;
    herd.initialised(&known).await?;
    deletes_a_node_that_is_gone(&herd, "node-0").await?;
    deletes_a_node_that_is_gone(&herd, "node-1").await?;
    herd.kubelets.count_is(5).await?;
    assert_eq!(herd.world.audit().node_writes()?.deleted, ["node-0", "node-1"]);
    herd.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tainted_node_of_ours_is_not_deleted_before_its_grace() -> Result<()> {
    let grace = Duration::from_secs(15);
    let herd = Herd::under(4, |core| core.flag("--uninitialized-node-grace=15s")).await?;
    let created = Instant::now();
    herd.kubelets.register([Registration::new("lost").provider_id("simulated://sim-1a/i-lost").not_ready()]).await?;
    // Far more than the time that a node needs otherwise.
    deletes_a_node_that_is_gone(&herd, "node-0").await?;
    let all = herd.kubelets.all().await?;
    assert!(all.contains_key("lost") || created.elapsed() >= grace, "deleted after {:?}", created.elapsed());
    eventually("the node to be deleted after its grace", PATIENCE, async || herd.kubelets.count_is(3).await).await?;
    // The API server keeps creation times in whole seconds.
    assert!(created.elapsed() >= grace.checked_sub(Duration::from_secs(1)).unwrap(), "deleted after {:?}", created.elapsed());
    herd.end().await
}
