//! Flags about routes.
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::go_syntax::{boolean, positive_duration, serialize_duration};
use super::{Invalid, fraction};

#[derive(Debug, Args)]
#[command(next_help_heading = "Routes")]
pub(super) struct RoutesArgs {
    /// Create a route to each Pod CIDR of each node in the cloud
    ///
    /// node-route-controller runs only if --cluster-cidr is set, too. With false ccm-core neither reads nor changes routes, and never
    /// touches the node condition NetworkUnavailable.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", value_parser = boolean, action = clap::ArgAction::Set)]
    configure_cloud_routes: bool,
    /// How often ccm-core compares the whole routing table with the nodes, give or take a random part
    ///
    /// The default of upstream's cloud-controller-manager is 10s, since it lists routes only then. ccm-core acts at once when a node
    /// changes, so that the comparison only finds what others changed in the cloud.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = positive_duration)]
    route_reconciliation_period: Duration,
    /// Time over which ccm-core counts deletions of routes against --route-deletion-fraction
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = positive_duration)]
    route_deletion_window: Duration,
    /// Part of this cluster's routes, more than 0 and at most 1, that ccm-core may delete within the window because their nodes are gone
    ///
    /// It is the bound where ccm-core did not see the nodes itself, or where most nodes seem to be gone. ccm-core may always delete one
    /// route, and never all of three or more. If more routes than that have no node, ccm-core deletes none of them.
    #[arg(long, value_name = "FRACTION", default_value_t = 0.2)]
    route_deletion_fraction: f64,
}

/// Routes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoutesConfig {
    /// Whether ccm-core may create and delete routes; see [`super::Config::configures_routes`].
    pub configure: bool,
    /// How often the whole table is compared with the nodes; above zero.
    #[serde(serialize_with = "serialize_duration")]
    pub reconciliation_period: Duration,
    /// Time over which deletions are counted; above zero.
    #[serde(serialize_with = "serialize_duration")]
    pub deletion_window: Duration,
    /// Part of this cluster's routes that may be deleted within the window; more than 0, at most 1.
    pub deletion_fraction: f64,
}

impl RoutesArgs {
    pub(super) fn validate(self) -> Result<RoutesConfig, Invalid> {
        Ok(RoutesConfig {
            configure: self.configure_cloud_routes,
            reconciliation_period: self.route_reconciliation_period,
            deletion_window: self.route_deletion_window,
            deletion_fraction: fraction("route-deletion-fraction", self.route_deletion_fraction)?,
        })
    }
}
