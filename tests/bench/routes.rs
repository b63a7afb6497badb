//! How long until each Pod CIDR of nodes that are all there has a route and each node says so, for each of three clients in turn: a
//! bare one, ccm-core, and upstream's manager. Then an hour in which nothing changes.
//!
//! Each row has an API server and a routing table of its own. The clock runs from the first write of a node to the last, by the API
//! server's audit log; the calls to the cloud happen meanwhile, since each client writes a node as soon as its routes are there.
mod bare;
mod clients;

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;

use self::clients::Clients;
use crate::scale::Report;
use crate::upstream::{self, Flags};
use crate::usage::milliseconds;

/// More nodes do not fit into the Pod CIDRs of this benchmark.
const MOST: usize = 1024;

/// Gives dual-stack nodes their routes, beside a bare client and upstream's manager; then does nothing for an hour.
#[derive(Debug, Args)]
pub struct Routes {
    /// How many nodes; each has one Pod CIDR of each family.
    #[arg(long, default_value_t = 1000)]
    nodes: usize,
    /// How often each client has its turn.
    #[arg(long, default_value_t = 3)]
    pairs: usize,
    /// Writes of nodes that the bare client makes at one time.
    #[arg(long, default_value_t = 32)]
    in_flight: usize,
    /// How long each call to the cloud takes, ccm-core's and upstream's.
    #[arg(long, default_value = "20ms", value_parser = milliseconds)]
    latency: Duration,
    /// With which flags upstream's manager runs.
    #[arg(long, value_enum, default_value_t = Flags::Tuned)]
    upstream: Flags,
    /// Into how many minutes the hour without changes is compressed; 0 leaves it out.
    #[arg(long, default_value_t = 6)]
    idle_minutes: u32,
}

impl Routes {
    /// Runs all rows and prints them, then their medians and ratios, then the hour.
    pub async fn run(self) -> Result<()> {
        ensure!((1..=MOST).contains(&self.nodes), "--nodes: 1 to {MOST}");
        if self.upstream != Flags::None {
            upstream::program().await?;
        }
        println!(
            "{} nodes with 2 Pod CIDRs each, {} ms a call to the cloud, a fresh API server for each row\n\
             seconds: from the first to the last write of a node, by the audit log; start: from the client's start to the first; \
             calls: those that change the table",
            self.nodes,
            self.latency.as_millis()
        );
        let (mut report, clients) = (Report::new(self.nodes), Clients { nodes: self.nodes, latency: self.latency });
        for pair in 1..=self.pairs {
            println!("pair {pair} of {}; the bare client makes {} writes at one time", self.pairs, self.in_flight);
            Report::head();
            report.add(clients.bare(self.in_flight).await?);
            report.add(clients.core().await?);
            if self.upstream != Flags::None {
                report.add(clients.upstream(self.upstream).await?);
            }
        }
        if self.pairs > 0 {
            report.summary();
        }
        if self.idle_minutes > 0 {
            clients.hour(self.idle_minutes).await?;
        }
        Ok(())
    }
}
