//! When an answer that a machine is gone is confirmed, and what begins it anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use crate::controllers::node_lifecycle::fixtures::{answer, found, node, provider, ready};

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
        let (start, mut observations) = (Instant::now(), Observations::default());
        observations.record(&node("n", "a"), &answer(Lookup::NotFound, 0), start, CONFIRMATION);
        observations.begin_tick(&[Arc::new(case.node.clone())], &provider());
        match &case.answer {
            Some(answer) => observations.record(&case.node, answer, start + Duration::from_secs(case.after), CONFIRMATION),
            None => observations.record_failure(&case.node),
        }
        assert_eq!(observations.gone("n").map(|gone| gone.confirmed), case.confirmed, "{}", case.name);
    }
}

#[test]
fn a_node_that_was_ready_or_not_managed_in_between_begins_anew() {
    let other = ProviderInfo { provider_id_prefixes: vec!["other://".to_owned()], ..provider() };
    for (name, between, of) in [("Ready", ready(node("n", "a")), provider()), ("foreign", node("n", "a"), other)] {
        let (start, mut observations) = (Instant::now(), Observations::default());
        let gone = node("n", "a");
        observations.record(&gone, &answer(Lookup::NotFound, 0), start, CONFIRMATION);
        observations.begin_tick(&[Arc::new(between)], &of);
        observations.begin_tick(&[Arc::new(gone.clone())], &provider());
        observations.record(&gone, &answer(Lookup::NotFound, 40), start + Duration::from_secs(40), CONFIRMATION);
        assert!(!observations.gone("n").unwrap().confirmed, "{name}");
    }
}

#[test]
fn an_old_confirmation_is_not_fresh_when_the_tick_brought_an_error() {
    let (start, mut observations) = (Instant::now(), Observations::default());
    let gone = node("n", "a");
    observations.record(&gone, &answer(Lookup::NotFound, 0), start, CONFIRMATION);
    observations.record(&gone, &answer(Lookup::NotFound, 40), start + Duration::from_secs(40), CONFIRMATION);
    assert!(observations.is_fresh("n"));
    observations.begin_tick(&[Arc::new(gone.clone())], &provider());
    observations.record_failure(&gone);
    assert!(observations.gone("n").unwrap().confirmed && !observations.is_fresh("n"));
}

#[test]
fn the_next_look_is_due_when_the_earliest_observation_can_be_confirmed() {
    let (start, mut observations) = (Instant::now(), Observations::default());
    assert_eq!(observations.due(start, CONFIRMATION), None);
    observations.record(&node("n", "a"), &answer(Lookup::NotFound, 0), start, CONFIRMATION);
    observations.record(&node("m", "a"), &answer(Lookup::NotFound, 0), start + Duration::from_secs(3), CONFIRMATION);
    assert_eq!(observations.due(start, CONFIRMATION), Some(start + CONFIRMATION));
    assert_eq!(observations.due(start + CONFIRMATION, CONFIRMATION), Some(start + Duration::from_secs(33)));
    assert_eq!(observations.due(start + Duration::from_secs(60), CONFIRMATION), None, "stale data is not asked for in a loop");
}
