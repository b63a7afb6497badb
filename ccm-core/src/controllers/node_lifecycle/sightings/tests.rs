//! When an answer that a machine is gone is confirmed, and what begins it anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use crate::controllers::node_lifecycle::fixtures::{answer, cordoned, found, node, ready};

const CONFIRMATION: Duration = Duration::from_secs(30);

/// A second look at a node, `after` seconds, whose data is of `observed`; the first was at 0 of 0.
struct Second {
    name: &'static str,
    node: Node,
    answer: Option<Answer>,
    after: u64,
    confirmed: Option<bool>,
}

fn second(name: &'static str, lookup: Lookup, after: u64, observed: i64, confirmed: Option<bool>) -> Second {
    Second { name, node: node("n", "a"), answer: Some(answer(lookup, observed)), after, confirmed }
}

#[test]
fn a_second_answer_confirms_only_if_late_enough_newer_and_of_the_same_node_and_cloud() {
    use InstanceState::{Deleted, Pending, Running, Stopped};
    let another = |change: fn(&mut Node)| {
        let mut node = node("n", "a");
        change(&mut node);
        node
    };
    let other_cloud = Answer { cloud_identity: Arc::from("another"), ..answer(Lookup::NotFound, 40) };
    let elsewhere = match found(Deleted) {
        Lookup::Found(instance) => Lookup::Found(Box::new(Instance { provider_id: Some("sim://other".to_owned()), ..*instance })),
        other => other,
    };
    let cases = [
        second("late enough and newer", Lookup::NotFound, 30, 1, Some(true)),
        second("known as deleted", found(Deleted), 30, 1, Some(true)),
        second("too early", Lookup::NotFound, 29, 29, Some(false)),
        second("from the same data", Lookup::NotFound, 60, 0, Some(false)),
        second("from older data", Lookup::NotFound, 60, -1, Some(false)),
        second("running", found(Running), 60, 60, None),
        second("pending", found(Pending), 60, 60, None),
        second("stopped", found(Stopped), 60, 60, None),
        second("not mine", Lookup::NotMine(String::new()), 60, 60, None),
        second("ambiguous", Lookup::Ambiguous(Vec::new()), 60, 60, None),
        second("deleted, but another machine", elsewhere, 60, 60, None),
        Second { answer: None, ..second("an error says nothing", Lookup::NotFound, 60, 60, Some(false)) },
        Second { answer: Some(other_cloud), ..second("another cloud", Lookup::NotFound, 60, 60, Some(false)) },
        Second {
            node: another(|node| node.uid = "new".into()),
            ..second("another object", Lookup::NotFound, 60, 60, Some(false))
        },
        Second {
            node: another(|node| node.provider_id = Some("sim://new".into())),
            ..second("another machine", Lookup::NotFound, 60, 60, Some(false))
        },
        Second { node: another(|node| node.provider_id = None), ..second("no providerID", Lookup::NotFound, 60, 60, None) },
        Second { node: ready(node("n", "a")), ..second("ready again", Lookup::NotFound, 60, 60, None) },
    ];
    for case in cases {
        let (start, mut sightings) = (Instant::now(), Sightings::default());
        sightings.record(&node("n", "a"), &answer(Lookup::NotFound, 0), start, CONFIRMATION);
        sightings.begin_tick(&[Arc::new(case.node.clone())]);
        match &case.answer {
            Some(answer) => sightings.record(&case.node, answer, start + Duration::from_secs(case.after), CONFIRMATION),
            None => sightings.record_failure(&case.node),
        }
        assert_eq!(sightings.gone("n").map(|sighting| sighting.confirmed), case.confirmed, "{}", case.name);
    }
}

#[test]
fn a_node_that_was_ready_in_between_begins_anew() {
    let (start, mut sightings) = (Instant::now(), Sightings::default());
    let gone = node("n", "a");
    sightings.record(&gone, &answer(Lookup::NotFound, 0), start, CONFIRMATION);
    sightings.begin_tick(&[Arc::new(ready(gone.clone()))]);
    sightings.begin_tick(&[Arc::new(gone.clone())]);
    sightings.record(&gone, &answer(Lookup::NotFound, 40), start + Duration::from_secs(40), CONFIRMATION);
    assert!(!sightings.gone("n").unwrap().confirmed);
}

#[test]
fn a_mark_counts_only_if_it_was_there_at_the_first_answer() {
    for (first, marked) in [(cordoned(node("n", "a")), true), (node("n", "a"), false)] {
        let (start, mut sightings) = (Instant::now(), Sightings::default());
        sightings.record(&first, &answer(Lookup::NotFound, 0), start, CONFIRMATION);
        sightings.record(&cordoned(first), &answer(Lookup::NotFound, 40), start + Duration::from_secs(40), CONFIRMATION);
        assert_eq!(sightings.gone("n").unwrap().marked, marked);
    }
}

#[test]
fn an_old_confirmation_is_not_fresh_when_the_tick_brought_an_error() {
    let (start, mut sightings) = (Instant::now(), Sightings::default());
    let gone = node("n", "a");
    sightings.record(&gone, &answer(Lookup::NotFound, 0), start, CONFIRMATION);
    sightings.record(&gone, &answer(Lookup::NotFound, 40), start + Duration::from_secs(40), CONFIRMATION);
    assert!(sightings.is_fresh("n"));
    sightings.begin_tick(&[Arc::new(gone.clone())]);
    sightings.record_failure(&gone);
    assert!(sightings.gone("n").unwrap().confirmed && !sightings.is_fresh("n"));
}

#[test]
fn the_next_look_is_due_when_the_earliest_sighting_can_be_confirmed() {
    let (start, mut sightings) = (Instant::now(), Sightings::default());
    assert_eq!(sightings.due(start, CONFIRMATION), None);
    sightings.record(&node("n", "a"), &answer(Lookup::NotFound, 0), start, CONFIRMATION);
    sightings.record(&node("m", "a"), &answer(Lookup::NotFound, 0), start + Duration::from_secs(3), CONFIRMATION);
    assert_eq!(sightings.due(start, CONFIRMATION), Some(start + CONFIRMATION));
    assert_eq!(sightings.due(start + CONFIRMATION, CONFIRMATION), Some(start + Duration::from_secs(33)));
    assert_eq!(sightings.due(start + Duration::from_secs(60), CONFIRMATION), None, "stale data is not asked for in a loop");
}
