//! Flags about the timing and concurrency of the node controllers.
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::Invalid;
use super::go_syntax::{positive_duration, serialize_duration};

#[derive(Debug, Args)]
#[command(next_help_heading = "Nodes")]
pub(super) struct NodesArgs {
    /// How often cloud-node-controller compares every node with its machine
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = positive_duration)]
    node_status_update_frequency: Duration,
    /// How often cloud-node-lifecycle-controller looks up the machines of nodes that are not ready
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = positive_duration)]
    node_monitor_period: Duration,
    /// How many nodes cloud-node-controller writes at the same time, 1 or more; it bounds neither look-ups nor
    /// cloud-node-lifecycle-controller
    #[arg(long, value_name = "N", default_value_t = 32)]
    concurrent_node_syncs: u32,
}

/// Timing and concurrency of the node controllers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodesConfig {
    /// How often cloud-node-controller compares every node with its machine.
    #[serde(serialize_with = "serialize_duration")]
    pub status_update_frequency: Duration,
    /// How often cloud-node-lifecycle-controller looks up the machines of nodes that are not ready.
    #[serde(serialize_with = "serialize_duration")]
    pub monitor_period: Duration,
    /// How many nodes cloud-node-controller writes at the same time; at least 1.
    pub concurrent_syncs: usize,
}

impl NodesArgs {
    pub(super) fn validate(self) -> Result<NodesConfig, Invalid> {
        let syncs = match self.concurrent_node_syncs as usize {
            0 => return Err(Invalid::new("concurrent-node-syncs", "ccm-core could not initialise any node", "give 1 or more")),
            some => some,
        };
        Ok(NodesConfig {
            status_update_frequency: self.node_status_update_frequency,
            monitor_period: self.node_monitor_period,
            concurrent_syncs: syncs,
        })
    }
}
