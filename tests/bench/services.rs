//! Services that get load balancers: how long until all have addresses, until all follow a node, and what changes nothing.
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use ccm_test_support::kubelet::{Registration, names};
use ccm_test_support::process::Memory;
use ccm_test_support::services::{self, Services};
use ccm_test_support::simulated::Provider;
use ccm_test_support::wait::{eventually, throughout};
use ccm_test_support::world::World;
use clap::Args;
use serde_json::json;

use crate::{bare, joined, mib};

/// Longer than any of it takes.
const PATIENCE: Duration = Duration::from_mins(10);
/// For how long nothing must be called where nothing changes.
const QUIET: Duration = Duration::from_secs(5);

/// Gives Services load balancers, and lets a node join.
#[derive(Debug, Args)]
pub struct Serve {
    /// How many Services.
    #[arg(long, default_value_t = 200)]
    services: usize,
    /// How many nodes are there before.
    #[arg(long, default_value_t = 100)]
    nodes: usize,
    /// How long each call to the provider takes, in milliseconds.
    #[arg(long, default_value_t = 20)]
    latency: u64,
    /// Requests that the bare client makes at one time.
    #[arg(long, default_value_t = 32)]
    in_flight: usize,
}

impl Serve {
    /// Runs the bare client and then ccm-core, each against an API server of its own, and prints what was measured.
    pub async fn run(self) -> Result<()> {
        let Self { services, nodes, latency, .. } = self;
        println!("{services} Services on {nodes} nodes, {latency} ms a call, default flags, a fresh API server for each row");
        let bare = self.bare().await?;
        println!(
            "bare client, {:3} in flight        {:7.2} s   (create, and 2 patches each)",
            self.in_flight,
            bare.as_secs_f64()
        );
        let world = self.world().await?;
        let flags = ["--auto-instances".to_owned(), format!("--latency={latency}ms")];
        let provider = flags.iter().fold(world.provider(), |spec, flag| spec.flag(flag)).start().await?;
        let core = world.core().start().await?;
        core.ready().await?;
        self.create(&world, &provider, bare).await?;
        self.add_a_node(&world, &provider).await?;
        self.change_nothing(&world, &provider).await?;
        for (name, memory) in [("ccm-core", core.memory()), ("provider-simulated", provider.memory())] {
            if let Some(Memory { resident_kib, peak_kib }) = memory {
                println!("{name:<18} resident       {:7.1} MiB now, {:.1} MiB at most", mib(resident_kib), mib(peak_kib));
            }
        }
        core.stop().await?;
        provider.stop().await?;
        world.end().await
    }

    /// Nodes that are initialised already.
    async fn world(&self) -> Result<World> {
        let world = World::start().await?;
        world.kubelets().register(names("node", self.nodes).into_iter().map(old_node)).await?;
        Ok(world)
    }

    async fn bare(&self) -> Result<Duration> {
        let world = self.world().await?;
        let took = bare::serve_all(&world, &names("web", self.services), self.in_flight).await?;
        world.end().await?;
        Ok(took)
    }

    async fn create(&self, world: &World, provider: &Provider, bare: Duration) -> Result<()> {
        let (api, names) = (Services::new(world.admin()), names("web", self.services));
        let began = Instant::now();
        let (asked, served) = tokio::join!(api.ask(&names), joined::all_served(world, names.len()));
        asked?;
        let took = served?.duration_since(began);
        println!(
            "ccm-core, all have addresses      {:7.2} s   ({:+.2} s)",
            took.as_secs_f64(),
            took.as_secs_f64() - bare.as_secs_f64()
        );
        let calls = provider.calls().await?;
        println!(
            "  EnsureLoadBalancer              {:7}     PutNodeSet {}",
            calls.of("EnsureLoadBalancer"),
            calls.of("PutNodeSet")
        );
        Ok(())
    }

    async fn add_a_node(&self, world: &World, provider: &Provider) -> Result<()> {
        let before = provider.calls().await?;
        let began = Instant::now();
        world.kubelets().register([old_node("late".to_owned())]).await?;
        eventually("all load balancers to follow", PATIENCE, async || {
            let updates = provider.calls().await?.since(&before).of("UpdateLoadBalancer");
            ensure!(updates >= self.services as u64, "{updates} of {} did", self.services);
            Ok(())
        })
        .await?;
        let (took, serial) = (began.elapsed(), Duration::from_millis(self.latency) * u32::try_from(self.services)?);
        let share = took.as_secs_f64() / serial.as_secs_f64();
        println!(
            "a node joins, all updated         {:7.2} s   one after another {:.2} s; {share:.3} of that",
            took.as_secs_f64(),
            serial.as_secs_f64()
        );
        let calls = provider.calls().await?.since(&before);
        println!(
            "  UpdateLoadBalancer              {:7}     PutNodeSet {}",
            calls.of("UpdateLoadBalancer"),
            calls.of("PutNodeSet")
        );
        Ok(())
    }

    async fn change_nothing(&self, world: &World, provider: &Provider) -> Result<()> {
        let (kubelets, node) = (world.kubelets(), ["node-0".to_owned()]);
        for what in ["a label that nobody asked for", "a readiness flap"] {
            let before = provider.calls().await?;
            if what.starts_with("a label") {
                kubelets.merge(&node, &json!({ "metadata": { "labels": { "team": "blue" } } })).await?;
            } else {
                let taint = json!([{ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" }]);
                kubelets.report(&node, false).await?;
                kubelets.merge(&node, &json!({ "spec": { "taints": taint } })).await?;
                kubelets.report(&node, true).await?;
                kubelets.merge(&node, &json!({ "spec": { "taints": null } })).await?;
            }
            throughout("nothing is called", QUIET, async || {
                let calls = provider.calls().await?.since(&before).mutations();
                ensure!(calls == 0, "{calls} calls");
                Ok(())
            })
            .await?;
            println!("{what:<33} {:7} calls", provider.calls().await?.since(&before).mutations());
        }
        let served = Services::new(world.admin()).all().await?.values().filter(|service| services::is_served(service)).count();
        ensure!(served == self.services, "{served} of {} Services are served in the end", self.services);
        Ok(())
    }
}

/// A node that was there before: initialised, with the machine that the simulated cloud has for any name.
pub fn old_node(name: String) -> Registration {
    let id = format!("simulated://sim-1a/{name}");
    Registration::new(name).untainted().provider_id(&id)
}
