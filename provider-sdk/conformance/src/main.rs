//! The program `provider-conformance`: parses, runs, exits. Everything else is in the library.
use std::process::ExitCode;

use ccm_provider_conformance::Cli;
use clap::Parser as _;

#[tokio::main]
async fn main() -> ExitCode {
    Cli::parse().run().await
}
