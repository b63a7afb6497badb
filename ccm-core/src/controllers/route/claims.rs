//! Which node has which Pod CIDR, as the watch shows it, and what this leadership term has seen of nodes that are gone. Pure: times
//! are arguments.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use jiff::Timestamp;

use crate::model::node::Node;
use crate::model::ownership::Ownership;

/// A node with its Pod CIDRs.
#[derive(Clone, Debug)]
pub struct Claimant {
    /// The node, as the watch last showed it.
    pub node: Arc<Node>,
    /// Its Pod CIDRs without host bits, each once.
    pub cidrs: Vec<IpNet>,
    /// Whose node it is.
    pub ownership: Ownership,
}

impl Claimant {
    /// A node. A Pod CIDR that is none is left out.
    pub fn new(node: Arc<Node>, ownership: Ownership) -> Self {
        let cidrs = parse(&node.pod_cidrs);
        Self { node, cidrs, ownership }
    }

    /// Whether the node is to have routes. Before a node that waits to be initialised has a providerID, the provider could only
    /// guess its machine.
    pub fn wants_routes(&self) -> bool {
        let unknown_machine = self.node.provider_id.is_none() && self.node.is_uninitialized();
        self.ownership.is_managed() && !unknown_machine
    }

    /// Whether a route of the node may have to change where `other` is the same node at another time.
    fn differs(&self, other: &Self) -> bool {
        let of = |it: &Self| (it.wants_routes(), it.ownership);
        let (one, two) = (&self.node, &other.node);
        of(self) != of(other)
            || self.cidrs != other.cidrs
            || (&one.uid, &one.provider_id) != (&two.uid, &two.provider_id)
            || one.addresses != two.addresses
    }

    /// Of two nodes with the same Pod CIDR the older one has it.
    fn rank(&self) -> (Timestamp, &str) {
        (self.node.created_at, &self.node.name)
    }
}

/// The CIDRs among these texts, each once and without host bits.
pub fn parse(texts: &[String]) -> Vec<IpNet> {
    let mut cidrs: Vec<IpNet> = Vec::with_capacity(texts.len());
    for cidr in texts.iter().filter_map(|text| text.parse::<IpNet>().ok()).map(|cidr| cidr.trunc()) {
        if !cidrs.contains(&cidr) {
            cidrs.push(cidr);
        }
    }
    cidrs
}

/// What a change of a node brings with it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Routes of the node may have to change.
    pub matters: bool,
    /// Pod CIDRs that no node has any more.
    pub freed: Vec<IpNet>,
    /// Other nodes with a Pod CIDR that the node has or had.
    pub rivals: Vec<String>,
}

/// All nodes, by name and by Pod CIDR.
#[derive(Debug)]
pub struct Claims {
    nodes: HashMap<String, Claimant>,
    by_cidr: HashMap<IpNet, Vec<String>>,
    /// The Pod CIDRs that a node had in this term and no node has now, and since when.
    gone: HashMap<IpNet, Timestamp>,
    /// The names of the nodes that went, in their order.
    vanished: VecDeque<(Instant, String)>,
    /// For how long these names are kept.
    window: Duration,
}

impl Claims {
    /// No node yet. The names of nodes that go are kept for one window.
    pub fn new(window: Duration) -> Self {
        let (nodes, by_cidr, gone, vanished) = Default::default();
        Self { nodes, by_cidr, gone, vanished, window }
    }

    /// Takes in a node as it is now; `None`: it is gone.
    pub fn see(&mut self, name: &str, claimant: Option<Claimant>, now: Instant, time: Timestamp) -> Change {
        let before = self.nodes.remove(name);
        let matters = match (&before, &claimant) {
            (None, None) => return Change::default(),
            (Some(before), Some(after)) => before.differs(after),
            _ => true,
        };
        if claimant.is_none() {
            self.vanished.push_back((now, name.to_owned()));
            self.forget_vanished(now);
        }
        let mut change = Change { matters, ..Change::default() };
        let had = before.map(|before| before.cidrs).unwrap_or_default();
        let has = claimant.as_ref().map(|after| after.cidrs.clone()).unwrap_or_default();
        self.nodes.extend(claimant.map(|claimant| (name.to_owned(), claimant)));
        if had != has {
            has.iter().filter(|cidr| !had.contains(cidr)).for_each(|cidr| self.claim(name, *cidr));
            let left: Vec<_> = had.iter().filter(|cidr| !has.contains(cidr)).copied().collect();
            change.freed = left.into_iter().filter(|cidr| self.leave(name, cidr, time)).collect();
        }
        if matters {
            change.rivals = self.rivals(name, had.iter().chain(&has));
        }
        change
    }

    fn claim(&mut self, name: &str, cidr: IpNet) {
        self.gone.remove(&cidr);
        self.by_cidr.entry(cidr).or_default().push(name.to_owned());
    }

    /// Whether no node has the CIDR any more.
    fn leave(&mut self, name: &str, cidr: &IpNet, time: Timestamp) -> bool {
        let Some(names) = self.by_cidr.get_mut(cidr) else { return false };
        names.retain(|other| other != name);
        let is_free = names.is_empty();
        if is_free {
            self.by_cidr.remove(cidr);
            self.gone.insert(*cidr, time);
        }
        is_free
    }

    fn forget_vanished(&mut self, now: Instant) {
        let window = self.window;
        while self.vanished.pop_front_if(|(at, _)| now.saturating_duration_since(*at) >= window).is_some() {}
    }

    fn rivals<'a>(&self, name: &str, cidrs: impl Iterator<Item = &'a IpNet>) -> Vec<String> {
        let names = cidrs.filter_map(|cidr| self.by_cidr.get(cidr)).flatten();
        names.filter(|other| *other != name).cloned().collect()
    }

    /// A node.
    pub fn get(&self, name: &str) -> Option<&Claimant> {
        self.nodes.get(name)
    }

    /// Every node.
    pub fn all(&self) -> impl Iterator<Item = &Claimant> {
        self.nodes.values()
    }

    /// The node that has this Pod CIDR: of several the oldest.
    pub fn holder(&self, cidr: &IpNet) -> Option<&Claimant> {
        let names = self.by_cidr.get(cidr)?;
        names.iter().filter_map(|name| self.nodes.get(name)).min_by_key(|claimant| claimant.rank())
    }

    /// Since when no node has this Pod CIDR, if a node had it in this term.
    pub fn gone_since(&self, cidr: &IpNet) -> Option<Timestamp> {
        self.gone.get(cidr).copied()
    }

    /// Forgets Pod CIDRs of nodes that are gone where there is no route any more.
    pub fn forget_settled(&mut self, has_route: impl Fn(&IpNet) -> bool) {
        self.gone.retain(|cidr, _| has_route(cidr));
    }

    /// Every Pod CIDR.
    pub fn cidrs(&self) -> Cidrs {
        Cidrs(self.by_cidr.keys().copied().collect())
    }

    /// The names of the nodes that are there, or went within the window before `now`.
    pub fn seen_within_window(&mut self, now: Instant) -> HashSet<&str> {
        self.forget_vanished(now);
        self.nodes.keys().chain(self.vanished.iter().map(|(_, name)| name)).map(String::as_str).collect()
    }
}

/// A set of CIDRs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cidrs(BTreeSet<IpNet>);

impl FromIterator<IpNet> for Cidrs {
    fn from_iter<I: IntoIterator<Item = IpNet>>(cidrs: I) -> Self {
        Self(cidrs.into_iter().map(|cidr| cidr.trunc()).collect())
    }
}

impl Cidrs {
    /// Adds those of another set.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend(&other.0);
    }

    /// Whether one of them has an address in common with this one. Two CIDRs have if one contains the other.
    pub fn overlaps(&self, cidr: &IpNet) -> bool {
        let around = std::iter::successors(Some(cidr.trunc()), IpNet::supernet);
        around.into_iter().any(|wider| self.0.contains(&wider)) || self.has_within(cidr)
    }

    fn has_within(&self, cidr: &IpNet) -> bool {
        let host = |address: IpAddr| IpNet::from(address);
        let first = IpNet::new(cidr.network(), 0).unwrap_or(host(cidr.network()));
        self.0.range(first..=host(cidr.broadcast())).next().is_some()
    }
}
