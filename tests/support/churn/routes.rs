//! Nodes with Pod CIDRs that join, leave, and are replaced under their names. The cloud is a process of its own, and is looked at all
//! the time: the routes of nodes that stay, and those of others, must be there at every moment.
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node;

use super::{Kills, SETTLED, Victims};
use crate::cloud::Cloud;
use crate::ctl::{Ctl, Route};
use crate::kubelet::{Kubelets, Registration, has_route, names};
use crate::wait::eventually;
use crate::world::World;

/// With routes, and times that a test can wait for. What a core that was killed has not seen go is removed within a window.
const FLAGS: [&str; 4] = [
    "--cluster-cidr=10.240.0.0/12,fd00:240::/32",
    "--route-reconciliation-period=3s",
    "--route-deletion-window=6s",
    "--route-deletion-fraction=1",
];
/// How long each call to the cloud takes: long enough for a kill to come in between.
const LATENCY: &str = "--latency=50ms";
/// Nodes that are there all the time.
const STAYERS: usize = 10;
/// Routes of others: inside the cluster's CIDRs and outside.
const FOREIGN: [&str; 3] = ["10.255.1.0/25", "10.255.2.0/24", "192.168.0.0/24"];
/// Between two looks at the table.
const LOOK: Duration = Duration::from_millis(200);

/// How much of it.
#[derive(Clone, Copy, Debug)]
pub struct Churn {
    /// How many nodes join; half of them leave, and some are replaced.
    pub nodes: usize,
    /// How many kills, evenly spread.
    pub kills: usize,
}

/// What happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Who was killed.
    pub kills: Kills,
    /// This cluster's routes in the end: those of the nodes.
    pub routes: usize,
    /// How often the table was looked at meanwhile.
    pub looks: usize,
}

impl Churn {
    /// Does it all and checks the end; `tell` hears of each kill.
    pub async fn run(self, world: &World, mut tell: impl FnMut(&str)) -> Result<Report> {
        let cloud = Cloud::start(world.dir(), &[LATENCY]).await?;
        let core = FLAGS.iter().fold(world.core().quick(), |core, flag| core.flag(flag));
        let victims = Victims::start(&world.provider().of(&cloud), core).await?;
        let mut stage = Stage { kubelets: world.kubelets(), cloud: cloud.ctl().clone(), next: 0, victims };
        for destination in FOREIGN {
            stage.cloud.run(&["route", "add", destination]).await?;
        }
        stage.join(&names("stayer", STAYERS)).await?;
        stage.settled().await?;
        let watched = stage.wanted().await?.into_keys().chain(FOREIGN.map(str::to_owned)).collect();
        let mut looks = 0;
        tokio::select! {
            done = self.rounds(&mut stage, &mut tell) => done?,
            failed = watch(cloud.ctl(), watched, &mut looks) => failed?,
        }
        let report = Report { kills: stage.victims.kills, routes: stage.wanted().await?.len(), looks };
        stage.victims.stop().await?;
        cloud.stop().await?;
        Ok(report)
    }

    async fn rounds(self, stage: &mut Stage, tell: &mut impl FnMut(&str)) -> Result<()> {
        let mut leavers = Vec::new();
        for round in 0..self.kills {
            let joiners = names(&format!("round-{round}"), self.nodes / self.kills);
            let killed = stage.round(&joiners, &leavers).await?;
            tell(&format!("kill {} of {}: {killed}; {} joined, {} left", round + 1, self.kills, joiners.len(), leavers.len()));
            leavers = joiners.into_iter().step_by(2).collect();
        }
        stage.settled().await
    }
}

/// Looks at the table for ever; an error if a destination has no route.
async fn watch(cloud: &Ctl, destinations: BTreeSet<String>, looks: &mut usize) -> Result<()> {
    loop {
        let found: BTreeSet<_> = cloud.routes().await?.into_iter().map(|route| route.destination).collect();
        let missing: Vec<_> = destinations.difference(&found).collect();
        ensure!(missing.is_empty(), "the table has no route to {missing:?}, whose nodes are there all the time");
        *looks += 1;
        tokio::time::sleep(LOOK).await;
    }
}

struct Stage {
    kubelets: Kubelets,
    cloud: Ctl,
    /// The number of the next node's Pod CIDRs.
    next: usize,
    victims: Victims,
}

impl Stage {
    /// Some join, some leave, the first of those that leave come back as other machines; meanwhile a process is killed.
    async fn round(&mut self, joiners: &[String], leavers: &[String]) -> Result<&'static str> {
        let (kubelets, cloud, first) = (self.kubelets.clone(), self.cloud.clone(), self.next);
        self.next += joiners.len() + 1;
        let moves = async {
            join(&kubelets, &cloud, joiners, first).await?;
            let Some(replaced) = leavers.first() else { return Ok(()) };
            let old = pod_cidrs_of(&kubelets.get(replaced).await?);
            leave(&kubelets, &cloud, leavers).await?;
            // Another machine under the name of one that went: with the same Pod CIDRs, or with others.
            let cidrs = if first.is_multiple_of(2) { old } else { pod_cidrs(first + joiners.len()).to_vec() };
            register(&kubelets, &cloud, replaced, &cidrs).await
        };
        let (done, killed) = tokio::join!(moves, self.victims.kill());
        done.and(killed)
    }

    async fn join(&mut self, nodes: &[String]) -> Result<()> {
        let first = self.next;
        self.next += nodes.len();
        join(&self.kubelets, &self.cloud, nodes, first).await
    }

    async fn settled(&self) -> Result<()> {
        eventually("exactly the right routes", SETTLED, async || {
            let (wanted, routes) = (self.wanted().await?, self.cloud.routes().await?);
            let (ours, others): (Vec<Route>, Vec<_>) = routes.into_iter().partition(|route| route.cluster_uid.is_some());
            let found: BTreeMap<_, _> = ours.into_iter().map(|route| (route.destination, route.provider_id)).collect();
            ensure!(found == wanted, "the table has {found:?} instead of {wanted:?}");
            let others: BTreeSet<_> = others.into_iter().map(|route| route.destination).collect();
            ensure!(others == FOREIGN.map(str::to_owned).into(), "of others the table has {others:?}");
            let nodes = self.kubelets.all().await?;
            let waiting = nodes.values().filter(|node| !has_route(node)).count();
            ensure!(waiting == 0, "the conditions of {waiting} nodes do not say that their routes are there");
            Ok(())
        })
        .await
    }

    /// The machine of each destination, by the nodes.
    async fn wanted(&self) -> Result<BTreeMap<String, Option<String>>> {
        let mut wanted = BTreeMap::new();
        for node in self.kubelets.all().await?.into_values() {
            let id = node.spec.as_ref().and_then(|spec| spec.provider_id.clone());
            wanted.extend(pod_cidrs_of(&node).into_iter().map(|cidr| (cidr, id.clone())));
        }
        Ok(wanted)
    }
}

async fn join(kubelets: &Kubelets, cloud: &Ctl, nodes: &[String], first: usize) -> Result<()> {
    for (at, name) in nodes.iter().enumerate() {
        register(kubelets, cloud, name, &pod_cidrs(first + at)).await?;
    }
    Ok(())
}

async fn register(kubelets: &Kubelets, cloud: &Ctl, name: &str, cidrs: &[String]) -> Result<()> {
    cloud.machines("add", &[name.to_owned()]).await?;
    kubelets.register([Registration::new(name).pod_cidrs(cidrs)]).await.with_context(|| format!("{name} cannot register"))
}

async fn leave(kubelets: &Kubelets, cloud: &Ctl, nodes: &[String]) -> Result<()> {
    cloud.machines("forget", nodes).await?;
    kubelets.remove(nodes).await
}

fn pod_cidrs(number: usize) -> [String; 2] {
    [format!("10.{}.{}.0/24", 240 + number / 256, number % 256), format!("fd00:240:0:{:x}::/64", number + 1)]
}

fn pod_cidrs_of(node: &Node) -> Vec<String> {
    node.spec.as_ref().and_then(|spec| spec.pod_cidrs.clone()).unwrap_or_default()
}
