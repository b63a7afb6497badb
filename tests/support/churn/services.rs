//! Services that are made, changed and deleted, while a node joins now and then. The cloud is a process of its own, so that a
//! provider that is killed can't take it along, and may be in the middle of anything.
use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde_json::json;

use super::{Kills, SETTLED, Victims};
use crate::cloud::Cloud;
use crate::expectation::{Expectation, Expected};
use crate::kubelet::{Kubelets, names};
use crate::services::{MAX_QPS, Services};
use crate::wait::eventually;
use crate::world::World;

/// How long each call to the cloud takes: long enough for two to overlap, and for a kill to come in between.
const LATENCY: &str = "--latency=50ms";

/// The nodes before anything happens.
const NODES: usize = 3;

/// How much of it.
#[derive(Clone, Copy, Debug)]
pub struct Churn {
    /// How many Services are made; some of them stay.
    pub services: usize,
    /// How many kills, evenly spread.
    pub kills: usize,
}

/// What happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Who was killed.
    pub kills: Kills,
    /// Services in the end that have their load balancers, exactly those that should.
    pub balanced: usize,
    /// Services in the end that should have none, and have none.
    pub plain: usize,
    /// Services that were deleted, and are gone.
    pub gone: usize,
}

/// What a user makes of a Service in the round after it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Deleted.
    Leaves,
    /// Another port.
    Moves,
    /// Another type.
    Retires,
    /// Another type, and at once the old one again.
    Wavers,
    /// Left alone, but for the annotation that every third gets in each round.
    Stays,
    /// Deleted in the same moment in which it was made.
    Ephemeral,
}

const FATES: [Fate; 6] = [Fate::Leaves, Fate::Moves, Fate::Retires, Fate::Wavers, Fate::Stays, Fate::Ephemeral];

impl Churn {
    /// Does it all and checks the end; `tell` hears of each kill.
    pub async fn run(self, world: &World, mut tell: impl FnMut(&str)) -> Result<Report> {
        let cloud = Cloud::start(world.dir(), &["--auto-instances", LATENCY]).await?;
        let mut victims = Victims::start(&world.provider().of(&cloud), world.core().quick()).await?;
        world.kubelets().join(&names("node", NODES)).await?;
        let mut stage =
            Stage { services: world.services(), kubelets: world.kubelets(), expected: BTreeMap::new(), fresh: Vec::new() };
        for round in 0..self.kills {
            let made = names(&format!("round-{round}"), self.services / self.kills);
            let count = made.len();
            let (done, killed) = tokio::join!(stage.round(round, made), victims.kill());
            done?;
            tell(&format!("kill {} of {}: {}; {count} Services were made", round + 1, self.kills, killed?));
        }
        stage.age().await?;
        let expectation = Expectation { services: &stage.services, kubelets: &stage.kubelets, cloud: cloud.ctl() };
        let expected = &stage.expected;
        eventually("exactly the right load balancers", SETTLED, async || expectation.holds(expected).await).await?;
        let overlaps = cloud.ctl().calls().await?.of("OverlappingMutations");
        ensure!(overlaps == 0, "{overlaps} times a load balancer was changed while another change of it was under way");
        let kills = victims.stop().await?;
        cloud.stop().await?;
        Ok(stage.report(kills))
    }
}

struct Stage {
    services: Services,
    kubelets: Kubelets,
    /// What each Service shall be in the end.
    expected: BTreeMap<String, Expected>,
    /// Those of the last round.
    fresh: Vec<(String, Fate)>,
}

impl Stage {
    /// What users do in one round.
    async fn round(&mut self, round: usize, made: Vec<String>) -> Result<()> {
        self.kubelets.join(&[format!("late-{round}")]).await?;
        self.services.ask(&made).await?;
        self.age().await?;
        self.throttle(round).await?;
        let before = round * made.len();
        self.fresh = made.into_iter().zip(FATES.into_iter().cycle().skip(before % FATES.len())).collect();
        self.expected.extend(self.fresh.iter().map(|(name, _)| (name.clone(), Expected::balanced(80))));
        self.meet(Fate::Ephemeral).await
    }

    /// The Services of the last round meet their fates.
    async fn age(&mut self) -> Result<()> {
        for fate in [Fate::Leaves, Fate::Moves, Fate::Retires, Fate::Wavers] {
            self.meet(fate).await?;
        }
        self.fresh.clear();
        Ok(())
    }

    async fn meet(&mut self, fate: Fate) -> Result<()> {
        let (whom, others): (Vec<_>, Vec<_>) = self.fresh.drain(..).partition(|(_, of)| *of == fate);
        self.fresh = others;
        let whom: Vec<_> = whom.into_iter().map(|(name, _)| name).collect();
        let outcome = match fate {
            Fate::Leaves | Fate::Ephemeral => {
                self.services.delete(&whom).await?;
                Expected::Gone
            }
            Fate::Moves => {
                self.services.listen(&whom, 8080).await?;
                Expected::balanced(8080)
            }
            Fate::Retires => {
                self.services.retype(&whom, "ClusterIP").await?;
                Expected::Plain
            }
            Fate::Wavers => {
                self.services.retype(&whom, "ClusterIP").await?;
                self.services.retype(&whom, "LoadBalancer").await?;
                return Ok(());
            }
            Fate::Stays => return Ok(()),
        };
        self.expected.extend(whom.into_iter().map(|name| (name, outcome)));
        Ok(())
    }

    /// A third of those that have load balancers get another limit.
    async fn throttle(&mut self, round: usize) -> Result<()> {
        let limit = u32::try_from(100 + round)?;
        let mut chosen = Vec::new();
        for (number, (name, expected)) in self.expected.iter_mut().enumerate() {
            if let Expected::Balanced { max_qps, .. } = expected
                && (number + round).is_multiple_of(3)
            {
                *max_qps = Some(limit);
                chosen.push(name.clone());
            }
        }
        self.services.merge(&chosen, &json!({ "metadata": { "annotations": { MAX_QPS: limit.to_string() } } })).await
    }

    fn report(&self, kills: Kills) -> Report {
        let count = |is: fn(&Expected) -> bool| self.expected.values().filter(|expected| is(expected)).count();
        Report {
            kills,
            balanced: count(|expected| matches!(expected, Expected::Balanced { .. })),
            plain: count(|expected| *expected == Expected::Plain),
            gone: count(|expected| *expected == Expected::Gone),
        }
    }
}
