//! The table of stale routes: which are candidates, and how many of them go.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::cluster::scripted::model;
use crate::controllers::route::claims::Claimant;
use crate::model::ownership::Ownership;
use crate::model::route::RouteTable;
use crate::provider::scripted::routes::{foreign, ours};

const WINDOW: Duration = Duration::from_mins(10);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn claimant(name: &str, cidr: &str, ownership: Ownership) -> Claimant {
    let node = model(&json!({ "metadata": { "name": name, "uid": name }, "spec": { "podCIDRs": [cidr] } }));
    Claimant::new(Arc::new(node), ownership)
}

fn cidr(number: usize) -> String {
    format!("10.{}.{}.0/24", number / 256, number % 256)
}

/// What is found where node `kept` has 10.0.1.0/24, and `gone` had 10.0.2.0/24 until second 100.
fn found(listed: Vec<Route>, read_at: i64) -> (Vec<String>, bool) {
    let (mut claims, mut table, now) = (Claims::new(WINDOW), Table::default(), Instant::now());
    claims.see("kept", Some(claimant("kept", "10.0.1.0/24", Ownership::Unmanaged)), now, at(0));
    claims.see("gone", Some(claimant("gone", "10.0.2.0/24", Ownership::Ours)), now, at(0));
    claims.see("gone", None, now, at(100));
    table.list(RouteTable { routes: listed, observed_at: None }, at(read_at));
    let cluster_cidrs = ["10.0.0.0/16".parse().unwrap()];
    let stale = Stale { table: &table, claims: &claims, cluster_cidrs: &cluster_cidrs, since: at(0), waits: &|_| false };
    let found = candidates(&stale);
    (found.routes.iter().map(|route| route.destination.to_string()).collect(), found.has_waiting)
}

#[test]
fn a_candidate_is_ours_inside_the_cluster_overlaps_no_node_and_is_listed_after_its_node_went() {
    let cases = [
        ("of the node that went", ours("gone", "10.0.2.0/24"), 101, true),
        ("listed before it went", ours("gone", "10.0.2.0/24"), 99, false),
        ("of others", foreign("10.0.2.0/24"), 101, false),
        ("outside of the cluster's CIDRs", ours("gone", "10.1.2.0/24"), 101, false),
        ("partly outside", ours("gone", "10.0.0.0/15"), 101, false),
        ("of an unmanaged node that exists", ours("kept", "10.0.1.0/24"), 101, false),
        ("the same to another target", ours("gone", "10.0.1.0/24"), 101, false),
        ("wider than a node's", ours("gone", "10.0.0.0/23"), 101, false),
        ("a part of a node's", ours("gone", "10.0.1.128/25"), 101, false),
        ("beside a node's", ours("gone", "10.0.0.0/24"), 101, true),
        ("of a node never seen", ours("x", "10.0.9.0/24"), 99, true),
        ("the same, listed before this term saw the nodes", ours("x", "10.0.9.0/24"), -1, false),
    ];
    for (name, route, read_at, expected) in cases {
        let (found, waits) = found(vec![route.clone()], read_at);
        assert_eq!(found.is_empty(), !expected, "{name}");
        assert_eq!(waits, name.contains("before"), "{name}");
    }
    let twice = vec![ours("gone", "10.0.2.0/24"), ours("x", "10.0.2.0/24")];
    assert_eq!(found(twice, 101).0.len(), 1, "one call about a destination at a time");
}

struct Situation {
    /// The candidates; the first `known` of them this term saw go.
    candidates: usize,
    known: usize,
    ours: usize,
    /// Of so many nodes that were seen so many exist.
    seen: usize,
    exist: usize,
    used: usize,
    is_new_term: bool,
}

const USUAL: Situation = Situation { candidates: 1, known: 1, ours: 20, seen: 20, exist: 19, used: 0, is_new_term: false };

fn judged(situation: &Situation) -> (usize, usize, Option<Block>) {
    let now = Instant::now();
    let names: Vec<_> = (0..situation.seen).map(|number| format!("n{number}")).collect();
    let live = Live { names: names.iter().take(situation.exist).cloned().collect(), cidrs: Cidrs::default() };
    let seen = names.iter().map(String::as_str).collect();
    let known: HashSet<IpNet> = (0..situation.known).map(|number| cidr(number).parse().unwrap()).collect();
    let case = Case {
        candidates: (0..situation.candidates).map(|number| ours("x", &cidr(number))).collect(),
        live: &live,
        seen: &seen,
        saw_go: &|destination| known.contains(destination),
        ours: situation.ours,
        budget: Budget { window: WINDOW, fraction: 0.2 },
        used: situation.used,
        used_up_until: situation.is_new_term.then_some(now + WINDOW),
    };
    let judgement = judge(case, now);
    (judgement.delete.len(), judgement.on_budget, judgement.block)
}

#[test]
fn how_many_candidates_go() {
    let tripped = |candidates, used, most, ours| Some(Block::Tripped { candidates, used, most, ours });
    // situation; deleted, of them on the budget
    let cases = [
        ("one of twenty", USUAL, 1, 1, None),
        ("nine of twenty went", Situation { candidates: 9, known: 9, exist: 11, ..USUAL }, 9, 0, None),
        ("half went", Situation { candidates: 10, known: 10, exist: 10, ..USUAL }, 0, 0, tripped(10, 0, 4, 20)),
        ("half of two went", Situation { seen: 2, exist: 1, ours: 2, ..USUAL }, 1, 1, None),
        ("no node was ever seen", Situation { candidates: 5, known: 0, seen: 0, exist: 0, ..USUAL }, 0, 0, tripped(5, 0, 4, 20)),
        ("never seen, within the budget", Situation { candidates: 4, known: 0, ..USUAL }, 4, 4, None),
        ("never seen, one too many", Situation { candidates: 5, known: 0, ..USUAL }, 0, 0, tripped(5, 0, 4, 20)),
        (
            "never seen, with some used",
            Situation { candidates: 3, known: 0, used: 2, ours: 18, ..USUAL },
            0,
            0,
            tripped(3, 2, 4, 20),
        ),
        ("both: the unknown trip", Situation { candidates: 9, known: 3, ..USUAL }, 3, 0, tripped(6, 0, 4, 20)),
        ("at least one", Situation { candidates: 1, known: 0, ours: 4, ..USUAL }, 1, 1, None),
        ("two of two", Situation { candidates: 2, known: 0, ours: 2, ..USUAL }, 0, 0, tripped(2, 0, 1, 2)),
        ("a new term with a node that it saw go", Situation { is_new_term: true, ..USUAL }, 1, 0, None),
    ];
    for (name, situation, deleted, on_budget, block) in cases {
        let on_budget =
            if situation.known == situation.candidates && situation.exist * 2 > situation.seen { 0 } else { on_budget };
        assert_eq!(judged(&situation), (deleted, on_budget, block), "{name}");
    }
    let (deleted, _, block) = judged(&Situation { known: 0, is_new_term: true, ..USUAL });
    assert!(deleted == 0 && matches!(block, Some(Block::NewTerm { candidates: 1, .. })));
    assert_eq!(judged(&Situation { candidates: 0, known: 0, is_new_term: true, ..USUAL }), (0, 0, None));
}

#[test]
fn what_a_live_node_has_stays_whatever_the_watch_shows() {
    let live = |cidrs: &[&str]| Live {
        names: ["a", "b"].map(str::to_owned).into(),
        cidrs: cidrs.iter().map(|cidr| cidr.parse::<IpNet>().unwrap()).collect(),
    };
    for (cidrs, deleted) in [(&["10.9.0.0/24"][..], 1), (&["10.0.0.0/24"], 0), (&["10.0.0.0/16"], 0), (&["10.0.0.64/26"], 0)] {
        let case = Case {
            candidates: vec![ours("x", "10.0.0.0/24")],
            live: &live(cidrs),
            seen: &["a", "b", "x"].into(),
            saw_go: &|_| true,
            ours: 3,
            budget: Budget { window: WINDOW, fraction: 1.0 },
            used: 0,
            used_up_until: None,
        };
        assert_eq!(judge(case, Instant::now()).delete.len(), deleted, "{cidrs:?}");
    }
}

proptest! {
    #[test]
    fn on_the_budget_never_all_of_three_or_more_go_in_a_window(
        ours in 0_usize..60, candidates in 0_usize..60, used in 0_usize..20, known in 0_usize..60, exist in 0_usize..10,
    ) {
        let candidates = candidates.min(ours);
        let (deleted, on_budget, block) =
            judged(&Situation { candidates, known: known.min(candidates), ours, used, seen: 10, exist, is_new_term: false });
        prop_assert!(on_budget == 0 || on_budget + used <= ((ours + used) / 5).max(1));
        prop_assert!(on_budget == 0 || ours + used < 3 || on_budget + used < ours + used);
        prop_assert!(deleted >= on_budget && (deleted == candidates || block.is_some()));
    }
}
