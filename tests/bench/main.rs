//! Benchmarks, to be run with `--release`: `cargo run --release -p ccm-tests --bin ccm-bench -- init --nodes 5000`.
//! They print figures and judge nothing.
use anyhow::Result;
use clap::{Parser, Subcommand};

mod bare;
mod init;
mod joined;

/// Times ccm-core at work on a real API server, beside a bare client that makes the same writes.
#[derive(Debug, Parser)]
#[command(name = "ccm-bench")]
struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Initialises nodes that have all joined before.
    Init(init::Init),
}

#[tokio::main]
async fn main() -> Result<()> {
    match Args::parse().bench {
        Bench::Init(init) => init.run().await,
    }
}
