//! Lies and failures on order: which are set, whom they hit, and what they make of a call. They live in memory, since a
//! process that starts anew shall be an honest one.
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::model::{Failure, FailureCode};
use super::routes::table::Table;
use super::validate::invalid;
use super::world::World;
use plan::{Call, Plan, Target};

pub mod plan;

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum FaultName {
    /// The cloud says of every machine that it does not know it.
    NotFoundAll,
    /// Every call fails as UNAVAILABLE.
    ErrorAll,
    /// The cloud refuses the credentials.
    Unauthenticated,
    /// The cloud refuses calls as too many, and says when to come back.
    Throttle,
    /// No answer until the fault is cleared or the caller gives up.
    Hang,
    /// The provider answers duplicate, missing, wrong-named and malformed results.
    Garbage,
    /// Answers come from what the cloud knew when the fault was set, and say so.
    Stale,
    /// The cloud is suddenly another one.
    OtherIdentity,
    /// No handshake is answered until the fault is cleared; other calls are.
    HandshakeHang,
    /// Every call about load balancers fails as UNAVAILABLE.
    LbError,
    /// Who wants to change a load balancer is told to wait: IN_PROGRESS.
    LbInProgress,
    /// Load balancers are neither made nor changed, since the quota is used up. Removing them works.
    LbQuota,
    /// The cloud has no load balancers at all any more.
    LbOff,
    /// Every call about routes fails as UNAVAILABLE.
    RouteError,
    /// Who wants to make or remove a route is told to wait: IN_PROGRESS.
    RouteInProgress,
    /// No route is made or replaced, since the quota is used up. Removing them works.
    RouteQuota,
    /// Lists of routes come from what the cloud had when the fault was set, and say so.
    RouteStale,
    /// The same, and they do not say so.
    RouteStaleUnsaid,
    /// Lists of routes are empty.
    RouteEmpty,
    /// Lists of routes break off in the middle.
    RouteListBroken,
    /// The cloud has no routes at all any more.
    RouteOff,
}

impl FaultName {
    /// The name as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFoundAll => "not-found-all",
            Self::ErrorAll => "error-all",
            Self::Unauthenticated => "unauthenticated",
            Self::Throttle => "throttle",
            Self::Hang => "hang",
            Self::Garbage => "garbage",
            Self::Stale => "stale",
            Self::OtherIdentity => "other-identity",
            Self::HandshakeHang => "handshake-hang",
            Self::LbError => "lb-error",
            Self::LbInProgress => "lb-in-progress",
            Self::LbQuota => "lb-quota",
            Self::LbOff => "lb-off",
            Self::RouteError => "route-error",
            Self::RouteInProgress => "route-in-progress",
            Self::RouteQuota => "route-quota",
            Self::RouteStale => "route-stale",
            Self::RouteStaleUnsaid => "route-stale-unsaid",
            Self::RouteEmpty => "route-empty",
            Self::RouteListBroken => "route-list-broken",
            Self::RouteOff => "route-off",
        }
    }

    /// Whether it is a property of the whole cloud, which calls don't meet one by one.
    fn is_of_the_cloud(self) -> bool {
        matches!(self, Self::OtherIdentity | Self::HandshakeHang | Self::LbOff | Self::RouteOff)
    }

    /// Whether it concerns what is in no zone.
    fn is_beyond_zones(self) -> bool {
        let routes = matches!(self, Self::RouteError | Self::RouteInProgress | Self::RouteQuota);
        routes || self.is_of_route_lists() || matches!(self, Self::LbError | Self::LbInProgress | Self::LbQuota)
    }

    /// Whether it spoils the lists of routes, which are about no single node.
    fn is_of_route_lists(self) -> bool {
        matches!(self, Self::RouteStale | Self::RouteStaleUnsaid | Self::RouteEmpty | Self::RouteListBroken)
    }
}

/// A fault that shall be set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FaultSpec {
    /// Which.
    pub name: FaultName,
    /// Only for machines whose name fits this pattern (`*` stands for any characters, `?` for one), or for load balancers of
    /// Services whose NAMESPACE/NAME does, or for routes to nodes whose name does.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Only for machines of this zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Only for so many calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

impl FaultSpec {
    /// A fault for every machine, until it is cleared.
    pub fn new(name: FaultName) -> Self {
        Self { name, pattern: None, zone: None, count: None }
    }

    /// Whether it hits every machine alike.
    pub fn is_general(&self) -> bool {
        self.pattern.is_none() && self.zone.is_none()
    }

    fn has_scope_of(&self, other: &Self) -> bool {
        (self.name, &self.pattern, &self.zone) == (other.name, &other.pattern, &other.zone)
    }

    fn check(&self) -> Result<(), Failure> {
        let name = self.name.as_str();
        if self.name.is_of_the_cloud() && !(self.is_general() && self.count.is_none()) {
            let words = format!("{name} concerns the whole cloud: it takes no node, no zone and no count");
            return Err(invalid("name", &words));
        }
        if self.name.is_beyond_zones() && self.zone.is_some() {
            return Err(invalid("zone", &format!("{name} concerns load balancers or routes, which are in no zone")));
        }
        if self.name.is_of_route_lists() && self.pattern.is_some() {
            return Err(invalid("for", &format!("{name} concerns whole lists of routes: it takes no node")));
        }
        if self.count == Some(0) { Err(invalid("count", "must be at least 1")) } else { Ok(()) }
    }
}

/// A fault that is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fault {
    /// What was ordered.
    pub spec: FaultSpec,
    /// When it was set.
    pub set_at: Timestamp,
    /// How many calls it still hits; absent means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<u64>,
}

/// The cloud as it was.
#[derive(Debug)]
pub struct Snapshot {
    /// What was known.
    pub world: Arc<World>,
    /// The routes that were there.
    pub routes: Arc<Table>,
    /// When.
    pub at: Timestamp,
}

struct Active {
    id: u64,
    fault: Fault,
    snapshot: Arc<Snapshot>,
}

/// The faults that are set.
pub struct Faults {
    active: Mutex<Vec<Active>>,
    /// The number of changes, so that calls that hang notice.
    changes: watch::Sender<u64>,
}

impl Default for Faults {
    fn default() -> Self {
        Self { active: Mutex::default(), changes: watch::Sender::new(0) }
    }
}

impl Faults {
    /// Sets a fault, in place of one of the same name and scope. The snapshot is what stale answers will come from.
    pub fn set(&self, spec: FaultSpec, snapshot: Snapshot) -> Result<(), Failure> {
        spec.check()?;
        let mut active = self.active.lock();
        active.retain(|other| !other.fault.spec.has_scope_of(&spec));
        let fault = Fault { remaining: spec.count, spec, set_at: snapshot.at };
        active.push(Active { id: self.bump(), fault, snapshot: Arc::new(snapshot) });
        Ok(())
    }

    /// Clears all faults, or those of one name.
    pub fn clear(&self, name: Option<FaultName>) -> Result<(), Failure> {
        let mut active = self.active.lock();
        let before = active.len();
        active.retain(|one| name.is_some_and(|name| one.fault.spec.name != name));
        self.bump();
        match name {
            Some(name) if active.len() == before => {
                Err(Failure::new(FailureCode::Unknown, format!("the fault {} is not set", name.as_str())))
            }
            _ => Ok(()),
        }
    }

    /// The faults that are set, the oldest first.
    pub fn list(&self) -> Vec<Fault> {
        self.active.lock().iter().map(|one| one.fault.clone()).collect()
    }

    /// Whether a fault of this name is set.
    pub fn is_set(&self, name: FaultName) -> bool {
        self.active.lock().iter().any(|one| one.fault.spec.name == name)
    }

    /// What becomes of a call for `targets`, which are asked for only if any fault is set. Counted faults have one call
    /// less to go.
    pub fn plan(&self, call: Call, targets: impl FnOnce() -> Vec<Target>) -> Plan {
        let mut active = self.active.lock();
        let mut plan = Plan::default();
        if active.is_empty() {
            return plan;
        }
        let targets = targets();
        for one in active.iter_mut().filter(|one| one.fault.remaining != Some(0) && call.meets(one.fault.spec.name)) {
            let hit = plan.add(one.id, &one.fault.spec, &one.snapshot, &targets);
            one.fault.remaining = one.fault.remaining.map(|left| left - u64::from(hit));
        }
        plan
    }

    /// Waits until none of these faults is set any more.
    pub async fn cleared(&self, ids: &[u64]) {
        let mut changes = self.changes.subscribe();
        // The sender is ours: the channel cannot close while this waits.
        while self.any_of(ids) && changes.changed().await.is_ok() {}
    }

    fn any_of(&self, ids: &[u64]) -> bool {
        self.active.lock().iter().any(|one| ids.contains(&one.id))
    }

    fn bump(&self) -> u64 {
        self.changes.send_modify(|changes| *changes += 1);
        *self.changes.borrow()
    }
}

#[cfg(test)]
mod tests;
