//! An API server that goes away under joining nodes: how many lines that costs, and how soon all are initialised after its return.
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use ccm_test_support::kubelet::names;
use ccm_test_support::proxy::{Proxy, Traffic};
use ccm_test_support::world::World;
use clap::Args;

use crate::joined;

/// Takes the API server away from ccm-core while nodes join.
#[derive(Debug, Args)]
pub struct Away {
    /// How many nodes join.
    #[arg(long, default_value_t = 1500)]
    nodes: usize,
    /// For how many seconds the API server is away.
    #[arg(long, default_value_t = 25)]
    seconds: u64,
}

impl Away {
    /// Runs both and prints what was measured.
    pub async fn run(self) -> Result<()> {
        println!("{} nodes, ccm-core on default flags, a fresh API server for each row", self.nodes);
        let undisturbed = self.undisturbed().await?;
        println!("undisturbed, from its start          {:6.2} s", undisturbed.as_secs_f64());
        let (lines, took) = self.disturbed().await?;
        println!(
            "after {} s away, from the return     {:6.2} s, {lines} log lines while it was away",
            self.seconds,
            took.as_secs_f64()
        );
        println!("ratio                                {:6.2}", took.as_secs_f64() / undisturbed.as_secs_f64());
        Ok(())
    }

    async fn undisturbed(&self) -> Result<Duration> {
        let (world, names) = joined::world(self.nodes).await?;
        let provider = world.provider().flag("--auto-instances").start().await?;
        let began = Instant::now();
        let (core, done) = tokio::join!(async { world.core().start().await }, joined::all_initialised(&world, names.len()));
        let took = done?.duration_since(began);
        core?.stop().await?;
        provider.stop().await?;
        world.end().await?;
        Ok(took)
    }

    /// The nodes join, half a second before the server goes away from the core, so that it is at work on them.
    async fn disturbed(&self) -> Result<(usize, Duration)> {
        let world = World::start().await?;
        let provider = world.provider().flag("--auto-instances").start().await?;
        let proxy = Proxy::start(world.dir(), world.core().kubeconfig()).await?;
        let core = world.core().through(proxy.kubeconfig()).start().await?;
        core.says("leading epoch=").await?;
        let (names, kubelets) = (names("node", self.nodes), world.kubelets());
        let cut = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            proxy.let_traffic(Traffic::IsRefused);
            let before = lines(core.log())?;
            tokio::time::sleep(Duration::from_secs(self.seconds)).await;
            anyhow::Ok(lines(core.log())? - before)
        };
        let (joined, away) = tokio::join!(kubelets.join(&names), cut);
        joined?;
        let away = away?;
        proxy.let_traffic(Traffic::Passes);
        let back = Instant::now();
        let took = joined::all_initialised(&world, self.nodes).await?.duration_since(back);
        core.stop().await?;
        provider.stop().await?;
        world.end().await?;
        Ok((away, took))
    }
}

fn lines(log: &Path) -> Result<usize> {
    Ok(fs::read_to_string(log)?.lines().count())
}
