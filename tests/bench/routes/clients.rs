//! The clients, each in a world of its own in which every node has its Pod CIDRs and none has a route.
use std::time::Duration;

use anyhow::{Result, ensure};
use ccm_test_support::core::CoreSpec;
use ccm_test_support::ctl::Calls;
use ccm_test_support::kubelet::names;
use ccm_test_support::simulated::Provider;
use ccm_test_support::world::World;
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use serde_json::json;

use super::bare;
use crate::idle::{Load, Pace};
use crate::joined;
use crate::scale::{Row, Writes};
use crate::upstream::{Flags, Upstream};
use crate::usage::{Usage, while_running};

/// How long anything may take.
const LIMIT: Duration = Duration::from_mins(10);
/// The Pod CIDRs of all nodes are in these.
const CLUSTER_CIDRS: &str = "10.128.0.0/14,fd00:10::/48";
/// Writes at one time that give nodes their Pod CIDRs.
const IN_FLIGHT: usize = 32;
/// How often ccm-core compares the table by default.
const RESYNC: Duration = Duration::from_mins(5);
/// How often a kubelet reports when nothing changes, and how often it renews its lease.
const REPORT: (Duration, Duration) = (Duration::from_mins(5), Duration::from_secs(10));

/// What all of them get.
pub struct Clients {
    /// How many nodes.
    pub nodes: usize,
    /// How long a call to the cloud takes.
    pub latency: Duration,
}

impl Clients {
    /// A client that makes the calls and the writes and does nothing else, in this process.
    pub async fn bare(&self, in_flight: usize) -> Result<Row> {
        let (world, provider) = self.world().await?;
        let mut writes = Writes::of_status(&world, self.nodes)?;
        let began = Timestamp::now();
        tokio::try_join!(bare::route_all(&world, &provider, in_flight), writes.all(LIMIT))?;
        let row = Row::of("bare client", began, &writes).with(Vec::new(), changes(&provider.calls().await?));
        self.end(world, provider, row).await
    }

    /// ccm-core on default flags.
    pub async fn core(&self) -> Result<Row> {
        let (world, mut provider) = self.world().await?;
        let mut writes = Writes::of_status(&world, self.nodes)?;
        let began = Timestamp::now();
        let mut core = only_routes(world.core()).start().await?;
        while_running(core.process(), writes.all(LIMIT)).await?;
        let usages = vec![Usage::of("ccm-core", core.process()), Usage::of("provider-simulated", provider.process())];
        let row = Row::of("ccm-core", began, &writes).with(usages, changes(&provider.calls().await?));
        core.stop().await?;
        self.end(world, provider, row).await
    }

    /// Upstream's manager, with a routing table of its own.
    pub async fn upstream(&self, flags: Flags) -> Result<Row> {
        let (world, provider) = self.world().await?;
        let mut writes = Writes::of_status(&world, self.nodes)?;
        let more = ["--controllers=node-route-controller".to_owned(), cidrs(), "--simulated-routes".to_owned()];
        let began = Timestamp::now();
        let mut upstream = Upstream::start(&world, flags, self.latency, &more).await?;
        while_running(upstream.process(), writes.all(LIMIT)).await?;
        let calls = upstream.calls().await?;
        let changes = calls.of("CreateRoute") + calls.of("DeleteRoute");
        let row = Row::of(flags.name(), began, &writes).with(vec![Usage::of(flags.name(), upstream.process())], changes);
        upstream.stop().await?;
        provider.stop().await?;
        world.end().await?;
        Ok(row)
    }

    /// An hour without changes, compressed, after all routes are there: how often ccm-core reads the table.
    pub async fn hour(&self, minutes: u32) -> Result<()> {
        let (world, provider) = self.world().await?;
        let mut writes = Writes::of_status(&world, self.nodes)?;
        let resync = format!("--route-reconciliation-period={}ms", quick(RESYNC, minutes).as_millis());
        let mut core = only_routes(world.core()).flag(&resync).start().await?;
        while_running(core.process(), writes.all(LIMIT)).await?;
        let pace = Pace { status: quick(REPORT.0, minutes), lease: REPORT.1 };
        let load = Load::prepare(&world, &names("node", self.nodes), pace).await?;
        let (before, cpu) = (provider.calls().await?, Usage::of("ccm-core", core.process()).cpu);
        while_running(core.process(), load.run(quick(Duration::from_hours(1), minutes))).await?;
        let (calls, now) = (provider.calls().await?.since(&before), Usage::of("ccm-core", core.process()).cpu);
        let used = now.zip(cpu).map_or(f64::NAN, |(now, before)| now - before);
        println!(
            "\nan hour in {minutes} minutes (status patches and the resync compressed): {} lists, {} changes of the table, \
             {used:.2} s of CPU",
            calls.of("ListRoutes"),
            changes(&calls)
        );
        core.stop().await?;
        provider.stop().await?;
        world.end().await
    }

    /// Nodes that are initialised and have Pod CIDRs, and a cloud without a route.
    async fn world(&self) -> Result<(World, Provider)> {
        let (world, names) = joined::quiet_world(self.nodes, false).await?;
        let latency = format!("--latency={}ms", self.latency.as_millis());
        let provider = world.provider().flag("--auto-instances").flag(&latency).start().await?;
        let mut core = world.core().flag("--configure-cloud-routes=false").start().await?;
        while_running(core.process(), Writes::of(&world, self.nodes).all(LIMIT)).await?;
        core.stop().await?;
        give_pod_cidrs(&world, &names).await?;
        Ok((world, provider))
    }

    /// After the clock: the table must be what was asked for.
    async fn end(&self, world: World, provider: Provider, row: Row) -> Result<Row> {
        let routes = provider.cloud().routes().await?.len();
        ensure!(routes == 2 * self.nodes, "{} left {routes} routes instead of {}", row.client, 2 * self.nodes);
        provider.stop().await?;
        world.end().await?;
        Ok(row)
    }
}

async fn give_pod_cidrs(world: &World, names: &[String]) -> Result<()> {
    let kubelets = world.kubelets();
    stream::iter(names.iter().enumerate())
        .map(Ok)
        .try_for_each_concurrent(IN_FLIGHT, |(number, name)| {
            let (kubelets, cidrs) = (kubelets.clone(), pod_cidrs(number));
            async move {
                let patch = json!({ "spec": { "podCIDR": cidrs[0], "podCIDRs": cidrs } });
                kubelets.merge(std::slice::from_ref(name), &patch).await
            }
        })
        .await
}

/// Of the node of this number: one of each family.
fn pod_cidrs(number: usize) -> [String; 2] {
    [format!("10.{}.{}.0/24", 128 + number / 256, number % 256), format!("fd00:10:0:{:x}::/64", number + 1)]
}

fn only_routes(core: CoreSpec) -> CoreSpec {
    core.flag("--controllers=node-route-controller").flag(&cidrs())
}

fn cidrs() -> String {
    format!("--cluster-cidr={CLUSTER_CIDRS}")
}

/// Calls that change the table.
fn changes(calls: &Calls) -> u64 {
    calls.of("CreateRoutes") + calls.of("DeleteRoutes")
}

/// A time of the hour, compressed.
fn quick(time: Duration, minutes: u32) -> Duration {
    time * minutes / 60
}
