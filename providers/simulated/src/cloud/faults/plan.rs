//! What the faults make of one call. Pure: who is hit, and by what.
use std::sync::Arc;
use std::time::Duration;

use super::{FaultName, FaultSpec, Snapshot};
use crate::cloud::model::{Failure, FailureCode};

/// When a throttled caller shall come back.
const THROTTLE_FOR: Duration = Duration::from_secs(2);

/// What kind of call it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// It asks for machines or disks.
    Machines,
    /// It asks for load balancers, to change them or not.
    FindLoadBalancers {
        /// Whether it does.
        to_change: bool,
    },
    /// It makes or changes a load balancer.
    PutLoadBalancer,
    /// It removes a load balancer.
    DeleteLoadBalancer,
    /// It asks for the routing table.
    ListRoutes,
    /// It makes routes.
    PutRoutes,
    /// It removes routes.
    RemoveRoutes,
}

impl Call {
    fn is_about_routes(self) -> bool {
        matches!(self, Self::ListRoutes | Self::PutRoutes | Self::RemoveRoutes)
    }

    /// Whether such a fault can hit such a call.
    pub fn meets(self, name: FaultName) -> bool {
        match name {
            FaultName::ErrorAll | FaultName::Unauthenticated | FaultName::Throttle | FaultName::Hang => true,
            FaultName::NotFoundAll | FaultName::Garbage | FaultName::Stale => self == Self::Machines,
            FaultName::LbError => self != Self::Machines && !self.is_about_routes(),
            FaultName::LbInProgress => self == Self::FindLoadBalancers { to_change: true },
            FaultName::LbQuota => self == Self::PutLoadBalancer,
            FaultName::RouteError => self.is_about_routes(),
            FaultName::RouteInProgress => matches!(self, Self::PutRoutes | Self::RemoveRoutes),
            FaultName::RouteQuota => self == Self::PutRoutes,
            FaultName::RouteStale | FaultName::RouteStaleUnsaid | FaultName::RouteEmpty | FaultName::RouteListBroken => {
                self == Self::ListRoutes
            }
            FaultName::OtherIdentity | FaultName::HandshakeHang | FaultName::LbOff | FaultName::RouteOff => false,
        }
    }
}

/// Something that a call asks for.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// The machine's name, that of the node of a route, or a Service's as NAMESPACE/NAME; a volume has none.
    pub name: Option<String>,
    /// The zone in which it truly is.
    pub zone: Option<String>,
}

/// What becomes of a call.
#[derive(Debug, Default)]
pub struct Plan {
    /// It waits until these faults are cleared.
    pub hang: Vec<u64>,
    /// It fails as a whole.
    pub failure: Option<Failure>,
    /// Its answer is spoilt.
    pub garbage: bool,
    /// Its caller is told to wait.
    pub at_work: bool,
    /// What becomes of a list of routes.
    pub route_list: RouteList,
    /// What its items get in place of the truth: by position, none where the list is too short.
    items: Vec<Option<Lie>>,
}

/// What becomes of a list of routes.
#[derive(Debug, Default)]
pub struct RouteList {
    /// It is what was known then.
    pub stale: Option<Arc<Snapshot>>,
    /// It does not say that it is old.
    pub unsaid: bool,
    /// It is empty.
    pub empty: bool,
    /// It breaks off.
    pub broken: bool,
}

/// What an item gets in place of the truth.
#[derive(Clone, Debug)]
pub enum Lie {
    /// It is not there.
    NotFound,
    /// It could not be found out.
    Failed(Failure),
    /// The cloud is at work on it.
    AtWork,
    /// What was known then.
    Stale(Arc<Snapshot>),
}

impl Plan {
    /// What the item at this position gets in place of the truth. The fault that was set first wins.
    pub fn lie(&self, index: usize) -> Option<&Lie> {
        self.items.get(index).and_then(Option::as_ref)
    }

    /// The snapshot that stale items are answered from.
    pub fn snapshot(&self) -> Option<&Arc<Snapshot>> {
        self.items.iter().flatten().find_map(|lie| if let Lie::Stale(snapshot) = lie { Some(snapshot) } else { None })
    }

    /// Adds what a fault does to the call; says whether it does anything.
    pub(super) fn add(&mut self, id: u64, spec: &FaultSpec, snapshot: &Arc<Snapshot>, targets: &[Target]) -> bool {
        let hits: Vec<bool> = targets.iter().map(|target| spec.hits(target)).collect();
        if !hits.contains(&true) {
            return false;
        }
        match spec.name {
            FaultName::Hang => self.hang.push(id),
            FaultName::Garbage => self.garbage = true,
            FaultName::NotFoundAll => self.lie_to(&hits, &Lie::NotFound),
            FaultName::Stale => self.lie_to(&hits, &Lie::Stale(Arc::clone(snapshot))),
            FaultName::LbInProgress => self.at_work = true,
            FaultName::RouteInProgress => self.lie_to(&hits, &Lie::AtWork),
            FaultName::RouteStale | FaultName::RouteStaleUnsaid => {
                self.route_list.unsaid |= spec.name == FaultName::RouteStaleUnsaid;
                self.route_list.stale.get_or_insert_with(|| Arc::clone(snapshot));
            }
            FaultName::RouteEmpty => self.route_list.empty = true,
            FaultName::RouteListBroken => self.route_list.broken = true,
            FaultName::ErrorAll
            | FaultName::Unauthenticated
            | FaultName::Throttle
            | FaultName::LbError
            | FaultName::LbQuota
            | FaultName::RouteError
            | FaultName::RouteQuota => self.fail(spec, &hits),
            FaultName::OtherIdentity | FaultName::HandshakeHang | FaultName::LbOff | FaultName::RouteOff => return false,
        }
        true
    }

    /// A fault for all fails the call, as a cloud's API would; one for some fails just those items.
    fn fail(&mut self, spec: &FaultSpec, hits: &[bool]) {
        let failure = failure(spec.name);
        if spec.is_general() {
            self.failure.get_or_insert(failure);
        } else {
            self.lie_to(hits, &Lie::Failed(failure));
        }
    }

    fn lie_to(&mut self, hits: &[bool], lie: &Lie) {
        self.items.resize(hits.len(), None);
        for (item, _) in self.items.iter_mut().zip(hits).filter(|(_, hit)| **hit) {
            item.get_or_insert_with(|| lie.clone());
        }
    }
}

impl FaultSpec {
    fn hits(&self, target: &Target) -> bool {
        let name = self.pattern.as_ref().is_none_or(|pattern| target.name.as_ref().is_some_and(|name| fits(pattern, name)));
        name && (self.zone.is_none() || self.zone == target.zone)
    }
}

fn failure(name: FaultName) -> Failure {
    let said = |code, words: &str| Failure::new(code, format!("{words} (scripted fault {})", name.as_str()));
    match name {
        FaultName::Unauthenticated => said(FailureCode::Unauthenticated, "the cloud refuses the credentials"),
        FaultName::Throttle => {
            let millis = u64::try_from(THROTTLE_FOR.as_millis()).ok();
            Failure { retry_after_ms: millis, ..said(FailureCode::RateLimited, "the cloud takes no more calls for now") }
        }
        FaultName::LbQuota => said(FailureCode::QuotaExceeded, "the quota of load balancers is used up"),
        FaultName::RouteQuota => said(FailureCode::QuotaExceeded, "the quota of routes is used up"),
        _ => said(FailureCode::Unavailable, "the cloud is out of order"),
    }
}

/// Whether a name fits a pattern of characters, `*` and `?`.
fn fits(pattern: &str, name: &str) -> bool {
    let mut rest = name.chars();
    let mut pattern = pattern.chars();
    match pattern.next() {
        None => name.is_empty(),
        Some('*') => name.char_indices().map(|(at, _)| at).chain([name.len()]).any(|at| fits(pattern.as_str(), &name[at..])),
        Some(wanted) => rest.next().is_some_and(|c| wanted == '?' || wanted == c) && fits(pattern.as_str(), rest.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_pattern_fits_names_as_a_shell_would_have_it() {
        let table = [
            ("node-1", "node-1", true),
            ("node-*", "node-17", true),
            ("*", "", true),
            ("*-7", "node-7", true),
            ("n*e-?", "node-7", true),
            ("node-?", "node-17", false),
            ("node-", "node-1", false),
            ("other*", "node-1", false),
        ];
        for (pattern, name, expected) in table {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}
