//! `ccm-core load-balancers`: what the cluster owns in the cloud, and what of it nobody claims.
use anyhow::{Context, Result, ensure};
use ccm_test_support::binaries::Binaries;
use serde_json::{Value, json};
use tokio::process::Command;

use super::{Market, name};

/// Runs the command; answers what it printed.
async fn list(market: &Market, flags: &[&str]) -> Result<String> {
    let endpoint = format!("--provider-endpoint=unix://{}", market.herd.provider.spec().endpoint().display());
    let kubeconfig = market.herd.world.kubeconfig().context("the world has ended")?;
    let mut command = Command::new(&Binaries::get().await?.core);
    command.args(["load-balancers", &endpoint]).arg("--kubeconfig").arg(kubeconfig).args(flags).kill_on_drop(true);
    let output = command.output().await?;
    ensure!(output.status.success(), "it ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

async fn rows(market: &Market, flags: &[&str]) -> Result<Vec<(String, bool)>> {
    let rows: Vec<Value> = serde_json::from_str(&list(market, &[flags, &["--output=json"]].concat()).await?)?;
    Ok(rows.iter().map(|row| (row["service"].as_str().unwrap_or_default().to_owned(), row["claimed"] == true)).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_balancer_that_lost_its_service_is_listed_as_unclaimed() -> Result<()> {
    let mut market = Market::of(1).await?;
    market.serve("shop").await?;
    market.serve("web").await?;
    assert_eq!(rows(&market, &[]).await?, [("default/shop".to_owned(), true), ("default/web".to_owned(), true)]);
    assert_eq!(rows(&market, &["--unclaimed"]).await?, []);

    // Somebody takes the finalizer off by hand while nobody is there to see it.
    market.herd.core.kill().await?;
    market.services.merge(&name("web"), &json!({ "metadata": { "finalizers": null } })).await?;
    market.services.delete(&name("web")).await?;
    assert_eq!(rows(&market, &["--unclaimed"]).await?, [("default/web".to_owned(), false)]);
    let table = list(&market, &[]).await?;
    assert!(table.contains("2 load balancers in the cloud simulated") && table.contains("; 1 that no Service claims"), "{table}");
    market.herd.provider.stop().await?;
    market.herd.world.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_without_a_provider_says_whom_it_could_not_reach() -> Result<()> {
    let mut market = Market::of(0).await?;
    market.herd.provider.kill().await?;
    let error = list(&market, &[]).await.unwrap_err().to_string();
    assert!(error.contains("--provider-endpoint") && error.contains("provider.sock"), "{error}");
    market.herd.core.stop().await?;
    market.herd.world.end().await
}
