//! An API server that goes away, and one that falls silent: the core waits quietly, and goes on when it is back.
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use ccm_test_support::core::Core;
use ccm_test_support::kubelet::{Kubelets, names};
use ccm_test_support::proxy::{Proxy, Traffic};
use ccm_test_support::simulated::Provider;
use ccm_test_support::wait::{PATIENCE, eventually};
use ccm_test_support::world::World;

/// A core that reaches its API server through a proxy, with machines for so many nodes.
struct Cut {
    world: World,
    provider: Provider,
    proxy: Proxy,
    core: Core,
    kubelets: Kubelets,
}

impl Cut {
    async fn of(machines: &[String]) -> Result<Self> {
        let world = World::start().await?;
        let provider = world.provider().start().await?;
        provider.machines("add", machines).await?;
        let proxy = Proxy::start(world.dir(), world.core().kubeconfig()).await?;
        let core = world.core().through(proxy.kubeconfig()).start().await?;
        let kubelets = world.kubelets();
        Ok(Self { world, provider, proxy, core, kubelets })
    }

    async fn initialised(&self, names: &[String]) -> Result<()> {
        eventually("all to be initialised", 2 * PATIENCE, async || self.kubelets.initialised(names).await).await
    }

    async fn end(self) -> Result<()> {
        self.core.stop().await?;
        self.provider.stop().await?;
        self.world.end().await
    }

    /// How many lines the core has logged.
    fn lines(&self) -> Result<usize> {
        Ok(fs::read_to_string(self.core.log())?.lines().count())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_is_away_while_nodes_join_costs_few_lines_and_no_node() -> Result<()> {
    let joining = names("node", 300);
    let cut = Cut::of(&joining).await?;
    cut.core.says("leading epoch=").await?;
    cut.kubelets.join(&joining).await?;
    eventually("the first nodes to be initialised", PATIENCE, async || {
        ensure!(cut.kubelets.initialised(&joining[..1]).await.is_ok() || cut.lines()? > 20, "none is");
        Ok(())
    })
    .await?;
    cut.proxy.let_traffic(Traffic::IsRefused);
    cut.core.says("the API server is away").await?;
    let before = cut.lines()?;
    tokio::time::sleep(Duration::from_secs(25)).await;
    let away = cut.lines()? - before;
    assert!(away < 20, "{away} lines while it was away");
    cut.proxy.let_traffic(Traffic::Passes);
    cut.core.says("the API server is back").await?;
    cut.initialised(&joining).await?;
    cut.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_core_whose_packets_are_swallowed_acts_again_within_a_minute_of_their_return() -> Result<()> {
    let machines = names("node", 2);
    let cut = Cut::of(&machines).await?;
    cut.core.says("leading epoch=").await?;
    cut.kubelets.join(&machines[..1]).await?;
    cut.initialised(&machines[..1]).await?;
    cut.proxy.let_traffic(Traffic::IsSwallowed);
    cut.core.says("the API server is away").await?;
    cut.kubelets.join(&machines[1..]).await?;
    assert!(cut.core.is_alive().await?, "waiting is no standing still");
    cut.proxy.let_traffic(Traffic::Passes);
    let back = Instant::now();
    cut.initialised(&machines).await?;
    assert!(back.elapsed() <= Duration::from_mins(1), "{:?}", back.elapsed());
    cut.end().await
}
