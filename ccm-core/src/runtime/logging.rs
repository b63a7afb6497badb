//! The log: text or JSON lines on stderr, with klog's levels. Nothing else may install a subscriber.
use std::io::IsTerminal;

use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use crate::config::{LogFormat, LoggingConfig};

/// Overrides `-v`: levels by module, such as `info,ccm_core::provider=debug`.
const VARIABLE: &str = "RUST_LOG";

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// `RUST_LOG` cannot be read.
    #[error("RUST_LOG: {0}; write levels by module, such as info,ccm_core::provider=debug, or unset it")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// There is a log already.
    #[error(transparent)]
    Init(#[from] TryInitError),
}

/// Starts logging to stderr, for the rest of the process's life.
pub fn init(config: &LoggingConfig) -> Result<(), LoggingError> {
    let directives = std::env::var(VARIABLE).ok().filter(|given| !given.is_empty());
    let colour = std::io::stderr().is_terminal();
    Ok(subscriber(config, directives.as_deref(), colour, std::io::stderr)?.try_init()?)
}

/// klog's levels: 0 and 1 are what matters, 2 and 3 add the libraries, 4 is debug, 6 trace, 9 everything.
///
/// kube warns at each connection that is not verified; the core warns once, when it reads the kubeconfig.
fn directives(verbosity: u8) -> &'static str {
    match verbosity {
        0..=1 => "warn,ccm_core=info,kube_client::client::tls=error",
        2..=3 => "info,kube_client::client::tls=error",
        4..=5 => "info,ccm_core=debug,kube_client::client::tls=error",
        6..=8 => "debug,ccm_core=trace",
        _ => "trace",
    }
}

type Boxed = Box<dyn Subscriber + Send + Sync>;

fn subscriber<W>(config: &LoggingConfig, overriding: Option<&str>, colour: bool, writer: W) -> Result<Boxed, LoggingError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let filter = EnvFilter::builder().parse(overriding.unwrap_or(directives(config.verbosity)))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    Ok(match config.format {
        LogFormat::Text => Box::new(builder.with_ansi(colour).finish()),
        LogFormat::Json => Box::new(builder.json().flatten_event(true).with_current_span(true).with_span_list(false).finish()),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use std::io::{Read, Seek};
    use std::sync::Arc;

    use super::*;

    /// What is written of one line at each level, from this crate and from another.
    fn written(format: LogFormat, verbosity: u8, overriding: Option<&str>) -> String {
        let mut file = tempfile::tempfile().unwrap();
        let writer = Arc::new(file.try_clone().unwrap());
        let subscriber = subscriber(&LoggingConfig { format, verbosity }, overriding, false, writer).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(node = "n-1", "ours at info");
            tracing::debug!("ours at debug");
            tracing::info!(target: "kube", "theirs at info");
            tracing::warn!(target: "kube_client::client::tls::rustls_tls", "a connection is not verified");
        });
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn verbosity_is_klogs() {
        let rows = [(0, true, false, false), (2, true, false, true), (4, true, true, true), (9, true, true, true)];
        for (verbosity, info, debug, theirs) in rows {
            let text = written(LogFormat::Text, verbosity, None);
            let found = (text.contains("ours at info"), text.contains("ours at debug"), text.contains("theirs"));
            assert_eq!(found, (info, debug, theirs), "-v={verbosity}");
        }
    }

    #[test]
    fn what_kube_says_of_every_connection_is_for_those_who_debug() {
        for (verbosity, expected) in [(0, false), (2, false), (4, false), (6, true)] {
            assert_eq!(written(LogFormat::Text, verbosity, None).contains("not verified"), expected, "-v={verbosity}");
        }
    }

    #[test]
    fn rust_log_overrides_the_flag_and_is_refused_when_it_cannot_be_read() {
        assert_eq!(written(LogFormat::Text, 9, Some("off")), "");
        let config = LoggingConfig { format: LogFormat::Text, verbosity: 0 };
        let refused = subscriber(&config, Some("ccm_core=loud"), false, std::io::sink).map(|_| ()).unwrap_err();
        assert!(refused.to_string().starts_with("RUST_LOG: "));
    }

    #[test]
    fn json_is_one_object_a_line_with_the_fields_beside_the_message() {
        let text = written(LogFormat::Json, 0, None);
        let line: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
        assert_eq!((&line["message"], &line["node"], &line["level"]), (&"ours at info".into(), &"n-1".into(), &"INFO".into()));
    }
}
