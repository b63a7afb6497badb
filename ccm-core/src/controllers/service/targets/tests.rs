//! Which nodes count, and which changes of them matter: Go's `Test_respectsPredicates`, `TestListWithPredicate` and
//! `Test_shouldSyncUpdatedNode_*`, and our own rules.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod go;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{EMPTY_FOR, Roster, Targets, is_eligible};
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
    Roster::new(nodes, provider).targets(Instant::now())
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
        assert_eq!((names(&after), &after.trigger), (vec!["a"], &before.trigger));
        assert_ne!(after.set, before.set);
    }
    let gone = targets(&[named("a", &[])], &provider);
    assert_ne!(gone.trigger, before.trigger);
    assert_eq!(gone.trigger, *gone.set.hash());
}

#[test]
fn an_unmanaged_node_leaves_the_set_and_comes_back_which_is_a_reason_to_apply_it() {
    let provider = ProviderInfo::default();
    let both = targets(&[named("a", &[]), named("b", &[])], &provider);
    let mut candidates = Roster::new(&[named("a", &[]), named("b", &[])], &provider);
    assert!(candidates.see("b", Some(&named("b", &[unmanaged])), &provider));
    let without = candidates.targets(Instant::now());
    assert_eq!(names(&without), ["a"]);
    assert_ne!(without.trigger, both.trigger);
    assert!(!candidates.see("b", Some(&named("b", &[unmanaged, excluded])), &provider));
    assert!(candidates.see("b", Some(&named("b", &[])), &provider));
    assert_eq!(candidates.targets(Instant::now()).set, both.set);
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
        let differ = |provider| targets(&[node(&[])], provider).trigger != targets(&[node(&[tweak])], provider).trigger;
        assert_eq!((differ(&modest), differ(&curious)), (false, true));
    }
}

#[test]
fn seeing_a_node_says_whether_that_changes_anything() {
    let provider = ProviderInfo::default();
    let mut roster = Roster::new([&named("a", &[])], &provider);
    assert!(!roster.see("a", Some(&named("a", &[])), &provider));
    assert!(!roster.see("a", Some(&named("a", &[|it| it["status"]["conditions"] = json!([])])), &provider));
    assert!(roster.see("a", Some(&named("a", &[going])), &provider));
    assert!(roster.see("a", Some(&named("a", &[excluded])), &provider));
    assert!(!roster.see("a", None, &provider), "it did not count any more");
    assert!(roster.see("b", Some(&named("b", &[])), &provider));
    assert!(roster.see("b", None, &provider));
    assert!(!roster.see("c", None, &provider));
}

#[test]
fn an_empty_set_is_doubted_from_when_it_became_empty_and_anew_after_a_node() {
    let provider = ProviderInfo::default();
    let begun = Instant::now();
    let mut roster = Roster::new([&named("a", &[])], &provider);
    assert_eq!(roster.targets(begun).doubt(begun), None);
    roster.see("a", None, &provider);
    assert_eq!(roster.targets(begun).doubt(begun), Some(EMPTY_FOR));
    let later = begun + Duration::from_secs(10);
    assert_eq!(roster.targets(later).doubt(later), Some(Duration::from_secs(20)));
    let over = begun + EMPTY_FOR;
    assert_eq!(roster.targets(later).doubt(over), None);
    roster.see("a", Some(&named("a", &[])), &provider);
    assert_eq!(roster.targets(later).doubt(later), None);
    roster.see("a", Some(&named("a", &[going])), &provider);
    assert_eq!(roster.targets(over).doubt(over), Some(EMPTY_FOR), "one that is about to go is no target");
}
