//! The view follows the watch, and tells of just what changes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::pin::pin;

use http::{Request, Response};
use k8s_openapi::api::core::v1 as core;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;
use crate::cluster::nodes::Nodes;
use crate::cluster::scripted::model;
use crate::cluster::services::Services;
use crate::names;

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

/// A Service as the API server has it.
fn service(name: &str, type_: &str, finalizer: bool) -> core::Service {
    let finalizers = if finalizer { json!([names::LOAD_BALANCER_FINALIZER]) } else { json!([]) };
    let metadata = json!({ "namespace": "shop", "name": name, "uid": name, "finalizers": finalizers });
    serde_json::from_value(json!({ "metadata": metadata, "spec": { "type": type_ } })).unwrap()
}

#[test]
fn services_that_have_nothing_to_do_with_load_balancers_are_not_kept() {
    let (view, synced) = Services::empty();
    let mut keys = view.subscribe();
    let mut left = service("left", "ClusterIP", false);
    let condition = json!([{
        "type": names::LOAD_BALANCER_READY, "status": "True", "reason": "R", "message": "",
        "lastTransitionTime": "2024-05-06T07:08:09Z",
    }]);
    left.status = Some(serde_json::from_value(json!({ "conditions": condition })).unwrap());
    let all =
        [service("plain", "ClusterIP", false), service("wants", "LoadBalancer", false), service("had", "NodePort", true), left];
    let mut shared = view.shared.write();
    all.into_iter().for_each(|service| shared.apply(watcher::Event::InitApply(service), &synced));
    shared.apply(watcher::Event::InitDone, &synced);
    shared.apply(watcher::Event::Apply(service("another", "ClusterIP", false)), &synced);
    shared.apply(watcher::Event::Delete(service("another", "ClusterIP", false)), &synced);
    drop(shared);
    assert_eq!(told(&mut keys), ["shop/had", "shop/left", "shop/wants"]);
    assert_eq!(view.list().len(), 3);
}

#[test]
fn a_service_that_is_no_load_balancer_any_more_is_seen_as_what_it_has_become() {
    let (view, synced) = Services::empty();
    let list = |services: [core::Service; 1]| {
        let mut shared = view.shared.write();
        services.into_iter().for_each(|service| shared.apply(watcher::Event::InitApply(service), &synced));
        shared.apply(watcher::Event::InitDone, &synced);
    };
    list([service("web", "LoadBalancer", true)]);
    let mut keys = view.subscribe();
    view.shared.write().apply(watcher::Event::Apply(service("web", "ClusterIP", false)), &synced);
    assert_eq!(told(&mut keys), ["shop/web", "shop/web"]);
    assert!(!view.get("shop/web").unwrap().is_load_balancer, "by the watch");
    list([service("web", "ClusterIP", false)]);
    assert!(!view.get("shop/web").unwrap().is_load_balancer, "by a new list");
    view.shared.write().apply(watcher::Event::Delete(service("web", "ClusterIP", false)), &synced);
    assert_eq!((told(&mut keys), view.list().len()), (vec!["shop/web".to_owned()], 0));
}

#[tokio::test]
async fn the_watch_fills_the_view_from_the_api_server() {
    let (service, handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
    let (view, watching) = Nodes::watch(Client::new(service, "default"), Presence::default());
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
