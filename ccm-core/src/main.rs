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
    match start(config).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ccm-core: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn start(config: Config) -> anyhow::Result<()> {
    logging::init(&config.logging)?;
    Ok(runtime::run(config, shutdown::on_signals()?).await?)
}
