//! Flags about when a Node may be deleted.
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::Invalid;
use super::go_syntax::{duration, positive_duration, serialize_duration};

#[derive(Debug, Args)]
#[command(next_help_heading = "Deletion of nodes")]
pub(super) struct DeletionArgs {
    /// How long after it was first not found a machine must be not found again before its node is deleted
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    node_deletion_confirmation: Duration,
    /// The time over which deletions are counted against --node-deletion-zone-fraction and --node-deletion-limit
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = positive_duration)]
    node_deletion_window: Duration,
    /// The part of a zone's nodes that may go within the window because their machines are no longer known
    ///
    /// At least one may, and never all of three or more. More than that trips the breaker: no node of the zone is deleted for this
    /// reason until its machines are found again or an operator overrides the breaker. Machines that the provider reports as
    /// DELETED, and planned removals (nodes cordoned before), do not count and do not wait for the breaker.
    #[arg(long, value_name = "FRACTION", default_value_t = 0.2)]
    node_deletion_zone_fraction: f64,
    /// How many nodes of the cluster may go so within the window; one where the cluster has under ten
    #[arg(long, value_name = "N", default_value_t = 10)]
    node_deletion_limit: u32,
    /// How old a node that was never initialised must be before it may be deleted because its machine is gone
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = duration)]
    uninitialized_node_grace: Duration,
}

/// When a Node may be deleted.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionConfig {
    /// The least time between the two answers "not found".
    #[serde(serialize_with = "serialize_duration")]
    pub confirmation: Duration,
    /// The time over which deletions are counted.
    #[serde(serialize_with = "serialize_duration")]
    pub window: Duration,
    /// The part of a zone's nodes that may go within the window; more than 0, at most 1.
    pub zone_fraction: f64,
    /// How many nodes of the cluster may go within the window; 0: none for mere absence.
    pub limit: u32,
    /// How old a node that was never initialised must be.
    #[serde(serialize_with = "serialize_duration")]
    pub uninitialized_grace: Duration,
}

impl DeletionArgs {
    pub(super) fn validate(self) -> Result<DeletionConfig, Invalid> {
        let fraction = self.node_deletion_zone_fraction;
        if !(fraction > 0.0 && fraction <= 1.0) {
            let remedy = "give more than 0 and at most 1, such as 0.2";
            return Err(Invalid::new("node-deletion-zone-fraction", format!("{fraction} is no part of a whole"), remedy));
        }
        Ok(DeletionConfig {
            confirmation: self.node_deletion_confirmation,
            window: self.node_deletion_window,
            zone_fraction: fraction,
            limit: self.node_deletion_limit,
            uninitialized_grace: self.uninitialized_node_grace,
        })
    }
}
