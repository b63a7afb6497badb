//! Rules, one at a time; stories of many ticks are in `simulation`, Go's own cases in `go`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod go;
mod simulation;

use std::time::Duration;

use self::simulation::Simulation;
use super::*;
use crate::controllers::node_lifecycle::fixtures::{at, cordoned, found, node, provider, ready, tainted};
use crate::model::instance::{InstanceState, Lookup};
use crate::names::taints::{SHUTDOWN, TO_BE_DELETED, UNINITIALIZED};

/// One node among ready ones, and what becomes of it in a minute if its machine is not known all along.
struct Case {
    name: &'static str,
    node: Node,
    lookup: Lookup,
    asked: bool,
    deleted: Option<Cause>,
    taint: Option<bool>,
}

fn case(name: &'static str, change: impl Fn(&mut Node)) -> Case {
    let mut node = node("n", "a");
    change(&mut node);
    Case { name, node, lookup: Lookup::NotFound, asked: true, deleted: None, taint: None }
}

#[test]
fn each_rule_decides_by_itself() {
    let stopped = || found(InstanceState::Stopped);
    let deleted = || found(InstanceState::Deleted);
    let cases = [
        Case { deleted: Some(Cause::Absent), ..case("gone", |_| ()) },
        Case { deleted: Some(Cause::Absent), ..case("not ready by kubelet's word", |node| node.ready = Ready::False) },
        Case { lookup: deleted(), deleted: Some(Cause::Deleted), ..case("known as deleted", |_| ()) },
        Case { deleted: Some(Cause::MeantToGo), ..case("cordoned before", |node| node.unschedulable = true) },
        Case { deleted: Some(Cause::MeantToGo), ..case("autoscaled", |node| *node = tainted(node.clone(), TO_BE_DELETED)) },
        Case { lookup: found(InstanceState::Running), ..case("running", |_| ()) },
        Case { lookup: found(InstanceState::Pending), ..case("pending", |_| ()) },
        Case { lookup: stopped(), taint: Some(true), ..case("stopped", |_| ()) },
        Case { lookup: stopped(), ..case("stopped and tainted", |node| *node = tainted(node.clone(), SHUTDOWN)) },
        Case { lookup: Lookup::NotMine(String::new()), ..case("not mine", |_| ()) },
        Case { lookup: Lookup::Ambiguous(Vec::new()), ..case("ambiguous", |_| ()) },
        Case { asked: false, ..case("ready", |node| node.ready = Ready::True) },
        Case {
            asked: false,
            taint: Some(false),
            ..case("ready and tainted", |node| *node = ready(tainted(node.clone(), SHUTDOWN)))
        },
        Case { asked: false, ..case("foreign", |node| node.provider_id = Some("other://n".into())) },
        Case {
            asked: false,
            ..case("foreign, ready and tainted", |node| {
                *node = ready(tainted(node.clone(), SHUTDOWN));
                node.provider_id = Some("other://n".into());
            })
        },
        case("without providerID", |node| node.provider_id = None),
        Case { lookup: deleted(), ..case("without providerID, known as deleted", |node| node.provider_id = None) },
        Case { lookup: stopped(), taint: Some(true), ..case("without providerID, stopped", |node| node.provider_id = None) },
        Case {
            asked: false,
            ..case("joining", |node| {
                *node = tainted(node.clone(), UNINITIALIZED);
                node.created_at = at(-800);
            })
        },
        Case {
            deleted: Some(Cause::Absent),
            ..case("joining for too long", |node| *node = tainted(node.clone(), UNINITIALIZED))
        },
        Case { asked: false, ..case("going already", |node| node.deleted_at = Some(at(-1))) },
        Case {
            asked: false,
            ..case("going already, ready and tainted", |node| {
                *node = ready(tainted(node.clone(), SHUTDOWN));
                node.deleted_at = Some(at(-1));
            })
        },
    ];
    for case in cases {
        let mut simulation = Simulation::new([case.node.clone(), ready(node("r1", "a")), ready(node("r2", "b"))]);
        simulation.run(60, |node| Some(if node.name == "n" { case.lookup.clone() } else { found(InstanceState::Running) }));
        let cause = simulation.deleted.first().map(|deletion| deletion.cause);
        assert_eq!((cause, simulation.taints.get("n").copied()), (case.deleted, case.taint), "{}", case.name);
        assert_eq!(simulation.asked.contains("n"), case.asked, "{}: looked up", case.name);
    }
}

#[test]
fn ready_nodes_are_looked_up_only_when_a_deletion_hangs_on_it() {
    let mut simulation = Simulation::new([node("n", "a"), ready(node("r", "a"))]);
    simulation.run(20, |_| Some(Lookup::NotFound));
    assert!(!simulation.asked.contains("r"));
    simulation.run(20, |node| Some(if node.name == "n" { Lookup::NotFound } else { found(InstanceState::Running) }));
    assert!(simulation.asked.contains("r"));
    assert_eq!(simulation.deleted.len(), 1);
}

#[test]
fn a_provider_that_does_not_find_the_ready_nodes_is_not_believed() {
    for (ready_answer, held) in [(Some(Lookup::NotFound), true), (None, true), (Some(found(InstanceState::Running)), false)] {
        let mut simulation = Simulation::new([node("n", "a"), ready(node("r", "a"))]);
        simulation.run(60, |node| if node.name == "n" { Some(Lookup::NotFound) } else { ready_answer.clone() });
        assert_eq!((simulation.deleted.len(), simulation.trips), (usize::from(!held), 0), "{ready_answer:?}");
        assert_eq!(simulation.holds.contains(&Hold::Witnesses { found: 0, asked: 1 }), held);
    }
}

#[test]
fn ready_nodes_that_were_cordoned_are_no_witnesses() {
    let going = (0..3).map(|index| cordoned(ready(node(&format!("g{index}"), "a"))));
    let staying = (0..9).map(|index| ready(node(&format!("r{index}"), "a")));
    let mut simulation = Simulation::new(going.chain(staying).chain([node("n", "a")]));
    simulation.run(60, |node| Some(if node.name.starts_with('r') { found(InstanceState::Running) } else { Lookup::NotFound }));
    assert_eq!((simulation.deleted.len(), simulation.trips), (1, 0));
}

#[test]
fn answers_from_one_reading_of_the_cloud_delete_nothing_and_say_so() {
    let mut simulation = Simulation::new([node("n", "a")]);
    simulation.observed_at = Some(at(0));
    simulation.run(300, |_| Some(Lookup::NotFound));
    assert_eq!(simulation.deleted.len(), 0);
    assert_eq!(simulation.holds, [Hold::StaleData(at(0))]);
}

#[test]
fn nothing_is_deleted_without_a_readable_history_or_for_another_cloud() {
    let sightings = Sightings::default();
    let (provider, config, nodes) = (provider(), LifecycleConfig::default(), []);
    let observed = Observed {
        nodes: &nodes,
        provider: &provider,
        sightings: &sightings,
        state: None,
        witnessed: true,
        quiet_since: &QuietSince::new(),
        now: Instant::now(),
        time: at(0),
        config: &config,
    };
    assert!(decide(&observed).deletions.is_empty());
    let mut simulation = Simulation::new([node("n", "a"), node("d", "a")]);
    simulation.state.accepted_identity = Some("another".to_owned());
    simulation.run(60, |node| Some(if node.name == "n" { Lookup::NotFound } else { found(InstanceState::Deleted) }));
    assert_eq!(simulation.deleted.len(), 0);
    assert!(matches!(simulation.holds[..], [Hold::Identity { .. }]));
}

#[test]
fn a_lost_history_delays_mere_absence_for_one_window_and_nothing_else() {
    let mut simulation = Simulation::new([node("n", "a"), node("d", "b")]);
    simulation.state.deletions = None;
    simulation.state.begin_history(false, at(0), Duration::from_mins(10));
    let cloud = |node: &Node| Some(if node.name == "n" { Lookup::NotFound } else { found(InstanceState::Deleted) });
    simulation.run(599, cloud);
    assert_eq!(simulation.names_deleted(), ["d"]);
    simulation.run(10, cloud);
    assert_eq!(simulation.names_deleted(), ["d", "n"]);
    assert_eq!(simulation.trips, 0);
}

#[test]
fn a_live_node_is_deleted_only_if_it_is_still_the_one_that_was_judged() {
    let decided = node("n", "a");
    let changed = |change: fn(&mut Node)| {
        let mut live = decided.clone();
        change(&mut live);
        live
    };
    let cases = [
        ("the same", changed(|_| ()), true),
        ("newer", changed(|node| node.resource_version = "99".into()), true),
        ("ready", changed(|node| node.ready = Ready::True), false),
        ("another object", changed(|node| node.uid = "other".into()), false),
        ("another machine", changed(|node| node.provider_id = Some("sim://other".into())), false),
        ("no machine", changed(|node| node.provider_id = None), false),
        ("going", changed(|node| node.deleted_at = Some(at(0))), false),
    ];
    for (name, live, doomed) in cases {
        assert_eq!(is_still_doomed(&live, &decided), doomed, "{name}");
    }
}
