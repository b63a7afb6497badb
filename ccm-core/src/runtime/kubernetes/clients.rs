//! The clients of the API server: one for requests, one for watches, one for the lease, so that no slow request and no rate limit
//! holds a renewal up. Each request has a deadline, and a server that vanishes without a word is noticed. It sends no request itself.
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::retry::RetryPolicy;
use kube::client::{ClientBuilder, ConfigExt};
use kube::{Client, Config};
use tower::limit::RateLimitLayer;
use tower::retry::RetryLayer;
use tower::timeout::TimeoutLayer;
use tower::{BoxError, ServiceBuilder};
use tower_http::timeout::ResponseBodyTimeoutLayer;

/// How long things may take.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// A request, repeats included; then again the rest of an answer that has begun.
    request: Duration,
    /// Until a watch or a list begins to be answered.
    watch: Duration,
    /// After how much silence a watch is dead. Watches last a minute (`cluster::view`), so that a healthy one always ends before.
    silence: Duration,
}

const LIMITS: Limits =
    Limits { request: Duration::from_secs(30), watch: Duration::from_secs(60), silence: Duration::from_secs(75) };
/// After how much unacknowledged sending the kernel gives a connection up.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);
/// How often an idle connection is probed.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How often a request is repeated that the server was too busy for (429, 503, 504), and the pauses where it names none.
const RETRIES: (u32, Duration, Duration) = (5, Duration::from_millis(100), Duration::from_secs(10));

/// The pace of `--kube-api-qps` and `--kube-api-burst`, for requests and watches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Requests a second.
    pub qps: f32,
    /// Requests at once.
    pub burst: u32,
}

impl Pace {
    fn layer(self) -> RateLimitLayer {
        let burst = self.burst.max(1);
        RateLimitLayer::new(u64::from(burst), Duration::from_secs_f64(f64::from(burst) / f64::from(self.qps)))
    }
}

/// The clients of one API server.
#[derive(Clone)]
pub struct Clients {
    /// For everything that is answered at once: deadline 30 s, repeats included.
    pub requests: Client,
    /// For watches and the lists that they begin with.
    pub watches: Client,
    /// For the lease: no repeats, no `--kube-api-qps`.
    pub election: Client,
}

impl Clients {
    /// The clients by a configuration.
    pub(super) fn new(config: &Config, pace: Option<Pace>) -> Result<Self, kube::Error> {
        Self::within(config, pace, LIMITS)
    }

    fn within(config: &Config, pace: Option<Pace>, limits: Limits) -> Result<Self, kube::Error> {
        Ok(Self {
            requests: client(config, limits.request, limits.request, true, pace)?,
            watches: client(config, limits.watch, limits.silence, true, pace)?,
            election: client(config, limits.request, limits.request, false, None)?,
        })
    }
}

/// `first`: until the answer begins, `silence`: between any two pieces of it.
fn client(config: &Config, first: Duration, silence: Duration, repeats: bool, pace: Option<Pace>) -> Result<Client, kube::Error> {
    let (retries, shortest, longest) = RETRIES;
    let policy = RetryPolicy::new(shortest, longest, retries, true).map_err(|error| kube::Error::Service(error.into()))?;
    let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new());
    let stack = ServiceBuilder::new()
        .option_layer(pace.map(Pace::layer))
        .layer(TimeoutLayer::new(first))
        .option_layer(repeats.then(|| RetryLayer::new(policy)))
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .layer(ResponseBodyTimeoutLayer::new(silence))
        .map_err(BoxError::from)
        .service(http.build(config.rustls_https_connector_with_connector(tcp())?));
    Ok(ClientBuilder::new(stack, config.default_namespace.clone()).build())
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT));
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_keepalive_interval(Some(KEEPALIVE));
    tcp.set_keepalive_retries(Some(3));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    tcp
}

#[cfg(test)]
mod tests;
