//! The program: reads the command line, does what it says, and puts what went wrong into words and an exit code.
use std::process::ExitCode;

use clap::Parser as _;
use provider_simulated::cli::Cli;

#[tokio::main]
async fn main() -> ExitCode {
    match Cli::parse().run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("provider-simulated: {error:#}");
            ExitCode::FAILURE
        }
    }
}
