//! `ccm-core routes`: the routing table of this cluster in the cloud, with the nodes whose Pod CIDRs its routes lead to.
use std::collections::{HashMap, HashSet};

use ipnet::IpNet;
use kube::Client;
use serde::{Serialize, Serializer};

use super::{ListingError, from_provider, print};
use crate::cluster::nodes;
use crate::config::{ListingConfig, Output};
use crate::model::node::Node;
use crate::model::route::{Route, RouteTarget};
use crate::provider::Routes;
use crate::provider::session::Handle;

/// One line of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Row {
    /// Its name in the cloud; may be empty.
    name: String,
    /// The CIDR that is routed.
    #[serde(serialize_with = "as_text")]
    destination: IpNet,
    /// What it leads to: the node's name, otherwise its providerID, otherwise the cloud's words or the addresses.
    target: String,
    /// `this cluster` or `other`.
    owner: &'static str,
    /// The nodes with this Pod CIDR; several are a defect of whoever allocates Pod CIDRs.
    nodes: Vec<String>,
    /// Whether a node claims it, and what is wrong with it.
    state: State,
}

/// Whether a node claims a route, and what is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Unclaimed,
    LeadsElsewhere,
    Blackhole,
    Duplicate,
    Claimed,
}

impl State {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Unclaimed => "unclaimed",
            Self::LeadsElsewhere => "leads elsewhere",
            Self::Blackhole => "blackhole",
            Self::Duplicate => "duplicate",
            Self::Claimed => "claimed",
        }
    }
}

impl Row {
    fn is_ours(&self) -> bool {
        self.owner == OURS
    }
}

fn as_text<S: Serializer>(destination: &IpNet, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(destination)
}

const OURS: &str = "this cluster";

/// Reads the routes and the nodes, and returns the text to print.
pub(super) async fn list(config: &ListingConfig, client: &Client, cluster_uid: String) -> Result<String, ListingError> {
    let nodes = nodes::all(client).await.map_err(|error| ListingError::Objects { resource: "nodes", error })?;
    let list = |handle: Handle| async move { handle.routes().list().await };
    let (cloud, table) = from_provider(config, cluster_uid, "routes", list).await?;
    let mut rows = rows(table.routes, &nodes);
    rows.retain(|row| !config.unclaimed || (row.is_ours() && row.state == State::Unclaimed));
    text(&cloud, &rows, config.output)
}

/// Each route with the nodes that have its destination as a Pod CIDR; those in the worst state come first.
fn rows(routes: Vec<Route>, nodes: &[Node]) -> Vec<Row> {
    let claims = claims(nodes);
    let mut claimed = HashSet::new();
    let mut rows: Vec<_> = routes.into_iter().map(|route| row(route, &claims, &mut claimed)).collect();
    rows.sort_by(|a, b| (a.state, a.destination, &a.name).cmp(&(b.state, b.destination, &b.name)));
    rows
}

fn claims(nodes: &[Node]) -> HashMap<IpNet, Vec<&Node>> {
    let mut claims: HashMap<_, Vec<_>> = HashMap::new();
    for node in nodes {
        let cidrs = node.pod_cidrs.iter().filter_map(|cidr| cidr.parse::<IpNet>().ok());
        cidrs.for_each(|cidr| claims.entry(cidr.trunc()).or_default().push(node));
    }
    claims
}

/// `claimed` has the destinations that a route before this one leads to their node.
fn row(route: Route, claims: &HashMap<IpNet, Vec<&Node>>, claimed: &mut HashSet<IpNet>) -> Row {
    let claimants = claims.get(&route.destination).map(Vec::as_slice).unwrap_or_default();
    let state = if claimants.is_empty() {
        State::Unclaimed
    } else if !claimants.iter().any(|node| route.target.is(node)) {
        State::LeadsElsewhere
    } else if !claimed.insert(route.destination) {
        State::Duplicate
    } else if route.is_blackhole {
        State::Blackhole
    } else {
        State::Claimed
    };
    Row {
        target: target(&route.target),
        name: route.name,
        destination: route.destination,
        owner: if route.is_ours { OURS } else { "other" },
        nodes: claimants.iter().map(|node| node.name.clone()).collect(),
        state,
    }
}

fn target(target: &RouteTarget) -> String {
    let addresses = || target.addresses.iter().map(|address| address.value.as_str()).collect::<Vec<_>>().join(",");
    let known = target.node_name.clone().or_else(|| target.provider_id.clone());
    known.or_else(|| Some(target.description.clone()).filter(|words| !words.is_empty())).unwrap_or_else(addresses)
}

fn text(cloud: &str, rows: &[Row], output: Output) -> Result<String, ListingError> {
    let header = ["NAME", "DESTINATION", "TARGET", "OWNER", "NODE", "STATE"];
    let cells = |row: &Row| {
        let (destination, state) = (row.destination.to_string(), row.state.as_str().to_owned());
        [row.name.clone(), destination, row.target.clone(), row.owner.to_owned(), row.nodes.join(","), state]
    };
    let ours: Vec<_> = rows.iter().filter(|row| row.is_ours()).collect();
    let unclaimed = ours.iter().filter(|row| row.state == State::Unclaimed).count();
    let (all, ours) = (rows.len(), ours.len());
    let counts = format!("{all} routes in the cloud {cloud}, {ours} of this cluster; {unclaimed} of these that no node claims");
    print(rows, output, header, cells, &counts)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;
    use crate::cluster::scripted::model;
    use crate::provider::scripted::routes::{foreign, ours};

    fn node(name: &str, cidrs: &[&str]) -> Node {
        model(&json!({
            "metadata": { "name": name, "uid": "u" },
            "spec": { "providerID": format!("fake://{name}"), "podCIDRs": cidrs },
        }))
    }

    fn some_rows() -> Vec<Row> {
        let nodes = [node("a", &["10.0.1.0/24", "fd00:1::/64"]), node("b", &["10.0.2.0/24"]), node("c", &["10.0.3.0/24"])];
        let stopped = Route { is_blackhole: true, ..ours("c", "10.0.3.0/24") };
        let routes = vec![
            ours("a", "10.0.1.0/24"),
            ours("a", "10.0.1.0/24"),
            Route { is_ours: false, ..ours("a", "fd00:1::/64") },
            ours("a", "10.0.2.0/24"),
            stopped,
            ours("gone", "10.0.9.0/24"),
            foreign("192.168.0.0/16"),
        ];
        rows(routes, &nodes)
    }

    #[test]
    fn a_route_is_claimed_by_the_node_with_its_destination_and_every_defect_shows() {
        let shown: Vec<_> = some_rows()
            .into_iter()
            .map(|row| format!("{} {} {} {} {}", row.destination, row.target, row.owner, row.nodes.join(","), row.state.as_str()))
            .collect();
        let expected = [
            "10.0.9.0/24 gone this cluster  unclaimed",
            "192.168.0.0/16 vpn-1 other  unclaimed",
            "10.0.2.0/24 a this cluster b leads elsewhere",
            "10.0.3.0/24 c this cluster c blackhole",
            "10.0.1.0/24 a this cluster a duplicate",
            "10.0.1.0/24 a this cluster a claimed",
            "fd00:1::/64 a other a claimed",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn two_nodes_with_one_pod_cidr_are_both_shown() {
        let rows = rows(vec![ours("b", "10.0.1.0/24")], &[node("a", &["10.0.1.0/24"]), node("b", &["10.0.1.0/24"])]);
        assert_eq!((rows[0].nodes.join(","), rows[0].state), ("a,b".to_owned(), State::Claimed));
    }

    #[test]
    fn the_table_says_how_many_are_ours_and_how_many_of_these_no_node_claims() {
        let table = text("here/1", &some_rows(), Output::Table).unwrap();
        assert!(table.contains("leads elsewhere") && table.contains("vpn-1"), "{table}");
        assert!(table.ends_with("7 routes in the cloud here/1, 5 of this cluster; 1 of these that no node claims"), "{table}");
    }

    #[test]
    fn json_has_the_same_rows() {
        let shown: serde_json::Value = serde_json::from_str(&text("here/1", &some_rows(), Output::Json).unwrap()).unwrap();
        let first = json!({
            "name": "gone-10.0.9.0/24", "destination": "10.0.9.0/24", "target": "gone", "owner": "this cluster", "nodes": [],
            "state": "unclaimed",
        });
        assert_eq!((&shown[0], &shown[2]["state"], shown.as_array().unwrap().len()), (&first, &json!("leads-elsewhere"), 7));
    }
}
