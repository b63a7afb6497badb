//! The flags of `serve` that say which parts of the protocol for load balancers are served, and how. What the cloud itself
//! does is told by its own flags.
use clap::{ArgAction, Args};

use crate::provider::load_balancers::Options;
use crate::provider::load_balancers::naming::Naming;

/// How load balancers are served.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Load balancers")]
pub struct LoadBalancerArgs {
    /// Serve PlanLoadBalancer: what Ensure would change, in words. Without it a core cannot know whether anything would.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    load_balancer_plan: bool,

    /// Serve PutNodeSet: each set of nodes crosses the socket once. Without it nodes come with every call.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    node_sets: bool,

    /// After what new load balancers are named. Those that are there keep their names, and are found by their marks.
    #[arg(long, value_enum, default_value_t = Naming::Uid)]
    load_balancer_naming: Naming,

    /// The most calls about load balancers at once, as told in the handshake.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    max_concurrent_load_balancer_calls: u32,
}

impl LoadBalancerArgs {
    /// What the provider is told to be.
    pub fn options(self) -> Options {
        Options {
            plan: self.load_balancer_plan,
            node_sets: self.node_sets,
            naming: self.load_balancer_naming,
            max_calls: self.max_concurrent_load_balancer_calls,
        }
    }
}
