//! Go's cases, as data. Where ours differs it says why.
use super::*;

const NOT_READY_COUNTS: &str = "readiness flaps, and the cloud checks health itself; Go's own rounds don't ask for it any more";
const NO_TARGET: &str = "a node that is excluded is no target, neither before nor after";

fn condition(kind: &'static str, status: &'static str) -> impl Fn(&mut Value) {
    move |node| node["status"]["conditions"] = json!([{ "type": "Ready", "status": "True" }, { "type": kind, "status": status }])
}

fn not_ready(node: &mut Value) {
    node["status"]["conditions"][0]["status"] = json!("False");
}

fn ready_unset(node: &mut Value) {
    node["status"]["conditions"][0]["type"] = json!("SomethingElse");
}

fn ready(_: &mut Value) {}

fn nameless(node: &mut Value) {
    node["spec"]["providerID"] = json!("");
}

fn renamed(node: &mut Value) {
    node["spec"]["providerID"] = json!("providerID-2");
}

fn other_taint(node: &mut Value) {
    node["spec"]["taints"] = json!([{ "key": "other", "effect": "NoSchedule" }]);
}

fn other_label(node: &mut Value) {
    node["metadata"]["labels"]["other"] = json!("");
}

fn disk_pressure(node: &mut Value) {
    condition("DiskPressure", "True")(node);
}

fn no_disk_pressure(node: &mut Value) {
    condition("DiskPressure", "False")(node);
}

fn other_true(node: &mut Value) {
    condition("Other", "True")(node);
}

fn other_false(node: &mut Value) {
    condition("Other", "False")(node);
}

/// `Test_respectsPredicates`, which has no names: the node, whether Go says that it counts, and where ours differs.
#[test]
fn nodes_count_as_in_go() {
    let cases: [(&str, &[Tweak], bool, Option<&str>); 10] = [
        ("an empty node", &[|it| *it = json!({ "metadata": { "name": "node" } })], false, Some(NOT_READY_COUNTS)),
        ("ready, with a providerID", &[], true, None),
        ("ready, without one", &[nameless], true, None),
        ("not ready", &[nameless, not_ready], false, Some(NOT_READY_COUNTS)),
        ("with no labels", &[|it| it["metadata"]["labels"] = json!({})], true, None),
        ("excluded without a value", &[excluded], false, None),
        ("excluded: false", &[|it| it["metadata"]["labels"][labels::EXCLUDE_FROM_LOAD_BALANCERS] = json!("false")], true, None),
        ("excluded: true", &[|it| it["metadata"]["labels"][labels::EXCLUDE_FROM_LOAD_BALANCERS] = json!("true")], false, None),
        ("excluded: foo", &[|it| it["metadata"]["labels"][labels::EXCLUDE_FROM_LOAD_BALANCERS] = json!("foo")], false, None),
        ("about to be deleted by the autoscaler", &[going], false, None),
    ];
    for (name, tweaks, go, why) in cases {
        assert_eq!(is_eligible(&node(tweaks)), go != why.is_some(), "{name}: {}", why.unwrap_or("as in Go"));
    }
}

/// What Go's `strconv.ParseBool` takes.
#[test]
fn the_label_that_excludes_is_read_as_go_reads_booleans() {
    for (value, counts) in [
        ("0", true),
        ("f", true),
        ("F", true),
        ("FALSE", true),
        ("False", true),
        ("false", true),
        ("1", false),
        ("t", false),
        ("T", false),
        ("TRUE", false),
        ("True", false),
        ("true", false),
        ("fALSE", false),
        (" false", false),
        ("no", false),
        ("", false),
    ] {
        let mut node = node(&[]);
        node.labels.insert(labels::EXCLUDE_FROM_LOAD_BALANCERS.to_owned(), value.to_owned());
        assert_eq!(is_eligible(&node), counts, "{value:?}");
    }
}

/// `TestListWithPredicate`: of many nodes those that fit. Go filters by phase there, which nothing here reads.
#[test]
fn of_many_nodes_those_that_count_are_targets() {
    let nodes: Vec<_> = (0..5).map(|it| named(&format!("node-{it}"), if it % 2 == 0 { &[excluded] } else { &[] })).collect();
    assert_eq!(names(&targets(&nodes, &ProviderInfo::default())), ["node-1", "node-3"]);
    assert_eq!(names(&targets(&[], &ProviderInfo::default())), Vec::<&str>::new());
}

/// Before, after, whether Go starts a round, and where ours differs.
type Case = (&'static str, &'static [Tweak], &'static [Tweak], bool, Option<&'static str>);

fn check(cases: &[Case]) {
    let trigger = |tweaks| targets(&[named("another", &[]), node(tweaks)], &ProviderInfo::default()).candidates;
    for (name, before, after, go, why) in cases {
        let ours = trigger(before) != trigger(after);
        assert_eq!(ours, *go != why.is_some(), "{name}: {}", why.unwrap_or("as in Go"));
    }
}

#[test]
fn single_changes_start_a_round_as_in_go() {
    check(&[
        ("nothing changed", &[], &[], false, None),
        ("excluded F->T", &[], &[excluded], true, None),
        ("excluded changed T->F", &[excluded], &[], true, None),
        ("excluded changed T->T", &[excluded], &[excluded], false, None),
        ("other taint F->T", &[], &[other_taint], false, None),
        ("other taint T->F", &[other_taint], &[], false, None),
        ("other label changed F->T", &[], &[other_label], false, None),
        ("other label changed T->F", &[other_label], &[], false, None),
        ("readiness changed F->F", &[not_ready], &[not_ready], false, None),
        ("readiness changed F->unset", &[not_ready], &[ready_unset], false, None),
        ("readiness changed unset->F", &[ready_unset], &[not_ready], false, None),
        ("readiness changed unset->unset", &[ready_unset], &[ready_unset], false, None),
        ("ready F, other condition changed F->T", &[no_disk_pressure, not_ready], &[disk_pressure, not_ready], false, None),
        ("ready F, other condition changed T->F", &[disk_pressure, not_ready], &[no_disk_pressure, not_ready], false, None),
        ("ready T, other condition changed F->T", &[other_false], &[other_true], false, None),
        ("ready T, other condition changed T->F", &[other_true], &[other_false], false, None),
        ("deletionTimestamp F -> T", &[], &[deleted], false, None),
        ("providerID set F -> T", &[nameless], &[], true, None),
        ("providerID set F -> T", &[nameless], &[], true, None),
        ("providerID set T-> F", &[], &[nameless], true, None),
        ("providerID change", &[], &[renamed], true, None),
    ]);
}

#[test]
fn changes_of_nodes_that_are_special_already_start_a_round_as_in_go() {
    check(&[
        ("tainted T, excluded F->T", &[going], &[going, excluded], true, None),
        ("tainted T, excluded T->F", &[going, excluded], &[going], true, None),
        ("tainted T, providerID set F->T", &[going, nameless], &[going], true, None),
        ("tainted T, providerID set T->F", &[going], &[going, nameless], true, None),
        ("tainted T, providerID change", &[going], &[going, renamed], true, None),
        ("tainted T, ready F->T", &[going, not_ready], &[going], false, None),
        ("tainted T, ready T->F", &[going], &[going, not_ready], false, None),
        ("excluded T, tainted F->T", &[excluded], &[excluded, going], false, None),
        ("excluded T, tainted T->F", &[excluded, going], &[excluded], false, None),
        ("excluded T, ready F->T", &[excluded, not_ready], &[excluded], false, None),
        ("excluded T, ready T->F", &[excluded], &[excluded, not_ready], false, None),
        ("excluded T, providerID set F->T", &[excluded, nameless], &[excluded], true, Some(NO_TARGET)),
        ("excluded T, providerID set T->F", &[excluded], &[excluded, nameless], true, Some(NO_TARGET)),
        ("excluded T, providerID change", &[excluded], &[excluded, renamed], true, Some(NO_TARGET)),
        ("ready F, tainted F->T", &[not_ready], &[not_ready, going], false, None),
        ("ready F, tainted T->F", &[not_ready, going], &[not_ready], false, None),
        ("ready F, excluded F->T", &[not_ready], &[not_ready, excluded], true, None),
        ("ready F, excluded T->F", &[not_ready, excluded], &[not_ready], true, None),
        ("ready F, providerID set F->T", &[not_ready, nameless], &[not_ready], true, None),
        ("ready F, providerID set T->F", &[not_ready], &[not_ready, nameless], true, None),
        ("ready F, providerID change", &[not_ready], &[not_ready, renamed], true, None),
        ("providerID unset, excluded F->T", &[nameless], &[nameless, excluded], true, None),
        ("providerID unset, excluded T->F", &[nameless, excluded], &[nameless], true, None),
        ("providerID unset, ready T->F", &[nameless], &[nameless, ready], false, None),
        ("providerID unset, ready F->T", &[nameless], &[nameless, not_ready], false, None),
        ("providerID unset, tainted T->F", &[nameless, going], &[nameless], false, None),
        ("providerID unset, tainted F->T", &[nameless], &[nameless, going], false, None),
    ]);
}
