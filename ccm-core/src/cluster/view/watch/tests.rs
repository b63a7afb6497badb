//! What the watch makes of good answers and of bad ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod server;

use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use self::server::{Answer, Server, bookmark, end, event, status};
use super::*;
use crate::cluster::nodes::Nodes;
use crate::cluster::wire;
use crate::model::service::Service;

fn raw(name: &str, version: &str) -> Value {
    json!({ "metadata": { "name": name, "uid": name, "resourceVersion": version }, "status": { "images": [{ "names": ["i"] }] } })
}

/// One that has a field of a shape that is not known.
fn strange(name: &str, version: &str) -> Value {
    let mut node = raw(name, version);
    node["spec"] = json!({ "unschedulable": "perhaps" });
    node
}

fn names(view: &Nodes) -> Vec<String> {
    let mut names: Vec<_> = view.list().iter().map(|node| node.name.clone()).collect();
    names.sort();
    names
}

fn version(view: &Nodes, name: &str) -> String {
    view.get(name).map(|node| node.resource_version.clone()).unwrap_or_default()
}

/// The next so many keys that the view tells of.
async fn told(keys: &mut UnboundedReceiver<String>, count: usize) -> Vec<String> {
    let mut told = Vec::new();
    for _ in 0..count {
        told.push(keys.recv().await.expect("the view is there"));
    }
    told.sort();
    told
}

/// Whether this query is for a plain watch from there.
fn goes_on_from(query: &str, version: &str) -> bool {
    query.contains("watch=true") && !query.contains("sendInitialEvents") && query.ends_with(&format!("resourceVersion={version}"))
}

fn lists(query: &str) -> bool {
    query.contains("sendInitialEvents=true") || query.contains("limit=500")
}

#[tokio::test(start_paused = true)]
async fn a_list_is_streamed_and_the_watch_goes_on_from_its_end() {
    let changes = [event("ADDED", raw("c", "6")), event("MODIFIED", raw("a", "7")), event("DELETED", raw("b", "8"))];
    let answers = [Answer::streamed([raw("a", "4"), raw("b", "3")], "5"), Answer::events(changes).open()];
    let (server, view) = Server::watched(answers);
    let mut keys = view.subscribe();
    let query = server.query(0).await;
    for part in ["watch=true", "sendInitialEvents=true", "resourceVersionMatch=NotOlderThan", "allowWatchBookmarks=true"] {
        assert!(query.contains(part), "{part} in {query}");
    }
    assert!(query.ends_with("resourceVersion="), "the newest that there is, not that of a cache: {query}");
    view.synced().await;
    assert!(goes_on_from(&server.query(1).await, "5"));
    assert_eq!(told(&mut keys, 5).await, ["a", "a", "b", "b", "c"]);
    assert_eq!((names(&view), version(&view, "a").as_str()), (vec!["a".to_owned(), "c".to_owned()], "7"));
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_is_complete_only_with_the_bookmark_that_says_so() {
    let events = [event("ADDED", raw("a", "4")), bookmark("5")];
    let (server, view) = Server::watched([Answer::events(events), Answer::page([raw("a", "4"), raw("b", "5")], "6", "")]);
    assert!(server.query(1).await.contains("limit=500"), "where the end is missing, pages are tried");
    view.synced().await;
    assert_eq!(names(&view), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn where_lists_are_not_streamed_they_are_read_by_pages_at_once() {
    for code in [400, 404, 422] {
        let began = Instant::now();
        let pages = [Answer::page([raw("a", "1")], "7", "token"), Answer::page([raw("b", "2")], "7", "")];
        let (server, view) = Server::watched([Answer::refusal(code)].into_iter().chain(pages));
        view.synced().await;
        let (first, second) = (server.query(1).await, server.query(2).await);
        assert!(first.contains("limit=500") && !first.contains("resourceVersion"), "{first}");
        assert!(second.contains("limit=500") && second.contains("continue=token"), "{second}");
        assert!(goes_on_from(&server.query(3).await, "7"));
        assert_eq!((names(&view), began.elapsed()), (vec!["a".to_owned(), "b".to_owned()], Duration::ZERO));
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_any_request_is_waited_out() {
    for code in [403, 429, 500] {
        let began = Instant::now();
        let (server, view) = Server::watched([Answer::refusal(code), Answer::page([raw("a", "1")], "7", "")]);
        view.synced().await;
        assert!(began.elapsed() >= PAUSES.0, "{code}");
        assert!(server.query(1).await.contains("limit=500"), "the other way is tried, too");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_has_expired_begins_a_new_list_without_what_the_old_one_brought() {
    let (first, second) = (Answer::page([raw("ghost", "1")], "7", "token"), Answer::page([raw("a", "8")], "9", ""));
    let answers = [Answer::refusal(422), first, Answer::refusal(410), Answer::refusal(422), second];
    let (server, view) = Server::watched(answers);
    view.synced().await;
    assert_eq!(names(&view), ["a"]);
    assert!(!server.query(4).await.contains("continue"));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_cut_is_resumed_after_the_last_event() {
    let half = r#"{"type":"MODIFIED","object":{"metadata":{"na"#;
    let modified = |version| Answer::events([event("MODIFIED", raw("a", version))]);
    let answers = [
        Answer::streamed([raw("a", "1")], "5"),
        modified("6").cut(),
        modified("7").and(half),
        modified("8").and(half).cut(),
        Answer::events([bookmark("90")]),
    ];
    let (server, view) = Server::watched(answers);
    for (number, version) in ["5", "6", "7", "8", "90"].iter().enumerate() {
        let query = server.query(number + 1).await;
        assert!(goes_on_from(&query, version), "{version}: {query}");
    }
    assert_eq!(version(&view, "a"), "8");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_cut_changes_nothing_and_the_next_tells_once_of_what_went_meanwhile() {
    let (server, view) = Server::watched([
        Answer::streamed([raw("stays", "1"), raw("goes", "2")], "5"),
        Answer::refusal(410),
        Answer::events([event("ADDED", raw("stays", "1"))]).cut(),
        Answer::refusal(500),
        Answer::streamed([raw("stays", "1")], "9"),
    ]);
    view.synced().await;
    let (stays, mut keys) = (view.get("stays").unwrap(), view.subscribe());
    assert_eq!(told(&mut keys, 2).await, ["goes", "stays"]);
    server.query(3).await;
    assert_eq!(names(&view), ["goes", "stays"], "the cut list is forgotten");
    assert!(goes_on_from(&server.query(5).await, "9"));
    assert_eq!((told(&mut keys, 1).await, keys.try_recv().is_err()), (vec!["goes".to_owned()], true));
    assert!(Arc::ptr_eq(&stays, &view.get("stays").unwrap()), "what is as it was is kept once");
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_too_old_leads_to_a_new_list() {
    let expired = [Answer::refusal(410), Answer::refusal(504), Answer::events([event("ERROR", status(410))])];
    for answer in expired {
        let (server, view) = Server::watched([Answer::streamed([raw("a", "1")], "5"), answer, Answer::streamed([], "6")]);
        let mut keys = view.subscribe();
        assert!(lists(&server.query(2).await));
        assert_eq!(told(&mut keys, 2).await, ["a", "a"], "it came and went");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_moment_leads_to_no_new_list_but_to_a_pause() {
    let errors = [Answer::refusal(500), Answer::refusal(429), Answer::events([event("ERROR", status(500))])];
    for answer in errors {
        let (server, _view) = Server::watched([Answer::streamed([raw("a", "1")], "5"), answer]);
        server.query(1).await;
        let began = Instant::now();
        assert!(goes_on_from(&server.query(2).await, "5"));
        assert!(began.elapsed() >= PAUSES.0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_at_once_is_not_begun_again_without_a_pause() {
    let answers = std::iter::repeat_with(|| Answer::events([])).take(8);
    let (server, _view) = Server::watched([Answer::streamed([], "5")].into_iter().chain(answers));
    server.query(1).await;
    let began = Instant::now();
    assert!(goes_on_from(&server.query(9).await, "5"));
    assert!(began.elapsed() > Duration::from_secs(30), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_not_understood_leads_to_a_new_list() {
    for line in ["?\n", "{}\n", "{\"type\":\"ADDED\",\"object\":{}}\n"] {
        let broken = Answer::events([event("MODIFIED", raw("a", "6"))]).and(line).open();
        let list = Answer::streamed([raw("a", "6"), raw("b", "7")], "8");
        let (server, view) = Server::watched([Answer::streamed([raw("a", "1")], "5"), broken, list]);
        assert!(lists(&server.query(2).await), "{line}");
        server.query(3).await;
        assert_eq!(names(&view), ["a", "b"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_stays_as_it_was_known_and_does_not_stop_the_others() {
    let events = [
        event("MODIFIED", strange("a", "6")),
        event("ADDED", strange("new", "7")),
        event("MODIFIED", raw("b", "8")),
        event("DELETED", strange("gone", "9")),
    ];
    let known = [raw("a", "1"), raw("b", "2"), raw("gone", "3")];
    let (server, view) = Server::watched([Answer::streamed(known, "5"), Answer::events(events), Answer::events([]).open()]);
    assert!(goes_on_from(&server.query(2).await, "9"), "it counts all the same");
    assert_eq!(names(&view), ["a", "b"], "only a deletion removes it");
    assert_eq!((version(&view, "a").as_str(), version(&view, "b").as_str()), ("1", "8"));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_is_not_missing_from_a_new_list() {
    let list = || [strange("a", "6"), strange("new", "7"), raw("b", "8")];
    let streamed = vec![Answer::streamed(list(), "9")];
    let paged = vec![Answer::refusal(422), Answer::page(list(), "9", "")];
    for again in [streamed, paged] {
        let before = [Answer::streamed([raw("a", "1"), raw("b", "2"), raw("gone", "3")], "5"), Answer::refusal(410)];
        let last = 2 + again.len();
        let (server, view) = Server::watched(before.into_iter().chain(again));
        assert!(goes_on_from(&server.query(last).await, "9"));
        assert_eq!(names(&view), ["a", "b"]);
        assert_eq!((version(&view, "a").as_str(), version(&view, "b").as_str()), ("1", "8"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_can_be_read_again_is_shown() {
    let events = [event("MODIFIED", strange("a", "6")), event("MODIFIED", raw("a", "7"))];
    let (server, view) = Server::watched([Answer::events([end("5")]), Answer::events(events)]);
    assert!(goes_on_from(&server.query(2).await, "7"));
    assert_eq!(version(&view, "a"), "7");
}

#[test]
fn what_cannot_be_read_has_the_key_that_it_is_viewed_by() {
    let object = json!({ "metadata": { "namespace": "shop", "name": "web" } });
    let bare: Bare = serde_json::from_value(object.clone()).unwrap();
    let service: wire::service::Service = serde_json::from_value(object).unwrap();
    assert_eq!(bare.key(), Service::from_object(service).key());
}
