//! What is found of the ConfigMap, and what is made of it, case by case.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::super::tests::{at, full};
use super::super::{History, Object, Unreadable};
use super::*;

/// As the leader of epoch 7 last saved it.
fn known() -> Known {
    Known { identity: "sim/project/eu".to_owned(), epoch: 7, state: Some(full()), attempted: None }
}

fn stored(state: State) -> Stored {
    let State { accepted_identity, epoch, deletions, budget_spent_until, trips, releases, release_request, .. } = state;
    let object = Object { name: "map".to_owned(), uid: "uid".to_owned(), resource_version: "9".to_owned() };
    let history = Ok(History { deletions, budget_spent_until, trips, releases });
    Stored { accepted_identity, epoch: Ok(epoch), history, release_request, object }
}

fn unreadable() -> Unreadable {
    Unreadable { key: DELETIONS, problem: "a typo".to_owned() }
}

fn keys(keys: &[&'static str]) -> Finding {
    Finding::Damaged(Damage::Keys(keys.to_vec()))
}

#[test]
fn whatever_is_not_as_the_leader_knows_it_is_found() {
    let release = Some("cluster-1".to_owned());
    for (case, found, finding) in [
        ("untouched", full(), Finding::Whole),
        ("a release asked for", State { release_request: release, ..full() }, Finding::Whole),
        ("emptied", State::default(), keys(&[IDENTITY, EPOCH, DELETIONS, SPENT_UNTIL, BREAKERS, RELEASES])),
        ("another identity", State { accepted_identity: Some("b".to_owned()), ..full() }, keys(&[IDENTITY])),
        ("no identity", State { accepted_identity: None, ..full() }, keys(&[IDENTITY])),
        ("an older epoch", State { epoch: 6, ..full() }, keys(&[EPOCH])),
        ("a later epoch", State { epoch: 8, ..full() }, Finding::Superseded(8)),
        ("another leader of another cloud", State { epoch: 8, ..State::default() }, Finding::Superseded(8)),
        ("an older history", State { deletions: Some(vec![]), ..full() }, keys(&[DELETIONS])),
        ("no history", State { deletions: None, ..full() }, keys(&[DELETIONS])),
        ("a breaker removed by hand", State { trips: vec![], ..full() }, keys(&[BREAKERS])),
        ("the spent budget removed", State { budget_spent_until: None, ..full() }, keys(&[SPENT_UNTIL])),
    ] {
        assert_eq!(inspect(&known(), Some(&stored(found))), finding, "{case}");
    }
    assert_eq!(inspect(&known(), None), Finding::Damaged(Damage::Deleted));
}

#[test]
fn what_cannot_be_read_is_a_persons_unless_it_is_the_terms() {
    let history = Stored { history: Err(unreadable()), ..stored(full()) };
    assert_eq!(inspect(&known(), Some(&history)), Finding::Whole);
    let epoch = Stored { epoch: Err(unreadable()), ..stored(full()) };
    assert_eq!(inspect(&known(), Some(&epoch)), keys(&[EPOCH]));

    let both = Stored { epoch: Err(unreadable()), ..history };
    assert_eq!(inspect(&known(), Some(&both)), keys(&[EPOCH]));
    let Repair::Standing(state) = repair(&known(), Some(both)) else { panic!("the history was written over") };
    assert_eq!((state.accepted_identity.as_deref(), state.epoch), (Some("sim/project/eu"), 7));
}

#[test]
fn a_history_that_was_unreadable_is_taken_once_it_can_be_read() {
    let known = Known { state: None, ..known() };
    let mended = State { deletions: Some(vec![]), ..full() };
    assert_eq!(inspect(&known, Some(&stored(mended.clone()))), Finding::Whole);
    let Repair::Whole(state) = repair(&known, Some(stored(State { epoch: 2, ..mended }))) else { panic!("it can be read") };
    assert_eq!((state.epoch, state.deletions), (7, Some(vec![])));
    let Repair::Whole(state) = repair(&known, None) else { panic!("there is nothing to leave alone") };
    assert_eq!((state.epoch, state.deletions), (7, None), "a lost history: what that means is for the controller");
}

#[test]
fn a_save_that_failed_and_was_carried_out_all_the_same_is_no_damage() {
    let attempted = State { budget_spent_until: Some(at(9)), ..full() };
    let known = Known { attempted: Some(attempted.clone()), ..known() };
    assert_eq!(inspect(&known, Some(&stored(attempted))), Finding::Whole);
    assert_eq!(inspect(&known, Some(&stored(full()))), Finding::Whole);
    assert_ne!(inspect(&known, Some(&stored(State { budget_spent_until: None, ..full() }))), Finding::Whole);
}

#[test]
fn everything_that_was_known_comes_back_and_a_release_that_was_asked_for_stays() {
    let ask = |request: &str| Some(request.to_owned());
    let asked_before = Known { state: Some(State { release_request: ask("before"), ..full() }), ..known() };
    let emptied = || Some(stored(State { release_request: ask("now"), ..State::default() }));
    for (case, known, found, request) in [
        ("deleted", known(), None, None),
        ("deleted with a release", asked_before.clone(), None, ask("before")),
        ("emptied with a release", known(), emptied(), ask("now")),
        ("a release taken back with damage", asked_before, Some(stored(State::default())), None),
    ] {
        let version = found.as_ref().map(|found| found.object.resource_version.clone());
        let Repair::Whole(state) = repair(&known, found) else { panic!("{case}") };
        assert_eq!(state.object.as_ref().map(|object| object.resource_version.clone()), version, "{case}");
        assert_eq!(state, State { release_request: request, object: state.object.clone(), ..full() }, "{case}");
    }
}
