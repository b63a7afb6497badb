//! The order in which Services go.
use super::*;

fn waiting(of: &[(&str, Lane)]) -> Lanes {
    let mut lanes = Lanes::default();
    of.iter().for_each(|(key, lane)| lanes.add((*key).to_owned(), *lane, Cause::Changed));
    lanes
}

/// All that goes while so many places are free and nobody comes back.
fn order(lanes: &mut Lanes, limit: usize, paced: bool) -> Vec<String> {
    std::iter::from_fn(|| {
        let (key, lane, _) = lanes.next(limit, paced)?;
        lanes.began(lane);
        Some(key)
    })
    .collect()
}

#[test]
fn changes_go_before_targets_before_what_goes_on_before_checks_before_paced_calls() {
    let mut lanes =
        waiting(&[("p", Lane::Paced), ("k", Lane::Check), ("a", Lane::Again), ("t", Lane::Targets), ("c", Lane::Change)]);
    assert_eq!(order(&mut lanes, 10, true), ["c", "t", "a", "k", "p"]);
}

#[test]
fn mass_work_leaves_a_quarter_of_the_places_to_changes_and_all_but_targets_one_to_these() {
    for (limit, targets, checks) in [(1, 1, 1), (2, 1, 1), (3, 2, 1), (4, 3, 2), (8, 6, 5), (50, 38, 37)] {
        for (lane, mass) in [(Lane::Targets, targets), (Lane::Check, checks)] {
            let keys: Vec<_> = (0..100).map(|it| format!("m{it}")).collect();
            let mut lanes = waiting(&keys.iter().map(|key| (key.as_str(), lane)).collect::<Vec<_>>());
            assert_eq!(order(&mut lanes, limit, true).len(), mass, "{lane:?} of {limit}");
            keys.iter().for_each(|key| lanes.add(format!("c{key}"), Lane::Change, Cause::Changed));
            let left = usize::from(lane == Lane::Check && limit >= 3);
            assert_eq!(order(&mut lanes, limit, true).len(), limit - mass - left, "changes beside {lane:?} of {limit}");
        }
    }
}

#[test]
fn no_lane_that_somebody_waits_in_is_kept_out_by_another() {
    let lanes = ORDER;
    for (hog, other) in lanes.into_iter().flat_map(|hog| lanes.map(|other| (hog, other))).filter(|(hog, other)| hog != other) {
        for limit in [5, 8, 10, 50] {
            let keys: Vec<_> = (0..100).map(|it| format!("h{it}")).collect();
            let mut lanes = waiting(&keys.iter().map(|key| (key.as_str(), hog)).collect::<Vec<_>>());
            lanes.add("o".to_owned(), other, Cause::Changed);
            assert!(order(&mut lanes, limit, true).contains(&"o".to_owned()), "{other:?} beside {hog:?} of {limit}");
        }
    }
}

#[test]
fn one_paced_call_runs_at_a_time_and_only_when_its_time_has_come() {
    let mut lanes = waiting(&[("a", Lane::Paced), ("b", Lane::Paced)]);
    assert_eq!(order(&mut lanes, 10, false), Vec::<String>::new());
    assert_eq!(order(&mut lanes, 10, true), ["a"]);
    lanes.ended(Lane::Paced);
    assert_eq!(order(&mut lanes, 10, true), ["b"]);
}

#[test]
fn a_service_waits_in_one_lane_and_goes_once() {
    let mut lanes = waiting(&[("a", Lane::Targets), ("b", Lane::Targets)]);
    lanes.add("b".to_owned(), Lane::Change, Cause::Due);
    lanes.add("b".to_owned(), Lane::Change, Cause::Changed);
    assert_eq!(lanes.next(10, true), Some(("b".to_owned(), Lane::Change, Cause::Due)), "the strongest cause holds");
    assert_eq!(order(&mut lanes, 10, true), ["a"]);
    lanes.add("b".to_owned(), Lane::Targets, Cause::Changed);
    lanes.remove("b");
    assert_eq!(order(&mut lanes, 10, true), Vec::<String>::new());
}

#[test]
fn who_moves_there_and_back_goes_once() {
    let mut lanes = waiting(&[("a", Lane::Targets)]);
    lanes.add("a".to_owned(), Lane::Change, Cause::Changed);
    lanes.add("a".to_owned(), Lane::Targets, Cause::Changed);
    assert_eq!(order(&mut lanes, 10, true), ["a"]);
}

#[test]
fn a_lane_is_busy_while_somebody_waits_or_works_in_it() {
    let mut lanes = waiting(&[("a", Lane::Targets)]);
    assert!(lanes.is_busy(Lane::Targets) && !lanes.is_busy(Lane::Check));
    order(&mut lanes, 10, true);
    assert!(lanes.is_busy(Lane::Targets));
    lanes.ended(Lane::Targets);
    assert!(!lanes.is_busy(Lane::Targets));
    lanes.add("b".to_owned(), Lane::Targets, Cause::Changed);
    lanes.add("b".to_owned(), Lane::Change, Cause::Changed);
    assert!(!lanes.is_busy(Lane::Targets), "who moved on has left nothing but its name");
    lanes.add("c".to_owned(), Lane::Paced, Cause::Changed);
    lanes.remove("c");
    assert!(!lanes.is_busy(Lane::Paced));
}
