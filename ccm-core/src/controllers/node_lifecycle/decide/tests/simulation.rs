//! Stories of many ticks: the pure stages in the order of the driver, over a cluster that loses what is deleted. Time is counted
//! in seconds and costs none.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::*;
use crate::cluster::state::Deletion;
use crate::controllers::node_lifecycle::fixtures::{answer, at, cordoned, found, node, provider, ready};
use crate::model::instance::{InstanceState, Lookup};

/// A cluster, and what happened to it.
pub(super) struct Simulation {
    pub nodes: Vec<Arc<Node>>,
    pub state: State,
    /// The age of the cloud's data; `None`: always of now.
    pub observed_at: Option<Timestamp>,
    pub deleted: Vec<Deletion>,
    pub trips: usize,
    pub resets: usize,
    /// The last tick's.
    pub blocks: Vec<Block>,
    /// Added or removed, by node.
    pub taints: BTreeMap<String, bool>,
    pub asked: BTreeSet<String>,
    observations: Observations,
    marks: Marks,
    memory: Memory,
    config: LifecycleConfig,
    provider: ProviderInfo,
    start: Instant,
    second: i64,
    /// The time between ticks, in seconds.
    pub period: i64,
}

impl Simulation {
    pub fn new(nodes: impl IntoIterator<Item = Node>) -> Self {
        let mut state = State::default();
        state.begin_history(true, at(0), Duration::from_mins(10));
        Self {
            nodes: nodes.into_iter().map(Arc::new).collect(),
            state,
            observed_at: None,
            deleted: Vec::new(),
            trips: 0,
            resets: 0,
            blocks: Vec::new(),
            taints: BTreeMap::new(),
            asked: BTreeSet::new(),
            observations: Observations::default(),
            marks: Marks::default(),
            memory: Memory::default(),
            config: LifecycleConfig::default(),
            provider: provider(),
            start: Instant::now(),
            second: 0,
            period: 5,
        }
    }

    /// With a provider of these prefixes.
    pub fn owning(mut self, prefixes: &[&str]) -> Self {
        self.provider.provider_id_prefixes = prefixes.iter().map(ToString::to_string).collect();
        self
    }

    /// A tick in each period for so many seconds; `None` of the cloud is an error.
    pub fn run(&mut self, seconds: i64, cloud: impl Fn(&Node) -> Option<Lookup>) {
        let end = self.second + seconds;
        while self.second <= end {
            self.tick(&cloud);
            self.second += self.period;
        }
    }

    /// A new process: only what is in the cluster is left.
    pub fn restart(&mut self) {
        self.observations = Observations::default();
        self.marks = Marks::default();
        self.memory = Memory::default();
    }

    /// Does what the events tell an operator to do; whether there was anything to release.
    pub fn release(&mut self) -> bool {
        self.state.release_request = self.state.trips.first().map(|trip| trip.id.clone());
        self.state.take_release(at(self.second)).is_some()
    }

    pub fn change(&mut self, change: impl Fn(Node) -> Node) {
        for node in &mut self.nodes {
            *node = Arc::new(change((**node).clone()));
        }
    }

    pub fn names_deleted(&self) -> Vec<&str> {
        self.deleted.iter().map(|deletion| deletion.node.as_str()).collect()
    }

    fn tick(&mut self, cloud: &impl Fn(&Node) -> Option<Lookup>) {
        let nodes = self.nodes.clone();
        self.marks.see_all(&nodes, at(self.second));
        self.observations.begin_tick(&nodes, &self.provider);
        let first = to_look_up(&self.observed(&nodes, false));
        self.look_up(first, cloud);
        let mut plan = decide(&self.observed(&nodes, false));
        if plan.wants_cross_check {
            let second = to_cross_check(&self.observed(&nodes, false));
            self.look_up(second, cloud);
            plan = decide(&self.observed(&nodes, true));
        }
        self.apply(plan);
    }

    fn observed<'a>(&'a self, nodes: &'a [Arc<Node>], cross_checked: bool) -> Observed<'a> {
        Observed {
            nodes,
            provider: &self.provider,
            observations: &self.observations,
            marks: &self.marks,
            state: Some(&self.state),
            cross_checked,
            memory: &self.memory,
            now: self.now(),
            time: at(self.second),
            config: &self.config,
        }
    }

    fn now(&self) -> Instant {
        self.start + Duration::from_secs(self.second.unsigned_abs())
    }

    fn look_up(&mut self, nodes: Vec<Arc<Node>>, cloud: &impl Fn(&Node) -> Option<Lookup>) {
        for node in nodes {
            self.asked.insert(node.name.clone());
            let Some(lookup) = cloud(&node) else {
                self.observations.record_failure(&node);
                continue;
            };
            let mut answer = answer(lookup, self.second);
            answer.observed_at = self.observed_at.unwrap_or(answer.observed_at);
            self.observations.record(&node, &answer, self.now(), self.config.confirmation);
        }
    }

    fn apply(&mut self, plan: Plan) {
        self.trips += plan.trips.len();
        self.resets += plan.resets.len();
        self.state.trips.retain(|trip| !plan.resets.contains(&trip.id));
        self.state.trips.extend(plan.trips);
        self.memory = plan.memory;
        self.blocks = plan.blocks;
        self.taints.extend(plan.taint.iter().map(|node| (node.name.clone(), true)));
        self.taints.extend(plan.untaint.iter().map(|node| (node.name.clone(), false)));
        let gone: Vec<_> = plan.deletions.iter().map(|one| self.deletion(one)).collect();
        self.nodes.retain(|node| gone.iter().all(|deletion| deletion.node != node.name));
        self.state.record(gone.clone());
        self.state.prune(at(self.second), self.config.window);
        self.deleted.extend(gone);
    }

    fn deletion(&self, one: &Doomed) -> Deletion {
        let zone = one.node.zone().map(str::to_owned);
        Deletion { node: one.node.name.clone(), uid: one.node.uid.clone(), zone, at: at(self.second), cause: one.cause }
    }

    pub fn most_in_a_window(&self, zone: Option<&str>) -> usize {
        let of_zone = |deletion: &&Deletion| zone.is_none_or(|zone| deletion.zone.as_deref() == Some(zone));
        let times: Vec<_> = self.deleted.iter().filter(of_zone).map(|deletion| deletion.at).collect();
        let from =
            |first: &Timestamp| times.iter().filter(|time| (0..600).contains(&(time.as_second() - first.as_second()))).count();
        times.iter().map(from).max().unwrap_or_default()
    }
}

const ZONES: [&str; 3] = ["a", "b", "c"];

/// 200 nodes in three zones; n000, n003, … are zone a's 67.
fn two_hundred(of: impl Fn(Node) -> Node) -> Simulation {
    Simulation::new((0..200).map(|index| of(node(&format!("n{index:03}"), ZONES[index % 3]))))
}

#[allow(clippy::unnecessary_wraps)] // the shape of an answer that a simulation asks for
fn running() -> Option<Lookup> {
    Some(found(InstanceState::Running))
}

fn not_ready(node: Node) -> Node {
    Node { ready: Ready::Unknown, ..node }
}

fn is_in_a(node: &Node) -> bool {
    node.zone() == Some("a")
}

#[test]
fn one_node_forgotten_among_two_hundred_goes_within_the_confirmation_and_two_periods() {
    let mut simulation = two_hundred(|node| if node.name == "n007" { node } else { ready(node) });
    simulation.run(40, |node| if node.name == "n007" { Some(Lookup::NotFound) } else { running() });
    assert_eq!((simulation.names_deleted(), simulation.trips), (vec!["n007"], 0));
}

#[test]
fn a_third_terminated_with_records_goes_unaided() {
    let mut simulation = two_hundred(|node| if is_in_a(&node) { node } else { ready(node) });
    simulation.run(60, |node| if is_in_a(node) { Some(found(InstanceState::Deleted)) } else { running() });
    assert_eq!((simulation.deleted.len(), simulation.trips), (67, 0));
}

#[test]
fn a_third_cordoned_first_and_then_forgotten_goes_unaided() {
    let mut simulation = two_hundred(|node| if is_in_a(&node) { cordoned(ready(node)) } else { ready(node) });
    simulation.run(0, |_| running());
    simulation.change(|node| if is_in_a(&node) { not_ready(node) } else { node });
    simulation.run(60, |node| if is_in_a(node) { Some(Lookup::NotFound) } else { running() });
    assert_eq!((simulation.deleted.len(), simulation.trips), (67, 0));
}

#[test]
fn ninety_nine_not_ready_nodes_that_were_cordoned_survive_a_lie_about_all() {
    let mut simulation = two_hundred(|node| if node.name.as_str() < "n099" { cordoned(node) } else { node });
    simulation.run(600, |_| Some(Lookup::NotFound));
    assert_eq!((simulation.deleted.len(), simulation.trips), (0, 1));
}

#[test]
fn a_mark_on_half_of_all_nodes_or_more_means_nothing() {
    for (marked, deleted) in [(99, 99), (100, 0), (200, 0)] {
        let is_marked = move |node: &Node| node.name.as_str() < format!("n{marked:03}").as_str();
        let mut simulation = two_hundred(|node| if is_marked(&node) { cordoned(ready(node)) } else { ready(node) });
        simulation.run(0, |_| running());
        simulation.change(|node| if is_marked(&node) { not_ready(node) } else { node });
        simulation.run(120, |node| if is_marked(node) { Some(Lookup::NotFound) } else { running() });
        assert_eq!((simulation.deleted.len(), simulation.trips > 0), (deleted, deleted == 0), "{marked}");
    }
}

#[test]
fn a_hidden_zone_loses_no_node_in_thirty_restarts_and_trips_once() {
    let mut simulation = two_hundred(|node| if is_in_a(&node) { node } else { ready(node) });
    for _ in 0..30 {
        simulation.run(120, |node| if is_in_a(node) { Some(Lookup::NotFound) } else { running() });
        simulation.restart();
    }
    assert_eq!((simulation.deleted.len(), simulation.trips, simulation.resets), (0, 1, 0));
}

#[test]
fn two_hundred_nodes_that_are_not_ready_survive_every_lie() {
    let mut simulation = two_hundred(|node| node);
    simulation.run(600, |_| Some(Lookup::NotFound));
    assert_eq!((simulation.trips, simulation.state.trips[0].count), (1, 200));
    simulation.run(600, |_| None);
    simulation.restart();
    simulation.run(600, |_| Some(Lookup::NotFound));
    simulation.run(600, |_| Some(Lookup::NotMine("another cloud's".to_owned())));
    assert_eq!((simulation.deleted.len(), simulation.trips, simulation.resets), (0, 1, 0), "errors and doubt close no breaker");
}

#[test]
fn cordoning_in_answer_to_a_lie_does_not_open_it_even_after_a_restart() {
    let mut simulation = two_hundred(|node| if is_in_a(&node) { node } else { ready(node) });
    let lie = |node: &Node| if is_in_a(node) { Some(Lookup::NotFound) } else { running() };
    simulation.run(60, lie);
    simulation.change(|node| if is_in_a(&node) { cordoned(node) } else { node });
    simulation.restart();
    simulation.run(600, lie);
    assert_eq!((simulation.deleted.len(), simulation.trips), (0, 1));
}

#[test]
fn a_breaker_closes_by_itself_only_after_all_its_nodes_were_found_for_a_confirmation() {
    let mut simulation = two_hundred(|node| if is_in_a(&node) { node } else { ready(node) });
    simulation.run(60, |node| if is_in_a(node) { Some(Lookup::NotFound) } else { running() });
    simulation.run(300, |node| if node.name == "n000" { Some(Lookup::NotFound) } else { running() });
    assert_eq!(simulation.resets, 0, "one is still not found");
    simulation.run(300, |node| if node.name == "n000" { None } else { running() });
    assert_eq!(simulation.resets, 0, "of one it is not known");
    simulation.run(20, |_| running());
    assert_eq!(simulation.resets, 0, "not long enough");
    simulation.run(20, |_| running());
    assert_eq!((simulation.resets, simulation.state.trips.len(), simulation.deleted.len()), (1, 0, 0));
    simulation.run(60, |node| if node.name == "n003" { Some(Lookup::NotFound) } else { running() });
    assert_eq!(simulation.names_deleted(), ["n003"], "the truth is believed again");
}

#[test]
fn a_release_lets_exactly_the_listed_nodes_go() {
    let mut simulation = two_hundred(|node| if is_in_a(&node) { node } else { ready(node) });
    let lie = |node: &Node| if is_in_a(node) { Some(Lookup::NotFound) } else { running() };
    simulation.run(60, lie);
    simulation.state.trips[0].nodes.remove("n000");
    simulation.state.release_request = Some(simulation.state.trips[0].id.clone());
    assert!(simulation.state.take_release(at(60)).is_some());
    simulation.run(60, lie);
    assert!(simulation.deleted.iter().take(66).all(|deletion| deletion.cause == Cause::Released));
    assert_eq!(
        simulation.deleted.iter().find(|deletion| deletion.node == "n000").map(|deletion| deletion.cause),
        Some(Cause::Absent)
    );
    assert_eq!(simulation.deleted.len(), 67, "the one that was not listed went by the ordinary budget");
}

#[test]
fn ready_nodes_that_are_not_found_trip_before_anything_goes() {
    let mut simulation = two_hundred(|node| if node.name == "n007" { node } else { ready(node) });
    let lie =
        |node: &Node| if ["n001", "n004", "n007"].contains(&node.name.as_str()) { Some(Lookup::NotFound) } else { running() };
    simulation.run(600, lie);
    assert_eq!((simulation.deleted.len(), simulation.trips), (0, 1));
    simulation.run(120, |node| if node.name == "n007" { Some(Lookup::NotFound) } else { running() });
    assert_eq!(simulation.deleted.len(), 0, "a node that the breaker lists is still not found");
    simulation.run(60, |_| running());
    assert_eq!(simulation.resets, 1);
}

/// A little generator, so that a failure can be repeated.
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

#[test]
fn a_lie_told_one_node_at_a_time_costs_at_most_the_budget_in_any_window() {
    for story in 0..8 {
        let (mut seed, mut hidden) = (story, BTreeSet::new());
        let mut simulation = two_hundred(|node| node);
        for minute in 0..240 {
            hidden.insert(format!("n{:03}", next(&mut seed) % 200));
            if next(&mut seed).is_multiple_of(4) {
                simulation.restart();
            }
            // The liar takes back what tripped, so that the breaker closes and the story goes on.
            if minute % 20 >= 15 {
                hidden.clear();
            }
            simulation.run(55, |node| if hidden.contains(&node.name) { Some(Lookup::NotFound) } else { running() });
        }
        assert!(!simulation.deleted.is_empty(), "story {story}: the lie must be told");
        assert!(simulation.most_in_a_window(None) <= 10, "story {story}");
        for zone in ZONES {
            assert!(simulation.most_in_a_window(Some(zone)) <= 13, "story {story}, zone {zone}");
        }
    }
}

#[test]
fn thirty_restarts_do_not_refill_the_budget() {
    let mut simulation = two_hundred(|node| node);
    for lost in 0..30 {
        let last = format!("n{lost:03}");
        simulation.run(40, |node| if node.name <= last { Some(Lookup::NotFound) } else { running() });
        simulation.restart();
    }
    assert!(simulation.most_in_a_window(None) <= 10);
    assert_eq!((simulation.deleted.len(), simulation.trips), (10, 1));
}

#[test]
fn a_small_cluster_loses_one_node_in_a_window() {
    for size in [1, 3, 9] {
        let mut simulation = Simulation::new((0..size).map(|index| node(&format!("n{index}"), ZONES[index % 3])));
        simulation.run(60, |node| if node.name == "n0" { Some(Lookup::NotFound) } else { running() });
        assert_eq!(simulation.deleted.len(), 1, "{size}");
        simulation.run(120, |_| Some(Lookup::NotFound));
        assert_eq!(simulation.deleted.len(), 1, "{size}");
    }
}
