//! What is kept survives the way through a ConfigMap, and nothing unreadable or outdated is overwritten.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use serde_json::json;

use super::*;
use crate::cluster::scripted::ApiServer;

pub(super) const MAPS: &str = "/api/v1/namespaces/kube-system/configmaps";
pub(super) const MAP: &str = "/api/v1/namespaces/kube-system/configmaps/ccm-core-simulated";
const WINDOW: Duration = Duration::from_mins(10);

pub(super) fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + minute * 60).unwrap()
}

pub(super) fn deletion(node: &str, minute: i64, cause: Cause) -> Deletion {
    Deletion { node: node.to_owned(), uid: format!("uid-{node}"), zone: Some("a".to_owned()), at: at(minute), cause }
}

fn trip(id: &str) -> Trip {
    Trip {
        id: id.to_owned(),
        rule: Rule::Budget,
        scope: Scope::Zone("a".to_owned()),
        reason: "a test".to_owned(),
        count: 1,
        nodes: BTreeMap::from([("n1".to_owned(), "uid-n1".to_owned())]),
        at: at(0),
    }
}

pub(super) fn full() -> State {
    State {
        accepted_identity: Some("sim/project/eu".to_owned()),
        epoch: 7,
        deletions: Some(vec![deletion("n0", 0, Cause::Absent)]),
        budget_spent_until: Some(at(5)),
        trips: vec![trip("zone-a-1"), Trip { scope: Scope::Cluster, ..trip("cluster-1") }],
        releases: vec![Release { id: "zone-a-0".to_owned(), at: at(0), nodes: BTreeMap::new() }],
        ..State::default()
    }
}

fn store(api: &ApiServer) -> StateStore {
    StateStore::new(api.client(), "simulated")
}

async fn loaded(api: &ApiServer) -> State {
    store(api).load().await.unwrap().expect("nothing was saved").into_state().unwrap()
}

#[tokio::test]
async fn a_state_survives_being_saved_and_loaded() {
    let api = ApiServer::default();
    assert_eq!(store(&api).load().await.unwrap(), None);
    let mut state = full();
    store(&api).save(&mut state).await.unwrap();
    assert_eq!(loaded(&api).await, state);
    assert_eq!(api.writes(), [format!("POST {MAPS}")]);
    state.trips.clear();
    state.budget_spent_until = None;
    store(&api).save(&mut state).await.unwrap();
    assert_eq!(loaded(&api).await, state);
    assert_eq!(state.subject().unwrap().name, "ccm-core-simulated");
}

#[tokio::test]
async fn people_can_read_and_mend_it() {
    let api = ApiServer::default();
    store(&api).save(&mut full()).await.unwrap();
    let data = api.object(MAP).unwrap()["data"].clone();
    assert_eq!(data["cloud-identity"], "sim/project/eu");
    assert_eq!(data["epoch"], "7");
    assert!(data["breakers"].as_str().unwrap().contains(r#""scope":{"zone":"a"}"#));
    assert!(data["breakers"].as_str().unwrap().contains(r#""scope":"cluster""#));
    assert!(data["deletions"].as_str().unwrap().contains(r#""cause":"absent""#));
}

#[tokio::test]
async fn a_state_that_changed_meanwhile_is_not_overwritten() {
    let api = ApiServer::default();
    let mut first = full();
    store(&api).save(&mut first).await.unwrap();
    let mut second = loaded(&api).await;
    store(&api).save(&mut first).await.unwrap();
    assert!(matches!(store(&api).save(&mut second).await, Err(StateError::Conflict)));
    assert!(matches!(store(&api).save(&mut State::default()).await, Err(StateError::Conflict)), "creating it anew");
    api.remove(MAP);
    assert!(matches!(store(&api).save(&mut first).await, Err(StateError::Conflict)), "after somebody deleted it");
}

#[tokio::test]
async fn what_others_keep_in_the_config_map_stays() {
    let api = ApiServer::default();
    let metadata = json!({ "name": "ccm-core-simulated", "uid": "u", "annotations": { "theirs": "1" } });
    api.put(MAP, json!({ "metadata": metadata, "data": { "notes": "ours" } }));
    let mut state = loaded(&api).await;
    state.epoch = 3;
    store(&api).save(&mut state).await.unwrap();
    let object = api.object(MAP).unwrap();
    assert_eq!(object["data"]["notes"], "ours");
    assert_eq!(object["metadata"]["annotations"]["theirs"], "1");
}

#[tokio::test]
async fn an_unreadable_value_is_named_and_hides_nothing_else() {
    let values =
        [("epoch", "many"), ("deletions", "[{]"), ("budget-spent-until", "soon"), ("breakers", "{}"), ("releases", "[1]")];
    for (key, value) in values {
        let api = ApiServer::default();
        let data = json!({ "cloud-identity": "here", key: value });
        api.put(MAP, json!({ "metadata": { "name": "ccm-core-simulated" }, "data": data }));
        let stored = store(&api).load().await.unwrap().unwrap();
        assert_eq!((stored.accepted_identity.as_deref(), stored.epoch.is_err()), (Some("here"), key == "epoch"));
        let error = stored.into_state().unwrap_err();
        assert_eq!(error.key, key);
        assert!(error.to_string().contains("repair it, or remove the key"), "{error}");
    }
}

#[test]
fn a_lost_history_counts_as_spent_and_a_first_installation_does_not() {
    for (first_install, until) in [(true, None), (false, Some(at(10)))] {
        let mut state = State::default();
        state.begin_history(first_install, at(0), WINDOW);
        assert_eq!((state.deletions.as_deref(), state.budget_spent_until), (Some([].as_slice()), until));
    }
    let mut state = full();
    state.begin_history(false, at(100), WINDOW);
    assert_eq!(state, full(), "a history that is there is left alone");
}

#[test]
fn pruning_forgets_what_is_older_than_the_window_and_no_more() {
    let mut state = full();
    state.deletions =
        Some(vec![deletion("old", 0, Cause::Absent), deletion("young", 1, Cause::Absent), deletion("ahead", 99, Cause::Absent)]);
    state.prune(at(10), WINDOW);
    let left: Vec<_> = state.deletions.iter().flatten().map(|deletion| (deletion.node.as_str(), deletion.at)).collect();
    assert_eq!(left, [("young", at(1)), ("ahead", at(10))]);
    assert_eq!((state.budget_spent_until, state.releases.len(), state.trips.len()), (None, 0, 2));
}

#[test]
fn deletions_that_count_are_kept_whatever_else_was_deleted() {
    let mut state = State::default();
    state.record([deletion("counted", 0, Cause::Absent)]);
    state.record((0..5000).map(|index| deletion(&format!("n{index}"), 0, Cause::Deleted)));
    state.prune(at(1), WINDOW);
    let history = state.deletions.unwrap();
    assert_eq!((history.len(), history[0].node.as_str()), (501, "counted"));
    assert_eq!(history[500].node, "n4999", "the newest of the others");
}

#[test]
fn a_second_attempt_at_one_object_is_one_deletion() {
    let mut state = State::default();
    state.record([deletion("n", 0, Cause::Absent)]);
    state.record([deletion("n", 3, Cause::Absent)]);
    assert_eq!(state.deletions, Some(vec![deletion("n", 3, Cause::Absent)]));
}

#[test]
fn only_the_id_of_a_breaker_that_holds_releases_it() {
    let mut state = full();
    for (request, released) in [(None, None), (Some("zone-a-0"), None), (Some("zone-a-1"), Some("zone-a-1"))] {
        state.release_request = request.map(str::to_owned);
        assert_eq!(state.take_release(at(1)).map(|trip| trip.id).as_deref(), released);
    }
    assert_eq!(state.release_request, None);
    assert_eq!(state.trips.iter().map(|trip| trip.id.as_str()).collect::<Vec<_>>(), ["cluster-1"]);
    assert_eq!(state.releases.last().unwrap(), &Release { id: "zone-a-1".to_owned(), at: at(1), nodes: trip("").nodes });
}

#[tokio::test]
async fn the_annotation_is_read_and_removed_once_it_is_carried_out() {
    let api = ApiServer::default();
    store(&api).save(&mut full()).await.unwrap();
    let mut object = api.object(MAP).unwrap();
    object["metadata"]["annotations"] = json!({ names::annotations::RELEASE_BREAKER: "cluster-1" });
    api.put(MAP, object);
    let mut state = loaded(&api).await;
    assert_eq!(state.take_release(at(1)).unwrap().id, "cluster-1");
    store(&api).save(&mut state).await.unwrap();
    assert_eq!(loaded(&api).await, state);
    assert_eq!(api.object(MAP).unwrap()["metadata"]["annotations"], json!({}));
}
