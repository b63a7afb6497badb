//! `provider-simulated ctl`: a hand in a simulated cloud, through a provider's control socket or at the cloud's own address.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use tokio::process::Command;

/// Command lines are kept at a length that every system takes.
const NAMES_AT_ONCE: usize = 1_000;

/// The methods of a provider that may change a load balancer.
const MUTATIONS: [&str; 3] = ["EnsureLoadBalancer", "UpdateLoadBalancer", "EnsureLoadBalancerDeleted"];

/// One cloud's.
#[derive(Clone, Debug)]
pub struct Ctl {
    binary: PathBuf,
    target: [String; 2],
}

/// A load balancer as it truly is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancer {
    /// Its name in the cloud.
    pub name: String,
    /// The Service that it is marked with.
    pub service: String,
    /// That Service's UID.
    pub service_uid: String,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// Its DNS name, where that is published.
    pub hostname: Option<String>,
    /// `provisioning` or `ready`.
    pub state: String,
    /// The nodes that it sends traffic to.
    pub targets: Vec<String>,
    /// Its ports.
    pub listeners: Vec<Listener>,
    /// The most queries a second.
    pub max_qps: Option<u32>,
    /// How often its owner has changed it.
    pub mutations: u64,
}

/// A port of a load balancer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listener {
    /// Where clients connect.
    pub port: u16,
    /// `TCP` or `UDP`.
    pub protocol: String,
    /// Where nodes are reached.
    pub node_port: Option<u16>,
}

/// A route as it truly is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// Its id in the cloud.
    pub id: String,
    /// What is routed.
    pub destination: String,
    /// The node that it leads to, if that can be told.
    pub node: Option<String>,
    /// The machine that it leads to, if it can be told.
    pub provider_id: Option<String>,
    /// The address that it leads to, unless it leads to the machine.
    pub address: Option<String>,
    /// The UID of the cluster that it is tagged with.
    pub cluster_uid: Option<String>,
    /// Whether packets are dropped, since the machine does not run.
    pub blackhole: bool,
    /// How often its owner has changed it.
    pub mutations: u64,
}

impl Ctl {
    /// Through a control socket.
    pub fn of_provider(binary: &Path, control: &str) -> Self {
        Self { binary: binary.to_owned(), target: ["--control".to_owned(), control.to_owned()] }
    }

    /// At a cloud's address.
    pub fn of_cloud(binary: &Path, url: &str) -> Self {
        Self { binary: binary.to_owned(), target: ["--cloud".to_owned(), url.to_owned()] }
    }

    /// Runs a command; answers what it printed.
    pub async fn run(&self, args: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.binary);
        command.arg("ctl").args(&self.target).args(args).kill_on_drop(true);
        let output = command.output().await.context("cannot start provider-simulated ctl")?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "ctl {} ended with {}: {error}", args.join(" "), output.status);
        Ok(String::from_utf8(output.stdout)?)
    }

    /// `add`, `stop`, `start`, `terminate`, `forget`, `hide` or `unhide` machines.
    pub async fn machines(&self, action: &str, names: &[String]) -> Result<()> {
        for some in names.chunks(NAMES_AT_ONCE) {
            let args: Vec<_> = std::iter::once(action).chain(some.iter().map(String::as_str)).collect();
            self.run(&args).await?;
        }
        Ok(())
    }

    /// `fault set NAME`.
    pub async fn set_fault(&self, name: &str) -> Result<()> {
        self.run(&["fault", "set", name]).await.map(drop)
    }

    /// `fault clear`.
    pub async fn clear_faults(&self) -> Result<()> {
        self.run(&["fault", "clear"]).await.map(drop)
    }

    /// Calls so far, by method.
    pub async fn calls(&self) -> Result<Calls> {
        let text = self.run(&["calls"]).await?;
        serde_json::from_str(&text).map(Calls).with_context(|| format!("ctl calls printed {text}"))
    }

    /// Every load balancer of the cloud.
    pub async fn load_balancers(&self) -> Result<Vec<LoadBalancer>> {
        let text = self.run(&["load-balancers", "--output", "json"]).await?;
        serde_json::from_str(&text).with_context(|| format!("ctl load-balancers printed {text}"))
    }

    /// Every route of the table, whoever made it.
    pub async fn routes(&self) -> Result<Vec<Route>> {
        let text = self.run(&["routes", "--output", "json"]).await?;
        serde_json::from_str(&text).with_context(|| format!("ctl routes printed {text}"))
    }

    /// The load balancer of one Service.
    pub async fn load_balancer(&self, service: &str) -> Result<LoadBalancer> {
        let mut all = self.load_balancers().await?;
        all.retain(|one| one.service == service);
        ensure!(all.len() == 1, "{service} has {} load balancers", all.len());
        all.pop().context("it has one")
    }

    /// Fails unless the cloud has exactly so many load balancers.
    pub async fn sells(&self, count: usize) -> Result<()> {
        let there = self.load_balancers().await?.len();
        ensure!(there == count, "the cloud has {there} load balancers instead of {count}");
        Ok(())
    }

    /// Changes a Service's load balancer behind its owner's back, by the flags of `ctl load-balancer change`.
    pub async fn tamper(&self, service: &str, flags: &[&str]) -> Result<()> {
        let name = self.load_balancer(service).await?.name;
        let args = [&["load-balancer", "change", &name], flags].concat();
        self.run(&args).await.map(drop)
    }

    /// Removes a Service's load balancer behind its owner's back.
    pub async fn steal(&self, service: &str) -> Result<()> {
        let name = self.load_balancer(service).await?.name;
        self.run(&["load-balancer", "remove", &name]).await.map(drop)
    }
}

/// How often what was called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls(pub BTreeMap<String, u64>);

impl Calls {
    /// Of one method.
    pub fn of(&self, method: &str) -> u64 {
        self.0.get(method).copied().unwrap_or_default()
    }

    /// Of all methods.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Of those that may change a load balancer.
    pub fn mutations(&self) -> u64 {
        MUTATIONS.into_iter().map(|method| self.of(method)).sum()
    }

    /// Those that came after `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self(self.0.iter().map(|(method, count)| (method.clone(), count - earlier.of(method))).collect())
    }
}
