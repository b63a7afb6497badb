//! What must survive a restart and a change of leader: the accepted cloud identity, the epoch, which nodes were deleted and
//! which breakers are tripped. It lives in one ConfigMap for each provider, readable with kubectl.
//!
//! This module keeps the facts and writes them safely. It judges nothing: what may be deleted is for the controllers to decide.
pub mod accepted;
mod codec;
pub mod mirror;
mod restore;
mod store;
mod term_store;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use store::{StateError, StateStore, Unreadable};
pub use term_store::{Beginning, TermStore};

use super::events::Subject;
use crate::names;

/// How many deletions outside of the budget are kept for people to read. The limit of a ConfigMap is 1 MiB.
const UNCOUNTED_KEPT: usize = 500;

/// The complete state. The default is empty and not yet in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The identity of the cloud that this cluster trusts; `None` before the first handshake.
    pub accepted_identity: Option<String>,
    /// The epoch of the latest term of leadership.
    pub epoch: u64,
    /// The recently deleted nodes, written before each DELETE. `None` if there is no history yet: [`State::begin_history`]
    /// distinguishes a first installation from a loss.
    pub deletions: Option<Vec<Deletion>>,
    /// Until then no node is deleted only because its machine is absent, because an earlier history was lost.
    pub budget_spent_until: Option<Timestamp>,
    /// The breakers that are tripped.
    pub trips: Vec<Trip>,
    /// The manual overrides within the last window.
    pub releases: Vec<Release>,
    /// The value of the annotation `ccm-core.dev/release-breaker`; saving `None` removes it.
    pub release_request: Option<String>,
    object: Option<Object>,
}

/// The content of the ConfigMap, as far as it can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The identity of the cloud that this cluster trusts, if there is one.
    pub accepted_identity: Option<String>,
    /// The epoch of the latest term; 0 if there is none.
    pub epoch: Result<u64, Unreadable>,
    history: Result<History, Unreadable>,
    release_request: Option<String>,
    object: Object,
}

impl Stored {
    /// All of it, or which key cannot be read.
    pub fn into_state(self) -> Result<State, Unreadable> {
        Ok(State {
            accepted_identity: self.accepted_identity,
            epoch: self.epoch?,
            release_request: self.release_request,
            object: Some(self.object),
            ..State::from(self.history?)
        })
    }

    /// With its breakers, and without the parts that an old copy would restore wrongly: an unspent budget, and manual overrides.
    #[must_use]
    fn without_history(mut self) -> Self {
        if let Ok(history) = &mut self.history {
            history.deletions = None;
            history.budget_spent_until = None;
            history.releases.clear();
        }
        self
    }

    /// What events about it refer to.
    pub fn subject(&self) -> Subject {
        self.object.subject()
    }
}

/// The deletions, the breakers and the manual overrides.
#[derive(Clone, Debug, PartialEq, Eq)]
struct History {
    deletions: Option<Vec<Deletion>>,
    budget_spent_until: Option<Timestamp>,
    trips: Vec<Trip>,
    releases: Vec<Release>,
}

impl From<History> for State {
    fn from(History { deletions, budget_spent_until, trips, releases }: History) -> Self {
        Self { deletions, budget_spent_until, trips, releases, ..Self::default() }
    }
}

/// Which version of the ConfigMap a state was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Object {
    name: String,
    uid: String,
    resource_version: String,
}

impl Object {
    fn subject(&self) -> Subject {
        Subject { kind: "ConfigMap", namespace: names::NAMESPACE.to_owned(), name: self.name.clone(), uid: self.uid.clone() }
    }
}

/// A node that was deleted, or was about to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletion {
    /// The node's name.
    pub node: String,
    /// Its UID.
    pub uid: String,
    /// Its zone, if it had a label for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// When.
    pub at: Timestamp,
    /// Why.
    pub cause: Cause,
}

/// Why a node was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The cloud does not know the machine, and the removal was not planned. The only cause that a budget counts.
    Absent,
    /// The cloud knows that the machine was deleted.
    Deleted,
    /// A planned removal: the node was cordoned, or tainted by cluster-autoscaler, while it was Ready.
    #[serde(alias = "meant-to-go")]
    Planned,
    /// An operator overrode the breaker that blocked it.
    Released,
}

/// The rule that tripped a breaker. It determines which deletions the breaker blocks, and when it resets by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// More machines are absent than the budget allows. Blocks the deletion of nodes whose machine is absent.
    #[default]
    Budget,
    /// The provider does not find enough of the other nodes' machines. Blocks the same, planned removals included.
    NotFound,
    /// The provider reports too many of the other nodes' machines as deleted. Blocks every deletion.
    NotAlive,
    /// The provider denies the machines of Ready nodes. Blocks every deletion.
    ReadyDenied,
}

impl Rule {
    /// Whether a breaker that this rule tripped blocks a deletion for this cause. A manual override is never blocked.
    pub fn blocks(self, cause: Cause) -> bool {
        match cause {
            Cause::Released => false,
            Cause::Absent => true,
            Cause::Planned => self != Self::Budget,
            Cause::Deleted => matches!(self, Self::NotAlive | Self::ReadyDenied),
        }
    }

    /// A word for the breaker's id.
    pub fn word(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::NotFound => "not-found",
            Self::NotAlive => "not-alive",
            Self::ReadyDenied => "ready-denied",
        }
    }
}

/// The part of the cluster that a breaker covers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Every zone.
    Cluster,
    /// One zone; the nodes without a zone's label are the zone of the empty name.
    Zone(String),
}

impl Scope {
    /// Whether the nodes of a zone are within it.
    pub fn covers(&self, zone: Option<&str>) -> bool {
        match self {
            Self::Cluster => true,
            Self::Zone(held) => held == zone.unwrap_or_default(),
        }
    }
}

/// A tripped breaker: within its scope no node is deleted for a cause that its rule blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trip {
    /// The id that the operator names to override it.
    pub id: String,
    /// Which rule tripped it.
    #[serde(default)]
    pub rule: Rule,
    /// Where it blocks.
    pub scope: Scope,
    /// The reason, for people.
    pub reason: String,
    /// How many nodes it lists.
    pub count: usize,
    /// These nodes: UIDs by name, complete up to some thousands. A manual override covers exactly these.
    pub nodes: BTreeMap<String, String>,
    /// When it tripped.
    pub at: Timestamp,
}

impl Trip {
    /// The most nodes that a trip lists: about 200 KiB of a ConfigMap's 1 MiB.
    pub const LISTED: usize = 2000;

    /// A breaker that trips now and lists these nodes: UIDs by name.
    pub fn new<'a>(
        rule: Rule,
        scope: Scope,
        reason: String,
        nodes: impl IntoIterator<Item = (&'a str, &'a str)>,
        at: Timestamp,
    ) -> Self {
        let place = match &scope {
            Scope::Cluster => "cluster".to_owned(),
            Scope::Zone(zone) if zone.is_empty() => "no-zone".to_owned(),
            Scope::Zone(zone) => format!("zone-{zone}"),
        };
        let id = format!("{place}-{}-{}", rule.word(), at.strftime("%Y%m%d-%H%M%S"));
        let all: BTreeMap<_, _> = nodes.into_iter().map(|(name, uid)| (name.to_owned(), uid.to_owned())).collect();
        let count = all.len();
        Self { id, rule, scope, reason, count, nodes: all.into_iter().take(Self::LISTED).collect(), at }
    }

    /// Whether it blocks a deletion in this zone for this cause.
    pub fn blocks(&self, zone: Option<&str>, cause: Cause) -> bool {
        self.scope.covers(zone) && self.rule.blocks(cause)
    }

    /// Whether it lists exactly this object, not another of the same name.
    pub fn lists(&self, name: &str, uid: &str) -> bool {
        self.nodes.get(name).is_some_and(|listed| listed == uid)
    }
}

/// A breaker that an operator overrode: its nodes may be deleted without a budget, for one window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// The trip's id.
    pub id: String,
    /// When the operator overrode it.
    pub at: Timestamp,
    /// The nodes that the trip listed: UIDs by name.
    pub nodes: BTreeMap<String, String>,
}

/// Whether a time is less than a window ago. A time in the future, from a leader whose clock was ahead, is.
pub fn within(at: Timestamp, now: Timestamp, window: Duration) -> bool {
    now.duration_since(at) < signed(window)
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

impl State {
    /// Whether a cloud is the accepted one; every cloud is while none was accepted.
    pub fn accepts(&self, cloud_identity: &str) -> bool {
        self.accepted_identity.as_deref().is_none_or(|accepted| accepted == cloud_identity)
    }

    /// Begins the deletion history where there is none. Unless this is the first installation, an earlier history was lost and
    /// could have been full: the budget counts as spent for one window.
    pub fn begin_history(&mut self, first_install: bool, now: Timestamp, window: Duration) {
        if self.deletions.is_some() {
            return;
        }
        self.deletions = Some(Vec::new());
        if !first_install {
            self.budget_spent_until = now.checked_add(signed(window)).ok();
        }
    }

    /// Adds deletions that are about to happen. One of the same object made earlier, for a DELETE that failed, is replaced.
    pub fn record(&mut self, deletions: impl IntoIterator<Item = Deletion>) {
        let history = self.deletions.get_or_insert_default();
        for deletion in deletions {
            history.retain(|earlier| earlier.uid != deletion.uid);
            history.push(deletion);
        }
    }

    /// Forgets what is older than the window, and pulls times in the future (a clock that was ahead) back to now.
    pub fn prune(&mut self, now: Timestamp, window: Duration) {
        if let Some(history) = &mut self.deletions {
            history.iter_mut().for_each(|deletion| deletion.at = deletion.at.min(now));
            history.retain(|deletion| within(deletion.at, now, window));
            let uncounted = history.iter().filter(|deletion| deletion.cause != Cause::Absent).count();
            let mut surplus = uncounted.saturating_sub(UNCOUNTED_KEPT);
            history.retain(|deletion| {
                deletion.cause == Cause::Absent || surplus == 0 || {
                    surplus -= 1;
                    false
                }
            });
        }
        let latest = now.checked_add(signed(window)).unwrap_or(now);
        self.budget_spent_until = self.budget_spent_until.filter(|until| *until > now).map(|until| until.min(latest));
        self.trips.iter_mut().for_each(|trip| trip.at = trip.at.min(now));
        self.releases.iter_mut().for_each(|release| release.at = release.at.min(now));
        self.releases.retain(|release| within(release.at, now, window));
    }

    /// Carries out the manual override that the annotation requests, if it names the id of a trip.
    pub fn take_release(&mut self, now: Timestamp) -> Option<Trip> {
        let requested = self.release_request.as_deref()?;
        let index = self.trips.iter().position(|trip| trip.id == requested)?;
        let trip = self.trips.remove(index);
        self.release_request = None;
        self.releases.push(Release { id: trip.id.clone(), at: now, nodes: trip.nodes.clone() });
        Some(trip)
    }

    /// What events about this state refer to; `None` before it is in the cluster.
    pub fn subject(&self) -> Option<Subject> {
        self.object.as_ref().map(Object::subject)
    }
}

#[cfg(test)]
mod tests;
