//! The cases of client-go's `testTryAcquireOrRenew`, `testReleaseLease` and the rules that are this elector's own, as data.
//! Of client-go's other cases, the round trip of the spec is in `lease.rs`, release on cancellation and the fast path are in
//! `leader_election/tests.rs`, and coordinated election (`TestTryCoordinatedRenew`) and its health adaptor (`TestCheckMethodRace`)
//! do not exist here.
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::{Action, Candidate, Observation, Record, decide, may_renew_unread, observe, released};

const WALL: Timestamp = Timestamp::UNIX_EPOCH;

fn candidate() -> Candidate {
    Candidate { identity: "baz".to_owned(), lease_duration: Duration::from_secs(10) }
}

fn record(holder: &str, seconds: u32) -> Record {
    Record { holder: holder.to_owned(), seconds, ..Record::default() }
}

/// Runs one attempt: what was known, what is read (nothing: not found), and how long after the observation.
fn attempt(known: Option<Record>, read: Option<Record>, elapsed: u64) -> Action {
    let since = Instant::now();
    let now = since + Duration::from_secs(elapsed);
    let known = known.map(|record| Observation { record, since });
    let found = read.is_some();
    let known = match read {
        Some(read) => Some(observe(known, read, now)),
        None => known,
    };
    decide(&candidate(), known.as_ref(), found, now, WALL)
}

/// What an action leads to: who holds the lease, and its transitions.
fn outcome(action: &Action) -> (&'static str, &str, u32) {
    match action {
        Action::Create(record) => ("create", &record.holder, record.transitions),
        Action::Write(record) => ("write", &record.holder, record.transitions),
        Action::Wait { holder, .. } => ("wait", holder, 0),
    }
}

#[test]
fn every_case_of_client_go_ends_as_there() {
    let far = 3_600_000;
    let bing = |seconds| Some(record("bing", seconds));
    let rows = [
        ("acquire from no object", None, None, 0, ("create", "baz", 0)),
        ("acquire from object without a record", None, Some(Record::default()), 0, ("write", "baz", 1)),
        ("a led object, first seen", None, bing(3), 0, ("wait", "bing", 0)),
        ("a led object, after its duration", bing(3), bing(3), 3, ("write", "baz", 1)),
        ("acquire from unled object", Some(record("", 10)), Some(Record::default()), 0, ("write", "baz", 1)),
        ("acquire from led, unacked object", bing(0), bing(0), far, ("write", "baz", 1)),
        ("acquire from empty led, acked object", Some(record("", 10)), Some(record("", 10)), 0, ("write", "baz", 1)),
        ("don't acquire from led, acked object", bing(10), bing(10), 0, ("wait", "bing", 0)),
        ("renew already acquired object", Some(record("baz", 10)), Some(record("baz", 10)), 0, ("write", "baz", 0)),
    ];
    for (name, known, read, elapsed, expected) in rows {
        assert_eq!(outcome(&attempt(known, read, elapsed)), expected, "{name}");
    }
}

#[test]
fn a_change_starts_the_holders_term_anew_whatever_its_clock_says() {
    let early = Record { renewed: Some(Timestamp::MIN), ..record("bing", 10) };
    let late = Record { renewed: Some(Timestamp::MAX), ..record("bing", 10) };
    assert_eq!(outcome(&attempt(Some(late.clone()), Some(early.clone()), 60)), ("wait", "bing", 0));
    assert_eq!(outcome(&attempt(Some(early.clone()), Some(early), 10)), ("write", "baz", 1));
    assert_eq!(outcome(&attempt(Some(late.clone()), Some(late), 10)), ("write", "baz", 1));
}

#[test]
fn the_wait_ends_when_the_others_term_does() {
    let start = Instant::now();
    let known = Observation { record: record("bing", 10), since: start };
    let action = decide(&candidate(), Some(&known), true, start + Duration::from_secs(4), WALL);
    assert_eq!(action, Action::Wait { holder: "bing".to_owned(), until: start + Duration::from_secs(10) });
}

#[test]
fn a_deleted_lease_is_created_after_the_last_holder_had_its_time_and_keeps_its_count() {
    let held = Record { transitions: 7, ..record("bing", 10) };
    assert_eq!(outcome(&attempt(Some(held.clone()), None, 9)), ("wait", "bing", 0));
    assert_eq!(outcome(&attempt(Some(held), None, 10)), ("create", "baz", 8));
    let ours = Record { transitions: 7, ..record("baz", 10) };
    assert_eq!(outcome(&attempt(Some(ours), None, 0)), ("create", "baz", 7));
}

#[test]
fn a_renewal_keeps_when_it_was_acquired_and_a_take_over_does_not() {
    let acquired = Some(Timestamp::MIN);
    let known = |holder: &str| Record { acquired, ..record(holder, 10) };
    let renewed = super::claim(&candidate(), Some(&known("baz")), WALL);
    let taken = super::claim(&candidate(), Some(&known("bing")), WALL);
    assert_eq!((renewed.acquired, renewed.renewed), (acquired, Some(WALL)));
    assert_eq!((taken.acquired, taken.seconds), (Some(WALL), 10));
}

#[test]
fn only_our_own_unexpired_lease_is_renewed_unread() {
    let since = Instant::now();
    for (holder, elapsed, may) in [("baz", 9, true), ("baz", 10, false), ("bing", 0, false), ("", 0, false)] {
        let known = Observation { record: record(holder, 10), since };
        assert_eq!(may_renew_unread(&candidate(), Some(&known), since + Duration::from_secs(elapsed)), may, "{holder} {elapsed}");
    }
    assert!(!may_renew_unread(&candidate(), None, since));
}

#[test]
fn a_released_lease_is_nobodys_and_keeps_its_count() {
    let held = Record { transitions: 3, ..record("baz", 10) };
    let released = released(&held, WALL);
    assert_eq!((released.holder.as_str(), released.seconds, released.transitions), ("", 1, 3));
}
