//! `ctl routes` and `ctl route`: what is in the table, and changes that no owner knows of.
use std::net::IpAddr;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use ipnet::IpNet;
use serde::Serialize;

use super::{Output, table};
use crate::cloud::CloudApi as _;
use crate::cloud::routes::RouteApi as _;
use crate::cloud::routes::model::{Edit, Listed, Machine, Target};
use crate::http::client::Client;

/// How routes are listed.
#[derive(Debug, Args)]
pub struct RouteList {
    /// table or json
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Debug, Subcommand)]
pub enum RouteCommand {
    /// Add a route, even if there is one to this destination
    ///
    /// Without --cluster it has no tag, as a person's. Without a target it leads to the gateway `vpn`.
    Add {
        /// What is routed, such as 10.244.1.0/24
        destination: IpNet,
        #[command(flatten)]
        target: TargetArgs,
        /// The UID of the cluster that it is tagged with
        #[arg(long, value_name = "UID")]
        cluster: Option<String>,
    },
    /// Add a second route with the destination and the tag of one that is there
    Duplicate {
        /// The route: its id, or its destination if it is the only one
        route: String,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Tag a route with another cluster's UID, or with none
    Mark {
        /// The route: its id, or its destination if it is the only one
        route: String,
        /// The UID of the cluster; without it the tag goes
        #[arg(long, value_name = "UID")]
        cluster: Option<String>,
    },
    /// Remove a route
    Remove {
        /// The route: its id, or its destination if it is the only one
        route: String,
    },
}

/// Where a route leads.
#[derive(Debug, Args)]
pub struct TargetArgs {
    /// To the machine of this node
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// To this address; with --node, as that machine's
    #[arg(long, value_name = "IP")]
    address: Option<IpAddr>,
    /// To this gateway, which is no machine
    #[arg(long, value_name = "NAME", conflicts_with_all = ["node", "address"], default_value = "vpn")]
    gateway: String,
}

impl TargetArgs {
    async fn target(self, client: &Client) -> anyhow::Result<Target> {
        let machine = match self.node {
            Some(node) => Some(machine(client, node).await?),
            None => None,
        };
        Ok(match (machine, self.address) {
            (machine, Some(address)) => Target::Address { address, machine },
            (Some(machine), None) => Target::Machine(machine),
            (None, None) => Target::Gateway(self.gateway),
        })
    }
}

async fn machine(client: &Client, node: String) -> anyhow::Result<Machine> {
    let found = client.instances(std::slice::from_ref(&node)).await?;
    let provider_id = found.into_iter().next().with_context(|| format!("no instance {node}"))?.provider_id;
    Ok(Machine { node, provider_id: Some(provider_id) })
}

impl RouteList {
    pub(super) async fn run(self, client: &Client) -> anyhow::Result<String> {
        let shown: Vec<_> = client.route_records().await?.into_iter().map(Shown::from).collect();
        Ok(match self.output {
            Output::Json => serde_json::to_string_pretty(&shown)? + "\n",
            Output::Table => {
                let rows: Vec<_> = shown.iter().map(Shown::row).collect();
                table::render(["ID", "DESTINATION", "NODE", "TARGET", "CLUSTER", "STATE", "MUTATIONS"], &rows)
            }
        })
    }
}

impl RouteCommand {
    pub(super) async fn run(self, client: &Client) -> anyhow::Result<String> {
        let (done, edit) = match self {
            Self::Add { destination, target, cluster } => {
                ("added", Edit::Add { destination, target: target.target(client).await?, cluster_uid: cluster })
            }
            Self::Duplicate { route, target } => {
                let first = find(client, &route).await?.route;
                let target = target.target(client).await?;
                ("added", Edit::Add { destination: first.destination, target, cluster_uid: first.cluster_uid })
            }
            Self::Mark { route, cluster } => {
                ("marked", Edit::Mark { id: find(client, &route).await?.route.id, cluster_uid: cluster })
            }
            Self::Remove { route } => {
                let id = find(client, &route).await?.route.id;
                client.edit_route(Edit::Remove { id: id.clone() }).await?;
                return Ok(format!("removed {id}\n"));
            }
        };
        let route = client.edit_route(edit).await?.context("the cloud changed the route and has none now")?.route;
        Ok(format!("{done} {} {}\n", route.id, route.destination))
    }
}

/// The route with this id, or the only one to this destination.
async fn find(client: &Client, text: &str) -> anyhow::Result<Listed> {
    let destination = text.parse::<IpNet>().ok().map(|destination| destination.trunc());
    let is_it = |one: &Listed| one.route.id == text || Some(one.route.destination) == destination;
    let mut found: Vec<_> = client.route_records().await?.into_iter().filter(is_it).collect();
    match (found.pop(), found.is_empty()) {
        (Some(one), true) => Ok(one),
        (None, _) => bail!("no route {text}"),
        (Some(_), false) => bail!("there are several routes to {text}: name one by its id"),
    }
}

/// A route as scripts read it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    id: String,
    destination: IpNet,
    target: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster_uid: Option<String>,
    blackhole: bool,
    mutations: u64,
}

impl From<Listed> for Shown {
    fn from(Listed { route, machine, blackhole }: Listed) -> Self {
        Self {
            target: route.target.to_string(),
            address: route.target.address(),
            id: route.id,
            destination: route.destination,
            node: machine.as_ref().map(|machine| machine.node.clone()),
            provider_id: machine.and_then(|machine| machine.provider_id),
            cluster_uid: route.cluster_uid,
            blackhole,
            mutations: route.mutations,
        }
    }
}

impl Shown {
    fn row(&self) -> [String; 7] {
        [
            self.id.clone(),
            self.destination.to_string(),
            self.node.clone().unwrap_or_default(),
            self.target.clone(),
            self.cluster_uid.clone().unwrap_or_default(),
            if self.blackhole { "blackhole".into() } else { "active".into() },
            self.mutations.to_string(),
        ]
    }
}
