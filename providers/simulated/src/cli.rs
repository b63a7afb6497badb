//! The command line: what can be asked for, and which module does it. It decides nothing about clouds.
use clap::{Parser, Subcommand};

pub mod cloud;
pub mod cloud_args;
pub mod ctl;
pub mod load_balancer_args;
pub mod logs;
pub mod route_args;
pub mod serve;
pub mod table;

/// A simulated cloud, its ccm-core provider, and the means to make both misbehave.
///
/// `serve` is a provider for ccm-core with a cloud inside. `cloud` serves such a cloud by itself, for several providers or
/// one that is to be restarted without it. `ctl` is the hand that reaches into either: it adds, stops, terminates and
/// hides machines, lists load balancers and routes and changes them behind their owner's back, sets faults and reads call
/// counters.
#[derive(Debug, Parser)]
#[command(name = "provider-simulated", version = crate::provider::VERSION)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::ServeCommand),
    Cloud(cloud::CloudCommand),
    Ctl(ctl::CtlArgs),
    /// Ask a provider over its socket whether it serves; exits 0 if so. For kubelet's probes
    Health(ccm_provider_sdk::HealthArgs),
}

impl Cli {
    /// Does what was asked for, to its end.
    pub async fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Serve(args) => serve::run(args).await,
            Command::Cloud(args) => cloud::run(args).await,
            Command::Ctl(args) => ctl::run(args).await,
            Command::Health(args) => Ok(args.check().await?),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    #[test]
    fn the_command_line_holds_together() {
        Cli::command().debug_assert();
    }
}
