//! The load balancers that are there, and the rules by which that changes: whose a name is, who gets which address, when one
//! works, how many there may be. Pure: time is an argument, and nothing here waits or writes.
//!
//! A change is prepared, then kept by the caller, then committed or abandoned. What is prepared holds its addresses and its
//! place in the quota, and nobody sees it.
use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::addresses;
use super::model::{Edit, Family, LoadBalancer, Mark, Publish, Search, Target, Targets, Wanted};
use super::validate;
use crate::cloud::model::{Failure, FailureCode};

/// Lists of targets that are remembered, so that load balancers with the same ones share them.
const SHARED_LISTS: usize = 8;

/// How the cloud sells load balancers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// How long a new one takes until it works.
    pub provisioning: Duration,
    /// How many there may be; any number if absent.
    pub max: Option<usize>,
}

/// The load balancers that are there.
#[derive(Debug, Default)]
pub struct LoadBalancers {
    there: BTreeMap<String, Arc<LoadBalancer>>,
    /// The addresses of those that are there or prepared.
    taken: HashSet<IpAddr>,
    /// The names of those that are prepared and not there yet.
    coming: HashSet<String>,
    /// The latest last.
    lists: Vec<Targets>,
}

impl LoadBalancers {
    /// What was kept by a former process.
    pub fn restore(kept: Vec<LoadBalancer>) -> Self {
        let mut restored = Self::default();
        for mut one in kept {
            restored.share(&mut one.wanted.targets);
            restored.taken.extend(&one.addresses);
            restored.there.insert(one.name.clone(), Arc::new(one));
        }
        restored
    }

    /// Those that are looked for, by name.
    pub fn find(&self, search: &Search) -> Vec<LoadBalancer> {
        self.there.values().filter(|one| search.finds(one)).map(|one| one.as_ref().clone()).collect()
    }

    /// All, by name.
    pub fn all(&self) -> Vec<LoadBalancer> {
        self.there.values().map(|one| one.as_ref().clone()).collect()
    }

    /// The load balancer that an owner's mutation makes, or why it is refused.
    pub fn prepare(&mut self, terms: &Terms, name: &str, wanted: Wanted, now: Timestamp) -> Result<LoadBalancer, Failure> {
        validate::wanted(name, &wanted)?;
        let old = self.there.get(name).cloned();
        match &old {
            Some(old) => owned(old, &wanted.mark)?,
            None => self.room_for_one(terms)?,
        }
        let addresses = self.addresses(name, &wanted.ip_families, old.as_deref())?;
        let next = LoadBalancer {
            name: name.to_owned(),
            hostname: (wanted.publish == Publish::Hostname).then(|| hostname(name)),
            ready_at: old.as_ref().map_or_else(|| later(now, terms.provisioning), |old| old.ready_at),
            mutations: old.as_ref().map_or(0, |old| old.mutations) + 1,
            addresses,
            wanted,
        };
        Ok(self.reserve(next))
    }

    /// The load balancer that an edit behind its owner's back makes; `None` if it makes none.
    pub fn prepare_edit(&mut self, name: &str, edit: &Edit) -> Result<Option<LoadBalancer>, Failure> {
        let Some(old) = self.there.get(name) else {
            return Err(Failure::new(FailureCode::Unknown, format!("no load balancer {name}; nothing was changed")));
        };
        let Edit::Change { remove_targets, max_qps } = edit else { return Ok(None) };
        validate::max_qps("maxQps", *max_qps)?;
        let mut next = old.as_ref().clone();
        next.wanted.max_qps = max_qps.or(next.wanted.max_qps);
        next.wanted.targets = without(&next.wanted.targets, remove_targets)?;
        Ok(Some(self.reserve(next)))
    }

    fn reserve(&mut self, mut next: LoadBalancer) -> LoadBalancer {
        self.share(&mut next.wanted.targets);
        self.taken.extend(&next.addresses);
        if !self.there.contains_key(&next.name) {
            self.coming.insert(next.name.clone());
        }
        next
    }

    /// What was prepared is there, and can be seen.
    pub fn commit(&mut self, next: LoadBalancer) {
        self.coming.remove(&next.name);
        let kept = next.addresses.clone();
        let old = self.there.insert(next.name.clone(), Arc::new(next));
        self.release(old.iter().flat_map(|old| &old.addresses), &kept);
    }

    /// What was prepared will not come.
    pub fn abandon(&mut self, next: &LoadBalancer) {
        self.coming.remove(&next.name);
        let kept = self.there.get(&next.name).map(|old| old.addresses.clone()).unwrap_or_default();
        self.release(&next.addresses, &kept);
    }

    /// Whether there is something to remove; refused if it is somebody else's.
    pub fn may_remove(&self, name: &str, mark: &Mark) -> Result<bool, Failure> {
        let old = self.there.get(name);
        old.map_or(Ok(false), |old| owned(old, mark).map(|()| true))
    }

    /// It is gone, and its addresses are free.
    pub fn remove(&mut self, name: &str) {
        let old = self.there.remove(name);
        self.release(old.iter().flat_map(|old| &old.addresses), &[]);
    }

    fn release<'a>(&mut self, addresses: impl IntoIterator<Item = &'a IpAddr>, kept: &[IpAddr]) {
        for address in addresses.into_iter().filter(|address| !kept.contains(address)) {
            self.taken.remove(address);
        }
    }

    fn room_for_one(&self, terms: &Terms) -> Result<(), Failure> {
        match terms.max {
            Some(max) if self.there.len() + self.coming.len() >= max => {
                let words = format!("the quota of {max} load balancers is used up; remove one, or have it raised");
                Err(Failure::new(FailureCode::QuotaExceeded, words))
            }
            _ => Ok(()),
        }
    }

    /// One for each family: the old one where there is one.
    fn addresses(&self, name: &str, families: &[Family], old: Option<&LoadBalancer>) -> Result<Vec<IpAddr>, Failure> {
        let old = old.map(|old| old.addresses.as_slice()).unwrap_or_default();
        let one = |&family: &Family| {
            let old = old.iter().copied().find(|address| Family::of(*address) == family);
            old.or_else(|| addresses::choose(name, family, |address| self.taken.contains(address)))
                .ok_or_else(|| Failure::new(FailureCode::QuotaExceeded, format!("the cloud has no {family} address left")))
        };
        families.iter().map(one).collect()
    }

    /// Puts a list of targets that is known in place of its equal.
    fn share(&mut self, targets: &mut Targets) {
        if let Some(index) = self.lists.iter().position(|known| known == targets) {
            *targets = self.lists.remove(index);
        } else if self.lists.len() == SHARED_LISTS {
            self.lists.remove(0);
        }
        self.lists.push(targets.clone());
    }
}

/// The DNS name of a load balancer.
fn hostname(name: &str) -> String {
    format!("{}.lb.simulated.ccm-core.dev", name.to_ascii_lowercase())
}

fn owned(old: &LoadBalancer, mark: &Mark) -> Result<(), Failure> {
    let owner = &old.wanted.mark;
    if owner.is_same_owner(mark) {
        return Ok(());
    }
    let words = format!(
        "load balancer {} belongs to service {}/{} (UID {}) of cluster {}; it is left alone",
        old.name, owner.namespace, owner.service, owner.service_uid, owner.cluster_uid
    );
    Err(Failure::new(FailureCode::NotOwned, words))
}

fn without(targets: &Targets, gone: &[String]) -> Result<Targets, Failure> {
    if let Some(unknown) = gone.iter().find(|gone| !targets.0.iter().any(|target| target.node == **gone)) {
        return Err(Failure::new(FailureCode::Unknown, format!("no target {unknown}; nothing was changed")));
    }
    let stays = |target: &&Target| !gone.contains(&target.node);
    Ok(Targets(Arc::new(targets.0.iter().filter(stays).cloned().collect())))
}

fn later(now: Timestamp, by: Duration) -> Timestamp {
    now.checked_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
