//! Flags about when ccm-core may delete a Node.
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::go_syntax::{duration, positive_duration, serialize_duration};
use super::{Invalid, fraction};

#[derive(Debug, Args)]
#[command(next_help_heading = "Deletion of nodes")]
pub(super) struct DeletionArgs {
    /// Least time between the two "not found" answers about a machine that the deletion of its node needs
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    node_deletion_confirmation: Duration,
    /// Time over which ccm-core counts deletions against --node-deletion-zone-fraction and --node-deletion-limit
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = positive_duration)]
    node_deletion_window: Duration,
    /// Part of a zone's nodes, more than 0 and at most 1, that ccm-core may delete within the window because the provider no longer
    /// finds their machines
    ///
    /// ccm-core may always delete one, and never all of three or more. More than that trips the breaker: ccm-core deletes no node of
    /// the zone for this reason until the provider finds the machines again or an operator overrides the breaker. Machines that the
    /// provider reports as DELETED, and planned removals (nodes cordoned before), do not count and do not wait for this breaker.
    #[arg(long, value_name = "FRACTION", default_value_t = 0.2)]
    node_deletion_zone_fraction: f64,
    /// Number of the cluster's nodes that ccm-core may delete within the window for that reason; one if the cluster has under ten nodes
    #[arg(long, value_name = "N", default_value_t = 10)]
    node_deletion_limit: u32,
    /// Age from which ccm-core may delete a node that was never initialised and whose machine is gone
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = duration)]
    uninitialized_node_grace: Duration,
}

/// When ccm-core may delete a Node.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionConfig {
    /// Least time between the two "not found" answers.
    #[serde(serialize_with = "serialize_duration")]
    pub confirmation: Duration,
    /// Time over which deletions are counted.
    #[serde(serialize_with = "serialize_duration")]
    pub window: Duration,
    /// Part of a zone's nodes that may be deleted within the window; more than 0, at most 1.
    pub zone_fraction: f64,
    /// Number of the cluster's nodes that may be deleted within the window; 0: none whose machine is only absent.
    pub limit: u32,
    /// Age from which a node that was never initialised may be deleted.
    #[serde(serialize_with = "serialize_duration")]
    pub uninitialized_grace: Duration,
}

impl DeletionArgs {
    pub(super) fn validate(self) -> Result<DeletionConfig, Invalid> {
        Ok(DeletionConfig {
            confirmation: self.node_deletion_confirmation,
            window: self.node_deletion_window,
            zone_fraction: fraction("node-deletion-zone-fraction", self.node_deletion_zone_fraction)?,
            limit: self.node_deletion_limit,
            uninitialized_grace: self.uninitialized_node_grace,
        })
    }
}
