//! Services while the cloud is of no use for some time: meanwhile nothing is torn down and little is said, and afterwards all
//! becomes what it should be.
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;

use crate::expectation::{Expectation, Expected};
use crate::kubelet::names;
use crate::services::{CONTROLLER, condition, ingress};
use crate::simulated::Provider;
use crate::wait::{PATIENCE, eventually, throughout};
use crate::world::World;

/// How long it may take until all is well again: a pause that is running then must end first.
const RECOVERY: Duration = Duration::from_mins(3);

/// The outages that there are, and words of the cloud's that users must get to see where there are any.
pub const KNOWN: [(&str, Option<&str>); 5] = [
    ("lb-error", Some("out of order")),
    ("error-all", Some("out of order")),
    ("lb-in-progress", Some("at work")),
    ("lb-quota", Some("quota")),
    ("lb-off", None),
];

/// Nodes at first; one more joins during the outage.
const NODES: usize = 3;

/// An outage.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    /// The simulated provider's name for it.
    pub fault: &'static str,
    /// How long it lasts.
    pub lasts: Duration,
    /// How many Services have load balancers before it; during it some change, some leave, and a few come.
    pub services: usize,
    /// Words that the condition of a Service that waits must have; none where nothing is written.
    pub words: Option<&'static str>,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// The most warnings about any one Service.
    pub warnings: i32,
    /// How long after its end all was well.
    pub recovery: Duration,
}

/// Who is who during an outage.
struct Cast {
    kept: Vec<String>,
    changed: Vec<String>,
    leaving: Vec<String>,
    late: Vec<String>,
}

impl Outage {
    /// Lets it happen.
    pub async fn run(self, world: &World) -> Result<Report> {
        let provider = world.provider().flag("--auto-instances").start().await?;
        let core = world.core().quick().start().await?;
        let cast = self.before(world).await?;
        let before = status(world, &cast).await?;
        provider.set_fault(self.fault).await?;
        self.during(world, &provider, &cast, &before).await?;
        provider.clear_faults().await?;
        let recovery = after(world, &provider, &cast).await?;
        core.stop().await?;
        provider.stop().await?;
        let warnings = world.warnings(CONTROLLER).await?;
        Ok(Report { warnings: warnings.into_values().max().unwrap_or_default(), recovery })
    }

    async fn before(self, world: &World) -> Result<Cast> {
        let some = self.services.div_ceil(4);
        let cast = Cast {
            kept: names("kept", self.services - 2 * some),
            changed: names("changed", some),
            leaving: names("leaving", some),
            late: names("late", some),
        };
        world.kubelets().join(&names("node", NODES)).await?;
        let all = cast.old();
        world.services().ask(&all).await?;
        eventually("all to have addresses", PATIENCE, async || {
            world.kubelets().initialised(&names("node", NODES)).await?;
            world.services().have_addresses(&all).await
        })
        .await?;
        Ok(cast)
    }

    async fn during(&self, world: &World, provider: &Provider, cast: &Cast, before: &BTreeMap<String, String>) -> Result<()> {
        let services = world.services();
        services.ask(&cast.late).await?;
        services.listen(&cast.changed, 8080).await?;
        services.delete(&cast.leaving).await?;
        world.kubelets().join(&["joined".to_owned()]).await?;
        let began = Instant::now();
        if let Some(words) = self.words {
            eventually("the cloud's own words", self.lasts, async || says(world, &cast.late[0], words).await).await?;
        }
        let rest = self.lasts.saturating_sub(began.elapsed());
        throughout("nothing is torn down", rest, async || {
            ensure!(status(world, cast).await? == *before, "addresses have changed");
            nothing_is_lost(world, provider, cast).await
        })
        .await
    }
}

impl Cast {
    fn staying(&self) -> impl Iterator<Item = &String> {
        self.kept.iter().chain(&self.changed)
    }

    fn old(&self) -> Vec<String> {
        self.staying().chain(&self.leaving).cloned().collect()
    }
}

/// The addresses of those that stay, by Service.
async fn status(world: &World, cast: &Cast) -> Result<BTreeMap<String, String>> {
    let all = world.services().all().await?;
    let addresses = |name: &String| all.get(name).map(|service| (name.clone(), format!("{:?}", ingress(service))));
    Ok(cast.staying().filter_map(addresses).collect())
}

async fn says(world: &World, name: &str, words: &str) -> Result<()> {
    let service = world.services().get(name).await?;
    let condition = condition(&service).context("there is no condition")?;
    ensure!(condition.status == "False" && condition.message.contains(words), "it says {condition:?}");
    Ok(())
}

/// Each of those that stay has its load balancer, and none belongs to a Service that is gone.
async fn nothing_is_lost(world: &World, provider: &Provider, cast: &Cast) -> Result<()> {
    let services = world.services().all().await?;
    let sold = provider.cloud().load_balancers().await?;
    for name in cast.staying() {
        let one = sold.iter().find(|one| one.service == *name).with_context(|| format!("{name} has lost its load balancer"))?;
        ensure!(one.targets.len() >= NODES, "{name} has lost targets: {:?}", one.targets);
    }
    let uids: Vec<_> = services.values().filter_map(ResourceExt::uid).collect();
    let orphan = sold.iter().find(|one| !uids.contains(&one.service_uid));
    ensure!(orphan.is_none(), "a Service has gone before its load balancer: {orphan:?}");
    Ok(())
}

async fn after(world: &World, provider: &Provider, cast: &Cast) -> Result<Duration> {
    let over = Instant::now();
    let stay = cast.kept.iter().chain(&cast.late).map(|name| (name.clone(), Expected::balanced(80)));
    let changed = cast.changed.iter().map(|name| (name.clone(), Expected::balanced(8080)));
    let gone = cast.leaving.iter().map(|name| (name.clone(), Expected::Gone));
    let expected = stay.chain(changed).chain(gone).collect();
    let (services, kubelets) = (world.services(), world.kubelets());
    let expectation = Expectation { services: &services, kubelets: &kubelets, cloud: provider.cloud() };
    eventually("all to be well again", RECOVERY, async || expectation.holds(&expected).await).await?;
    Ok(over.elapsed())
}
