//! The flags of `serve` that say whether and how routes are served. What the cloud itself does is told by its own flags.
use clap::{ArgAction, Args};

use crate::provider::routes::Options;

/// How routes are served.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Routes")]
pub struct RouteArgs {
    /// Serve routes at all.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    routes: bool,

    /// Make and remove the routes of a batch in one call of the cloud. Otherwise each route is a call.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    route_batches: bool,

    /// Let new routes lead to a machine's address rather than to the machine.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    routes_to_addresses: bool,

    /// The most calls about routes at once, as told in the handshake.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    max_concurrent_route_calls: u32,
}

impl RouteArgs {
    /// What the provider is told to be.
    pub fn options(self) -> Options {
        Options {
            served: self.routes,
            batches: self.route_batches,
            to_addresses: self.routes_to_addresses,
            max_calls: self.max_concurrent_route_calls,
        }
    }
}
