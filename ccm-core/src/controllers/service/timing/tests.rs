//! The driver's times, with time as an argument.
use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn keys(count: usize) -> Vec<Key> {
    (0..count).map(|it| Key::from(it.to_string())).collect()
}

#[test]
fn nothing_is_due_at_first() {
    let (mut changes, now) = (NodeChanges::default(), Instant::now());
    assert!(changes.due_at().is_none() && !changes.take_due(now));
    let mut rounds = DriftRounds::new(None, now);
    assert_eq!((rounds.due_at(), rounds.take_due(now, || keys(1))), (None, None));
}

#[test]
fn nodes_are_gathered_until_they_come_to_rest_or_a_second_has_passed() {
    let (mut changes, now) = (NodeChanges::default(), Instant::now());
    changes.add(now);
    assert_eq!(changes.due_at(), Some(now + ms(100)));
    changes.add(now + ms(60));
    assert!(!changes.take_due(now + ms(159)));
    assert!(changes.take_due(now + ms(160)));
    assert!(!changes.take_due(now + ms(160)), "once");
    let again = now + ms(5000);
    (0..30).for_each(|it| changes.add(again + ms(50 * it)));
    assert_eq!(changes.due_at(), Some(again + ms(1000)));
    assert!(changes.take_due(again + ms(1000)));
}

#[test]
fn a_round_of_checks_visits_each_once_spread_over_the_period() {
    let begun = Instant::now();
    let period = Duration::from_secs(100);
    let mut rounds = DriftRounds::new(Some(period), begun);
    let first = rounds.due_at().map(|at| at - begun);
    assert!(first.is_some_and(|after| after >= period / 10 && after <= period), "{first:?}");
    let mut now = begun + period;
    let mut round = Vec::new();
    for _ in 0..10 {
        round.extend(rounds.take_due(now, || keys(10)));
        assert_eq!(rounds.take_due(now, Vec::new), None, "one at a time");
        assert_eq!(rounds.due_at(), Some(now + period / 10));
        now += period / 10;
    }
    round.sort();
    assert_eq!(round, keys(10));
    assert_eq!(rounds.take_due(now, || keys(1)), Some(Key::from("0")));
}

#[test]
fn more_than_a_period_takes_are_checked_at_a_bearable_pace_and_none_cost_nothing() {
    let now = Instant::now();
    let mut rounds = DriftRounds::new(Some(ms(1000)), now);
    let later = now + ms(1000);
    assert!(rounds.take_due(later, || keys(10_000)).is_some());
    assert_eq!(rounds.due_at(), Some(later + ms(20)));
    let mut rounds = DriftRounds::new(Some(ms(1000)), now);
    assert_eq!(rounds.take_due(later, Vec::new), None);
    assert_eq!(rounds.due_at(), Some(later + ms(1000)));
}
