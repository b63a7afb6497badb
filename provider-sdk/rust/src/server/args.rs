//! The command-line arguments of a provider's server, to be flattened into its own.
use std::io::IsTerminal as _;
use std::time::Duration;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use crate::endpoint::Endpoint;

/// How a provider serves.
#[derive(Clone, Debug, clap::Args)]
pub struct ServeArgs {
    /// The Unix socket to serve on, as `unix:///absolute/path`.
    #[arg(long, env = "PROVIDER_ENDPOINT", value_name = "ENDPOINT")]
    pub endpoint: Endpoint,

    /// User ids that may connect, besides this process's own and root; repeated or separated by commas.
    #[arg(long, env = "PROVIDER_ALLOW_PEER_UID", value_name = "UID", value_delimiter = ',')]
    pub allow_peer_uid: Vec<u32>,

    /// How long running calls may take to end at shutdown, such as `30s`.
    #[arg(long, env = "PROVIDER_SHUTDOWN_GRACE", value_name = "DURATION", default_value = "30s", value_parser = humantime::parse_duration)]
    pub shutdown_grace: Duration,

    /// How the log looks.
    #[arg(long, env = "PROVIDER_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,

    /// What is logged: a level, or directives such as `info,h2=debug`.
    #[arg(long, env = "PROVIDER_LOG", value_name = "FILTER", default_value = "info")]
    pub log: String,
}

/// The form of the log's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Why the log could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter is not valid.
    #[error("--log: not a valid filter")]
    Filter(#[from] ParseError),
    /// Somebody else has set up a log.
    #[error("the log was set up twice")]
    Twice(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl ServeArgs {
    /// Sends the log of this process to standard error in the form and to the extent asked for.
    pub fn start_log(&self) -> Result<(), LogError> {
        let log = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::try_new(&self.log)?)
            .with_ansi(std::io::stderr().is_terminal())
            .with_writer(std::io::stderr);
        match self.log_format {
            LogFormat::Text => log.try_init(),
            LogFormat::Json => log.json().flatten_event(true).try_init(),
        }
        .map_err(LogError::Twice)
    }
}
