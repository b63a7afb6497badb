//! Health, metrics and configuration over plain HTTP: `/healthz /livez /readyz /metrics /configz /version`. It only
//! shows health checks that other modules set.
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::config::Config;
use crate::telemetry::health::{Check, Health};

#[cfg(test)]
mod tests;

/// The format that Prometheus requests and that current scrapers understand.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What the endpoints show.
#[derive(Clone)]
pub struct Endpoints {
    health: Health,
    registry: Arc<Registry>,
    config: Arc<Value>,
}

/// Why nothing can be served.
#[derive(Debug, thiserror::Error)]
pub enum ServingError {
    /// The address cannot be listened on.
    #[error("--bind-address, --secure-port: cannot listen on {address}: {source}; give another port, or 0 to serve nothing")]
    Bind {
        /// Which.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The configuration has no JSON form.
    #[error("the configuration cannot be shown: {0}")]
    Config(#[from] serde_json::Error),
    /// The listener failed.
    #[error("serving health and metrics failed: {0}")]
    Serve(#[from] io::Error),
}

impl Endpoints {
    /// Of this configuration, health and registry.
    pub fn new(config: &Config, health: Health, registry: Arc<Registry>) -> Result<Self, ServingError> {
        Ok(Self { health, registry, config: Arc::new(serde_json::to_value(config)?) })
    }

    fn router(self) -> Router {
        Router::new()
            .route("/healthz", get(alive))
            .route("/livez", get(alive))
            .route("/readyz", get(ready))
            .route("/metrics", get(metrics))
            .route("/configz", get(configz))
            .route("/version", get(version))
            .with_state(self)
    }
}

/// A listening socket that serves nothing yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    /// Listens. Port 0 takes a free one.
    pub async fn bind(address: SocketAddr) -> Result<Self, ServingError> {
        let failed = |source| ServingError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        info!(%address, "serving health and metrics");
        Ok(Self { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves on a thread of its own until this is dropped, so that `/livez` answers also while a task of the process makes no
    /// progress. Returns only where that thread ends.
    pub async fn serve_apart(self, endpoints: Endpoints) -> Result<(), ServingError> {
        let (ended, end) = oneshot::channel();
        let (stop, listener) = (CancellationToken::new(), self.listener.into_std()?);
        let (_stop_with_this, address) = (stop.clone().drop_guard(), self.address);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let serve = async move { Self { listener: TcpListener::from_std(listener)?, address }.serve(endpoints, stop).await };
        let serve = move || drop(ended.send(runtime.block_on(serve)));
        thread::Builder::new().name("serving".to_owned()).spawn(serve)?;
        end.await.unwrap_or_else(|_| Err(ServingError::Serve(io::Error::other("its thread ended"))))
    }

    /// Serves until shutdown, requests that are running included.
    pub async fn serve(self, endpoints: Endpoints, shutdown: CancellationToken) -> Result<(), ServingError> {
        let serving = axum::serve(self.listener, endpoints.router());
        Ok(serving.with_graceful_shutdown(shutdown.cancelled_owned()).await?)
    }
}

/// 200 unless a task makes no progress or the lease is overdue.
async fn alive(State(endpoints): State<Endpoints>) -> Response {
    let problems = endpoints.health.liveness().problems();
    if problems.is_empty() {
        return "ok".into_response();
    }
    tracing::error!(?problems, "livez check failed");
    (StatusCode::INTERNAL_SERVER_ERROR, problems.join("\n") + "\nlivez check failed\n").into_response()
}

/// 200 unless a check failed. The checks are listed when one failed, and with `?verbose`.
async fn ready(State(endpoints): State<Endpoints>, RawQuery(query): RawQuery) -> Response {
    let checks = endpoints.health.checks();
    let failed = checks.values().any(|check| matches!(check, Check::Failed(_)));
    let verbose = query.is_some_and(|query| query.split('&').any(|part| part == "verbose" || part.starts_with("verbose=")));
    let listed: String = checks.iter().map(|(name, check)| line(name, check)).collect();
    match (failed, verbose) {
        (true, _) => (StatusCode::INTERNAL_SERVER_ERROR, listed + "readyz check failed\n").into_response(),
        (false, true) => (listed + "readyz check passed\n").into_response(),
        (false, false) => "ok".into_response(),
    }
}

fn line(name: &str, check: &Check) -> String {
    match check {
        Check::Ok => format!("[+]{name} ok\n"),
        Check::Warning(why) => format!("[!]{name}: warning: {why}\n"),
        Check::Failed(why) => format!("[-]{name}: failed: {why}\n"),
    }
}

async fn metrics(State(endpoints): State<Endpoints>) -> Response {
    let mut text = String::new();
    match prometheus_client::encoding::text::encode(&mut text, &endpoints.registry) {
        Ok(()) => ([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("metrics cannot be written: {error}\n")).into_response(),
    }
}

async fn configz(State(endpoints): State<Endpoints>) -> Json<Value> {
    Json(json!({ "ccm-core.dev": &*endpoints.config }))
}

async fn version() -> Json<Value> {
    let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
    Json(json!({ "name": env!("CARGO_PKG_NAME"), "gitVersion": concat!("v", env!("CARGO_PKG_VERSION")), "platform": platform }))
}
