//! How much of the other nodes must be found.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::time::{Duration, Instant};

use super::*;
use crate::controllers::node_lifecycle::fixtures::{answer, found, node, ready};
use crate::model::instance::{InstanceState, Lookup};

/// Nodes of zones a and b: Ready ones and others, and of how many of them the machine is found.
struct Case {
    name: &'static str,
    /// (Ready, of them found, not Ready, of them found), by zone.
    zones: [(usize, usize, usize, usize); 2],
    /// Where evidence is missing for a node of zone a, and whether that is about the Ready nodes.
    missing: Option<(&'static str, bool)>,
}

fn evidence(zones: [(usize, usize, usize, usize); 2], not_before: Option<i64>) -> Evidence {
    let (mut nodes, mut observations) = (Vec::new(), Observations::default());
    for (zone, (of_ready, ready_found, of_other, other_found)) in ["a", "b"].into_iter().zip(zones) {
        for index in 0..of_ready + of_other {
            let plain = node(&format!("{zone}{index}"), zone);
            let (node, is_found) =
                if index < of_ready { (ready(plain), index < ready_found) } else { (plain, index - of_ready < other_found) };
            let lookup = if is_found { found(InstanceState::Stopped) } else { Lookup::NotFound };
            observations.record(&node, &answer(lookup, 0), Instant::now(), Duration::from_secs(30));
            nodes.push(node);
        }
    }
    let not_before = not_before.map(crate::controllers::node_lifecycle::fixtures::at);
    Evidence::of(&nodes, &observations, not_before)
}

#[test]
fn half_of_the_others_must_be_found_among_the_ready_and_among_all_in_the_zone_and_in_the_cluster() {
    let case = |name, zones, missing| Case { name, zones, missing };
    let cases = [
        case("all are found", [(5, 5, 5, 5), (5, 5, 5, 5)], None),
        case("just half", [(4, 2, 4, 2), (0, 0, 0, 0)], None),
        case("fewer than half of the Ready ones", [(4, 1, 4, 4), (0, 0, 0, 0)], Some(("cluster", true))),
        case("fewer than half of all", [(4, 4, 6, 0), (0, 0, 0, 0)], Some(("cluster", false))),
        case("a zone is not found", [(4, 0, 4, 0), (9, 9, 9, 9)], Some(("a", true))),
        case("another zone is not found", [(4, 4, 4, 4), (3, 0, 3, 0)], None),
        case("own zone only", [(4, 4, 0, 0), (9, 0, 0, 0)], Some(("cluster", true))),
        case("one in the zone: the cluster decides", [(0, 0, 1, 0), (9, 9, 0, 0)], None),
        case("one in the zone, and the cluster is not found", [(0, 0, 1, 0), (3, 1, 0, 0)], Some(("cluster", true))),
        case("one in the cluster: the budget decides", [(0, 0, 1, 0), (0, 0, 0, 0)], None),
        case("none in the cluster", [(0, 0, 0, 0), (0, 0, 0, 0)], None),
    ];
    for case in cases {
        let missing = evidence(case.zones, None).missing_for_absence(Some("a"));
        let missing = missing.map(|missing| match missing.scope {
            Scope::Cluster => ("cluster".to_owned(), missing.ready),
            Scope::Zone(zone) => (zone, missing.ready),
        });
        assert_eq!(missing, case.missing.map(|(scope, ready)| (scope.to_owned(), ready)), "{}", case.name);
    }
}

#[test]
fn data_that_is_older_than_the_first_answer_finds_nothing() {
    let zones = [(5, 5, 5, 5), (5, 5, 5, 5)];
    assert_eq!(evidence(zones, Some(0)).missing_for_absence(Some("a")), None);
    let missing = evidence(zones, Some(1)).missing_for_absence(Some("a")).unwrap();
    assert_eq!(missing.share, Share { counted: 10, found: 0, alive: 0 });
}

#[test]
fn a_deleted_machine_needs_half_of_the_ready_ones_alive_and_of_all_where_none_is_ready() {
    let cases = [
        ("half of the Ready ones", [(4, 2, 9, 0), (0, 0, 0, 0)], true),
        ("fewer of the Ready ones", [(4, 1, 9, 9), (0, 0, 0, 0)], false),
        ("none is Ready, half of all", [(0, 0, 4, 2), (0, 0, 0, 0)], true),
        ("none is Ready, fewer of all", [(0, 0, 4, 1), (0, 0, 0, 0)], false),
        ("a zone does not matter", [(0, 0, 4, 0), (2, 2, 0, 0)], true),
        ("one alone", [(0, 0, 1, 0), (0, 0, 0, 0)], true),
    ];
    for (name, zones, suffices) in cases {
        assert_eq!(evidence(zones, None).missing_for_deleted().is_none(), suffices, "{name}");
    }
}
