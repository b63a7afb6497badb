//! The cases of Go's `controllers/nodelifecycle/node_lifecycle_controller_test.go`, by their names there.
//!
//! One node is alone in the cluster, and Go decides at its first look. Here a minute passes. Where another outcome is wanted than
//! Go's, the reason is given.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::Simulation;
use crate::controllers::node_lifecycle::fixtures::{found, node, provider};
use crate::model::instance::{InstanceState, Lookup, NodeQuery};
use crate::model::node::{Node, Ready};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Deleted,
    Tainted,
    Kept,
}
use Outcome::{Deleted, Kept, Tainted};

/// What Go's fake cloud says.
#[derive(Clone, Copy)]
enum Cloud {
    Exists,
    Absent,
    Stopped,
    Error,
}
use Cloud::{Absent, Error, Exists, Stopped};

struct Case {
    name: &'static str,
    provider_id: Option<&'static str>,
    ready: Ready,
    cloud: Cloud,
    go: Outcome,
    want: Outcome,
    reason: &'static str,
}

/// A case in which Go's outcome is wanted.
const fn same(name: &'static str, provider_id: Option<&'static str>, ready: Ready, cloud: Cloud, go: Outcome) -> Case {
    Case { name, provider_id, ready, cloud, go, want: go, reason: "" }
}

/// Go deletes a node without a providerID.
const fn kept(name: &'static str, ready: Ready, cloud: Cloud) -> Case {
    let reason = "without a providerID nobody can say which machine is gone: such a node is never deleted";
    Case { name, provider_id: None, ready, cloud, go: Deleted, want: Kept, reason }
}

const ID: Option<&str> = Some("node0");

const CASES: [Case; 21] = [
    kept("node is not ready and does not exist", Ready::False, Absent),
    same("node is not ready and provider returns err", ID, Ready::False, Error, Kept),
    same("node is not ready but still exists", ID, Ready::False, Exists, Kept),
    kept("node ready condition is unknown, node doesn't exist", Ready::Unknown, Absent),
    same("node ready condition is unknown, node exists", None, Ready::Unknown, Exists, Kept),
    same("node is ready, but provider said it is deleted (maybe a bug in provider)", ID, Ready::True, Absent, Kept),
    kept("[instance2] node is not ready and does not exist", Ready::False, Absent),
    same("[instancev2] node is not ready and provider returns err", ID, Ready::False, Error, Kept),
    same("[instancev2] node is not ready but still exists", ID, Ready::False, Exists, Kept),
    kept("[instancev2] node ready condition is unknown, node doesn't exist", Ready::Unknown, Absent),
    same("[instancev2] node ready condition is unknown, node exists", None, Ready::Unknown, Exists, Kept),
    same("[instancev2] node is ready, but provider said it is deleted (maybe a bug in provider)", ID, Ready::True, Absent, Kept),
    same("node is not ready and was shutdown, but exists", ID, Ready::False, Stopped, Tainted),
    same("node with empty spec providerID is not ready and was shutdown, but exists", None, Ready::False, Stopped, Tainted),
    kept("node with non-existing providerID (missing in cloud provider) gets deleted", Ready::False, Absent),
    same("node with error when getting providerID does not have shutdown taint", None, Ready::False, Error, Kept),
    kept("node with InstanceID returning InstanceNotFound gets deleted", Ready::False, Absent),
    kept("node is not ready, but there is error checking if node is shutdown", Ready::False, Absent),
    kept("node is not ready and is not shutdown", Ready::False, Absent),
    same("node is ready but provider says it's shutdown (maybe a bug by provider)", None, Ready::True, Stopped, Kept),
    kept("node is shutdown but provider says it does not exist", Ready::Unknown, Absent),
];

fn outcome(provider_id: Option<&str>, ready: Ready, cloud: Cloud) -> Outcome {
    let node = Node { provider_id: provider_id.map(str::to_owned), ready, ..node("node0", "a") };
    let mut simulation = Simulation::new([node]).owning(&["node0"]);
    simulation.run(60, |_| match cloud {
        Exists => Some(found(InstanceState::Running)),
        Absent => Some(Lookup::NotFound),
        Stopped => Some(found(InstanceState::Stopped)),
        Error => None,
    });
    match (simulation.deleted.len(), simulation.taints.get("node0")) {
        (0, None) => Kept,
        (0, Some(true)) => Tainted,
        (1, None) => Deleted,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_case_of_gos_monitor_ends_as_in_go_or_differs_for_a_reason() {
    for case in CASES {
        assert_eq!(outcome(case.provider_id, case.ready, case.cloud), case.want, "{}", case.name);
        assert_eq!(case.go == case.want, case.reason.is_empty(), "{}", case.name);
    }
}

#[test]
fn the_cases_that_differ_end_as_in_go_where_the_node_has_a_provider_id() {
    for case in CASES.iter().filter(|case| case.go != case.want) {
        assert_eq!(outcome(ID, case.ready, case.cloud), case.go, "{}", case.name);
    }
}

/// Go's `Test_GetProviderID`. There is no such step here: one query carries the name and, where the node has one, the
/// providerID; what the cloud gives without it taints a node at most. So the outcome is the query's.
#[test]
fn every_case_of_gos_provider_id_asks_with_what_the_node_has() {
    let cases = [
        ("node initialized with provider ID", Some("fake://12345")),
        ("node initialized with provider ID with InstancesV2", Some("fake://12345")),
        ("cloud implemented with Instances", None),
        ("cloud implemented with InstancesV2", None),
        ("cloud implemented with InstancesV2 (without providerID)", None),
        ("cloud implemented with Instances with instance missing", None),
        ("cloud implemented with Instances with unknown error", None),
    ];
    for (name, provider_id) in cases {
        let node = Node { provider_id: provider_id.map(str::to_owned), ..node("node0", "a") };
        let query = NodeQuery::about(&node, &provider());
        assert_eq!((query.node_name.as_str(), query.provider_id.as_deref()), ("node0", provider_id), "{name}");
    }
}
