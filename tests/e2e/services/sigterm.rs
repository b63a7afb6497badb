//! kubelet ends a container by SIGTERM, and both containers of a Pod at once: a load balancer that is being made for 20 s meanwhile
//! is made once, whichever process is asked to end.
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use ccm_test_support::cloud::Cloud;
use ccm_test_support::core::Core;
use ccm_test_support::kubelet::names;
use ccm_test_support::services::{Services, Wish};
use ccm_test_support::simulated::Provider;
use ccm_test_support::wait::{PATIENCE, eventually};
use ccm_test_support::world::World;

use super::name;

/// How long the cloud takes to make the load balancer.
const ENSURE: Duration = Duration::from_secs(20);
/// How long a process may take to end after that.
const END: Duration = Duration::from_secs(15);

/// A core, a provider and its cloud, which survives both, in the middle of an `EnsureLoadBalancer`.
struct Making {
    world: World,
    cloud: Cloud,
    provider: Provider,
    core: Core,
    services: Services,
    began: Instant,
}

impl Making {
    async fn begin() -> Result<Self> {
        let world = World::start().await?;
        let cloud = Cloud::start(world.dir(), &[]).await?;
        let provider = world.provider().of(&cloud).start().await?;
        // On a lease that runs out long before the load balancer is made.
        let core = world.core().quick().start().await?;
        let nodes = names("node", 2);
        cloud.ctl().machines("add", &nodes).await?;
        world.kubelets().join(&nodes).await?;
        eventually("the nodes to be initialised", PATIENCE, async || world.kubelets().initialised(&nodes).await).await?;
        cloud.ctl().run(&["fault", "set", "hang", "--for", "default/web"]).await?;
        let services = world.services();
        services.create([Wish::new("web")]).await?;
        eventually("the load balancer to be asked for", PATIENCE, async || {
            ensure!(provider.calls().await?.of("EnsureLoadBalancer") == 1, "it is not");
            Ok(())
        })
        .await?;
        Ok(Self { world, cloud, provider, core, services, began: Instant::now() })
    }

    /// Lets the cloud finish once the time is over.
    async fn make(&self) -> Result<()> {
        tokio::time::sleep(ENSURE.saturating_sub(self.began.elapsed())).await;
        self.cloud.ctl().run(&["fault", "clear", "hang"]).await.map(drop)
    }

    /// The Service has its load balancer, which was made once and told once, and nobody was warned.
    async fn ended_well(&self) -> Result<()> {
        eventually("the Service to have its address", PATIENCE, async || self.services.have_addresses(&name("web")).await)
            .await?;
        ensure!(self.cloud.ctl().load_balancer("web").await?.mutations == 1, "it was made more than once");
        let warnings = self.world.warnings("service-controller").await?;
        ensure!(warnings.is_empty(), "{warnings:?}");
        let told = self.world.events("EnsuredLoadBalancer").await?;
        let told: Vec<_> =
            told.iter().filter(|event| event.regarding.as_ref().and_then(|it| it.name.as_deref()) == Some("web")).collect();
        ensure!(told.len() <= 1 && told.iter().all(|event| event.series.is_none()), "{told:?}");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_core_that_is_asked_to_end_waits_for_the_load_balancer_leads_on_and_tells_of_it() -> Result<()> {
    let mut making = Making::begin().await?;
    making.core.process().terminate()?;
    making.make().await?;
    let status = making.core.process().ended(END).await?;
    ensure!(status.success(), "the core ended with {status}");
    making.ended_well().await?;
    eventually("the last event", PATIENCE, async || making.world.event("EnsuredLoadBalancer").await.map(drop)).await?;
    making.provider.stop().await?;
    making.cloud.stop().await?;
    making.world.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_asked_to_end_finishes_the_load_balancer_and_its_answer_counts() -> Result<()> {
    let mut making = Making::begin().await?;
    making.provider.process().terminate()?;
    // Another Service meets the provider while that takes no more calls.
    making.services.create([Wish::new("meanwhile")]).await?;
    making.make().await?;
    let status = making.provider.process().ended(END).await?;
    ensure!(status.success(), "the provider ended with {status}");
    let provider = making.provider.spec().start().await?;
    eventually("the other Service to be served", PATIENCE, async || making.services.have_addresses(&name("meanwhile")).await)
        .await?;
    making.ended_well().await?;
    ensure!(provider.calls().await?.of("EnsureLoadBalancer") == 1, "the answer did not count");
    making.core.stop().await?;
    provider.stop().await?;
    making.cloud.stop().await?;
    making.world.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn both_that_are_asked_to_end_at_once_make_the_load_balancer_once() -> Result<()> {
    let mut making = Making::begin().await?;
    making.core.process().terminate()?;
    making.provider.process().terminate()?;
    making.make().await?;
    let ended = making.provider.process().ended(END).await?;
    ensure!(ended.success(), "the provider ended with {ended}");
    let ended = making.core.process().ended(Duration::from_secs(40)).await?;
    ensure!(ended.success(), "the core ended with {ended}");
    let (provider, core) = (making.provider.spec().start().await?, making.world.core().quick().start().await?);
    making.ended_well().await?;
    core.stop().await?;
    provider.stop().await?;
    making.cloud.stop().await?;
    making.world.end().await
}
