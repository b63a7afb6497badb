//! The command line of a provider that needs nothing special: `serve` and `health`.
use std::error::Error;
use std::process::ExitCode;

use crate::health::HealthArgs;
use crate::provider::Provider;
use crate::server::{self, ServeArgs, Server};

/// What a provider's program can do; a `clap` subcommand.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum ProviderCommand {
    /// Serve the provider on a Unix socket until SIGTERM or SIGINT.
    Serve(ServeArgs),
    /// Ask a running provider whether it serves: exit code 0 if so, 1 if not.
    Health(HealthArgs),
}

impl ProviderCommand {
    /// Does it, says on standard error what failed, and gives the process's exit code.
    pub async fn run(self, provider: impl Provider) -> ExitCode {
        let served = match self {
            Self::Serve(args) => serve(provider, &args).await,
            Self::Health(args) => return args.run().await,
        };
        match served {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}", chain(error.as_ref()));
                ExitCode::FAILURE
            }
        }
    }
}

async fn serve(provider: impl Provider, args: &ServeArgs) -> Result<(), Box<dyn Error>> {
    args.start_log()?;
    Server::from_args(provider, args).serve(server::termination()).await?;
    Ok(())
}

/// An error and all that caused it, in one line.
fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
