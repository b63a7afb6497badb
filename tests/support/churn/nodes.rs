//! Nodes that join and leave.
use std::collections::BTreeSet;

use anyhow::{Result, ensure};

use super::{Kills, SETTLED, Victims};
use crate::kubelet::{Kubelets, is_initialised, names};
use crate::wait::eventually;
use crate::world::World;

/// How much of it.
#[derive(Clone, Copy, Debug)]
pub struct Churn {
    /// How many nodes join; every other one of them leaves again.
    pub nodes: usize,
    /// How many kills, evenly spread over the joining and leaving.
    pub kills: usize,
}

/// What happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Who was killed.
    pub kills: Kills,
    /// Nodes in the end, exactly those that should be there.
    pub nodes: usize,
}

impl Churn {
    /// Does it all and checks the end; `tell` hears of each kill.
    pub async fn run(self, world: &World, mut tell: impl FnMut(&str)) -> Result<Report> {
        let victims = Victims::start(&world.provider(), world.core().quick()).await?;
        let mut stage = Stage { kubelets: world.kubelets(), victims };
        let mut stayers = BTreeSet::new();
        let mut leavers = Vec::new();
        for round in 0..self.kills {
            let joiners = names(&format!("round-{round}"), self.nodes / self.kills);
            let killed = stage.round(&joiners, &leavers).await?;
            tell(&format!(
                "kill {} of {}: {killed}; {} nodes joined, {} left",
                round + 1,
                self.kills,
                joiners.len(),
                leavers.len()
            ));
            let (go, stay): (Vec<_>, Vec<_>) = joiners.into_iter().enumerate().partition(|(number, _)| number % 2 == 0);
            stayers.extend(stay.into_iter().map(|(_, name)| name));
            leavers = go.into_iter().map(|(_, name)| name).collect();
        }
        stage.leave(&leavers).await?;
        stage.settled(&stayers).await?;
        Ok(Report { nodes: stayers.len(), kills: stage.victims.stop().await? })
    }
}

struct Stage {
    kubelets: Kubelets,
    victims: Victims,
}

impl Stage {
    /// Some join and some leave, and meanwhile a process is killed. Answers which.
    async fn round(&mut self, joiners: &[String], leavers: &[String]) -> Result<&'static str> {
        self.victims.provider.machines("add", joiners).await?;
        self.gone(leavers).await?;
        let kubelets = self.kubelets.clone();
        let moves = async {
            kubelets.join(joiners).await?;
            kubelets.report(leavers, false).await
        };
        let (done, killed) = tokio::join!(moves, self.victims.kill());
        done?;
        killed
    }

    /// The machines of these nodes are terminated. Nodes that never were initialised would have to wait for their grace.
    async fn gone(&self, leavers: &[String]) -> Result<()> {
        if leavers.is_empty() {
            return Ok(());
        }
        eventually("those that will leave to be initialised", SETTLED, async || self.kubelets.initialised(leavers).await).await?;
        self.victims.provider.machines("terminate", leavers).await
    }

    async fn leave(&self, leavers: &[String]) -> Result<()> {
        self.gone(leavers).await?;
        self.kubelets.report(leavers, false).await
    }

    async fn settled(&self, expected: &BTreeSet<String>) -> Result<()> {
        eventually("exactly the right nodes", SETTLED, async || {
            let all = self.kubelets.all().await?;
            let found: BTreeSet<_> = all.keys().cloned().collect();
            let (missing, extra) = (expected.difference(&found).count(), found.difference(expected).count());
            ensure!(missing == 0 && extra == 0, "{missing} nodes are missing, {extra} should be gone");
            let waiting = all.values().filter(|node| !is_initialised(node)).count();
            ensure!(waiting == 0, "{waiting} nodes are not initialised");
            Ok(())
        })
        .await
    }
}
