//! Rules, one at a time; stories of many ticks are in `simulation`, Go's own cases in `go`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod go;
mod matrix;
mod simulation;

use std::time::Duration;

use self::simulation::Simulation;
use super::*;
use crate::cluster::state::Release;
use crate::controllers::node_lifecycle::fixtures::{at, cordoned, found, node, provider, ready, tainted, unmanaged};
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
        Case { deleted: Some(Cause::Absent), ..case("cordoned when not Ready", |node| node.unschedulable = true) },
        Case {
            deleted: Some(Cause::Absent),
            ..case("autoscaled when not Ready", |node| *node = tainted(node.clone(), TO_BE_DELETED))
        },
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
        Case { asked: false, ..case("unmanaged", |node| *node = unmanaged(node.clone())) },
        Case {
            asked: false,
            lookup: deleted(),
            ..case("unmanaged, known as deleted", |node| *node = unmanaged(cordoned(node.clone())))
        },
        Case {
            asked: false,
            lookup: stopped(),
            ..case("unmanaged and stopped", |node| *node = Node { provider_id: None, ..unmanaged(node.clone()) })
        },
        Case {
            asked: false,
            ..case("unmanaged, ready and tainted", |node| *node = unmanaged(ready(tainted(node.clone(), SHUTDOWN))))
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
fn a_mark_that_was_seen_while_the_node_was_ready_makes_its_removal_a_planned_one() {
    let marks: [fn(Node) -> Node; 2] = [cordoned, |node| tainted(node, TO_BE_DELETED)];
    for mark in marks {
        let mut simulation = Simulation::new([mark(ready(node("n", "a"))), ready(node("r1", "a")), ready(node("r2", "b"))]);
        let cloud = |node: &Node| Some(if node.name == "n" { Lookup::NotFound } else { found(InstanceState::Running) });
        simulation.run(5, cloud);
        simulation.change(|mut node| {
            node.ready = if node.name == "n" { Ready::Unknown } else { node.ready };
            node
        });
        simulation.run(60, cloud);
        assert_eq!(simulation.deleted.iter().map(|deletion| deletion.cause).collect::<Vec<_>>(), [Cause::Planned]);
    }
}

/// A second look after a confirmation that fails alike trips a breaker that people can release.
#[test]
fn a_provider_that_does_not_find_the_ready_nodes_is_not_believed() {
    for (ready_answer, blocked) in [(Some(Lookup::NotFound), true), (None, true), (Some(found(InstanceState::Running)), false)] {
        let mut simulation = Simulation::new([node("n", "a"), ready(node("r", "a"))]);
        let cloud = |node: &Node| if node.name == "n" { Some(Lookup::NotFound) } else { ready_answer.clone() };
        simulation.run(50, cloud);
        assert_eq!((simulation.deleted.len(), simulation.trips), (usize::from(!blocked), 0), "{ready_answer:?}");
        assert_eq!(simulation.blocks.iter().any(|block| matches!(block, Block::Evidence { .. })), blocked);
        simulation.run(30, cloud);
        let rules: Vec<_> = simulation.state.trips.iter().map(|trip| trip.rule).collect();
        assert_eq!(rules, if blocked { vec![Rule::NotFound] } else { vec![] });
        simulation.run(120, |node| Some(if node.name == "n" { Lookup::NotFound } else { found(InstanceState::Running) }));
        assert_eq!((simulation.deleted.len(), simulation.state.trips.len()), (1, 0), "the provider is believed again");
    }
}

#[test]
fn failed_evidence_is_asked_for_once_per_confirmation() {
    let mut simulation = Simulation::new([node("n", "a"), ready(node("r", "a")), ready(node("s", "a"))]);
    let asked = std::cell::Cell::new(0);
    simulation.run(600, |node| {
        asked.set(asked.get() + i32::from(node.name == "r"));
        (node.name == "n").then_some(Lookup::NotFound)
    });
    assert!((18..=20).contains(&asked.get()), "{}", asked.get());
    assert_eq!(simulation.deleted.len(), 0);
}

#[test]
fn one_ready_node_that_is_denied_while_others_are_found_blocks_nothing() {
    let others = (0..5).map(|index| ready(node(&format!("r{index}"), "a")));
    let mut simulation = Simulation::new(others.chain([node("n", "a")]));
    simulation.run(60, |node| {
        Some(if ["n", "r0"].contains(&node.name.as_str()) { Lookup::NotFound } else { found(InstanceState::Running) })
    });
    assert_eq!((simulation.names_deleted(), simulation.trips), (vec!["n"], 0));
}

/// A machine whose node is Ready for some more seconds is no lie.
#[test]
fn ready_nodes_that_follow_their_machines_in_time_delay_and_trip_nothing() {
    let others = (0..20).map(|index| ready(node(&format!("r{index:02}"), "a")));
    let mut simulation = Simulation::new(others.chain([node("n", "a")]));
    let cloud = |node: &Node| {
        Some(if node.name.as_str() < "r03" { found(InstanceState::Deleted) } else { found(InstanceState::Running) })
    };
    simulation.run(50, cloud);
    assert_eq!((simulation.deleted.len(), simulation.trips), (0, 0), "Ready nodes are denied");
    assert!(simulation.blocks.iter().any(|block| matches!(block, Block::ReadyDenied { count: 3, .. })));
    simulation.change(|mut node| {
        node.ready = if node.name.as_str() < "r03" { Ready::Unknown } else { node.ready };
        node
    });
    simulation.run(60, cloud);
    assert_eq!((simulation.names_deleted(), simulation.trips), (vec!["n", "r00", "r01", "r02"], 0));
}

#[test]
fn a_release_holds_for_one_window() {
    for (released, deleted) in [(-599, 20), (-601, 0)] {
        let mut simulation = Simulation::new((0..20).map(|index| node(&format!("n{index}"), "a")));
        let nodes = simulation.nodes.iter().map(|node| (node.name.clone(), node.uid.clone())).collect();
        simulation.state.releases = vec![Release { id: "old".to_owned(), at: at(released + 30), nodes }];
        simulation.period = 30;
        simulation.run(30, |_| Some(Lookup::NotFound));
        assert_eq!(simulation.deleted.len(), deleted, "released {released} s before");
    }
}

/// Old nodes are cordoned while new ones join that the provider does not find either: nothing is left to try it by.
#[test]
fn marks_do_not_count_where_no_other_initialised_node_is_left() {
    let old = (0..9).map(|index| cordoned(ready(node(&format!("old{index}"), "a"))));
    let new = (0..10).map(|index| tainted(ready(node(&format!("new{index}"), "a")), UNINITIALIZED));
    let mut simulation = Simulation::new(old.chain(new));
    simulation.run(0, |_| None);
    simulation.change(|node| if node.unschedulable { Node { ready: Ready::Unknown, ..node } } else { node });
    simulation.run(120, |_| Some(Lookup::NotFound));
    assert_eq!(simulation.deleted.len(), 0);
}

#[test]
fn deleted_machines_everywhere_need_others_that_are_alive() {
    let mut simulation = Simulation::new((0..10).map(|index| node(&format!("n{index}"), "a")));
    simulation.run(120, |_| Some(found(InstanceState::Deleted)));
    let rules: Vec<_> = simulation.state.trips.iter().map(|trip| trip.rule).collect();
    assert_eq!((simulation.deleted.len(), rules), (0, vec![Rule::NotAlive]));
    assert!(simulation.release());
    simulation.run(10, |_| Some(found(InstanceState::Deleted)));
    assert_eq!(simulation.deleted.len(), 10, "what an operator released goes without evidence");
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
    assert_eq!(simulation.blocks, [Block::StaleData(at(0))]);
}

#[test]
fn nothing_is_deleted_without_a_readable_history_or_for_another_cloud() {
    let (observations, marks, memory) = (Observations::default(), Marks::default(), Memory::default());
    let (provider, config, nodes) = (provider(), LifecycleConfig::default(), []);
    let observed = Observed {
        nodes: &nodes,
        provider: &provider,
        observations: &observations,
        marks: &marks,
        state: None,
        cross_checked: true,
        memory: &memory,
        now: Instant::now(),
        time: at(0),
        config: &config,
    };
    assert!(decide(&observed).deletions.is_empty());
    let mut simulation = Simulation::new([node("n", "a"), node("d", "a")]);
    simulation.state.accepted_identity = Some("another".to_owned());
    simulation.run(60, |node| Some(if node.name == "n" { Lookup::NotFound } else { found(InstanceState::Deleted) }));
    assert_eq!(simulation.deleted.len(), 0);
    assert!(matches!(simulation.blocks[..], [Block::Identity { .. }]));
}

#[test]
fn a_lost_history_delays_absence_planned_or_not_for_one_window_and_nothing_else() {
    let others = (0..3).map(|index| ready(node(&format!("r{index}"), "a")));
    let going = [node("n", "a"), node("d", "b"), cordoned(ready(node("planned", "b")))];
    let mut simulation = Simulation::new(others.chain(going));
    simulation.state.deletions = None;
    simulation.state.begin_history(false, at(0), Duration::from_mins(10));
    let cloud = |node: &Node| {
        Some(match node.name.as_str() {
            "n" | "planned" => Lookup::NotFound,
            "d" => found(InstanceState::Deleted),
            _ => found(InstanceState::Running),
        })
    };
    simulation.run(4, cloud);
    simulation.change(|mut node| {
        node.ready = if node.name == "planned" { Ready::Unknown } else { node.ready };
        node
    });
    simulation.run(590, cloud);
    assert_eq!(simulation.names_deleted(), ["d"]);
    simulation.run(15, cloud);
    assert_eq!(simulation.names_deleted(), ["d", "n", "planned"]);
    assert_eq!(simulation.trips, 0);
}

/// Nine of ten machines are gone and their nodes unmanaged: they are neither candidates nor evidence, and do not make the cluster
/// larger than it is for the budget.
#[test]
fn unmanaged_nodes_are_neither_candidates_nor_evidence_nor_part_of_a_total() {
    let aside = |count| (0..count).map(|index| unmanaged(node(&format!("u{index}"), "a")));
    let cloud = |node: &Node| Some(if node.name.starts_with('r') { found(InstanceState::Running) } else { Lookup::NotFound });
    let mut simulation = Simulation::new(aside(9).chain([ready(node("r1", "a")), ready(node("r2", "a")), node("n", "a")]));
    simulation.run(60, cloud);
    assert_eq!((simulation.names_deleted(), simulation.trips), (vec!["n"], 0));
    // In a cluster of fewer than ten nodes one may go; with those aside it would be more.
    let mut simulation = Simulation::new(aside(20).chain([node("n1", "b"), node("n2", "c"), ready(node("r1", "a"))]));
    simulation.run(60, cloud);
    assert_eq!((simulation.deleted.len(), simulation.trips), (0, 1));
}

#[test]
fn unmanaged_ready_nodes_whose_machines_are_denied_block_nothing() {
    let aside = (0..5).map(|index| unmanaged(ready(node(&format!("u{index}"), "a"))));
    let others = (0..5).map(|index| ready(node(&format!("r{index}"), "a")));
    let mut simulation = Simulation::new(aside.chain(others).chain([node("n", "a")]));
    simulation.run(120, |node| Some(if node.name.starts_with('r') { found(InstanceState::Running) } else { Lookup::NotFound }));
    assert_eq!((simulation.names_deleted(), simulation.trips), (vec!["n"], 0));
}

#[test]
fn a_node_that_is_managed_again_is_judged_anew_and_as_any_other() {
    let mut simulation = Simulation::new([node("n", "a"), ready(node("r1", "a")), ready(node("r2", "b"))]);
    let cloud = |node: &Node| Some(if node.name == "n" { Lookup::NotFound } else { found(InstanceState::Running) });
    simulation.run(25, cloud);
    simulation.change(|node| if node.name == "n" { unmanaged(node) } else { node });
    simulation.run(60, cloud);
    assert_eq!(simulation.deleted.len(), 0);
    simulation.change(|mut node| {
        node.annotations.clear();
        node
    });
    simulation.run(25, cloud);
    assert_eq!(simulation.deleted.len(), 0, "the first answer was before the annotation");
    simulation.run(10, cloud);
    assert_eq!(simulation.names_deleted(), ["n"]);
}
