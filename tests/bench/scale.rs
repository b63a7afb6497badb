//! How long until nodes that have all joined are initialised, and what it takes, for each of three clients in turn: a bare one,
//! ccm-core, and upstream's manager.
//!
//! Each row has an API server of its own. The clock runs from the first write of a node to the last, by the API server's audit
//! log: start-up is apart, and nothing lists or watches nodes but the client that is measured.
mod clients;
mod report;
mod writes;

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;

use self::clients::Clients;
pub use self::report::{Report, Row};
pub use self::writes::Writes;
use crate::upstream::{self, Flags};
use crate::usage::milliseconds;

/// More nodes of full size than this fill the API server's storage and memory.
const MOST_FAT: usize = 15_000;

/// Initialises nodes that have all joined before, beside a bare client and upstream's manager.
#[derive(Debug, Args)]
pub struct Scale {
    /// How many: 5000, 15000 and 50000 are the usual ones.
    #[arg(long, default_value_t = 5000)]
    nodes: usize,
    /// Nodes as kubelets make them, with images, five conditions, resources and managed fields; up to 15,000.
    #[arg(long)]
    fat: bool,
    /// How often each client has its turn; by default 5 times, 3 times for more than 15,000 nodes.
    #[arg(long)]
    pairs: Option<usize>,
    /// Requests that the bare client makes at one time; of several numbers the quickest is found first.
    #[arg(long, value_delimiter = ',', default_value = "8,16,32,64")]
    in_flight: Vec<usize>,
    /// How long each call to the cloud takes, ccm-core's and upstream's.
    #[arg(long, default_value = "20ms", value_parser = milliseconds)]
    latency: Duration,
    /// With which flags upstream's manager runs.
    #[arg(long, value_enum, default_value_t = Flags::Tuned)]
    upstream: Flags,
    /// After how many seconds a row of upstream's manager ends, whatever is done.
    #[arg(long, default_value_t = 400)]
    upstream_limit: u64,
}

impl Scale {
    /// Runs all rows and prints them, then their medians and ratios.
    pub async fn run(self) -> Result<()> {
        ensure!(self.nodes > 0 && !self.in_flight.is_empty(), "--nodes and --in-flight need at least one");
        ensure!(!self.fat || self.nodes <= MOST_FAT, "--fat: at most {MOST_FAT} nodes of full size; give --nodes {MOST_FAT}");
        if self.upstream != Flags::None {
            upstream::program().await?;
        }
        let mut report = Report::new(self.nodes);
        println!("{}", self.headline());
        let in_flight = self.quickest(&mut report).await?;
        for pair in 1..=self.pairs() {
            self.pair(pair, in_flight, &mut report).await?;
        }
        report.summary();
        Ok(())
    }

    fn pairs(&self) -> usize {
        self.pairs.unwrap_or(if self.nodes > MOST_FAT { 3 } else { 5 })
    }

    fn headline(&self) -> String {
        let size = if self.fat { "fat" } else { "thin" };
        format!(
            "{} {size} nodes, {} ms a call to the cloud, a fresh API server for each row\n\
             seconds: from the first to the last write of a node, by the audit log; start: from the client's start to the first",
            self.nodes,
            self.latency.as_millis()
        )
    }

    /// With how many requests at one time the bare client is quickest.
    async fn quickest(&self, report: &mut Report) -> Result<usize> {
        let mut best = (f64::INFINITY, self.in_flight[0]);
        if self.in_flight.len() > 1 {
            Report::head();
            for &in_flight in &self.in_flight {
                let row = self.clients().bare(in_flight).await?;
                best = if row.seconds() < best.0 { (row.seconds(), in_flight) } else { best };
                report.print(&format!("{in_flight} at once"), &row);
            }
        }
        Ok(best.1)
    }

    async fn pair(&self, pair: usize, in_flight: usize, report: &mut Report) -> Result<()> {
        println!("pair {pair} of {}; the bare client makes {in_flight} requests at one time", self.pairs());
        Report::head();
        report.add(self.clients().bare(in_flight).await?);
        report.add(self.clients().core().await?);
        if self.upstream != Flags::None {
            report.add(self.clients().upstream(self.upstream, Duration::from_secs(self.upstream_limit)).await?);
        }
        Ok(())
    }

    fn clients(&self) -> Clients {
        Clients { nodes: self.nodes, fat: self.fat, latency: self.latency }
    }
}
