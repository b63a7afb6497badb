//! The soak: ccm-core or its provider is killed with -9 at random, again and again, while nodes, their routes or Services
//! come, change and go; it ends with exactly the right ones or fails. `cargo run --bin soak -- services --kills 50`
use std::time::{Duration, Instant};

use anyhow::Result;
use ccm_test_support::churn::{Kills, nodes, routes, services};
use ccm_test_support::outage::{self, Outage};
use ccm_test_support::world::World;
use clap::{Parser, Subcommand};

/// Makes trouble for longer than a test may, and checks that all is right in the end.
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Nodes join and leave while processes are killed
    Nodes {
        /// How many kills
        #[arg(long, default_value_t = 50)]
        kills: usize,
        /// How many nodes join; half of them leave again
        #[arg(long, default_value_t = 2000)]
        nodes: usize,
    },
    /// Services are made, changed and deleted while processes are killed; the cloud lives on
    Services {
        /// How many kills
        #[arg(long, default_value_t = 50)]
        kills: usize,
        /// How many Services are made; some stay as they are, others change port, type or limit, or are deleted
        #[arg(long, default_value_t = 200)]
        services: usize,
    },
    /// Nodes with Pod CIDRs join, leave and are replaced while processes are killed; the cloud lives on
    Routes {
        /// How many kills
        #[arg(long, default_value_t = 50)]
        kills: usize,
        /// How many nodes join; half of them leave again
        #[arg(long, default_value_t = 2000)]
        nodes: usize,
    },
    /// The cloud is of no use for some time, in one way after another, while Services are made, changed and deleted
    Outages {
        /// How long each of them lasts
        #[arg(long, value_name = "SECONDS", default_value_t = 60)]
        seconds: u64,
        /// How many Services have load balancers before
        #[arg(long, default_value_t = 200)]
        services: usize,
    },
}

#[tokio::main]
async fn main() -> Result<()> {
    let began = Instant::now();
    let tell = |line: &str| println!("{:6.1} s  {line}", began.elapsed().as_secs_f64());
    match Args::parse().what {
        What::Nodes { kills, nodes } => soak_nodes(nodes::Churn { nodes, kills: kills.clamp(1, nodes.max(1)) }, tell).await,
        What::Services { kills, services } => {
            soak_services(services::Churn { services, kills: kills.clamp(1, services.max(1)) }, tell).await
        }
        What::Routes { kills, nodes } => soak_routes(routes::Churn { nodes, kills: kills.clamp(1, nodes.max(1)) }, tell).await,
        What::Outages { seconds, services } => soak_outages(Duration::from_secs(seconds), services, tell).await,
    }
}

async fn soak_nodes(churn: nodes::Churn, tell: impl FnMut(&str)) -> Result<()> {
    let world = World::start().await?;
    let nodes::Report { kills, nodes } = churn.run(&world, tell).await?;
    world.end().await?;
    println!("ended with exactly the {nodes} right nodes {}", after(kills));
    Ok(())
}

async fn soak_services(churn: services::Churn, tell: impl FnMut(&str)) -> Result<()> {
    let world = World::start().await?;
    let services::Report { kills, balanced, plain, gone } = churn.run(&world, tell).await?;
    world.end().await?;
    println!(
        "ended with exactly the {balanced} right load balancers {}; {plain} Services that gave theirs up have nothing left of \
         it, {gone} are gone, and no load balancer was ever changed twice at once",
        after(kills)
    );
    Ok(())
}

async fn soak_routes(churn: routes::Churn, tell: impl FnMut(&str)) -> Result<()> {
    let world = World::start().await?;
    let routes::Report { kills, routes, looks } = churn.run(&world, tell).await?;
    world.end().await?;
    println!(
        "ended with exactly the {routes} right routes {}; in {looks} looks at the table no node that stays was without a route, \
         and the routes of others were there",
        after(kills)
    );
    Ok(())
}

fn after(kills: Kills) -> String {
    format!("after {} kills of ccm-core and {} of the provider", kills.core, kills.provider)
}

async fn soak_outages(lasts: Duration, services: usize, tell: impl Fn(&str)) -> Result<()> {
    for (fault, words) in outage::KNOWN {
        let world = World::start().await?;
        let outage::Report { warnings, recovery } = Outage { fault, lasts, services, words }.run(&world).await?;
        world.end().await?;
        tell(&format!("{fault} for {lasts:?}: at most {warnings} warnings about a Service, all well {recovery:.1?} after it"));
    }
    Ok(())
}
