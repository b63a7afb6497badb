//! `provider-simulated cloud`: the cloud by itself, over HTTP.
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use ccm_provider_sdk::server::termination;
use clap::Args;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::cloud_args::CloudArgs;
use super::logs;
use crate::cloud::engine::Engine;
use crate::http::server;

/// How long running calls may take to end after a signal; one that hangs never would.
const GRACE: Duration = Duration::from_secs(2);

/// Serve a cloud over a small HTTP/JSON API.
///
/// Prints its address (`http://127.0.0.1:PORT`) as the first and only line on standard output once it answers. The API is
/// documented in providers/simulated/README.md; it has no authentication, so leave it on the loopback address.
#[derive(Debug, Args)]
pub struct CloudCommand {
    /// Address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    #[command(flatten)]
    cloud: CloudArgs,
}

/// Serves until SIGTERM or SIGINT.
pub async fn run(args: CloudCommand) -> anyhow::Result<()> {
    logs::start();
    let engine = Arc::new(Engine::start(args.cloud.settings()?)?);
    let calls = engine.calls();
    let listener = TcpListener::bind(args.listen).await.with_context(|| format!("--listen {}", args.listen))?;
    let mut out = std::io::stdout();
    writeln!(out, "http://{}", listener.local_addr()?)?;
    out.flush()?;
    let stop = CancellationToken::new();
    let served = axum::serve(listener, server::router(engine, calls)).with_graceful_shutdown(stop.clone().cancelled_owned());
    let served = tokio::spawn(async move { served.await });
    termination().await;
    stop.cancel();
    // A call that still runs then is cut off.
    let _ = tokio::time::timeout(GRACE, served).await;
    Ok(())
}
