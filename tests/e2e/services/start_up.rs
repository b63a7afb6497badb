//! Services that are there before anybody can serve them.
use anyhow::{Result, ensure};
use ccm_test_support::kubelet::names;
use ccm_test_support::services::{CONTROLLER, condition, is_held};
use ccm_test_support::wait::{PATIENCE, eventually};
use ccm_test_support::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn services_wait_for_a_provider_untouched_and_are_served_when_it_comes() -> Result<()> {
    let world = World::start().await?;
    let core = world.core().quick().start().await?;
    let (nodes, services) = (names("node", 2), names("web", 10));
    world.kubelets().join(&nodes).await?;
    world.services().ask(&services).await?;
    assert!(!core.readiness_says("[-]provider").await?.ready);
    let held = world.services().all().await?.values().filter(|service| is_held(service)).count();
    assert_eq!(held, 0, "nothing can be made, so nothing is to be cleaned up");
    let provider = world.provider().flag("--auto-instances").flag("--load-balancer-provisioning=1s").start().await?;
    eventually("all to have addresses", PATIENCE, async || world.services().have_addresses(&services).await).await?;
    provider.cloud().sells(10).await?;
    core.stop().await?;
    provider.stop().await?;
    world.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_balancer_that_takes_its_time_is_polled_and_told_of_meanwhile() -> Result<()> {
    let world = World::start().await?;
    let provider = world.provider().flag("--auto-instances").flag("--load-balancer-provisioning=4s").start().await?;
    let core = world.core().quick().start().await?;
    world.kubelets().join(&names("node", 1)).await?;
    world.services().ask(&["pilot".to_owned()]).await?;
    eventually("the node to be a target", PATIENCE, async || {
        ensure!(!provider.cloud().load_balancer("pilot").await?.targets.is_empty(), "it is not");
        Ok(())
    })
    .await?;
    let services = names("web", 60);
    world.services().ask(&services).await?;
    eventually("the provider's words", PATIENCE, async || {
        let all = world.services().all().await?;
        let told = all.values().filter_map(condition);
        let told = told.filter(|it| it.status == "False" && it.message.contains("provisioned")).count();
        // More than may be called at once: whoever waits for the cloud takes nobody's place.
        ensure!(told >= services.len(), "{told} of {} say that they wait", services.len());
        Ok(())
    })
    .await?;
    eventually("all to have addresses", PATIENCE, async || world.services().have_addresses(&services).await).await?;
    let warnings = world.warnings(CONTROLLER).await?;
    assert!(warnings.keys().all(|name| name == "pilot"), "waiting is no failure: {warnings:?}");
    provider.cloud().sells(services.len() + 1).await?;
    core.stop().await?;
    provider.stop().await?;
    world.end().await
}
