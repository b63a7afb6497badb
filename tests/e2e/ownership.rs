//! Nodes that are not ours, not yet ours, or not known to be.
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use ccm_test_support::kubelet::Registration;
use ccm_test_support::services::Wish;
use ccm_test_support::wait::{PATIENCE, eventually};
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

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

const UNMANAGED: &str = "ccm-core.dev/unmanaged";

/// Waits until the load balancer has exactly these targets.
async fn targets_are(herd: &Herd, nodes: &[&str]) -> Result<()> {
    eventually("the load balancer to have the right targets", PATIENCE, async || {
        let one = herd.provider.cloud().load_balancer("web").await?;
        ensure!(one.targets == nodes, "it has {:?}", one.targets);
        Ok(())
    })
    .await
}

/// Waits until there is one event of this reason about each of these nodes, and no other.
async fn events_are(herd: &Herd, reason: &str, nodes: &[&str]) -> Result<()> {
    let events: Api<Event> = Api::all(herd.world.admin());
    eventually(&format!("events {reason}"), PATIENCE, async || {
        let list = events.list(&ListParams::default().fields(&format!("reason={reason}"))).await?;
        let mut found: Vec<_> = list.into_iter().filter_map(|event| event.involved_object.name).collect();
        found.sort();
        ensure!(found == nodes, "{found:?}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unmanaged_node_is_left_alone_and_is_managed_again_without_its_annotation() -> Result<()> {
    let herd = Herd::of(4).await?;
    let services = herd.world.services();
    services.create([Wish::new("web")]).await?;
    targets_are(&herd, &["node-0", "node-1", "node-2", "node-3"]).await?;

    let (joins, ours) = (["joins".to_owned()], ["node-3".to_owned()]);
    herd.provider.machines("add", &joins).await?;
    herd.kubelets.register([Registration::new("joins").annotation(UNMANAGED, "true")]).await?;
    herd.kubelets.merge(&ours, &json!({ "metadata": { "annotations": { UNMANAGED: "true" } } })).await?;
    events_are(&herd, "NodeUnmanaged", &["joins", "node-3"]).await?;
    assert_eq!(herd.core.metric("ccm_core_unmanaged_nodes").await?, Some(2.0));
    herd.provider.machines("forget", &ours).await?;
    herd.kubelets.report(&ours, false).await?;
    herd.joined("late").await?;
    targets_are(&herd, &["late", "node-0", "node-1", "node-2"]).await?;
    deletes_a_node_that_is_gone(&herd, "node-0").await?;
    targets_are(&herd, &["late", "node-1", "node-2"]).await?;
    let writes = herd.world.audit().node_writes()?;
    assert_eq!((writes.successful.get("joins"), writes.successful.get("node-3")), (None, Some(&2)), "{writes:?}");
    assert_eq!(writes.deleted, ["node-0"]);

    let managed = json!({ "metadata": { "annotations": { UNMANAGED: null } } });
    herd.kubelets.merge(&joins, &managed).await?;
    herd.initialised(&joins).await?;
    targets_are(&herd, &["joins", "late", "node-1", "node-2"]).await?;
    herd.kubelets.merge(&ours, &managed).await?;
    herd.shrinks_to(4).await?;
    assert_eq!(herd.world.audit().node_writes()?.deleted, ["node-0", "node-3"]);
    events_are(&herd, "NodeManaged", &["joins", "node-3"]).await?;
    herd.end().await
}
