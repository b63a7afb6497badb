//! Log lines, on standard error: standard output belongs to what was asked for.
use tracing_subscriber::EnvFilter;

/// Starts logging at `RUST_LOG`, or at `info`.
pub fn start() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    // Only a test has started it before.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}
