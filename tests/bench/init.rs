//! How long until nodes that have all joined are initialised, and what it takes: calls, writes, memory.
use std::time::{Duration, Instant};

use anyhow::Result;
use ccm_test_support::process::Memory;
use clap::Args;

use crate::{bare, joined, mib};

/// Initialises nodes that have all joined before.
#[derive(Debug, Args)]
pub struct Init {
    /// How many.
    #[arg(long, default_value_t = 5000)]
    nodes: usize,
    /// How long each call to the provider takes.
    #[arg(long, default_value = "20ms")]
    latency: String,
    /// Requests that the bare client makes at one time; one run for each.
    #[arg(long, value_delimiter = ',', default_value = "32,64")]
    in_flight: Vec<usize>,
}

/// What ccm-core needed.
struct Figures {
    took: Duration,
    calls: u64,
    writes: usize,
    most_writes: usize,
    conflicts: usize,
    core: Option<Memory>,
    provider: Option<Memory>,
}

impl Init {
    /// Runs the bare client and then ccm-core, each against an API server of its own, and prints what was measured.
    pub async fn run(self) -> Result<()> {
        println!("{} nodes, {} a call, 2 writes a node, a fresh API server for each row", self.nodes, self.latency);
        let mut best = Duration::MAX;
        for &in_flight in &self.in_flight {
            let took = self.bare(in_flight).await?;
            best = best.min(took);
            println!("bare client, {in_flight:3} in flight   {:7.2} s", took.as_secs_f64());
        }
        let figures = self.core().await?;
        println!("ccm-core, default flags      {:7.2} s   (from its start)", figures.took.as_secs_f64());
        if best < Duration::MAX {
            println!("ratio to the best bare run   {:7.2}", figures.took.as_secs_f64() / best.as_secs_f64());
        }
        figures.print(self.nodes);
        Ok(())
    }

    async fn bare(&self, in_flight: usize) -> Result<Duration> {
        let (world, _) = joined::world(self.nodes).await?;
        let took = bare::patch_all(&world, in_flight).await?;
        world.end().await?;
        Ok(took)
    }

    async fn core(&self) -> Result<Figures> {
        let (world, names) = joined::world(self.nodes).await?;
        let latency = format!("--latency={}", self.latency);
        let provider = world.provider().flag("--auto-instances").flag(&latency).start().await?;
        let began = Instant::now();
        let (core, done) = tokio::join!(async { world.core().start().await }, joined::all_initialised(&world, names.len()));
        let (core, took) = (core?, done?.duration_since(began));
        let writes = world.audit().node_writes()?;
        let figures = Figures {
            took,
            calls: provider.look_ups().await?,
            writes: writes.total(),
            most_writes: writes.most(),
            conflicts: writes.conflicts,
            core: core.memory(),
            provider: provider.memory(),
        };
        core.stop().await?;
        provider.stop().await?;
        world.end().await?;
        Ok(figures)
    }
}

impl Figures {
    fn print(&self, nodes: usize) {
        println!("BatchGetInstances            {:7} calls", self.calls);
        println!(
            "successful writes            {:7}     {} for {nodes} nodes, at most {} to one",
            self.writes, self.writes, self.most_writes
        );
        println!("conflicts                    {:7}", self.conflicts);
        for (name, memory) in [("ccm-core", self.core), ("provider-simulated", self.provider)] {
            if let Some(Memory { resident_kib, peak_kib }) = memory {
                println!("{name:<18} resident  {:7.1} MiB now, {:.1} MiB at most", mib(resident_kib), mib(peak_kib));
            }
        }
    }
}
