//! What it costs to tell a provider of thousands of nodes for a thousand load balancers: each set once, or in every call.
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use ccm_test_support::core::Core;
use ccm_test_support::kubelet::names;
use ccm_test_support::process::Memory;
use ccm_test_support::services::Services;
use ccm_test_support::simulated::Provider;
use ccm_test_support::wait::eventually;
use ccm_test_support::world::World;
use clap::Args;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

use crate::services::old_node;
use crate::{joined, mib};

const PATIENCE: Duration = Duration::from_mins(20);

/// Lets a node join many nodes and many Services, with node sets and without.
#[derive(Debug, Args)]
pub struct NodeSets {
    /// How many Services.
    #[arg(long, default_value_t = 1000)]
    services: usize,
    /// How many nodes are there before.
    #[arg(long, default_value_t = 5000)]
    nodes: usize,
    /// How long each call to the provider takes.
    #[arg(long, default_value = "20ms")]
    latency: String,
}

/// What a node that joined cost.
struct Cost {
    took: Duration,
    sent: u64,
    encodings: f64,
    encoding: f64,
    core: Option<Memory>,
    provider: Option<Memory>,
}

impl NodeSets {
    /// Measures both forms, each in a world of its own.
    pub async fn run(self) -> Result<()> {
        println!("{} Services, {} nodes, {} a call; one node joins", self.services, self.nodes, self.latency);
        println!(
            "{:<10} {:>9} {:>14} {:>10} {:>13} {:>15} {:>19}",
            "form", "seconds", "bytes sent", "encodings", "encoding, ms", "core peak, MiB", "provider peak, MiB"
        );
        let once = self.measure(true).await?;
        once.print("node sets");
        let inline = self.measure(false).await?;
        inline.print("inline");
        println!("inline sends {:.0} times as many bytes", ratio(inline.sent, once.sent));
        Ok(())
    }

    async fn measure(&self, node_sets: bool) -> Result<Cost> {
        let world = World::start().await?;
        world.kubelets().register(names("node", self.nodes).into_iter().map(old_node)).await?;
        let flags = ["--auto-instances".to_owned(), format!("--latency={}", self.latency), format!("--node-sets={node_sets}")];
        let provider = flags.iter().fold(world.provider(), |spec, flag| spec.flag(flag)).start().await?;
        let wire = Wire::tap(world.dir().join("tap.sock"), provider.spec().endpoint())?;
        let core = world.core().endpoint(&wire.path).start().await?;
        core.ready().await?;
        let services = names("web", self.services);
        let (asked, served) =
            tokio::join!(async { Services::new(world.admin()).ask(&services).await }, joined::all_served(&world, services.len()));
        asked?;
        served?;
        let cost = self.join(&world, &provider, &core, &wire).await?;
        core.stop().await?;
        provider.stop().await?;
        world.end().await?;
        Ok(cost)
    }

    async fn join(&self, world: &World, provider: &Provider, core: &Core, wire: &Wire) -> Result<Cost> {
        let (calls, sent, encoded) = (provider.calls().await?, wire.sent(), encodings(core).await?);
        let began = Instant::now();
        world.kubelets().register([old_node("late".to_owned())]).await?;
        eventually("all load balancers to follow", PATIENCE, async || {
            let updates = provider.calls().await?.since(&calls).of("UpdateLoadBalancer");
            ensure!(updates >= self.services as u64, "{updates} of {} did", self.services);
            Ok(())
        })
        .await?;
        let took = began.elapsed();
        let now = encodings(core).await?;
        Ok(Cost {
            took,
            sent: wire.sent() - sent,
            encodings: now.0 - encoded.0,
            encoding: now.1 - encoded.1,
            core: core.memory(),
            provider: provider.memory(),
        })
    }
}

impl Cost {
    fn print(&self, form: &str) {
        let peak = |memory: Option<Memory>| memory.map_or(f64::NAN, |memory| mib(memory.peak_kib));
        println!(
            "{form:<10} {:>9.2} {:>14} {:>10} {:>13.1} {:>15.1} {:>19.1}",
            self.took.as_secs_f64(),
            self.sent,
            self.encodings,
            self.encoding * 1000.0,
            peak(self.core),
            peak(self.provider)
        );
    }
}

/// How many node sets were encoded, and the seconds that took.
async fn encodings(core: &Core) -> Result<(f64, f64)> {
    let read = async |part: &str| {
        let name = format!("ccm_core_provider_node_set_encode_seconds_{part}");
        core.metric(&name).await?.with_context(|| format!("/metrics has no {name}"))
    };
    Ok((read("count").await?, read("sum").await?))
}

#[allow(clippy::cast_precision_loss)] // no count here is so large
fn ratio(one: u64, other: u64) -> f64 {
    one as f64 / other.max(1) as f64
}

/// Stands between core and provider, and counts what the core sends.
struct Wire {
    path: PathBuf,
    sent: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Wire {
    fn tap(path: PathBuf, provider: PathBuf) -> Result<Self> {
        let listener = UnixListener::bind(&path)?;
        let sent = Arc::<AtomicU64>::default();
        let counter = Arc::clone(&sent);
        let task = tokio::spawn(async move {
            while let Ok((core, _)) = listener.accept().await {
                let Ok(provider) = UnixStream::connect(&provider).await else { continue };
                let (from_core, to_core) = core.into_split();
                let (from_provider, to_provider) = provider.into_split();
                tokio::spawn(pass(from_core, to_provider, Arc::clone(&counter)));
                tokio::spawn(pass(from_provider, to_core, Arc::default()));
            }
        });
        Ok(Self { path, sent, task })
    }

    fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, counter: Arc<AtomicU64>) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        counter.fetch_add(read as u64, Ordering::Relaxed);
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
