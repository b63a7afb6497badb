//! The view follows the watch, and tells of just what changes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::pin::pin;

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};

use super::*;
use crate::cluster::scripted::model;

fn raw(name: &str, version: &str) -> Value {
    json!({ "metadata": { "name": name, "uid": name, "resourceVersion": version } })
}

fn node(name: &str, version: &str) -> core::Node {
    serde_json::from_value(raw(name, version)).unwrap()
}

fn list(view: &Nodes, synced: &watch::Sender<bool>, nodes: &[(&str, &str)]) {
    let mut shared = view.shared.write();
    shared.apply(watcher::Event::Init, synced);
    for (name, version) in nodes {
        shared.apply(watcher::Event::InitApply(node(name, version)), synced);
    }
    shared.apply(watcher::Event::InitDone, synced);
}

fn told(names: &mut mpsc::UnboundedReceiver<String>) -> Vec<String> {
    let mut told: Vec<_> = std::iter::from_fn(|| names.try_recv().ok()).collect();
    told.sort();
    told
}

#[test]
fn a_list_is_believed_only_when_it_is_complete() {
    let (view, synced) = Nodes::empty();
    view.shared.write().apply(watcher::Event::InitApply(node("a", "1")), &synced);
    assert!(view.list().is_empty() && !*view.synced.borrow());
    view.shared.write().apply(watcher::Event::InitDone, &synced);
    assert!(view.get("a").is_some() && *view.synced.borrow());
}

#[test]
fn a_list_that_was_broken_off_leaves_nothing_behind() {
    let (view, synced) = Nodes::empty();
    view.shared.write().apply(watcher::Event::InitApply(node("ghost", "1")), &synced);
    list(&view, &synced, &[("a", "1")]);
    assert!(view.get("ghost").is_none());
}

#[test]
fn a_new_list_tells_of_what_came_changed_or_went() {
    let (view, synced) = Nodes::empty();
    list(&view, &synced, &[("same", "1"), ("changed", "1"), ("gone", "1")]);
    let mut names = view.subscribe();
    assert_eq!(told(&mut names), ["changed", "gone", "same"]);
    list(&view, &synced, &[("same", "1"), ("changed", "2"), ("new", "3")]);
    assert_eq!(told(&mut names), ["changed", "gone", "new"]);
    assert!(view.get("gone").is_none());
}

#[test]
fn every_subscriber_is_told_and_one_that_left_does_no_harm() {
    let view = Nodes::fixed([model(&raw("a", "1"))]);
    let mut first = view.subscribe();
    drop(view.subscribe());
    view.show(model(&raw("b", "2")));
    view.hide("a");
    assert_eq!(told(&mut first), ["a", "a", "b"]);
    assert_eq!(view.shared.read().subscribers.len(), 1);
}

#[tokio::test]
async fn the_watch_fills_the_view_from_the_api_server() {
    let (service, handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
    let (view, watching) = Nodes::watch(Client::new(service, "default"));
    let watching = tokio::spawn(watching);
    let mut names = view.subscribe();
    let mut handle = pin!(handle);
    let (_, respond) = handle.next_request().await.expect("a list was expected");
    let list =
        json!({ "kind": "NodeList", "apiVersion": "v1", "metadata": { "resourceVersion": "5" }, "items": [raw("a", "4")] });
    respond.send_response(Response::new(Body::from(list.to_string().into_bytes())));
    view.synced().await;
    assert_eq!((names.recv().await.as_deref(), view.get("a").is_some()), (Some("a"), true));
    let (request, respond) = handle.next_request().await.expect("a watch was expected");
    assert!(request.uri().query().unwrap().contains("resourceVersion=5"));
    let mut added = raw("b", "6");
    added["kind"] = json!("Node");
    added["apiVersion"] = json!("v1");
    let event = format!("{}\n", json!({ "type": "ADDED", "object": added }));
    respond.send_response(Response::new(Body::from(event.into_bytes())));
    assert_eq!((names.recv().await.as_deref(), view.get("b").is_some()), (Some("b"), true));
    watching.abort();
}
