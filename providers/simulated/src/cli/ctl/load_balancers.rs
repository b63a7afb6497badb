//! `ctl load-balancers` and `ctl load-balancer`: what is there, and changes that its owner does not know of.
use anyhow::bail;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::Serialize;

use super::{Output, table};
use crate::cloud::load_balancers::LoadBalancerApi as _;
use crate::cloud::load_balancers::model::{Edit, Listener, LoadBalancer, MAX_QPS};
use crate::http::client::Client;

/// How load balancers are listed.
#[derive(Debug, Args)]
pub struct LoadBalancerList {
    /// table or json
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Debug, Subcommand)]
pub enum LoadBalancerCommand {
    /// Take targets away, or set another maximum of queries a second
    ///
    /// Its owner is not told: a core finds it by PlanLoadBalancer, and puts it right if it is told to.
    #[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
    Change {
        /// The load balancer
        name: String,
        /// Target that shall go, by the name of its node; may be repeated
        #[arg(long = "remove-target", value_name = "NODE", group = "what")]
        remove_targets: Vec<String>,
        /// The most queries a second
        #[arg(long, value_name = "N", group = "what", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_QPS)))]
        max_qps: Option<u32>,
    },
    /// Remove a load balancer, and set its addresses free
    ///
    /// Its owner is not told.
    Remove {
        /// The load balancer
        name: String,
    },
}

impl LoadBalancerList {
    pub(super) async fn run(self, client: &Client) -> anyhow::Result<String> {
        let now = Timestamp::now();
        let there = client.load_balancers().await?;
        let shown: Vec<_> = there.into_iter().map(|one| Shown::of(one, now)).collect();
        Ok(match self.output {
            Output::Json => serde_json::to_string_pretty(&shown)? + "\n",
            Output::Table => {
                let rows: Vec<_> = shown.iter().map(Shown::row).collect();
                table::render(["NAME", "SERVICE", "STATE", "ADDRESSES", "LISTENERS", "TARGETS", "MAX-QPS", "MUTATIONS"], &rows)
            }
        })
    }
}

impl LoadBalancerCommand {
    pub(super) async fn run(self, client: &Client) -> anyhow::Result<String> {
        let (name, edit) = match self {
            Self::Change { name, remove_targets, max_qps } => (name, Edit::Change { remove_targets, max_qps }),
            Self::Remove { name } => (name, Edit::Remove {}),
        };
        match client.edit_load_balancer(&name, edit.clone()).await? {
            Some(one) => Ok(format!("changed {}\n", one.name)),
            None if edit == (Edit::Remove {}) => Ok(format!("removed {name}\n")),
            None => bail!("the cloud changed load balancer {name} and has none now"),
        }
    }
}

/// A load balancer as scripts read it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    name: String,
    cluster_uid: String,
    namespace: String,
    service: String,
    service_uid: String,
    addresses: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hostname: Option<String>,
    state: &'static str,
    targets: Vec<String>,
    listeners: Vec<Listener>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_qps: Option<u32>,
    mutations: u64,
}

impl Shown {
    fn of(one: LoadBalancer, now: Timestamp) -> Self {
        let state = if one.is_ready(now) { "ready" } else { "provisioning" };
        let mark = one.wanted.mark;
        Self {
            name: one.name,
            cluster_uid: mark.cluster_uid,
            namespace: mark.namespace,
            service: mark.service,
            service_uid: mark.service_uid,
            addresses: one.addresses.iter().map(ToString::to_string).collect(),
            hostname: one.hostname,
            state,
            targets: one.wanted.targets.0.iter().map(|target| target.node.clone()).collect(),
            listeners: one.wanted.listeners,
            max_qps: one.wanted.max_qps,
            mutations: one.mutations,
        }
    }

    fn row(&self) -> [String; 8] {
        let listeners: Vec<_> = self.listeners.iter().map(|one| format!("{}/{}", one.port, one.protocol)).collect();
        [
            self.name.clone(),
            format!("{}/{}", self.namespace, self.service),
            self.state.to_owned(),
            self.hostname.clone().unwrap_or_else(|| self.addresses.join(",")),
            listeners.join(","),
            self.targets.len().to_string(),
            self.max_qps.map(|max_qps| max_qps.to_string()).unwrap_or_default(),
            self.mutations.to_string(),
        ]
    }
}
