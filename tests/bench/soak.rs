//! The soak: `cargo run -p ccm-tests --bin soak -- --kills 50`. Nodes join and leave for as long as it takes to kill one of
//! the two processes so often; it ends with exactly the right nodes or fails.
use std::time::Instant;

use anyhow::Result;
use ccm_test_support::churn::{Churn, Report};
use ccm_test_support::world::World;
use clap::Parser;

/// Kills ccm-core or its provider with -9 at random while nodes join and leave.
#[derive(Debug, Parser)]
struct Args {
    /// How many kills.
    #[arg(long, default_value_t = 50)]
    kills: usize,
    /// How many nodes join; half of them leave again.
    #[arg(long, default_value_t = 2000)]
    nodes: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Args { kills, nodes } = Args::parse();
    let began = Instant::now();
    let world = World::start().await?;
    let churn = Churn { nodes, kills: kills.clamp(1, nodes.max(1)) };
    let report = churn.run(&world, |line| println!("{:6.1} s  {line}", began.elapsed().as_secs_f64())).await?;
    world.end().await?;
    let Report { core_kills, provider_kills, nodes } = report;
    println!(
        "ended with exactly the {nodes} right nodes after {core_kills} kills of ccm-core and {provider_kills} of the provider"
    );
    Ok(())
}
