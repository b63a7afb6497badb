//! Benchmarks, to be run with `--release`: `cargo run --release --bin ccm-bench -- scale --nodes 5000`.
//! They print figures and judge nothing.
use anyhow::Result;
use clap::{Parser, Subcommand};

mod away;
mod bare;
mod idle;
mod joined;
mod node_sets;
mod routes;
mod scale;
mod services;
mod upstream;
mod usage;

/// Times ccm-core at work on a real API server, beside a bare client that makes the same writes and beside upstream's manager.
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
    /// Initialises nodes that have all joined before, beside a bare client and upstream's manager.
    Scale(scale::Scale),
    /// Does nothing for an hour, beside upstream's manager, while kubelets report.
    Idle(idle::Idle),
    /// Gives Services load balancers, and lets a node join.
    Services(services::Serve),
    /// Lets a node join many nodes and many Services, with node sets and without.
    NodeSets(node_sets::NodeSets),
    /// Gives nodes their routes, beside a bare client and upstream's manager; then does nothing for an hour.
    Routes(routes::Routes),
}

#[tokio::main]
async fn main() -> Result<()> {
    match Args::parse().bench {
        Bench::Away(away) => away.run().await,
        Bench::Scale(scale) => scale.run().await,
        Bench::Idle(idle) => idle.run().await,
        Bench::Services(services) => services.run().await,
        Bench::NodeSets(node_sets) => node_sets.run().await,
        Bench::Routes(routes) => routes.run().await,
    }
}

/// No process is so large that this loses anything.
#[allow(clippy::cast_precision_loss)]
fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
