//! What is believed of the cloud's table: the last complete list, and the results of this term's own calls since. Pure: times are
//! arguments.

use std::collections::HashMap;
use std::time::Duration;

use ipnet::IpNet;
use jiff::Timestamp;

use crate::model::route::{Route, RouteTable, RouteTarget, WantedRoute};

/// A result is kept for so long after the time of a list that overrules it: an older list may still come.
const KEPT: Duration = Duration::from_hours(1);

/// The believed table.
#[derive(Debug, Default)]
pub struct Table {
    listed: HashMap<IpNet, Vec<Route>>,
    results: HashMap<IpNet, Settled>,
    /// How old the list is; `None` before the first.
    read_at: Option<Timestamp>,
    /// Whether routes of this cluster lead to addresses; `None` while no list had one.
    has_addresses: Option<bool>,
}

/// What a call of our own has settled about a destination.
#[derive(Clone, Debug)]
struct Settled {
    /// The route that was made; none: it was removed.
    routes: Vec<Route>,
    at: Timestamp,
}

impl Table {
    /// Takes in a complete list, whose call began at `began`. It does not overrule what a call has settled after the list was read.
    pub fn list(&mut self, list: RouteTable, began: Timestamp) {
        let read_at = list.observed_at.unwrap_or(began);
        let recent = read_at.checked_sub(KEPT).unwrap_or(read_at);
        self.results.retain(|_, settled| settled.at > recent);
        let mut ours = list.routes.iter().filter(|route| route.is_ours).peekable();
        if ours.peek().is_some() {
            self.has_addresses = Some(ours.any(|route| !route.target.addresses.is_empty()));
        }
        self.listed = HashMap::with_capacity(list.routes.len());
        for route in list.routes {
            let routes = self.listed.entry(route.destination.trunc()).or_insert_with(|| Vec::with_capacity(1));
            routes.push(route);
        }
        self.read_at = Some(read_at);
    }

    /// A call has made this route. Whether it leads to the node's addresses is known once a list has shown routes of this cluster.
    pub fn made(&mut self, route: WantedRoute, at: Timestamp) {
        let WantedRoute { destination, node_name, provider_id, addresses, .. } = route;
        let addresses = if self.has_addresses == Some(false) { Vec::new() } else { addresses };
        let target = RouteTarget { node_name: Some(node_name), provider_id, addresses, ..RouteTarget::default() };
        let made = Route { name: String::new(), target, destination, is_blackhole: false, is_ours: true };
        self.results.insert(destination, Settled { routes: vec![made], at });
    }

    /// A call has removed the route of this destination.
    pub fn removed(&mut self, destination: IpNet, at: Timestamp) {
        self.results.insert(destination, Settled { routes: Vec::new(), at });
    }

    /// What became of a call is unknown: what an earlier one has settled does not hold any more.
    pub fn unsettle(&mut self, destination: &IpNet) {
        self.results.remove(destination);
    }

    /// How old the list is; `None` before the first.
    pub fn read_at(&self) -> Option<Timestamp> {
        self.read_at
    }

    /// The routes that are believed to lead to a destination.
    pub fn routes(&self, destination: &IpNet) -> &[Route] {
        let settled = self.settled(destination).map(|settled| &settled.routes);
        settled.or_else(|| self.listed.get(destination)).map_or(&[], Vec::as_slice)
    }

    /// What a call has settled that the list does not overrule.
    fn settled(&self, destination: &IpNet) -> Option<&Settled> {
        self.results.get(destination).filter(|settled| self.read_at.is_none_or(|read_at| settled.at > read_at))
    }

    /// Whether a route of this cluster is believed to lead to a destination.
    pub fn has_ours(&self, destination: &IpNet) -> bool {
        self.routes(destination).iter().any(|route| route.is_ours)
    }

    /// The routes of the last list that no call of our own has settled since.
    pub fn listed(&self) -> impl Iterator<Item = &Route> {
        let unsettled = self.listed.iter().filter(|(destination, _)| self.settled(destination).is_none());
        unsettled.flat_map(|(_, routes)| routes)
    }

    /// The number of routes of this cluster, and of others.
    pub fn count(&self) -> (usize, usize) {
        let (ours, others): (Vec<_>, Vec<_>) = self.listed().partition(|route| route.is_ours);
        let made = self.results.keys().filter(|it| self.settled(it).is_some_and(|settled| !settled.routes.is_empty())).count();
        (ours.len() + made, others.len())
    }
}
