//! Flags about the log.
use clap::{Args, ValueEnum};
use serde::Serialize;

#[derive(Debug, Args)]
#[command(next_help_heading = "Logging")]
pub(super) struct LoggingArgs {
    /// Format of log lines; they go to stderr
    #[arg(long, visible_alias = "logging-format", value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// Verbosity of the log: 0 for ccm-core, 2 with libraries, 4 debug, 6 trace, 9 everything. RUST_LOG overrides it
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 0)]
    verbosity: u8,
}

/// The log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoggingConfig {
    /// Format of the lines.
    pub format: LogFormat,
    /// klog's verbosity level.
    pub verbosity: u8,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

impl LoggingArgs {
    pub(super) fn validate(self) -> LoggingConfig {
        LoggingConfig { format: self.log_format, verbosity: self.verbosity }
    }
}
