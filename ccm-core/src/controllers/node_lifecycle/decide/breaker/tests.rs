//! The breaker's arithmetic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use crate::controllers::node_lifecycle::fixtures::{at, node};

const BUDGET: Budget = Budget { window: Duration::from_mins(10), zone_fraction: 0.2, limit: 10 };

/// A cluster of zones a, b, c with so many nodes each, so many of them absent, and what was deleted when (seconds ago).
struct Cluster {
    name: &'static str,
    zones: [usize; 3],
    absent: [usize; 3],
    deleted: &'static [(&'static str, i64, Cause)],
    budget: Budget,
    /// How many may go, and where breakers trip.
    want: (usize, &'static [&'static str]),
}

fn cluster(name: &'static str, zones: [usize; 3], absent: [usize; 3], want: (usize, &'static [&'static str])) -> Cluster {
    Cluster { name, zones, absent, deleted: &[], budget: BUDGET, want }
}

const ZONES: [&str; 3] = ["a", "b", "c"];

fn nodes(zones: [usize; 3]) -> Vec<Node> {
    let of = |(zone, count): (&&str, usize)| (0..count).map(|index| node(&format!("{zone}{index:03}"), zone)).collect::<Vec<_>>();
    ZONES.iter().zip(zones).flat_map(of).collect()
}

fn history(deleted: &[(&str, i64, Cause)]) -> State {
    let one = |(index, (zone, ago, cause)): (usize, &(&str, i64, Cause))| Deletion {
        node: format!("gone-{index}"),
        uid: format!("uid-gone-{index}"),
        zone: Some((*zone).to_owned()),
        at: at(-ago),
        cause: *cause,
    };
    let mut state = State::default();
    state.record(deleted.iter().enumerate().map(one));
    state
}

/// The names that no breaker blocks, and the breakers that trip.
fn judged(cluster: &Cluster, state: &State) -> (Vec<String>, Vec<Trip>) {
    let all = nodes(cluster.zones);
    let of = |(zone, count): (&&str, usize)| all.iter().filter(|node| node.zone() == Some(zone)).take(count).collect::<Vec<_>>();
    let absent: Vec<_> = ZONES.iter().zip(cluster.absent).flat_map(of).collect();
    let case = Case { nodes: &all.iter().collect::<Vec<_>>(), absent: &absent, state, now: at(0), budget: cluster.budget };
    let trips = judge(&case);
    let allowed = case.judged(&trips).into_iter().map(|node| node.name.clone()).collect();
    (allowed, trips)
}

fn places(trips: &[Trip]) -> Vec<String> {
    let place = |trip: &Trip| match &trip.scope {
        Scope::Cluster => "cluster".to_owned(),
        Scope::Zone(zone) => zone.clone(),
    };
    trips.iter().map(place).collect()
}

#[test]
fn the_budget_of_a_zone_and_of_the_cluster_bounds_a_set() {
    use Cause::{Absent, Deleted, Planned, Released};
    let cases = [
        cluster("one of 200", [67, 67, 66], [1, 0, 0], (1, &[])),
        cluster("ten of 200", [67, 67, 66], [4, 3, 3], (10, &[])),
        cluster("eleven of 200 are more than the limit", [67, 67, 66], [4, 4, 3], (0, &["cluster"])),
        cluster("a hidden zone trips once, and another zone's node goes", [67, 67, 66], [67, 1, 0], (1, &["a"])),
        cluster("everything hidden is one breaker", [67, 67, 66], [67, 67, 66], (0, &["cluster"])),
        cluster("20 % rounded down", [14, 14, 14], [2, 0, 0], (2, &[])),
        cluster("one more than 20 %", [14, 14, 14], [3, 0, 0], (0, &["a"])),
        cluster("a zone of one, in a cluster of ten", [1, 9, 0], [1, 0, 0], (1, &[])),
        cluster("the whole of a zone of two", [2, 8, 0], [2, 0, 0], (0, &["a"])),
        cluster("one in a cluster of nine", [3, 3, 3], [1, 0, 0], (1, &[])),
        cluster("two in a cluster of nine", [3, 3, 3], [1, 1, 0], (0, &["cluster"])),
        cluster("a cluster of one", [1, 0, 0], [1, 0, 0], (1, &[])),
        Cluster {
            deleted: &[("a", 60, Absent)],
            ..cluster("history makes a cluster of nine one of ten", [3, 3, 3], [0, 1, 0], (1, &[]))
        },
        Cluster { deleted: &[("a", 60, Absent)], ..cluster("a small cluster lost one", [3, 3, 2], [0, 1, 0], (0, &["cluster"])) },
        Cluster {
            deleted: &[("a", 599, Absent), ("a", 1, Absent)],
            ..cluster("the zone's budget is used", [12, 14, 14], [1, 0, 0], (0, &["a"]))
        },
        Cluster {
            deleted: &[("a", 600, Absent), ("a", 1, Absent)],
            ..cluster("a deletion a window ago is past", [13, 14, 14], [1, 0, 0], (1, &[]))
        },
        Cluster {
            deleted: &[("a", -3600, Absent), ("a", 1, Absent)],
            ..cluster("one in the future is not", [12, 14, 14], [1, 0, 0], (0, &["a"]))
        },
        Cluster {
            deleted: &[("a", 1, Deleted), ("a", 1, Planned), ("a", 1, Released)],
            ..cluster("only mere absence counts", [12, 14, 14], [2, 0, 0], (2, &[]))
        },
        Cluster {
            budget: Budget { zone_fraction: 1.0, limit: 100, ..BUDGET },
            ..cluster("never all of three", [3, 10, 10], [3, 0, 0], (0, &["a"]))
        },
        Cluster {
            budget: Budget { zone_fraction: 1.0, limit: 100, ..BUDGET },
            ..cluster("all but one", [3, 10, 10], [2, 0, 0], (2, &[]))
        },
        Cluster {
            budget: Budget { limit: 0, ..BUDGET },
            ..cluster("a limit of none", [67, 67, 66], [1, 0, 0], (0, &["cluster"]))
        },
    ];
    for case in cases {
        let (allowed, trips) = judged(&case, &history(case.deleted));
        assert_eq!((allowed.len(), places(&trips).as_slice()), (case.want.0, &own(case.want.1)[..]), "{}", case.name);
    }
}

fn own(places: &[&str]) -> Vec<String> {
    places.iter().map(ToString::to_string).collect()
}

#[test]
fn a_breaker_that_holds_keeps_its_scope_and_trips_no_second_time() {
    let lie = cluster("", [67, 67, 66], [67, 1, 0], (1, &["a"]));
    let mut state = history(&[]);
    state.trips = judged(&lie, &state).1;
    assert_eq!(judged(&lie, &state), (vec!["b000".to_owned()], vec![]));
    state.trips[0].scope = Scope::Cluster;
    assert_eq!(judged(&lie, &state), (vec![], vec![]));
}

#[test]
fn a_node_whose_delete_failed_is_charged_once() {
    let mut state = history(&[]);
    state.record([Deletion {
        node: "a000".into(),
        uid: "uid-a000".into(),
        zone: Some("a".into()),
        at: at(-9),
        cause: Cause::Absent,
    }]);
    let (allowed, trips) = judged(&cluster("", [3, 3, 3], [1, 0, 0], (1, &[])), &state);
    assert_eq!((allowed.len(), trips.len()), (1, 0));
}

#[test]
fn nodes_without_a_zone_are_a_zone_of_their_own() {
    let mut all = nodes([5, 5, 0]);
    all.iter_mut().take(5).for_each(|node| node.labels.clear());
    let all: Vec<_> = all.iter().collect();
    let (state, absent) = (history(&[]), &all[..2]);
    let trips = judge(&Case { nodes: &all, absent, state: &state, now: at(0), budget: BUDGET });
    assert_eq!(trips[0].scope, Scope::Zone(String::new()));
    assert!(trips[0].id.starts_with("no-zone-budget-20"));
}

#[test]
fn a_trip_lists_what_was_seen_and_says_it_in_words() {
    let trip = judged(&cluster("", [67, 67, 66], [67, 0, 0], (0, &["a"])), &history(&[])).1.remove(0);
    assert_eq!((trip.count, trip.nodes.len()), (67, 67));
    assert!(trip.lists("a000", "uid-a000") && !trip.lists("a000", "another") && !trip.lists("b000", "uid-b000"));
    let reason =
        "the machines of 67 of 67 nodes of zone \"a\" are not known and 0 were deleted before, where 13 may be within 10m";
    assert_eq!((trip.reason.as_str(), trip.id.as_str()), (reason, "zone-a-budget-20231114-221320"));
    let all: Vec<_> = (0..9000).map(|index| node(&format!("n{index}"), "a")).collect();
    let all: Vec<_> = all.iter().collect();
    let state = history(&[]);
    let trip = judge(&Case { nodes: &all, absent: &all, state: &state, now: at(0), budget: BUDGET }).remove(0);
    assert_eq!((trip.count, trip.nodes.len()), (9000, Trip::LISTED), "a ConfigMap holds 1 MiB");
}
