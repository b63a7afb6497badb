//! A ConfigMap that somebody damages under a leader: who gets to see it, what is written over what, and who is told.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use http::Method;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::super::tests::{MAP, MAPS, deletion};
use super::super::{Cause, Rule, Scope, State, Trip};
use super::*;
use crate::cluster::gate::tests::{Open, gate};
use crate::cluster::scripted::ApiServer;

/// What somebody does to the ConfigMap.
type Damaging = Box<dyn Fn(&Scenario)>;

struct Scenario {
    api: ApiServer,
    open: Open,
    gate: Gate,
    events: Events,
    notes: mpsc::Receiver<Event>,
}

impl Scenario {
    fn new() -> Self {
        let (open, gate) = gate();
        let (events, notes) = Events::queue(100);
        Self { api: ApiServer::default(), open, gate, events, notes }
    }

    fn raw(&self) -> StateStore {
        StateStore::new(self.api.client(), "simulated")
    }

    /// A term of epoch 1, which is the gate's.
    async fn begin(&self) -> TermStore {
        let beginning = Beginning { identity: "here".to_owned(), epoch: 1, worked_before: false, set_back: false };
        let stored = self.raw().load().await.unwrap();
        TermStore::begin(self.raw(), stored, beginning, self.gate.clone(), self.events.clone()).await.unwrap()
    }

    /// One with a deletion in its history.
    async fn begun(&self) -> (TermStore, State) {
        let store = self.begin().await;
        let mut state = store.load().await.unwrap();
        state.record([deletion("n", 0, Cause::Absent)]);
        store.save(&mut state).await.unwrap();
        (store, state)
    }

    fn edit(&self, edit: impl FnOnce(&mut Value)) {
        let mut map = self.api.object(MAP).unwrap();
        edit(&mut map);
        self.api.put(MAP, map);
    }

    fn told(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.notes.try_recv().ok()).map(|note| format!("{}: {}", note.reason, note.message)).collect()
    }
}

#[tokio::test]
async fn a_term_writes_its_identity_and_epoch_before_it_begins_and_begins_no_history() {
    let scenario = Scenario::new();
    scenario.begin().await;
    let data = scenario.api.object(MAP).unwrap()["data"].clone();
    assert_eq!((&data["cloud-identity"], &data["epoch"], &data["deletions"]), (&json!("here"), &json!("1"), &Value::Null));
    assert_eq!(scenario.api.writes(), [format!("POST {MAPS}")]);
}

#[tokio::test]
async fn a_deleted_emptied_or_set_back_state_is_never_handed_out_and_comes_back_whole() {
    let older = json!({ "cloud-identity": "old", "epoch": "0", "deletions": "[]", "breakers": "[]", "releases": "[]" });
    let damages: [(&str, Damaging); 4] = [
        ("was deleted", Box::new(|it| it.api.remove(MAP))),
        ("cloud-identity, epoch, deletions", Box::new(|it| it.edit(|map| drop(map.as_object_mut().unwrap().remove("data"))))),
        ("cloud-identity, epoch, deletions", Box::new(move |it| it.edit(|map| map["data"] = older.clone()))),
        ("deletions", Box::new(|it| it.edit(|map| drop(map["data"].as_object_mut().unwrap().remove("deletions"))))),
    ];
    for (words, damage) in damages {
        let mut scenario = Scenario::new();
        let (store, state) = scenario.begun().await;
        let whole = scenario.api.object(MAP).unwrap()["data"].clone();
        damage(&scenario);
        let loaded = store.load().await.unwrap();
        assert_eq!(State { object: None, ..loaded.clone() }, State { object: None, ..state }, "{words}");
        assert_eq!(scenario.api.object(MAP).unwrap()["data"], whole, "{words}");
        let told = scenario.told();
        assert!(told.len() == 1 && told[0].starts_with("StateRestored") && told[0].contains(words), "{words}: {told:?}");
        assert_eq!(store.load().await.unwrap(), loaded, "and is whole from then on");
        assert_eq!(scenario.told(), Vec::<String>::new(), "{words}");
    }
}

#[tokio::test]
async fn a_release_that_comes_with_damage_survives_it() {
    let scenario = Scenario::new();
    let (store, _) = scenario.begun().await;
    scenario.edit(|map| {
        map["data"] = json!({});
        map["metadata"]["annotations"] = json!({ names::annotations::RELEASE_BREAKER: "zone-a-1" });
    });
    assert_eq!(store.load().await.unwrap().release_request.as_deref(), Some("zone-a-1"));
    assert_eq!(scenario.api.object(MAP).unwrap()["metadata"]["annotations"][names::annotations::RELEASE_BREAKER], "zone-a-1");
}

#[tokio::test]
async fn what_a_later_leader_wrote_is_neither_handed_out_nor_written_over() {
    let scenario = Scenario::new();
    let (store, _) = scenario.begun().await;
    scenario.edit(|map| map["data"] = json!({ "epoch": "2" }));
    let before = scenario.api.writes().len();
    assert!(matches!(store.load().await, Err(StateError::Superseded { stored: 2, epoch: 1 })));
    assert_eq!(scenario.api.writes().len(), before);
}

#[tokio::test]
async fn without_the_lease_or_under_a_later_term_of_our_own_nothing_is_restored() {
    let mut scenario = Scenario::new();
    let (store, _) = scenario.begun().await;
    scenario.api.remove(MAP);
    let term = scenario.open.term.borrow().clone().unwrap();
    for other in [None, Some(crate::model::term::Term { epoch: 2, ..term })] {
        scenario.open.term.send_replace(other);
        assert!(matches!(store.load().await, Err(StateError::NotLeading)));
    }
    assert_eq!((scenario.api.count(MAP), scenario.told()), (0, vec![]));
}

#[tokio::test]
async fn a_provider_that_is_away_holds_up_no_restoring() {
    let scenario = Scenario::new();
    let (store, _) = scenario.begun().await;
    scenario.open.provider.send_replace(crate::provider::ProviderState::Unusable { message: "away".to_owned() });
    scenario.api.remove(MAP);
    store.load().await.unwrap();
    assert_eq!(scenario.api.count(MAP), 1);
}

#[tokio::test]
async fn a_race_with_somebody_elses_write_is_run_again() {
    let scenario = Scenario::new();
    let (store, state) = scenario.begun().await;
    scenario.edit(|map| map["data"] = json!({}));
    scenario.api.fail_once(Method::PATCH, MAP, 409);
    assert_eq!(store.load().await.unwrap().deletions, state.deletions);
    scenario.api.remove(MAP);
    scenario.api.fail_once(Method::POST, MAPS, 409);
    assert_eq!(store.load().await.unwrap().deletions, state.deletions);
}

#[tokio::test]
async fn a_history_that_cannot_be_read_is_left_to_a_person_while_identity_and_epoch_are_kept() {
    let mut scenario = Scenario::new();
    let (store, _) = scenario.begun().await;
    scenario.edit(|map| map["data"] = json!({ "deletions": "oops" }));
    assert!(matches!(store.load().await, Err(StateError::Unreadable(error)) if error.key == "deletions"));
    let data = scenario.api.object(MAP).unwrap()["data"].clone();
    assert_eq!(data, json!({ "cloud-identity": "here", "epoch": "1", "deletions": "oops" }));
    assert_eq!(scenario.told().len(), 1);
    let next = scenario.begin().await;
    assert!(next.load().await.is_err(), "the next term begins, and still deletes nothing");
    scenario.edit(|map| drop(map["data"].as_object_mut().unwrap().remove("deletions")));
    assert!(next.load().await.is_ok(), "removing the key begins it anew");
    assert!(store.load().await.unwrap().deletions.is_some(), "who knows the history restores it");
}

#[tokio::test]
async fn a_failed_save_that_was_carried_out_is_not_undone() {
    let mut scenario = Scenario::new();
    let (store, mut state) = scenario.begun().await;
    state.record([deletion("m", 1, Cause::Absent)]);
    let mut carried_out = state.clone();
    scenario.api.fail_once(Method::PATCH, MAP, 500);
    assert!(store.save(&mut state).await.is_err());
    scenario.raw().save(&mut carried_out).await.unwrap();
    assert_eq!(store.load().await.unwrap().deletions, carried_out.deletions);
    assert_eq!(scenario.told(), Vec::<String>::new());
}

#[tokio::test]
async fn a_copy_that_was_put_back_while_nobody_led_brings_its_breakers_and_no_history() {
    let scenario = Scenario::new();
    let (store, mut state) = scenario.begun().await;
    let trip =
        Trip::new(Rule::Budget, Scope::Cluster, "a test".to_owned(), [("n", "u")], state.deletions.as_ref().unwrap()[0].at);
    state.trips = vec![trip];
    store.save(&mut state).await.unwrap();
    let beginning = Beginning { identity: "here".to_owned(), epoch: 9, worked_before: true, set_back: true };
    let stored = scenario.raw().load().await.unwrap();
    let next = TermStore::begin(scenario.raw(), stored, beginning, scenario.gate.clone(), scenario.events.clone()).await.unwrap();
    let begun = next.load().await.unwrap();
    assert_eq!((begun.deletions, begun.trips.len(), begun.epoch), (None, 1, 9));
    assert!(next.worked_before(), "so that the budget counts as spent");
}
