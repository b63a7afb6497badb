//! What an hour costs in which nothing happens but that kubelets report: ccm-core and upstream's manager in turn.
//!
//! The hour is compressed: the kubelets' status patches, the managers' periods and the time that a call to the cloud takes are all
//! quicker by the same factor. Not compressed are the renewals of the kubelets' leases, which no manager watches and of which an
//! API server here takes no more, and what no flag sets: how long watches last, and ccm-core's handshakes with its provider.
mod load;

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Result, ensure};
use ccm_test_support::core::{Core, CoreSpec};
use ccm_test_support::simulated::{Provider, ProviderSpec};
use ccm_test_support::world::World;
use clap::Args;

pub use self::load::{Load, Pace};
use crate::joined;
use crate::scale::Writes;
use crate::upstream::{self, Flags, Upstream};
use crate::usage::{Usage, milliseconds, number, while_running};

const HOUR: Duration = Duration::from_hours(1);
/// How often every node is compared with its machine, by default, and how often a kubelet reports when nothing changes.
const REFRESH: Duration = Duration::from_mins(5);
/// How often a kubelet renews its lease.
const RENEWAL: Duration = Duration::from_secs(10);
/// `--node-monitor-period` and `--leader-elect-retry-period` by default.
const MONITOR: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_secs(2);
/// How long the nodes may take to be initialised beforehand.
const LIMIT: Duration = Duration::from_mins(20);

/// Does nothing for an hour, beside upstream's manager, while kubelets report.
#[derive(Debug, Args)]
pub struct Idle {
    /// How many nodes, all initialised before.
    #[arg(long, default_value_t = 1000)]
    nodes: usize,
    /// Nodes as kubelets make them.
    #[arg(long)]
    fat: bool,
    /// Into how many minutes the hour is compressed.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=60))]
    minutes: u32,
    /// How long each call to the cloud takes before it is compressed.
    #[arg(long, default_value = "20ms", value_parser = milliseconds)]
    latency: Duration,
    /// With which flags upstream's manager runs.
    #[arg(long, value_enum, default_value_t = Flags::Default)]
    upstream: Flags,
}

/// What was used at one moment.
struct Sample {
    calls: u64,
    writes: usize,
    usages: Vec<Usage>,
}

impl Idle {
    /// Runs both and prints what was measured.
    pub async fn run(self) -> Result<()> {
        ensure!(self.nodes > 0, "--nodes: at least one");
        if self.upstream != Flags::None {
            upstream::program().await?;
        }
        println!(
            "{} idle nodes; an hour in {} minutes: status patches every {:.1?}, lease renewals every {:.2?} a node, {:.1?} a call",
            self.nodes,
            self.minutes,
            self.quick(REFRESH),
            RENEWAL,
            self.quick(self.latency)
        );
        println!("{:<24} {:>11} {:>15} {:>9} {:>8} {:>8}", "", "CPU s, hour", "CPU s, a minute", "peak MiB", "calls", "writes");
        self.core().await?;
        if self.upstream != Flags::None {
            self.upstream().await?;
        }
        Ok(())
    }

    async fn core(&self) -> Result<()> {
        let (world, load) = self.world().await?;
        let mut provider = self.provider(&world).start().await?;
        let mut core = self.spec(&world).start().await?;
        core.ready().await?;
        self.settle(&load).await?;
        let before = sample(&world, &mut core, &mut provider).await?;
        while_running(core.process(), self.hour(&load)).await?;
        self.print(&before, &sample(&world, &mut core, &mut provider).await?, &load);
        core.stop().await?;
        provider.stop().await?;
        world.end().await
    }

    async fn upstream(&self) -> Result<()> {
        let (world, load) = self.world().await?;
        let mut flags = self.periods();
        flags.extend(["--leader-elect=true", "--leader-elect-resource-name=upstream"].map(String::from));
        let mut upstream = Upstream::start(&world, self.upstream, self.quick(self.latency), &flags).await?;
        while_running(upstream.process(), self.settle(&load)).await?;
        let before = self.sample_upstream(&world, &mut upstream).await?;
        while_running(upstream.process(), self.hour(&load)).await?;
        self.print(&before, &self.sample_upstream(&world, &mut upstream).await?, &load);
        upstream.stop().await?;
        world.end().await
    }

    /// Nodes that ccm-core has initialised, which is gone again, and their kubelets.
    async fn world(&self) -> Result<(World, Load)> {
        let (world, names) = joined::quiet_world(self.nodes, self.fat).await?;
        let provider = world.provider().flag("--auto-instances").start().await?;
        let mut core = world.core().start().await?;
        while_running(core.process(), Writes::of(&world, self.nodes).all(LIMIT)).await?;
        core.stop().await?;
        provider.stop().await?;
        joined::check(&world, self.nodes).await?;
        let pace = Pace { status: self.quick(REFRESH), lease: RENEWAL };
        let load = Load::prepare(&world, &names, pace).await?;
        Ok((world, load))
    }

    fn provider(&self, world: &World) -> ProviderSpec {
        world.provider().flag("--auto-instances").flag(&format!("--latency={}us", self.quick(self.latency).as_micros()))
    }

    fn spec(&self, world: &World) -> CoreSpec {
        self.periods().iter().fold(world.core(), |core, flag| core.flag(flag))
    }

    /// The managers' periods; both know these flags.
    fn periods(&self) -> Vec<String> {
        let flag = |name: &str, period| format!("--{name}={}ms", self.quick(period).as_millis());
        vec![
            flag("node-status-update-frequency", REFRESH),
            flag("node-monitor-period", MONITOR),
            flag("leader-elect-retry-period", RETRY),
        ]
    }

    /// A time of the hour, compressed.
    fn quick(&self, time: Duration) -> Duration {
        time * self.minutes / 60
    }

    /// Two refresh periods: what a start costs is over then.
    async fn settle(&self, load: &Load) -> Result<()> {
        load.run(self.quick(REFRESH) * 2).await
    }

    async fn hour(&self, load: &Load) -> Result<()> {
        load.patches.store(0, Ordering::Relaxed);
        load.renewals.store(0, Ordering::Relaxed);
        load.run(self.quick(HOUR)).await
    }

    async fn sample_upstream(&self, world: &World, upstream: &mut Upstream) -> Result<Sample> {
        let usages = vec![Usage::of(self.upstream.name(), upstream.process())];
        Ok(Sample { calls: upstream.calls().await?.total(), writes: writes(world)?, usages })
    }

    fn print(&self, before: &Sample, after: &Sample, load: &Load) {
        for (index, (early, late)) in before.usages.iter().zip(&after.usages).enumerate() {
            let cpu = late.cpu.zip(early.cpu).map_or(f64::NAN, |(late, early)| late - early);
            let counts = format!("{:>8} {:>8}", after.calls - before.calls, after.writes - before.writes);
            println!(
                "{:<24} {cpu:>11.2} {:>15.3} {:>9.1} {}",
                if index == 0 { late.name.to_owned() } else { format!("  {}", late.name) },
                cpu / 60.0,
                late.peak.unwrap_or(f64::NAN),
                if index == 0 { &counts } else { "" }
            );
        }
        let due = |period: Duration, every: Duration| number(self.nodes) * period.as_secs_f64() / every.as_secs_f64();
        println!(
            "  meanwhile {} of {:.0} status patches and {} of {:.0} lease renewals",
            load.patches.load(Ordering::Relaxed),
            due(HOUR, REFRESH),
            load.renewals.load(Ordering::Relaxed),
            due(self.quick(HOUR), RENEWAL)
        );
    }
}

async fn sample(world: &World, core: &mut Core, provider: &mut Provider) -> Result<Sample> {
    let usages = vec![Usage::of("ccm-core", core.process()), Usage::of("provider-simulated", provider.process())];
    Ok(Sample { calls: provider.look_ups().await?, writes: writes(world)?, usages })
}

/// Successful writes to nodes by the manager so far.
fn writes(world: &World) -> Result<usize> {
    Ok(world.audit().node_writes()?.total())
}
