//! The view follows the watch, and tells of just what changes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use serde_json::{Value, json};

use super::*;
use crate::cluster::nodes::Nodes;
use crate::cluster::scripted::{model, service_model};
use crate::cluster::services::Services;
use crate::model::node::Node;
use crate::model::service::Service;
use crate::names;

fn raw(name: &str, version: &str) -> Value {
    json!({ "metadata": { "name": name, "uid": name, "resourceVersion": version } })
}

fn node(name: &str, version: &str) -> Node {
    model(&raw(name, version))
}

fn list<T: Viewed>(view: &View<T>, objects: impl IntoIterator<Item = T>) {
    let mut shared = view.shared.write();
    shared.begin();
    objects.into_iter().for_each(|object| shared.arrive(object));
    shared.replace();
}

fn told(names: &mut mpsc::UnboundedReceiver<String>) -> Vec<String> {
    let mut told: Vec<_> = std::iter::from_fn(|| names.try_recv().ok()).collect();
    told.sort();
    told
}

#[test]
fn a_list_is_believed_only_when_it_is_complete() {
    let (view, _synced) = Nodes::empty();
    view.shared.write().arrive(node("a", "1"));
    assert!(view.list().is_empty());
    view.shared.write().replace();
    assert!(view.get("a").is_some());
}

#[test]
fn a_list_that_was_broken_off_leaves_nothing_behind() {
    let (view, _synced) = Nodes::empty();
    view.shared.write().arrive(node("ghost", "1"));
    list(&view, [node("a", "1")]);
    assert!(view.get("ghost").is_none());
}

#[test]
fn a_new_list_tells_of_what_came_changed_or_went() {
    let (view, _synced) = Nodes::empty();
    list(&view, [node("same", "1"), node("changed", "1"), node("gone", "1")]);
    let mut names = view.subscribe();
    assert_eq!(told(&mut names), ["changed", "gone", "same"]);
    list(&view, [node("same", "1"), node("changed", "2"), node("new", "3")]);
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
fn raw_service(name: &str, kind: &str, finalizer: bool) -> Value {
    let finalizers = if finalizer { json!([names::LOAD_BALANCER_FINALIZER]) } else { json!([]) };
    let metadata = json!({ "namespace": "shop", "name": name, "uid": name, "finalizers": finalizers });
    json!({ "metadata": metadata, "spec": { "type": kind } })
}

fn service(name: &str, kind: &str, finalizer: bool) -> Service {
    service_model(&raw_service(name, kind, finalizer))
}

#[test]
fn services_that_have_nothing_to_do_with_load_balancers_are_not_kept() {
    let (view, _synced) = Services::empty();
    let mut keys = view.subscribe();
    let mut left = raw_service("left", "ClusterIP", false);
    left["status"]["conditions"] = json!([{ "type": names::LOAD_BALANCER_READY, "status": "True" }]);
    let plain = service("plain", "ClusterIP", false);
    list(&view, [plain, service("wants", "LoadBalancer", false), service("had", "NodePort", true), service_model(&left)]);
    view.show(service("another", "ClusterIP", false));
    view.hide("shop/another");
    assert_eq!(told(&mut keys), ["shop/had", "shop/left", "shop/wants"]);
    assert_eq!(view.list().len(), 3);
}

#[test]
fn a_service_that_is_no_load_balancer_any_more_is_seen_as_what_it_has_become() {
    let (view, _synced) = Services::empty();
    list(&view, [service("web", "LoadBalancer", true)]);
    let mut keys = view.subscribe();
    view.show(service("web", "ClusterIP", false));
    assert_eq!(told(&mut keys), ["shop/web", "shop/web"]);
    assert!(!view.get("shop/web").unwrap().is_load_balancer, "by the watch");
    list(&view, [service("web", "ClusterIP", false)]);
    assert!(!view.get("shop/web").unwrap().is_load_balancer, "by a new list");
    view.hide("shop/web");
    assert_eq!((told(&mut keys), view.list().len()), (vec!["shop/web".to_owned()], 0));
}
