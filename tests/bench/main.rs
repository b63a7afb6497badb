//! Benchmarks, to be run with `--release`: `cargo run --release -p ccm-tests --bin ccm-bench -- init --nodes 5000`.
//! They print figures and judge nothing.
use anyhow::Result;
use clap::{Parser, Subcommand};

mod away;
mod bare;
mod init;
mod joined;
mod node_sets;
mod services;

/// Times ccm-core at work on a real API server, beside a bare client that makes the same writes.
#[derive(Debug, Parser)]
#[command(name = "ccm-bench")]
struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Takes the API server away while nodes join.
    Away(away::Away),
    /// Initialises nodes that have all joined before.
    Init(init::Init),
    /// Gives Services load balancers, and lets a node join.
    Services(services::Serve),
    /// Lets a node join many nodes and many Services, with node sets and without.
    NodeSets(node_sets::NodeSets),
}

#[tokio::main]
async fn main() -> Result<()> {
    match Args::parse().bench {
        Bench::Away(away) => away.run().await,
        Bench::Init(init) => init.run().await,
        Bench::Services(services) => services.run().await,
        Bench::NodeSets(node_sets) => node_sets.run().await,
    }
}

/// No process is so large that this loses anything.
#[allow(clippy::cast_precision_loss)]
fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
