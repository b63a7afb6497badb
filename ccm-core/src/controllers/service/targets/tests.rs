//! Which nodes count, and which changes of them matter: Go's `Test_respectsPredicates`, `TestListWithPredicate` and
//! `Test_shouldSyncUpdatedNode_*`, and our own rules.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod feed;
mod go;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Candidates, EMPTY_TARGET_GRACE, Targets, is_eligible};
use crate::cluster::scripted::model;
use crate::model::node::Node;
use crate::model::provider_info::{KeySelector, ProviderInfo};
use crate::names::{annotations, labels, taints};

/// A change of the node that tests begin with.
type Tweak = fn(&mut Value);

fn node(tweaks: &[Tweak]) -> Node {
    let mut node = json!({
        "metadata": { "name": "node", "uid": "uid", "labels": {} },
        "spec": { "providerID": "providerID", "taints": [] },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    tweaks.iter().for_each(|tweak| tweak(&mut node));
    model(&node)
}

fn excluded(node: &mut Value) {
    node["metadata"]["labels"][labels::EXCLUDE_FROM_LOAD_BALANCERS] = json!("");
}

fn going(node: &mut Value) {
    node["spec"]["taints"] = json!([{ "key": taints::TO_BE_DELETED, "effect": "NoSchedule" }]);
}

fn deleted(node: &mut Value) {
    node["metadata"]["deletionTimestamp"] = json!("2024-05-06T07:08:09Z");
}

fn unmanaged(node: &mut Value) {
    node["metadata"]["annotations"] = json!({ annotations::UNMANAGED: "true" });
}

fn targets(nodes: &[Node], provider: &ProviderInfo) -> Targets {
    Candidates::new(nodes, provider).targets(&Targets::none(), Instant::now())
}

fn named(name: &str, tweaks: &[Tweak]) -> Node {
    Node { name: name.to_owned(), uid: format!("uid-{name}"), ..node(tweaks) }
}

fn names(targets: &Targets) -> Vec<&str> {
    targets.set.targets().iter().map(|target| target.name.as_str()).collect()
}

#[test]
fn nodes_that_wait_for_initialisation_or_are_stopped_count() {
    let uninitialized: Tweak = |it| it["spec"]["taints"] = json!([{ "key": taints::UNINITIALIZED, "effect": "NoSchedule" }]);
    let stopped: Tweak = |it| it["spec"]["taints"] = json!([{ "key": taints::SHUTDOWN, "effect": "NoSchedule" }]);
    let cordoned: Tweak = |it| it["spec"]["unschedulable"] = json!(true);
    for tweak in [uninitialized, stopped, cordoned] {
        assert!(is_eligible(&node(&[tweak])));
    }
    assert!(!is_eligible(&node(&[deleted])));
}

#[test]
fn a_node_that_is_about_to_go_leaves_the_set_and_is_no_reason_to_apply_it() {
    let provider = ProviderInfo::default();
    let before = targets(&[named("a", &[]), named("b", &[])], &provider);
    for tweak in [going as Tweak, deleted] {
        let after = targets(&[named("a", &[]), named("b", &[tweak])], &provider);
        assert_eq!((names(&after), &after.candidates), (vec!["a"], &before.candidates));
        assert_ne!(after.set, before.set);
    }
    let gone = targets(&[named("a", &[])], &provider);
    assert_ne!(gone.candidates, before.candidates);
    assert_eq!(gone.candidates, *gone.set.hash());
}

#[test]
fn an_unmanaged_node_leaves_the_set_and_comes_back_which_is_a_reason_to_apply_it() {
    let provider = ProviderInfo::default();
    let both = targets(&[named("a", &[]), named("b", &[])], &provider);
    let mut candidates = Candidates::new(&[named("a", &[]), named("b", &[])], &provider);
    assert!(candidates.see("b", Some(&named("b", &[unmanaged])), &provider));
    let without = candidates.targets(&both, Instant::now());
    assert_eq!(names(&without), ["a"]);
    assert_ne!(without.candidates, both.candidates);
    assert!(!candidates.see("b", Some(&named("b", &[unmanaged, excluded])), &provider));
    assert!(candidates.see("b", Some(&named("b", &[])), &provider));
    assert_eq!(candidates.targets(&without, Instant::now()).set, both.set);
}

#[test]
fn what_the_provider_asked_for_is_a_reason_and_what_it_did_not_is_none() {
    let modest = ProviderInfo::default();
    let curious = ProviderInfo {
        node_labels: KeySelector::new(["other".to_owned()]),
        node_annotations: KeySelector::new(["fake/*".to_owned()]),
        node_taints: KeySelector::new(["*".to_owned()]),
        node_conditions: ["Ready".to_owned()].into(),
        ..ProviderInfo::default()
    };
    let tweaks: [Tweak; 4] = [
        |it| it["metadata"]["labels"]["other"] = json!("x"),
        |it| it["metadata"]["annotations"] = json!({ "fake/weight": "2" }),
        |it| it["spec"]["taints"] = json!([{ "key": "other", "effect": "NoExecute" }]),
        |it| it["status"]["conditions"][0]["status"] = json!("False"),
    ];
    for tweak in tweaks {
        let differ = |provider| targets(&[node(&[])], provider).candidates != targets(&[node(&[tweak])], provider).candidates;
        assert_eq!((differ(&modest), differ(&curious)), (false, true));
    }
}

#[test]
fn seeing_a_node_says_whether_that_changes_anything() {
    let provider = ProviderInfo::default();
    let mut candidates = Candidates::new([&named("a", &[])], &provider);
    assert!(!candidates.see("a", Some(&named("a", &[])), &provider));
    assert!(!candidates.see("a", Some(&named("a", &[|it| it["status"]["conditions"] = json!([])])), &provider));
    assert!(candidates.see("a", Some(&named("a", &[going])), &provider));
    assert!(candidates.see("a", Some(&named("a", &[excluded])), &provider));
    assert!(!candidates.see("a", None, &provider), "it did not count any more");
    assert!(candidates.see("b", Some(&named("b", &[])), &provider));
    assert!(candidates.see("b", None, &provider));
    assert!(!candidates.see("c", None, &provider));
}

#[test]
fn an_empty_set_has_a_grace_period_from_when_it_became_empty_and_anew_after_a_node() {
    let provider = ProviderInfo::default();
    let begun = Instant::now();
    let mut candidates = Candidates::new([&named("a", &[])], &provider);
    let grace = |candidates: &mut Candidates, at, asked| candidates.targets(&Targets::none(), at).empty_target_grace(asked);
    assert_eq!(grace(&mut candidates, begun, begun), None);
    candidates.see("a", None, &provider);
    let end = begun + EMPTY_TARGET_GRACE;
    assert_eq!(grace(&mut candidates, begun, begun), Some(end));
    let later = begun + Duration::from_secs(10);
    assert_eq!(grace(&mut candidates, later, later), Some(end));
    assert_eq!(grace(&mut candidates, later, end), None);
    candidates.see("a", Some(&named("a", &[])), &provider);
    assert_eq!(grace(&mut candidates, later, later), None);
    candidates.see("a", Some(&named("a", &[going])), &provider);
    assert_eq!(grace(&mut candidates, end, end), Some(end + EMPTY_TARGET_GRACE), "one that is about to go is no target");
}

#[test]
fn additions_count_how_often_a_node_has_entered_the_set() {
    let provider = ProviderInfo::default();
    let mut candidates = Candidates::new([&named("a", &[]), &named("b", &[])], &provider);
    let mut present = candidates.targets(&Targets::none(), Instant::now());
    for (name, node, added) in [
        ("b", Some(named("b", &[going])), 0),
        ("b", Some(named("b", &[])), 1),
        ("b", Some(named("b", &[|it| it["spec"]["providerID"] = json!("other")])), 0),
        ("b", None, 0),
        ("c", Some(named("c", &[going])), 0),
        ("c", Some(named("c", &[])), 1),
    ] {
        candidates.see(name, node.as_ref(), &provider);
        let next = candidates.targets(&present, Instant::now());
        assert_eq!(next.additions - present.additions, added, "{name}: {node:?}");
        present = next;
    }
}
