//! The evidence that a provider is to be believed: before it takes a node away, it must positively find others. Pure.
use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::cluster::state::Scope;
use crate::controllers::node_lifecycle::observations::{Finding, Observations};
use crate::model::node::{Node, Ready};

/// So few counted nodes prove nothing: of a zone, the cluster decides; of the cluster, the budget does.
pub(super) const ENOUGH: usize = 2;

/// What the provider said, in this tick, of the nodes that count.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    cluster: Tally,
    zones: BTreeMap<String, Tally>,
}

/// The counted nodes of one scope.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    all: Share,
    ready: Share,
}

/// How many nodes there are, and of how many the provider said what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// How many count.
    pub counted: usize,
    /// The machine was found, in whatever state.
    pub found: usize,
    /// The machine was found, and is not deleted.
    pub alive: usize,
}

/// Where evidence is missing, and how much of it there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub scope: Scope,
    /// Whether the Ready nodes fail, otherwise all do.
    pub ready: bool,
    pub share: Share,
}

impl Share {
    fn add(&mut self, finding: Option<Finding>) {
        self.counted += 1;
        self.found += usize::from(matches!(finding, Some(Finding::Alive | Finding::Stopped | Finding::Deleted)));
        self.alive += usize::from(matches!(finding, Some(Finding::Alive | Finding::Stopped)));
    }

    fn half_found(self) -> bool {
        self.found * 2 >= self.counted
    }

    fn half_alive(self) -> bool {
        self.alive * 2 >= self.counted
    }
}

impl Tally {
    fn is_enough(&self) -> bool {
        self.all.counted >= ENOUGH
    }

    fn not_found(&self, scope: Scope) -> Option<Missing> {
        if !self.is_enough() {
            return None;
        }
        let failing = [(true, self.ready), (false, self.all)].into_iter().find(|(_, share)| !share.half_found());
        failing.map(|(ready, share)| Missing { scope, ready, share })
    }
}

impl Evidence {
    /// Counts nodes by the answers of this tick whose data is not older than `not_before`.
    pub fn of<'a>(
        counted: impl IntoIterator<Item = &'a Node>,
        observations: &Observations,
        not_before: Option<Timestamp>,
    ) -> Self {
        let mut evidence = Self::default();
        for node in counted {
            let said = match not_before {
                Some(time) => observations.latest_since(&node.name, time),
                None => observations.latest(&node.name),
            };
            let zone = evidence.zones.entry(node.zone().unwrap_or_default().to_owned()).or_default();
            for tally in [&mut evidence.cluster, zone] {
                tally.all.add(said);
                if node.ready == Ready::True {
                    tally.ready.add(said);
                }
            }
        }
        evidence
    }

    /// What is missing before a node of this zone may go because its machine is not known: half of the others must be found,
    /// among the Ready and among all, in the cluster and in the zone.
    pub fn missing_for_absence(&self, zone: Option<&str>) -> Option<Missing> {
        let zone = zone.unwrap_or_default();
        self.cluster.not_found(Scope::Cluster).or_else(|| self.zones.get(zone)?.not_found(Scope::Zone(zone.to_owned())))
    }

    /// What is missing before a node may go because its machine is deleted: half of the Ready nodes' machines must be alive;
    /// where no node is Ready, half of all.
    pub fn missing_for_deleted(&self) -> Option<Missing> {
        let (ready, share) = match self.cluster.ready.counted {
            0 => (false, self.cluster.all),
            _ => (true, self.cluster.ready),
        };
        let missing = self.cluster.is_enough() && !share.half_alive();
        missing.then_some(Missing { scope: Scope::Cluster, ready, share })
    }

    /// Whether a breaker that missing evidence tripped in this scope has the evidence now.
    pub fn suffices_for_absence(&self, scope: &Scope) -> bool {
        match scope {
            Scope::Cluster => self.zones.keys().all(|zone| self.missing_for_absence(Some(zone)).is_none()),
            Scope::Zone(zone) => self.missing_for_absence(Some(zone)).is_none(),
        }
    }
}

#[cfg(test)]
mod tests;
