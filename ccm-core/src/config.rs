//! Flags, validated once into one [`Config`]. Where upstream's cloud-controller-manager has a flag, ccm-core has the same one, in
//! Go's syntax, so that the arguments of an existing deployment keep working; `config/compatibility/table.rs` lists the class of
//! each. Nothing here reads a file, asks Kubernetes or knows the effect of a flag.
use std::ffi::OsString;

use clap::Parser;
use serde::Serialize;

use crate::names::controllers::ROUTE;

mod compatibility;
mod controllers;
mod deletion;
mod go_syntax;
mod kubernetes;
mod leader_election;
mod listing;
mod logging;
mod nodes;
mod provider;
mod routes;
pub mod services;
mod serving;
#[cfg(test)]
mod tests;

pub use controllers::ControllersConfig;
pub use deletion::DeletionConfig;
pub use kubernetes::KubernetesConfig;
pub use leader_election::LeaderElectionConfig;
pub use listing::{Listed, ListingConfig, Output};
pub use logging::{LogFormat, LoggingConfig};
pub use nodes::NodesConfig;
pub use provider::ProviderConfig;
pub use routes::RoutesConfig;
pub use services::{Drift, ServicesConfig};
pub use serving::ServingConfig;

const ABOUT: &str =
    "A Kubernetes cloud-controller-manager that knows no cloud: it speaks gRPC to a provider sidecar over a Unix socket";
const AFTER_HELP: &str = "Durations have Go's syntax: 500ms, 15s, 1h2m3.5s. ccm-core knows every other flag of upstream's cloud-controller-manager, v0.36 and v0.37: \
it accepts the flag with one warning that says why it has no effect, or refuses it with the remedy. Underscores in a flag's name count as dashes.

\
`ccm-core load-balancers --help` and `ccm-core routes --help` explain the commands that list the load balancers and the routes of this cluster in the cloud.";

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "ccm-core", version, about = ABOUT, long_about = ABOUT, after_help = AFTER_HELP, args_override_self = true)]
struct Cli {
    #[command(flatten)]
    provider: provider::ProviderArgs,
    #[command(flatten)]
    kubernetes: kubernetes::KubernetesArgs,
    #[command(flatten)]
    controllers: controllers::ControllersArgs,
    #[command(flatten)]
    nodes: nodes::NodesArgs,
    #[command(flatten)]
    deletion: deletion::DeletionArgs,
    #[command(flatten)]
    services: services::ServicesArgs,
    #[command(flatten)]
    routes: routes::RoutesArgs,
    #[command(flatten)]
    leader_election: leader_election::LeaderElectionArgs,
    #[command(flatten)]
    serving: serving::ServingArgs,
    #[command(flatten)]
    logging: logging::LoggingArgs,
    #[command(flatten)]
    compatibility: compatibility::CompatibilityArgs,
}

/// What the command line requests.
#[derive(Clone, Debug, PartialEq)]
pub enum Invocation {
    /// Run the controllers.
    Run(Box<Config>),
    /// List what is in the cloud: `ccm-core load-balancers` or `ccm-core routes`.
    List(Box<ListingConfig>),
}

impl Invocation {
    /// Reads a command line, which begins with the program's name; see [`Config::from_args`].
    pub fn from_args(args: impl IntoIterator<Item = OsString>) -> Result<Self, ConfigError> {
        let mut args = args.into_iter().peekable();
        let program = args.next().unwrap_or_default();
        if let Some(listed) = args.peek().and_then(|first| Listed::from_name(first)) {
            return ListingConfig::from_args(listed, args.skip(1)).map(|config| Self::List(Box::new(config)));
        }
        Config::from_args(std::iter::once(program).chain(args)).map(|config| Self::Run(Box::new(config)))
    }
}

/// The configuration of a run, valid and complete. `/configz` shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// The provider sidecar.
    pub provider: ProviderConfig,
    /// The API server and the cluster.
    pub kubernetes: KubernetesConfig,
    /// Which controllers run.
    pub controllers: ControllersConfig,
    /// Timing and concurrency of the node controllers.
    pub nodes: NodesConfig,
    /// When ccm-core may delete a Node.
    pub deletion: DeletionConfig,
    /// The load balancers of Services.
    pub services: ServicesConfig,
    /// The routes to the Pods of each node.
    pub routes: RoutesConfig,
    /// The lease, and how ccm-core releases it.
    pub leader_election: LeaderElectionConfig,
    /// Health and metrics endpoints.
    pub serving: ServingConfig,
    /// The log.
    pub logging: LoggingConfig,
    /// One sentence for each accepted flag that has no effect: for the log, once, at the start.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// Why there is no [`Config`].
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The command line cannot be read, or asked for help or the version.
    #[error(transparent)]
    CommandLine(#[from] clap::Error),
    /// The value of a flag is invalid.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

/// An invalid value of a flag, and what to do instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--{flag}: {problem}; {remedy}")]
pub struct Invalid {
    /// The flag, without its dashes.
    pub flag: &'static str,
    /// What is wrong with it.
    pub problem: String,
    /// What to do instead.
    pub remedy: String,
}

impl Invalid {
    fn new(flag: &'static str, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { flag, problem: problem.into(), remedy: remedy.into() }
    }
}

impl Config {
    /// Reads a command line, which begins with the program's name. `--help` and `--version` are errors that
    /// [`ConfigError::exit`] prints as help and version.
    pub fn from_args<I, T>(args: I) -> Result<Self, ConfigError>
    where
        I: IntoIterator<Item = T>,
        T: Into<OsString>,
    {
        let cli = Cli::try_parse_from(args.into_iter().map(Into::into).map(go_syntax::dashed))?;
        cli.validate().map_err(ConfigError::from)
    }

    /// Whether node-route-controller has routes to configure, if the provider serves them.
    pub fn configures_routes(&self) -> bool {
        self.controllers.runs(ROUTE) && self.routes.configure && !self.kubernetes.cluster_cidrs.is_empty()
    }
}

/// The value of a flag that is a part of something, if it is one.
fn fraction(flag: &'static str, given: f64) -> Result<f64, Invalid> {
    if given > 0.0 && given <= 1.0 {
        return Ok(given);
    }
    Err(Invalid::new(flag, format!("{given} is not a fraction"), "give more than 0 and at most 1, such as 0.2"))
}

impl Cli {
    fn validate(self) -> Result<Config, Invalid> {
        let mut warnings = self.compatibility.warnings()?;
        let controllers = self.controllers.validate(&mut warnings)?;
        Ok(Config {
            provider: self.provider.validate()?,
            kubernetes: self.kubernetes.validate()?,
            nodes: self.nodes.validate()?,
            deletion: self.deletion.validate()?,
            services: self.services.validate(&controllers)?,
            routes: self.routes.validate()?,
            controllers,
            leader_election: self.leader_election.validate()?,
            serving: self.serving.validate(&mut warnings),
            logging: self.logging.validate(),
            warnings,
        })
    }
}

impl ConfigError {
    /// Prints it (help and version on stdout, errors on stderr) and exits: with 0 for help and version, with 2 for an invalid command
    /// line.
    pub fn exit(self) -> ! {
        match self {
            Self::CommandLine(error) => error.exit(),
            Self::Invalid(invalid) => {
                eprintln!("error: {invalid}\n\nFor more information, try '--help'.");
                std::process::exit(2)
            }
        }
    }
}
