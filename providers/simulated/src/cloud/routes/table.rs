//! The routes that are there, and the rules by which that changes: whose a destination is, what is replaced, how many there may
//! be. Pure: nothing here waits or writes. A change is tried on a copy, and tells what a journal has to keep of it.
use std::collections::BTreeMap;
use std::sync::Arc;

use ipnet::IpNet;

use super::model::{Edit, Outcome, Removal, Route, Target};
use crate::cloud::model::{Failure, FailureCode};

/// How the cloud sells routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// How many there may be; any number if absent.
    pub max: Option<usize>,
}

/// What a journal keeps of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A route is there, in place of one with its id.
    Put(Arc<Route>),
    /// None of this id is there any more, under its destination.
    Gone(IpNet, String),
}

/// A route that a cluster wants, with its machine found.
#[derive(Clone, Debug)]
pub struct Claim<'a> {
    /// Whose.
    pub cluster_uid: &'a str,
    /// What is routed.
    pub destination: IpNet,
    /// Where to.
    pub target: Target,
}

/// The routes that are there, by destination. A copy shares them.
#[derive(Clone, Debug, Default)]
pub struct Table {
    by_destination: BTreeMap<IpNet, Vec<Arc<Route>>>,
    len: usize,
}

impl Table {
    /// All, by destination.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Route>> {
        self.by_destination.values().flatten()
    }

    fn at(&self, destination: IpNet) -> &[Arc<Route>] {
        self.by_destination.get(&destination.trunc()).map(Vec::as_slice).unwrap_or_default()
    }

    fn find(&self, id: &str) -> Option<&Arc<Route>> {
        self.all().find(|route| route.id == id)
    }

    /// Puts what a journal kept.
    pub fn replay(&mut self, record: Record) {
        match record {
            Record::Put(route) => {
                let routes = self.by_destination.entry(route.destination).or_default();
                if let Some(old) = routes.iter_mut().find(|old| old.id == route.id) {
                    *old = route;
                } else {
                    routes.push(route);
                    self.len += 1;
                }
            }
            Record::Gone(destination, id) => self.drop_at(destination, &id),
        }
    }

    fn drop_at(&mut self, destination: IpNet, id: &str) {
        let Some(routes) = self.by_destination.get_mut(&destination) else { return };
        let before = routes.len();
        routes.retain(|route| route.id != id);
        self.len -= before - routes.len();
        if routes.is_empty() {
            self.by_destination.remove(&destination);
        }
    }

    fn put(&mut self, route: Route, records: &mut Vec<Record>) {
        let route = Arc::new(route);
        records.push(Record::Put(Arc::clone(&route)));
        self.replay(Record::Put(route));
    }

    fn remove(&mut self, destination: IpNet, id: &str, records: &mut Vec<Record>) {
        self.drop_at(destination, id);
        records.push(Record::Gone(destination, id.to_owned()));
    }

    /// Makes a cluster's route be there: its own of this destination is replaced, further ones go, those of others stay.
    pub fn claim(&mut self, terms: Terms, claim: &Claim<'_>, records: &mut Vec<Record>) -> Outcome {
        let destination = claim.destination.trunc();
        let (own, others): (Vec<_>, Vec<_>) =
            self.at(destination).iter().cloned().partition(|route| is_of(route, claim.cluster_uid));
        if let Some(other) = others.iter().find(|other| !other.target.leads_alike(&claim.target)) {
            return Outcome::Failed(not_owned(other));
        }
        let Some(first) = own.first() else {
            return if others.is_empty() { self.add(terms, claim, records) } else { Outcome::Done };
        };
        let kept = own.iter().find(|route| route.target.is_same(&claim.target)).unwrap_or(first);
        if !kept.target.is_same(&claim.target) {
            let next = Route { target: claim.target.clone(), mutations: kept.mutations + 1, ..kept.as_ref().clone() };
            self.put(next, records);
        }
        for other in own.iter().filter(|other| other.id != kept.id) {
            self.remove(destination, &other.id, records);
        }
        Outcome::Done
    }

    fn add(&mut self, terms: Terms, claim: &Claim<'_>, records: &mut Vec<Record>) -> Outcome {
        if let Some(max) = terms.max.filter(|max| self.len >= *max) {
            let words = format!("the quota of {max} routes is used up; remove one, or have it raised");
            return Outcome::Failed(Failure::new(FailureCode::QuotaExceeded, words));
        }
        let cluster_uid = Some(claim.cluster_uid.to_owned());
        self.put(made(claim.destination, claim.target.clone(), cluster_uid, 1), records);
        Outcome::Done
    }

    /// Removes a cluster's route that still leads where it was listed to lead.
    pub fn release(&mut self, cluster_uid: &str, gone: &Removal, records: &mut Vec<Record>) -> Outcome {
        let destination = gone.destination.trunc();
        let (own, others): (Vec<_>, Vec<_>) = self.at(destination).iter().cloned().partition(|route| is_of(route, cluster_uid));
        let there: Vec<_> = own.iter().filter(|route| gone.is_of(&route.target)).collect();
        if let (true, Some(other)) = (there.is_empty(), own.first()) {
            let words = format!("the route to {destination} leads to {} by now", other.target);
            return Outcome::Failed(Failure::new(FailureCode::Conflict, words));
        }
        if let (true, Some(other)) = (own.is_empty(), others.iter().find(|other| gone.is_of(&other.target))) {
            return Outcome::Failed(not_owned(other));
        }
        for route in there {
            self.remove(destination, &route.id, records);
        }
        Outcome::Done
    }

    /// Makes a change behind the owners' backs; answers the route that was added or changed.
    pub fn edit(&mut self, edit: Edit, records: &mut Vec<Record>) -> Result<Option<Arc<Route>>, Failure> {
        let next = match edit {
            Edit::Add { destination, target, cluster_uid } => made(destination, target, cluster_uid, 0),
            Edit::Mark { id, cluster_uid } => Route { cluster_uid, ..self.known(&id)?.as_ref().clone() },
            Edit::Remove { id } => {
                let destination = self.known(&id)?.destination;
                self.remove(destination, &id, records);
                return Ok(None);
            }
        };
        let id = next.id.clone();
        self.put(next, records);
        Ok(self.find(&id).cloned())
    }

    fn known(&self, id: &str) -> Result<&Arc<Route>, Failure> {
        self.find(id).ok_or_else(|| Failure::new(FailureCode::Unknown, format!("no route {id}; nothing was changed")))
    }
}

fn is_of(route: &Route, cluster_uid: &str) -> bool {
    route.cluster_uid.as_deref() == Some(cluster_uid)
}

fn made(destination: IpNet, target: Target, cluster_uid: Option<String>, mutations: u64) -> Route {
    let id = format!("route-{:016x}", rand::random::<u64>());
    Route { id, destination: destination.trunc(), target, cluster_uid, mutations }
}

fn not_owned(other: &Route) -> Failure {
    let owner = other.cluster_uid.as_ref().map_or_else(|| "nobody that is known".to_owned(), |uid| format!("cluster {uid}"));
    let words = format!(
        "the route to {} ({}) leads to {} and belongs to {owner}; it is left alone",
        other.destination, other.id, other.target
    );
    Failure::new(FailureCode::NotOwned, words)
}

#[cfg(test)]
mod tests;
