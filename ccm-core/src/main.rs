//! The binary: parse, run, exit code.
use std::process::ExitCode;

use ccm_core::config::Config;
use ccm_core::runtime::{self, logging, shutdown};

#[tokio::main]
async fn main() -> ExitCode {
    let config = match Config::from_args(std::env::args_os()) {
        Ok(config) => config,
        Err(error) => error.exit(),
    };
    logging::init(&config.logging);
    match runtime::run(config, shutdown::on_signal()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}
