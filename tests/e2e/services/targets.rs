//! Two hundred load balancers, and nodes that change: which changes cost how many calls.
use std::time::Duration;

use anyhow::{Result, ensure};
use ccm_test_support::kubelet::names;
use ccm_test_support::wait::{PATIENCE, eventually, throughout};
use serde_json::{Value, json};

use super::Market;

const SERVICES: usize = 200;

/// How long it is watched that nothing happens: longer than changes of nodes are gathered.
const A_WHILE: Duration = Duration::from_millis(1500);

#[tokio::test(flavor = "multi_thread")]
async fn targets_follow_nodes_that_join_leave_and_are_excluded() -> Result<()> {
    let market = Market::of(2).await?;
    market.serve("web").await?;
    market.herd.joined("node-2").await?;
    market.targets_are(&["node-0", "node-1", "node-2"]).await?;
    market.herd.provider.machines("terminate", &["node-0".to_owned()]).await?;
    market.herd.kubelets.report(&["node-0".to_owned()], false).await?;
    market.herd.shrinks_to(2).await?;
    market.targets_are(&["node-1", "node-2"]).await?;
    let excluded = json!({ "metadata": { "labels": { "node.kubernetes.io/exclude-from-external-load-balancers": "" } } });
    market.herd.kubelets.merge(&["node-1".to_owned()], &excluded).await?;
    market.targets_are(&["node-2"]).await?;
    market.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_node_updates_two_hundred_load_balancers_once_and_makes_none_anew() -> Result<()> {
    let market = Market::of(10).await?;
    let made = market.serve_all(&names("web", SERVICES)).await?;
    assert_eq!(made.of("EnsureLoadBalancer"), 200, "{made:?}");
    // The last node may be seen before and after it is initialised.
    assert!(made.of("PutNodeSet") <= 2, "{made:?}");

    market.herd.joined("node-late").await?;
    eventually("all to have the new target", PATIENCE, async || {
        let all = market.herd.provider.cloud().load_balancers().await?;
        let without = all.iter().filter(|one| one.targets.len() < 11).count();
        ensure!(without == 0, "{without} have not");
        Ok(())
    })
    .await?;
    throughout("it was enough", A_WHILE, async || {
        let calls = market.calls().await?.since(&made);
        let (sets, updates) = (calls.of("PutNodeSet"), calls.of("UpdateLoadBalancer"));
        ensure!((1..=2).contains(&sets) && (200..=200 * sets).contains(&updates), "{sets} sets, {updates} updates");
        ensure!(calls.of("EnsureLoadBalancer") == 0, "{calls:?}");
        Ok(())
    })
    .await?;
    market.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_nodes_that_matter_to_no_load_balancer_cost_no_call() -> Result<()> {
    let market = Market::of(3).await?;
    let before = market.serve_all(&names("web", 20)).await?;
    let writes = market.herd.world.audit().service_writes()?;
    for change in unimportant() {
        market.herd.kubelets.merge(&market.herd.names, &change).await?;
        market.herd.kubelets.report(&market.herd.names, false).await?;
        throughout(&format!("nobody calls for {change}"), A_WHILE, async || {
            let calls = market.calls().await?.since(&before);
            ensure!(calls.mutations() + calls.of("PutNodeSet") + calls.of("PlanLoadBalancer") == 0, "{calls:?}");
            Ok(())
        })
        .await?;
        market.herd.kubelets.report(&market.herd.names, true).await?;
    }
    assert_eq!(market.herd.world.audit().service_writes()?, writes);
    // It was not deaf: this is what it listens for.
    market.herd.joined("node-late").await?;
    market.targets_are(&["node-0", "node-1", "node-2", "node-late"]).await?;
    market.end().await
}

/// A label and an annotation that nobody asked for; what Kubernetes does to a node that is not ready, and undoes.
fn unimportant() -> [Value; 3] {
    let not_ready = ["NoSchedule", "NoExecute"].map(|effect| json!({ "key": "node.kubernetes.io/not-ready", "effect": effect }));
    [
        json!({ "metadata": { "labels": { "example.com/rack": "7" }, "annotations": { "example.com/note": "new" } } }),
        json!({ "spec": { "taints": not_ready } }),
        json!({ "spec": { "taints": null } }),
    ]
}
