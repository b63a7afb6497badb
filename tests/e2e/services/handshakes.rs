//! A provider whose handshakes hang while all its other calls are answered: nothing ends, and nothing is let go.
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use ccm_test_support::services::Wish;
use ccm_test_support::wait::{PATIENCE, eventually, throughout};
use serde_json::json;

use super::{Market, name};

/// How long handshakes hang: several times their deadline.
const HANDSHAKES: Duration = Duration::from_secs(17);
/// How long a load balancer is being made meanwhile.
const ENSURE: Duration = Duration::from_secs(21);

#[tokio::test(flavor = "multi_thread")]
async fn while_handshakes_hang_a_load_balancer_is_made_once_and_neither_a_node_nor_a_service_goes() -> Result<()> {
    let market = Market::of(5).await?;
    // The node that goes is nobody's target: the load balancer that is being made stays as it was asked for.
    let gone = name("node-4");
    let excluded = json!({ "metadata": { "labels": { "node.kubernetes.io/exclude-from-external-load-balancers": "" } } });
    market.herd.kubelets.merge(&gone, &excluded).await?;
    market.serve("leaving").await?;
    market.targets_are(&["node-0", "node-1", "node-2", "node-3"]).await?;
    market.rest().await?;
    let (core, cloud) = (&market.herd.core, market.herd.provider.cloud());
    let before = market.calls().await?;
    let led = core.provider_calls("Lead", None).await?;
    assert!(led >= 1.0, "the core leads");

    let began = Instant::now();
    cloud.set_fault("handshake-hang").await?;
    cloud.run(&["fault", "set", "hang", "--for", "default/web"]).await?;
    market.services.create([Wish::new("web")]).await?;
    eventually("the load balancer to be asked for", PATIENCE, async || {
        ensure!(market.calls().await?.since(&before).of("EnsureLoadBalancer") == 1, "it is not");
        Ok(())
    })
    .await?;
    // Both need a handshake: the node is not ready and its machine not found, the load balancer of the Service is removed.
    market.herd.provider.machines("hide", &gone).await?;
    market.herd.kubelets.report(&gone, false).await?;
    market.services.delete(&name("leaving")).await?;

    throughout("no node and no Service goes", HANDSHAKES.saturating_sub(began.elapsed()), async || {
        market.herd.kubelets.count_is(5).await?;
        market.services.get("leaving").await.map(drop)
    })
    .await?;
    let missed = core.provider_calls("GetProviderInfo", Some("DEADLINE_EXCEEDED")).await?;
    assert!(missed >= 3.0, "only {missed} handshakes were missed");
    assert!(core.readiness().await?.ready, "other calls are answered");

    cloud.run(&["fault", "clear", "handshake-hang"]).await?;
    market.herd.shrinks_to(4).await?;
    eventually("the Service to go", PATIENCE, async || market.services.gone(&name("leaving")).await).await?;
    tokio::time::sleep(ENSURE.saturating_sub(began.elapsed())).await;
    cloud.run(&["fault", "clear", "hang"]).await?;
    market.served(&name("web")).await?;

    assert!(core.provider_calls("Lead", None).await? <= led, "Lead was opened again");
    let calls = market.rest().await?.since(&before);
    assert_eq!((calls.of("EnsureLoadBalancer"), calls.of("UpdateLoadBalancer")), (1, 0), "it was made once");
    assert_eq!(cloud.load_balancer("web").await?.mutations, 1);
    let warnings = market.herd.world.warnings("service-controller").await?;
    assert!(!warnings.contains_key("web"), "{warnings:?}");
    market.end().await
}
