//! The clients of the API server: one for requests, one for watches, one for the lease, so that no slow request and no rate limit
//! delays a renewal. Each request has a deadline, and the loss of a server without a reset is noticed. It sends no request itself.
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

use crate::cluster::presence::Presence;

/// How long things may take.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// A request, including retries; then again the rest of an answer that has begun.
    request: Duration,
    /// Until the answer to a watch or a list begins.
    watch: Duration,
    /// After how much silence a watch is dead. Watches last a minute (`cluster::view`), so that a healthy one always ends before;
    /// a list that is streamed may last longer and is not silent.
    silence: Duration,
}

const LIMITS: Limits =
    Limits { request: Duration::from_secs(30), watch: Duration::from_secs(60), silence: Duration::from_secs(75) };
/// How long sent data may stay unacknowledged before the kernel closes the connection.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);
/// How often an idle connection is probed.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How often a request is retried that a busy server refused (429, 503, 504), and the pauses if the server names none.
const RETRIES: (u32, Duration, Duration) = (5, Duration::from_millis(100), Duration::from_secs(10));

/// The pace of `--kube-api-qps` and `--kube-api-burst`, for requests and watches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Requests per second.
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
    /// For requests with a single answer: deadline 30 s, including retries.
    pub requests: Client,
    /// For watches and the lists that they begin with.
    pub watches: Client,
    /// For the lease: no retries, no `--kube-api-qps`.
    pub election: Client,
    /// For the probe of `presence`.
    pub probe: Client,
    /// Whether the API server is there.
    pub presence: Presence,
}

impl Clients {
    /// The clients by a configuration.
    pub(super) fn new(config: &Config, pace: Option<Pace>) -> Result<Self, kube::Error> {
        Self::within(config, pace, LIMITS)
    }

    fn within(config: &Config, pace: Option<Pace>, limits: Limits) -> Result<Self, kube::Error> {
        let presence = Presence::default();
        let request = Kind { first: limits.request, silence: limits.request, repeats: true, presence: Some(&presence) };
        let watch = Kind { first: limits.watch, silence: limits.silence, ..request };
        let election = Kind { repeats: false, ..request };
        let probe = Kind { presence: None, ..election };
        Ok(Self {
            requests: client(config, request, pace)?,
            watches: client(config, watch, pace)?,
            election: client(config, election, None)?,
            probe: client(config, probe, None)?,
            presence,
        })
    }
}

/// What a client is for.
#[derive(Clone, Copy)]
struct Kind<'a> {
    /// How long until an answer begins.
    first: Duration,
    /// How long between any two pieces of it.
    silence: Duration,
    /// Whether a request that a busy server refused is retried.
    repeats: bool,
    /// Where unanswered requests are reported.
    presence: Option<&'a Presence>,
}

fn client(config: &Config, kind: Kind<'_>, pace: Option<Pace>) -> Result<Client, kube::Error> {
    let presence = kind.presence.cloned();
    let report = move |result: Result<_, BoxError>| {
        if let (Err(_), Some(presence)) = (&result, &presence) {
            presence.doubt();
        }
        result
    };
    let (retries, shortest, longest) = RETRIES;
    let policy = RetryPolicy::new(shortest, longest, retries, true).map_err(|error| kube::Error::Service(error.into()))?;
    let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new());
    let stack = ServiceBuilder::new()
        .option_layer(pace.map(Pace::layer))
        .map_result(report)
        .layer(TimeoutLayer::new(kind.first))
        .option_layer(kind.repeats.then(|| RetryLayer::new(policy)))
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .layer(ResponseBodyTimeoutLayer::new(kind.silence))
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
