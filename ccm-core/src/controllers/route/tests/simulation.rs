//! Random nodes that come, go and get other machines, false answers of every kind, and kills. No live node ever loses a route that
//! leads to it, routes of others stay, and in the end the routes are those of the nodes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use super::world::{World, cidr, node, provider, with};
use crate::model::provider_info::ProviderInfo;
use crate::model::route::{Route, RouteOutcome, RouteTable};
use crate::provider::scripted::routes::{Reply, error, foreign};
use crate::provider::{Outcome, ProviderState};

const STEPS: usize = 60;
/// Few, so that Pod CIDRs are used again soon.
const NUMBERS: u32 = 12;

struct Simulation {
    world: World,
    random: StdRng,
    /// The machine of each node, by the node's number.
    machines: BTreeMap<u32, u32>,
    made: u32,
    others: Vec<Route>,
    /// An old list.
    old: Option<RouteTable>,
}

impl Simulation {
    async fn new(seed: u64) -> Self {
        let others = vec![foreign("10.0.200.0/24"), foreign("172.16.0.0/16")];
        let mut world = World::new([], others.clone());
        // What a budget would save is not what saves a live node's route.
        world.config.deletion_fraction = 1.0;
        world.config.deletion_window = Duration::from_secs(90);
        world.start().await;
        Self { world, random: StdRng::seed_from_u64(seed), machines: BTreeMap::new(), made: 0, others, old: None }
    }

    fn number(&mut self) -> u32 {
        self.random.random_range(0..NUMBERS)
    }

    /// Node nNUMBER on a new machine, with a Pod CIDR that no other node has.
    fn join(&mut self, number: u32) {
        self.made += 1;
        let machine = self.made;
        self.machines.insert(number, machine);
        self.world.api.put_node(with(node(number), |node| {
            node["metadata"]["uid"] = json!(format!("uid-{machine}"));
            node["spec"]["providerID"] = json!(format!("fake://m{machine}"));
        }));
    }

    async fn step(&mut self) {
        let number = self.number();
        match self.random.random_range(0..16) {
            0..=3 => self.join(number),
            4 | 5 => {
                self.machines.remove(&number);
                self.world.remove(number);
            }
            6 => (0..NUMBERS).for_each(|number| self.world.nodes.hide(&format!("n{number}"))),
            7 => self.world.nodes.hide(&format!("n{number}")),
            8 => self.lie(),
            9 => self.world.table.list_once(Err(error(Outcome::Unknown, "UNKNOWN"))),
            10 | 11 => self.fail(number),
            12 => self.kill().await,
            13 => *self.world.who.instead.lock() = Some(Ok(ProviderInfo { cloud_identity: "other".into(), ..provider() })),
            14 => {
                let away = ProviderState::Disconnected { since: std::time::Instant::now(), message: String::new() };
                self.world.provider.send_replace(away);
            }
            _ => self.tell_the_truth(),
        }
    }

    fn lie(&mut self) {
        let now = RouteTable { routes: self.world.table.routes(), observed_at: None };
        let nothing = RouteTable { routes: Vec::new(), observed_at: None };
        let old = self.old.replace(now);
        let lie = if self.random.random() { old } else { None };
        self.world.table.list_always(Some(Ok(lie.unwrap_or(nothing))));
    }

    fn fail(&mut self, number: u32) {
        let errors = [
            Err(error(Outcome::Unknown, "DEADLINE_EXCEEDED")),
            Err(error(Outcome::Retry { after: None }, "CLOUD_UNAVAILABLE")),
            Err(error(Outcome::Retry { after: None }, "CONFLICT")),
            Err(error(Outcome::Retry { after: None }, "RATE_LIMITED")),
            Err(error(Outcome::Terminal, "QUOTA_EXCEEDED")),
            Ok(RouteOutcome::InProgress(Duration::from_secs(7))),
            Ok(RouteOutcome::TargetNotFound),
        ];
        let answer = errors[self.random.random_range(0..errors.len())].clone();
        let reply = if self.random.random() { Reply::Instead(answer) } else { Reply::AfterDoing(answer) };
        self.world.table.reply(&cidr(number), reply);
    }

    /// Calls may be running: some are carried out, and nobody hears of it.
    async fn kill(&mut self) {
        self.world.table.pause(self.random.random());
        tokio::time::sleep(Duration::from_secs(3)).await;
        self.world.kill();
        self.world.table.pause(false);
        self.world.start().await;
    }

    fn tell_the_truth(&self) {
        self.world.table.list_always(None);
        *self.world.who.instead.lock() = None;
        self.world.provider.send_replace(ProviderState::Ready(Arc::new(provider())));
        self.world.api.nodes().into_iter().for_each(|node| self.world.nodes.show(node));
    }

    /// The nodes to which a route leads, with their machines.
    fn served(&self) -> BTreeMap<u32, u32> {
        let routes = self.world.table.routes();
        let leads = |(number, machine): &(&u32, &u32)| {
            let (destination, target) = (cidr(**number), format!("fake://m{machine}"));
            routes
                .iter()
                .any(|route| route.destination.to_string() == destination && route.target.provider_id.as_ref() == Some(&target))
        };
        self.machines.iter().filter(leads).map(|(number, machine)| (*number, *machine)).collect()
    }

    async fn run(mut self, seed: u64) {
        for step in 0..STEPS {
            let before = self.served();
            self.step().await;
            tokio::time::sleep(Duration::from_millis(self.random.random_range(0..60_000))).await;
            let (after, kept) = (self.served(), |(number, machine): &(&u32, &u32)| self.machines.get(number) == Some(machine));
            let lost: Vec<_> = before.iter().filter(kept).filter(|(number, _)| !after.contains_key(number)).collect();
            assert!(lost.is_empty(), "seed {seed}, step {step}: {lost:?} lost their routes");
            let routes = self.world.table.routes();
            assert!(
                self.others.iter().all(|other| routes.contains(other)),
                "seed {seed}, step {step}: a route of others is gone"
            );
        }
        self.join(0);
        self.tell_the_truth();
        tokio::time::sleep(Duration::from_hours(2)).await;
        let (served, ours) = (self.served(), self.world.table.routes().iter().filter(|route| route.is_ours).count());
        assert_eq!((served.len(), ours), (self.machines.len(), self.machines.len()), "seed {seed}: it does not converge");
        assert!(self.machines.keys().all(|number| self.world.is_available(*number)), "seed {seed}: conditions");
        self.world.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_no_live_node_loses_its_route_and_all_is_right_in_the_end() {
    for seed in 0..60 {
        Simulation::new(seed).await.run(seed).await;
    }
}
