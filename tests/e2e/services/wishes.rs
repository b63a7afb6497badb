//! What users may ask for, by fields of the Service and by annotations that only the provider understands.
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use ccm_test_support::services::{MAX_QPS, Wish, condition, ingress};
use ccm_test_support::wait::{PATIENCE, eventually};
use serde_json::json;

use super::{Market, name};

const ADDRESS: &str = "simulated.ccm-core.dev/load-balancer-address";
const IP_MODE: &str = "simulated.ccm-core.dev/load-balancer-ip-mode";
const NODE_LABEL: &str = "simulated.ccm-core.dev/load-balancer-node-label";

#[tokio::test(flavor = "multi_thread")]
async fn addresses_come_in_every_form_that_a_service_can_ask_for() -> Result<()> {
    let market = Market::of(1).await?;
    let wishes = [
        Wish::new("both").dual_stack(),
        Wish::new("named").annotation(ADDRESS, "hostname"),
        Wish::new("proxied").annotation(IP_MODE, "Proxy"),
    ];
    market.services.create(wishes).await?;
    market.served(&["both", "named", "proxied"].map(str::to_owned)).await?;
    let both = market.services.get("both").await?;
    let families: Vec<_> = ingress(&both).iter().map(|it| it.ip.as_deref().is_some_and(|ip| ip.contains(':'))).collect();
    assert_eq!(families, [false, true], "{:?}", ingress(&both));
    let named = market.services.get("named").await?;
    let hostname = market.herd.provider.cloud().load_balancer("named").await?.hostname.context("the cloud gave it none")?;
    assert_eq!((ingress(&named)[0].hostname.as_deref(), ingress(&named)[0].ip.as_deref()), (Some(hostname.as_str()), None));
    assert_eq!(ingress(&market.services.get("proxied").await?)[0].ip_mode.as_deref(), Some("Proxy"));
    market.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_is_honoured_and_an_impossible_one_is_named_and_mended_as_soon_as_the_user_mends_it() -> Result<()> {
    // Where the user must act, the core asks again after 15 seconds at the earliest.
    const AT_ONCE: Duration = Duration::from_secs(10);
    let market = Market::of(1).await?;
    market.services.create([Wish::new("web").annotation(MAX_QPS, "100")]).await?;
    market.served(&name("web")).await?;
    market.rest().await?;
    let before = market.herd.provider.cloud().load_balancer("web").await?;
    assert_eq!(before.max_qps, Some(100));

    market.services.annotate(&name("web"), MAX_QPS, Some("plenty")).await?;
    let told = market.herd.world.event("SyncLoadBalancerFailed").await?;
    ensure!(told.contains(MAX_QPS) && told.contains("plenty"), "the event says: {told}");
    eventually("the condition to name the annotation", PATIENCE, async || {
        let service = market.services.get("web").await?;
        let condition = condition(&service).context("there is none")?;
        ensure!(condition.status == "False" && condition.message.contains(MAX_QPS), "it says {condition:?}");
        Ok(())
    })
    .await?;
    assert_eq!(market.herd.provider.cloud().load_balancer("web").await?, before, "it stays as it was");

    market.services.annotate(&name("web"), MAX_QPS, Some("200")).await?;
    let mended = Instant::now();
    market.served(&name("web")).await?;
    market.becomes("web", "the new limit", |one| one.max_qps == Some(200)).await?;
    ensure!(mended.elapsed() < AT_ONCE, "it took {:?}", mended.elapsed());
    market.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_provider_chooses_targets_by_the_node_labels_that_it_asked_for() -> Result<()> {
    let market = Market::of(3).await?;
    let blue = |value: Option<&str>| json!({ "metadata": { "labels": { "simulated.ccm-core.dev/pool": value } } });
    market.herd.kubelets.merge(&name("node-1"), &blue(Some("blue"))).await?;
    market.services.create([Wish::new("web").annotation(NODE_LABEL, "simulated.ccm-core.dev/pool=blue")]).await?;
    market.served(&name("web")).await?;
    market.targets_are(&["node-1"]).await?;
    market.herd.kubelets.merge(&name("node-2"), &blue(Some("blue"))).await?;
    market.targets_are(&["node-1", "node-2"]).await?;
    market.herd.kubelets.merge(&name("node-1"), &blue(None)).await?;
    market.targets_are(&["node-2"]).await?;
    market.end().await
}
