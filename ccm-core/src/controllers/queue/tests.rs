//! When objects are looked at again. Time is virtual.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_mins(2);
const BACK_OFF: Pause = Pause::BackOff { at_least: None };

fn queue() -> Queue {
    let slow = Duration::from_mins(5);
    Queue::new(Pauses { first: FIRST, longest: LONGEST, slow, slowest: slow })
}

fn failed(queue: &mut Queue, seen: u64) -> Duration {
    assert!(queue.begin("a", Cause::Due, seen));
    queue.retry("a", BACK_OFF).unwrap()
}

#[test]
fn a_node_that_is_named_often_is_taken_once_with_its_strongest_cause() {
    let mut queue = queue();
    for cause in [Cause::Changed, Cause::Refresh, Cause::Changed] {
        queue.add("a".into(), cause);
    }
    assert_eq!(queue.take_ready(), [("a".to_owned(), Cause::Refresh)].into());
    assert!(queue.take_ready().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_node_at_work_waits_for_the_end_and_is_not_forgotten() {
    let mut queue = queue();
    assert!(queue.begin("a", Cause::Changed, 1));
    queue.add("a".into(), Cause::Changed);
    assert!(queue.take_ready().is_empty());
    queue.finish("a");
    assert_eq!(queue.take_ready(), [("a".to_owned(), Cause::Changed)].into());
}

#[tokio::test(start_paused = true)]
async fn a_refresh_of_a_node_at_work_is_dropped() {
    let mut queue = queue();
    assert!(queue.begin("a", Cause::Changed, 1));
    queue.add("a".into(), Cause::Refresh);
    queue.finish("a");
    assert!(queue.take_ready().is_empty());
}

#[tokio::test(start_paused = true)]
async fn pauses_grow_to_a_bound_and_begin_anew_when_the_node_changes() {
    let mut queue = queue();
    let pauses: Vec<_> = (0..40).map(|_| failed(&mut queue, 1)).collect();
    assert!(pauses[0] < FIRST * 2 && pauses[4] > FIRST * 4, "{pauses:?}");
    assert!(pauses.iter().all(|pause| *pause < LONGEST * 2), "{pauses:?}");
    assert!(failed(&mut queue, 2) < FIRST * 2);
}

#[tokio::test(start_paused = true)]
async fn the_providers_wish_is_a_lower_bound() {
    let mut queue = queue();
    let least = Duration::from_secs(30);
    for seen in 0..50 {
        assert!(queue.begin("a", Cause::Due, seen));
        assert!(queue.retry("a", Pause::BackOff { at_least: Some(least) }).unwrap() >= least);
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_change_that_matters_cuts_a_pause_short() {
    let mut queue = queue();
    failed(&mut queue, 1);
    assert!(!queue.begin("a", Cause::Changed, 1));
    assert!(!queue.begin("a", Cause::Refresh, 1));
    assert!(queue.begin("a", Cause::Changed, 2));
    queue.finish("a");
    assert_eq!(queue.next_due().await, None, "the old pause is over");
}

#[tokio::test(start_paused = true)]
async fn a_node_is_due_when_its_pause_ends_and_not_if_it_is_gone() {
    let mut queue = queue();
    let before = tokio::time::Instant::now();
    let pause = failed(&mut queue, 1);
    assert_eq!(queue.next_due().await.as_deref(), Some("a"));
    assert!(before.elapsed() >= pause);
    assert!(queue.begin("a", Cause::Due, 1));
    queue.retry("a", Pause::Slow).unwrap();
    queue.forget("a");
    assert_eq!(queue.next_due().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_pause_without_a_failure_is_kept_to_the_letter_and_makes_the_next_failure_the_first() {
    let mut queue = queue();
    for _ in 0..10 {
        failed(&mut queue, 1);
    }
    assert!(queue.begin("a", Cause::Due, 1));
    assert_eq!(queue.retry("a", Pause::Exactly(Duration::from_secs(7))), Some(Duration::from_secs(7)));
    assert!(failed(&mut queue, 1) < FIRST * 2);
}

#[tokio::test(start_paused = true)]
async fn when_the_trouble_is_over_nobody_waits_who_waited_for_its_end() {
    let mut queue = queue();
    for (name, pause) in [("a", BACK_OFF), ("b", Pause::Slow), ("c", Pause::Exactly(FIRST))] {
        assert!(queue.begin(name, Cause::Changed, 1));
        queue.retry(name, pause).unwrap();
    }
    queue.hurry();
    assert_eq!(queue.take_ready(), [("a".to_owned(), Cause::Due)].into());
    assert!(queue.begin("a", Cause::Due, 1));
    queue.finish("a");
    assert_eq!(queue.next_due().await.as_deref(), Some("c"), "the others wait on");
}

#[tokio::test(start_paused = true)]
async fn work_beside_a_pause_leaves_the_pause_as_it_is() {
    let mut queue = queue();
    let pause = failed(&mut queue, 1);
    assert!(queue.is_pausing("a", Cause::Changed, 1) && !queue.is_pausing("a", Cause::Changed, 2));
    queue.begin_beside("a");
    queue.add("a".into(), Cause::Changed);
    assert!(queue.take_ready().is_empty(), "somebody is at work");
    queue.finish_beside("a");
    assert_eq!(queue.take_ready().len(), 1);
    assert!(queue.is_pausing("a", Cause::Changed, 1));
    let began = tokio::time::Instant::now();
    assert_eq!(queue.next_due().await.as_deref(), Some("a"));
    assert!(began.elapsed() >= pause);
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_ends_during_work_beside_it_is_not_lost() {
    let mut queue = queue();
    failed(&mut queue, 1);
    queue.begin_beside("a");
    let due = queue.next_due().await.unwrap();
    queue.add(due, Cause::Due);
    queue.finish_beside("a");
    assert_eq!(queue.take_ready(), [("a".to_owned(), Cause::Due)].into());
    assert!(queue.begin("a", Cause::Due, 1));
}
