//! Which work goes first, and which places are kept for which work: the rules of [`Priority`] on the scheduler.
use std::time::Instant;

use super::*;
use crate::controllers::scheduler::{Answered, Key, Priority as _, Scheduler};

fn waiting(of: &[(&str, Priority)]) -> Scheduler<Priority> {
    let mut scheduler = Scheduler::default();
    of.iter().for_each(|(key, priority)| scheduler.queue(&Key::from(*key), *priority));
    scheduler
}

fn many(name: &str, priority: Priority) -> Scheduler<Priority> {
    let keys: Vec<_> = (0..100).map(|it| format!("{name}{it}")).collect();
    waiting(&keys.iter().map(|key| (key.as_str(), priority)).collect::<Vec<_>>())
}

/// All that begins now while so many places are free and nothing ends.
fn order(scheduler: &mut Scheduler<Priority>, limit: usize, now: Instant) -> Vec<String> {
    std::iter::from_fn(|| {
        let (key, priority) = scheduler.next(limit, now)?;
        scheduler.begin(&key, priority, now);
        Some(key.to_string())
    })
    .collect()
}

#[test]
fn deletions_go_before_changes_before_targets_before_what_is_repeated_before_checks_before_paced_calls() {
    let mut scheduler = waiting(&[
        ("p", Priority::Paced),
        ("k", Priority::Check),
        ("a", Priority::Again),
        ("t", Priority::Targets),
        ("c", Priority::Change),
        ("d", Priority::Deletion),
    ]);
    assert_eq!(order(&mut scheduler, 10, Instant::now()), ["d", "c", "t", "a", "k", "p"]);
}

#[test]
fn mass_work_leaves_a_quarter_of_the_places_to_users_and_all_but_targets_one_to_these() {
    for (limit, targets, checks) in [(1, 1, 1), (2, 1, 1), (3, 2, 1), (4, 3, 2), (8, 6, 5), (50, 38, 37)] {
        for (priority, mass) in [(Priority::Targets, targets), (Priority::Check, checks)] {
            for user in [Priority::Change, Priority::Deletion] {
                let (mut scheduler, now) = (many("m", priority), Instant::now());
                assert_eq!(order(&mut scheduler, limit, now).len(), mass, "{priority:?} of {limit}");
                (0..100).for_each(|it| scheduler.queue(&Key::from(format!("u{it}")), user));
                let left = usize::from(priority == Priority::Check && limit >= 3);
                assert_eq!(
                    order(&mut scheduler, limit, now).len(),
                    limit - mass - left,
                    "{user:?} beside {priority:?} of {limit}"
                );
            }
        }
    }
}

#[test]
fn no_work_that_waits_is_kept_out_by_other_work() {
    let all = Priority::ALL;
    for (hog, other) in all.iter().flat_map(|hog| all.iter().map(move |other| (*hog, *other))) {
        if hog.pool() == other.pool() {
            continue;
        }
        for limit in [5, 8, 10, 50] {
            let mut scheduler = many("h", hog);
            scheduler.queue(&Key::from("o"), other);
            let began = order(&mut scheduler, limit, Instant::now());
            assert!(began.contains(&"o".to_owned()), "{other:?} beside {hog:?} of {limit}");
        }
    }
}

#[test]
fn one_paced_call_runs_at_a_time_with_a_pause_after_each_beginning() {
    let (mut scheduler, now) = (waiting(&[("a", Priority::Paced), ("b", Priority::Paced)]), Instant::now());
    assert_eq!(order(&mut scheduler, 10, now), ["a"]);
    scheduler.finish(&Key::from("a"), Answered::Yes, now);
    assert_eq!(order(&mut scheduler, 10, now), Vec::<String>::new());
    assert_eq!(scheduler.wake_at(now), Some(now + PACE));
    assert_eq!(order(&mut scheduler, 10, now + PACE), ["b"]);
}

#[test]
fn after_a_rate_limit_a_deletion_probes_before_everything_else() {
    let (mut scheduler, now) = (many("c", Priority::Change), Instant::now());
    scheduler.begin(&Key::from("limited"), Priority::Again, now);
    scheduler.finish(&Key::from("limited"), Answered::RateLimited(None), now);
    scheduler.queue(&Key::from("d"), Priority::Deletion);
    assert_eq!(order(&mut scheduler, 10, now), Vec::<String>::new());
    let later = now + Duration::from_secs(1);
    assert_eq!(order(&mut scheduler, 10, later), ["d"], "and it alone");
    scheduler.finish(&Key::from("d"), Answered::Yes, later);
    assert_eq!(order(&mut scheduler, 10, later).len(), 9);
}

#[test]
fn a_service_waits_at_one_priority_and_begins_once() {
    let (mut scheduler, now) = (waiting(&[("a", Priority::Targets), ("b", Priority::Targets)]), Instant::now());
    scheduler.queue(&Key::from("b"), Priority::Change);
    scheduler.queue(&Key::from("b"), Priority::Change);
    scheduler.queue(&Key::from("a"), Priority::Change);
    scheduler.queue(&Key::from("a"), Priority::Targets);
    assert_eq!(order(&mut scheduler, 10, now), ["b", "a"]);
    scheduler.queue(&Key::from("c"), Priority::Targets);
    scheduler.idle(&Key::from("c"));
    assert_eq!(order(&mut scheduler, 10, now), Vec::<String>::new());
}

#[test]
fn a_priority_is_busy_while_work_waits_or_runs_at_it() {
    let (mut scheduler, now) = (waiting(&[("a", Priority::Targets)]), Instant::now());
    assert!(scheduler.is_busy(Priority::Targets) && !scheduler.is_busy(Priority::Check));
    order(&mut scheduler, 10, now);
    assert!(scheduler.is_busy(Priority::Targets));
    scheduler.finish(&Key::from("a"), Answered::Yes, now);
    assert!(!scheduler.is_busy(Priority::Targets));
    scheduler.queue(&Key::from("b"), Priority::Targets);
    scheduler.queue(&Key::from("b"), Priority::Change);
    assert!(!scheduler.is_busy(Priority::Targets), "it waits elsewhere now");
}
