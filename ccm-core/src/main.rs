//! The binary: parse, run, exit code.
use std::process::ExitCode;

use ccm_core::causes;
use ccm_core::config::{Config, Invocation};
use ccm_core::runtime::{self, listing, logging, shutdown};

/// One worker thread beside the main one: the work is waiting, and on more threads a third of the processor time went into waking them.
#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() -> ExitCode {
    let done = match Invocation::from_args(std::env::args_os()) {
        Ok(Invocation::Run(config)) => start(*config).await,
        Ok(Invocation::List(config)) => listing::list(&config).await.map(|text| println!("{text}")).map_err(Into::into),
        Err(error) => error.exit(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ccm-core: {}", causes::line(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

async fn start(config: Config) -> anyhow::Result<()> {
    logging::init(&config.logging)?;
    Ok(runtime::run(config, shutdown::on_signals()?).await?)
}
