//! The driver's times, with time as an argument.
use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn timing() -> (Timing, Instant) {
    let now = Instant::now();
    (Timing::new(None, now), now)
}

#[test]
fn nothing_is_due_at_first() {
    let (mut timing, now) = timing();
    assert_eq!(timing.next(true, now), None);
    assert!(!timing.nodes_are_due(now) && !timing.doubt_is_over(now) && !timing.is_calm(now) && timing.paced_is_due(now));
    assert_eq!(timing.next_check(now, || vec!["a".to_owned()]), None);
}

#[test]
fn nodes_are_gathered_until_they_come_to_rest_or_a_second_has_passed() {
    let (mut timing, now) = timing();
    timing.nodes_changed(now);
    assert_eq!(timing.next(false, now), Some(now + ms(100)));
    timing.nodes_changed(now + ms(60));
    assert!(!timing.nodes_are_due(now + ms(159)));
    assert!(timing.nodes_are_due(now + ms(160)));
    assert!(!timing.nodes_are_due(now + ms(160)), "once");
    let again = now + ms(5000);
    (0..30).for_each(|it| timing.nodes_changed(again + ms(50 * it)));
    assert_eq!(timing.next(false, again), Some(again + ms(1000)));
    assert!(timing.nodes_are_due(again + ms(1000)));
}

#[test]
fn a_doubt_ends_once_and_can_be_taken_back() {
    let (mut timing, now) = timing();
    timing.doubt(Some(now + ms(30_000)));
    assert_eq!(timing.next(false, now), Some(now + ms(30_000)));
    assert!(!timing.doubt_is_over(now + ms(29_999)));
    assert!(timing.doubt_is_over(now + ms(30_000)) && !timing.doubt_is_over(now + ms(30_000)));
    timing.doubt(Some(now + ms(40_000)));
    timing.doubt(None);
    assert!(!timing.doubt_is_over(now + ms(50_000)));
}

#[test]
fn paced_calls_have_a_pause_between_them_that_wakes_only_who_waits_for_it() {
    let (mut timing, now) = timing();
    timing.paced(now);
    assert!(!timing.paced_is_due(now + ms(99)) && timing.paced_is_due(now + ms(100)));
    assert_eq!(timing.next(true, now), Some(now + ms(100)));
    assert_eq!(timing.next(false, now), None);
    assert_eq!(timing.next(true, now + ms(100)), None, "what is due is no reason to wake again and again");
}

#[test]
fn a_limited_cloud_is_left_in_peace_longer_each_time_until_it_answers() {
    let (mut timing, mut now) = timing();
    for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
        let length = timing.calm(None, now);
        assert_eq!(length.as_secs(), seconds);
        assert!(timing.is_calm(now + length.mul_f64(0.99)));
        now += length;
        assert!(!timing.is_calm(now));
    }
    timing.all_is_well(now);
    assert_eq!(timing.calm(None, now).as_secs(), 1);
}

#[test]
fn many_refusals_at_once_are_one() {
    let (mut timing, now) = timing();
    for _ in 0..50 {
        assert_eq!(timing.calm(None, now), ms(1000));
    }
    assert_eq!(timing.next(false, now), Some(now + ms(1000)));
    assert_eq!(timing.calm(None, now + ms(1000)), ms(2000));
}

#[test]
fn the_clouds_own_time_counts_the_longest_of_several_and_never_none() {
    let (mut timing, now) = timing();
    assert_eq!(timing.calm(Some(ms(30_000)), now), ms(30_000));
    assert_eq!(timing.calm(Some(ms(5000)), now), ms(5000));
    assert_eq!(timing.next(false, now), Some(now + ms(30_000)));
    timing.calm_is_over();
    assert!(!timing.is_calm(now));
    assert!(timing.calm(Some(Duration::ZERO), now) >= ms(100), "no time is no invitation to hurry");
}

#[test]
fn a_round_of_checks_visits_each_once_spread_over_the_period() {
    let begun = Instant::now();
    let period = Duration::from_secs(100);
    let mut timing = Timing::new(Some(period), begun);
    let first = timing.next(false, begun).map(|at| at - begun);
    assert!(first.is_some_and(|after| after >= period / 10 && after <= period), "{first:?}");
    let mut now = begun + period;
    let mut round = Vec::new();
    for _ in 0..10 {
        round.extend(timing.next_check(now, || (0..10).map(|it| it.to_string()).collect()));
        assert_eq!(timing.next_check(now, Vec::new), None, "one at a time");
        assert_eq!(timing.next(false, now), Some(now + period / 10));
        now += period / 10;
    }
    round.sort();
    assert_eq!(round, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    assert_eq!(timing.next_check(now, || vec!["anew".to_owned()]), Some("anew".to_owned()));
}

#[test]
fn more_than_a_period_takes_are_checked_at_a_bearable_pace_and_none_cost_nothing() {
    let now = Instant::now();
    let mut timing = Timing::new(Some(ms(1000)), now);
    let later = now + ms(1000);
    assert!(timing.next_check(later, || (0..10_000).map(|it| it.to_string()).collect()).is_some());
    assert_eq!(timing.next(false, later), Some(later + ms(20)));
    let mut timing = Timing::new(Some(ms(1000)), now);
    assert_eq!(timing.next_check(later, Vec::new), None);
    assert_eq!(timing.next(false, later), Some(later + ms(1000)));
}

#[test]
fn a_sync_lasts_from_the_first_change_to_the_last_load_balancer() {
    let (mut timing, now) = timing();
    assert_eq!(timing.sync_ended(now), None);
    timing.sync_began(now);
    timing.sync_began(now + ms(500));
    assert_eq!(timing.sync_ended(now + ms(800)), Some(ms(800)));
    assert_eq!(timing.sync_ended(now + ms(900)), None);
}
