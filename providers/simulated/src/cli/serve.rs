//! `provider-simulated serve`: the provider, with a cloud inside or a client of one elsewhere, and its control socket.
use std::sync::Arc;

use anyhow::bail;
use ccm_provider_sdk::endpoint::Endpoint;
use ccm_provider_sdk::server::{Server, Socket, termination};
use clap::Args;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::cloud_args::CloudArgs;
use super::load_balancer_args::LoadBalancerArgs;
use super::route_args::RouteArgs;
use crate::cloud::CloudApi;
use crate::cloud::counters::Counters;
use crate::cloud::engine::Engine;
use crate::cloud::model::CloudInfo;
use crate::cloud::pace::Latency;
use crate::http::client::Client;
use crate::http::server;
use crate::provider::Simulated;
use crate::provider::load_balancers::Balancers;
use crate::provider::routes::TableOfCloud;
use crate::provider::watched::Watched;

/// Serve the provider protocol on a Unix socket.
///
/// The cloud is within the process, unless --cloud names one elsewhere; then --latency and --jitter are added to each call
/// to it, and the other flags of a cloud belong to `provider-simulated cloud`. SIGTERM or SIGINT ends it after the running
/// calls. Should the cloud become another one (fault other-identity), connections are closed and cores shake hands anew.
#[derive(Debug, Args)]
pub struct ServeCommand {
    #[command(flatten)]
    server: ccm_provider_sdk::ServeArgs,

    /// Cloud to be the provider of: `http://HOST:PORT` as `provider-simulated cloud` prints it. Embedded unless given
    #[arg(long = "cloud", value_name = "URL")]
    cloud_url: Option<String>,

    /// Socket for `provider-simulated ctl`: `unix:///PATH`
    #[arg(long, value_name = "ENDPOINT")]
    control: Option<Endpoint>,

    /// The cloud's id for the cluster, as in Go's `HasClusterID`
    #[arg(long, value_name = "ID", default_value = "simulated-cluster")]
    cluster_id: String,

    /// Report no cluster id, as a cloud does that does not tag its clusters
    #[arg(long)]
    untagged: bool,

    #[command(flatten)]
    load_balancers: LoadBalancerArgs,

    #[command(flatten)]
    routes: RouteArgs,

    #[command(flatten)]
    cloud: CloudArgs,
}

/// Serves until SIGTERM or SIGINT.
pub async fn run(args: ServeCommand) -> anyhow::Result<()> {
    args.server.start_log()?;
    let stop = CancellationToken::new();
    tokio::spawn(stop_at_signal(stop.clone()));
    let cloud = cloud(args.cloud_url, args.cloud)?;
    let Some(cloud) = stop.run_until_cancelled(Watched::connect(cloud)).await else { return Ok(()) };
    let cloud = Arc::new(cloud);
    let calls = Arc::new(Simulated::counters());
    let control = args.control.as_ref();
    let _control = Control::start(control, Arc::clone(&cloud) as Arc<dyn CloudApi>, Arc::clone(&calls)).await?;
    let info = cloud.latest();
    let api = || Arc::clone(&cloud) as Arc<dyn CloudApi>;
    let balancers = Arc::new(Balancers::new(api(), Arc::clone(&calls), args.load_balancers.options()));
    let routes = Arc::new(TableOfCloud::new(api(), Arc::clone(&calls), args.routes.options()));
    let provider = || {
        let cluster_id = (!args.untagged).then(|| args.cluster_id.clone());
        Simulated::new(api(), info.clone(), Arc::clone(&calls), cluster_id, Arc::clone(&balancers), Arc::clone(&routes))
    };
    tokio::select! {
        served = serve(provider, &args.server, info.clone(), &stop) => served,
        () = cloud.keep_fresh() => Ok(()),
    }
}

/// Serves until `stop`; anew whenever the cloud has become another one, since a core asks who we are only when it connects.
async fn serve(
    provider: impl Fn() -> Simulated,
    args: &ccm_provider_sdk::ServeArgs,
    mut info: watch::Receiver<CloudInfo>,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    while !stop.is_cancelled() {
        let told = info.clone();
        let identity = info.borrow_and_update().cloud_identity.clone();
        let another = async {
            // An error would mean that the cloud's watcher is gone, and then the process ends.
            let _ = info.wait_for(|info| info.cloud_identity != identity).await;
            tracing::warn!("the cloud has become another one: closing connections, so that cores shake hands anew");
        };
        let end = async { stop.run_until_cancelled(another).await.unwrap_or(()) };
        Server::from_args(provider(), args).hold_handshakes(move || answerable(told.clone())).serve(end).await?;
    }
    Ok(())
}

/// Returns while handshakes are answered (fault `handshake-hang`).
async fn answerable(mut info: watch::Receiver<CloudInfo>) {
    // An error would mean that the cloud's watcher is gone, and then the process ends.
    let _ = info.wait_for(|info| !info.handshakes_hang).await;
}

async fn stop_at_signal(stop: CancellationToken) {
    termination().await;
    stop.cancel();
}

fn cloud(url: Option<String>, args: CloudArgs) -> anyhow::Result<Arc<dyn CloudApi>> {
    let Some(url) = url else { return Ok(Arc::new(Engine::start(args.settings()?)?)) };
    if let Some(flag) = args.for_the_cloud_only() {
        bail!("{flag} belongs to the cloud: give it to `provider-simulated cloud`, not to a provider with --cloud");
    }
    let latency = Latency { base: args.latency.unwrap_or_default(), jitter: args.jitter.unwrap_or_default() };
    Ok(Arc::new(Client::tcp(&url)?.with_latency(latency)))
}

/// The control socket, which goes when this is dropped.
struct Control {
    _socket: Socket,
    task: tokio::task::JoinHandle<()>,
}

impl Control {
    async fn start(endpoint: Option<&Endpoint>, cloud: Arc<dyn CloudApi>, calls: Arc<Counters>) -> anyhow::Result<Option<Self>> {
        let Some(endpoint) = endpoint else { return Ok(None) };
        let (socket, listener) = Socket::bind(endpoint.path()).await?;
        let serving = axum::serve(listener, server::router(cloud, calls));
        let task = tokio::spawn(async move {
            if let Err(error) = serving.await {
                tracing::error!(%error, "the control socket failed");
            }
        });
        Ok(Some(Self { _socket: socket, task }))
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.task.abort();
    }
}
