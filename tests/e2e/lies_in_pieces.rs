//! Lies about some of the nodes, lies one after another, and lies that outlive the core.
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use ccm_test_support::wait::{PATIENCE, eventually, throughout};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::herd::Herd;

/// Several times what a deletion takes otherwise.
const LONG: Duration = Duration::from_secs(6);

/// The nodes of the zone that `node-0` is in.
async fn first_zone(herd: &Herd) -> Result<Vec<String>> {
    let zone =
        |node: &k8s_openapi::api::core::v1::Node| node.metadata.labels.as_ref()?.get("topology.kubernetes.io/zone").cloned();
    let all = herd.kubelets.all().await?;
    let first = all.get("node-0").and_then(zone).context("node-0 has no zone")?;
    Ok(all.iter().filter(|(_, node)| zone(node).as_ref() == Some(&first)).map(|(name, _)| name.clone()).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zone_that_is_hidden_as_a_whole_loses_no_node_until_an_operator_says_so() -> Result<()> {
    let herd = Herd::of(200).await?;
    let zone = first_zone(&herd).await?;
    assert_eq!(zone.len(), 67, "one of three zones");
    herd.provider.machines("hide", &zone).await?;
    herd.kubelets.report(&zone, false).await?;
    let message = herd.world.event("NodeDeletionBreakerTripped").await?;
    herd.core.breaker_holds().await?;
    herd.core.readiness_says("release-breaker").await?;
    herd.all_stay(6).await?;
    release(&herd, &message).await?;
    herd.shrinks_to(133).await?;
    herd.world.event("NodeDeletionBreakerReleased").await?;
    herd.end().await
}

/// Does what the event tells the operator to do.
async fn release(herd: &Herd, message: &str) -> Result<()> {
    let key = "ccm-core.dev/release-breaker";
    let after = message.split_once(&format!("{key}=")).with_context(|| format!("no way to release it in: {message}"))?.1;
    let trip: String = after.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect();
    let patch = json!({ "metadata": { "annotations": { key: trip.trim_end_matches('.') } } });
    let states: Api<ConfigMap> = Api::namespaced(herd.world.admin(), "kube-system");
    states.patch("ccm-core-simulated", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_restarts_of_the_core_during_a_lie_cost_no_node() -> Result<()> {
    let mut herd = Herd::of(200).await?;
    herd.provider.set_fault("not-found-all").await?;
    herd.kubelets.report(&herd.names, false).await?;
    herd.core.breaker_holds().await?;
    let lease = ["--leader-elect-lease-duration=2s", "--leader-elect-renew-deadline=1s", "--leader-elect-retry-period=200ms"];
    let spec =
        lease.iter().fold(herd.world.core().quick().flag("--node-deletion-confirmation=500ms"), |spec, flag| spec.flag(flag));
    for restart in 0..30 {
        if restart % 2 == 0 {
            herd.core.kill().await?;
        } else {
            herd.core.process().stop(PATIENCE).await?;
        }
        herd.core = spec.start().await?;
        // It leads, and has asked about everybody twice: as often as it needs to delete.
        herd.provider.asked_again(3).await?;
        herd.kubelets.count_is(200).await.with_context(|| format!("after restart {restart}"))?;
    }
    herd.core.breaker_holds().await?;
    assert_eq!(herd.world.audit().node_writes()?.deleted, Vec::<String>::new());
    herd.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lie_told_one_node_at_a_time_costs_at_most_the_budget() -> Result<()> {
    let budget = 4;
    let herd = Herd::under(60, |core| core.flag("--node-deletion-confirmation=1s").flag("--node-deletion-limit=4")).await?;
    for (told, name) in herd.names.iter().enumerate().take(2 * budget) {
        let one = std::slice::from_ref(name);
        herd.provider.machines("hide", one).await?;
        herd.kubelets.report(one, false).await?;
        eventually("the node to go, or a breaker to hold", PATIENCE, async || {
            let left = herd.kubelets.all().await?.len();
            ensure!(herd.core.breakers().await? >= 1.0 || left == 60 - (told + 1), "{left} nodes, and no breaker");
            Ok(())
        })
        .await?;
    }
    throughout("the budget holds", LONG, async || {
        let left = herd.kubelets.all().await?.len();
        ensure!(left >= 60 - budget, "{left} nodes are left of 60 with a budget of {budget}");
        Ok(())
    })
    .await?;
    herd.core.breaker_holds().await?;
    herd.world.event("NodeDeletionBreakerTripped").await?;
    herd.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn ready_nodes_that_the_cloud_denies_save_the_one_that_is_not_ready() -> Result<()> {
    let herd = Herd::of(30).await?;
    // All are in one zone: names of one series are spread over three. One alone would be within every budget.
    let hidden = ["node-0", "node-3", "node-6"].map(str::to_owned);
    herd.provider.machines("hide", &hidden).await?;
    herd.kubelets.report(&hidden[..1], false).await?;
    // At once, and as a breaker when the nodes are Ready for longer than any can outlive its machine, which is a minute.
    herd.core.readiness_says("denies the machines of 2 Ready nodes").await?;
    herd.all_stay(4).await?;
    eventually("a breaker to trip", 2 * PATIENCE, async || {
        ensure!(herd.core.breakers().await? >= 1.0, "none is tripped");
        Ok(())
    })
    .await?;
    herd.world.event("NodeDeletionBreakerTripped").await?;
    herd.all_stay(4).await?;
    herd.end().await
}
