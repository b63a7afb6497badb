//! Two cores: one works, and the other takes over at once when it is asked to stop.
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use ccm_test_support::kubelet::names;
use ccm_test_support::wait::{PATIENCE, eventually};
use ccm_test_support::world::World;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;

async fn holder(world: &World) -> Result<String> {
    let leases: Api<Lease> = Api::namespaced(world.admin(), "kube-system");
    let holder = leases.get("cloud-controller-manager").await?.spec.and_then(|spec| spec.holder_identity);
    holder.filter(|holder| !holder.is_empty()).context("nobody holds the lease")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_core_takes_over_at_once_when_the_leader_is_asked_to_stop() -> Result<()> {
    let world = World::start().await?;
    let provider = world.provider().flag("--auto-instances").start().await?;
    // On the default lease of 15 s, which need not run out.
    let first = world.core().named("first").start().await?;
    let leader = eventually("the first to lead", PATIENCE, async || holder(&world).await).await?;
    let second = world.core().named("second").start().await?;
    let before = names("before", 5);
    world.kubelets().join(&before).await?;
    eventually("all to be initialised", PATIENCE, async || world.kubelets().initialised(&before).await).await?;

    first.stop().await?;
    let stopped = Instant::now();
    let after = names("after", 5);
    world.kubelets().join(&after).await?;
    eventually("the second to work", PATIENCE, async || world.kubelets().initialised(&after).await).await?;
    assert!(stopped.elapsed() < Duration::from_secs(10), "it took {:?}", stopped.elapsed());
    ensure!(holder(&world).await? != leader, "the lease still names the first");
    second.stop().await?;
    assert!(holder(&world).await.is_err(), "an orderly end gives the lease back");
    provider.stop().await?;
    world.end().await
}
