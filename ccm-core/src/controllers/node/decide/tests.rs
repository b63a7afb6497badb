//! Decisions, by tables: Go's cases under Go's names, then this controller's own. To add a case, add it to the data.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::addresses::{add_missing, by_node_ip, differ};
use super::*;
use crate::cluster::scripted::model;
use crate::controllers::node::tests::fixtures::{instance, provider};
use crate::model::instance::Warning;
use crate::model::node::{Address, AddressType, Condition, ConditionStatus};
use crate::names::annotations::APPLIED_LABELS;
use crate::names::network_unavailable;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    go: Option<String>,
    name: Option<String>,
    not_applicable: Option<String>,
    node: Option<NodeData>,
    /// Whether node-route-controller runs.
    #[serde(default)]
    routes: bool,
    /// Whether the provider does not serve Routes.
    #[serde(default)]
    unsupported: bool,
    #[serde(default)]
    refresh: bool,
    answer: Option<AnswerData>,
    want: Option<NodeData>,
    go_want: Option<NodeData>,
    reason: Option<String>,
    again: Option<String>,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    discarded: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
struct NodeData {
    provider_id: Option<String>,
    node_ip: Option<String>,
    taints: Vec<String>,
    addresses: Vec<String>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    /// Status and reason of the condition NetworkUnavailable.
    network: Option<String>,
    /// The annotation of applied labels; in what is wanted, unchecked if absent.
    applied: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct AnswerData {
    found: Option<InstanceData>,
    not_found: bool,
    not_mine: Option<String>,
    ambiguous: Vec<String>,
    error: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct InstanceData {
    provider_id: Option<String>,
    state: String,
    instance_type: Option<String>,
    zone: Option<String>,
    region: Option<String>,
    addresses: Vec<String>,
    additional_labels: BTreeMap<String, String>,
    warnings: Vec<String>,
}

fn data<T: DeserializeOwned>(text: &str) -> Vec<T> {
    serde_yaml_ng::from_str(text).unwrap()
}

fn addresses_of(list: &[String]) -> Vec<Address> {
    let parse = |text: &String| {
        let (kind, value) = text.split_once(' ').unwrap();
        Address { kind: AddressType::from_name(kind).unwrap(), value: value.to_owned() }
    };
    list.iter().map(parse).collect()
}

impl NodeData {
    fn node(&self) -> Node {
        let mut annotations = self.annotations.clone();
        annotations.extend(self.node_ip.clone().map(|ip| (annotations::PROVIDED_NODE_IP.to_owned(), ip)));
        annotations.extend(self.applied.as_ref().map(|applied| (APPLIED_LABELS.to_owned(), json!(applied).to_string())));
        let key = |key: &String| if key == "uninitialized" { taints::UNINITIALIZED.to_owned() } else { key.clone() };
        let taints: Vec<_> = self.taints.iter().map(|taint| json!({ "key": key(taint), "effect": "NoSchedule" })).collect();
        let network = self.network.iter().map(|text| {
            let (status, reason) = text.split_once(' ').unwrap();
            json!({ "type": network_unavailable::TYPE, "status": status, "reason": reason })
        });
        let mut node = model(&json!({
            "metadata": { "name": "node0", "uid": "u", "labels": self.labels, "annotations": annotations },
            "spec": { "providerID": self.provider_id, "taints": taints },
            "status": { "conditions": network.collect::<Vec<_>>() },
        }));
        node.addresses = addresses_of(&self.addresses);
        node
    }
}

impl InstanceData {
    fn instance(self) -> Instance {
        let warning = |reason: String| Warning { reason, message: "w".into() };
        Instance {
            provider_id: self.provider_id,
            state: match self.state.as_str() {
                "deleted" => InstanceState::Deleted,
                "stopped" => InstanceState::Stopped,
                _ => InstanceState::Running,
            },
            instance_type: self.instance_type,
            zone: self.zone,
            region: self.region,
            addresses: addresses_of(&self.addresses),
            additional_labels: self.additional_labels,
            warnings: self.warnings.into_iter().map(warning).collect(),
            ..instance(None)
        }
    }
}

impl AnswerData {
    fn lookup(self) -> Option<Lookup> {
        match self {
            Self { error: true, .. } => None,
            Self { not_found: true, .. } => Some(Lookup::NotFound),
            Self { not_mine: Some(word), .. } => Some(Lookup::NotMine(word)),
            Self { found: Some(found), .. } => Some(Lookup::Found(Box::new(found.instance()))),
            Self { ambiguous, .. } => Some(Lookup::Ambiguous(ambiguous)),
        }
    }
}

/// The node as the plan leaves it.
fn carried_out(node: &Node, plan: &Plan) -> Node {
    let mut node = node.clone();
    node.addresses = plan.status.addresses.clone().unwrap_or(node.addresses);
    if plan.status.network == Some(NetworkCondition::NoRouteYet) {
        node.network_unavailable = NetworkUnavailable::NoRouteCreated;
        node.conditions = vec![Condition { kind: network_unavailable::TYPE.to_owned(), status: ConditionStatus::True }];
    }
    node.provider_id = plan.patch.provider_id.clone().or(node.provider_id);
    node.taints = plan.patch.taints.clone().unwrap_or(node.taints);
    node.labels.extend(plan.patch.labels.clone());
    node.annotations.extend(plan.patch.annotations.clone());
    node
}

/// Without the annotation of applied labels, and with it.
fn compared(mut node: Node) -> (Node, Option<BTreeMap<String, String>>) {
    let applied = node.annotations.remove(APPLIED_LABELS);
    (node, applied.and_then(|text| serde_json::from_str(&text).ok()))
}

fn decided(name: &str, case: &Case, node: Node) -> Plan {
    let mut provider = provider();
    if case.unsupported {
        provider.capabilities.remove(&Capability::Routes);
    }
    let (node, provider) = (Arc::new(node), Arc::new(provider));
    let mut observed = Observed { node, provider, configures_routes: case.routes, refresh: case.refresh, answer: None };
    let first = decide(&observed);
    assert_eq!(first.look_up.is_some(), case.answer.is_some(), "{name}: whether the provider is asked");
    assert!(first.look_up.is_none() || !first.writes(), "{name}: nothing is written before the answer");
    observed.answer = case.answer.clone().and_then(AnswerData::lookup);
    if observed.answer.is_some() { decide(&observed) } else { Plan { look_up: None, ..first } }
}

fn check(case: &Case) {
    let name = case.go.as_ref().or(case.name.as_ref()).expect("a case has a name");
    let before = case.node.as_ref().expect(name).node();
    let plan = decided(name, case, before.clone());
    let after = carried_out(&before, &plan);
    match &case.want {
        None => assert!(!plan.writes(), "{name}: nothing is to be written: {plan:?}"),
        Some(want) => {
            assert!(plan.writes(), "{name}: something is to be written");
            let ((after, applied), (wanted, recorded)) = (compared(after), compared(want.node()));
            assert_eq!(after, wanted, "{name}");
            assert!(recorded.is_none() || applied == recorded, "{name}: {applied:?}");
        }
    }
    let again = match plan.again {
        Again::No => None,
        Again::BackOff => Some("back-off"),
        Again::Slowly => Some("slowly"),
    };
    assert_eq!(again, case.again.as_deref(), "{name}: whether to come back");
    assert_eq!(
        plan.warnings.iter().map(|warning| &warning.reason).collect::<Vec<_>>(),
        case.warnings.iter().collect::<Vec<_>>(),
        "{name}"
    );
    assert_eq!(
        plan.discarded.iter().map(|label| &label.key).collect::<Vec<_>>(),
        case.discarded.iter().collect::<Vec<_>>(),
        "{name}"
    );
    assert_eq!(plan.initializes, before.is_uninitialized() && case.want.is_some(), "{name}: whether it initialises");
}

const SYNC_NODE: &str = include_str!("cases/sync_node.yaml");
const RECONCILE_LABELS: &str = include_str!("cases/reconcile_labels.yaml");

#[test]
fn nodes_are_initialised_as_in_go() {
    data::<Case>(SYNC_NODE).iter().filter(|case| case.not_applicable.is_none()).for_each(check);
}

#[test]
fn labels_are_reconciled_as_in_go() {
    data::<Case>(RECONCILE_LABELS).iter().for_each(check);
}

#[test]
fn nodes_are_treated_as_promised() {
    data::<Case>(include_str!("cases/own.yaml")).iter().for_each(check);
}

#[test]
fn every_case_of_go_is_there_and_every_difference_has_its_reason() {
    let cases = [data::<Case>(SYNC_NODE), data::<Case>(RECONCILE_LABELS)].concat();
    let count = |prefix: &str| cases.iter().filter(|case| case.go.as_ref().is_some_and(|name| name.starts_with(prefix))).count();
    let tests = [
        "Test_syncNode/",
        "Test_reconcileNodeLabels/",
        "TestNodeAddressesNotUpdate",
        "TestGetInstanceMetadata/",
        "TestUpdateNodeStatus/",
    ];
    assert_eq!(tests.map(count), [22, 3, 2, 6, 4]);
    assert_eq!(cases.iter().filter(|case| case.not_applicable.is_some()).count(), 5);
    let differing: Vec<_> = cases.iter().filter(|case| case.go_want.is_some()).collect();
    assert_eq!(differing.len(), 2);
    assert!(differing.iter().all(|case| case.go_want != case.want && case.reason.is_some()));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AddressCase {
    go: Option<String>,
    name: Option<String>,
    node_ip: Option<String>,
    #[serde(default)]
    present: Vec<String>,
    given: Vec<String>,
    want: Option<Vec<String>>,
    changed: Option<bool>,
}

fn address_cases(text: &str, of_go: usize) -> Vec<(String, AddressCase)> {
    let cases = data::<AddressCase>(text);
    assert_eq!(cases.iter().filter(|case| case.go.is_some()).count(), of_go);
    cases.into_iter().map(|case| (case.go.clone().or(case.name.clone()).unwrap(), case)).collect()
}

#[test]
fn the_node_ip_filters_and_orders_as_in_go() {
    for (name, case) in address_cases(include_str!("cases/node_ip.yaml"), 14) {
        let chosen = by_node_ip(&case.node_ip.unwrap(), &addresses_of(&case.given));
        assert_eq!(chosen.ok(), case.want.as_deref().map(addresses_of), "{name}");
    }
}

#[test]
fn addresses_are_added_once_as_in_go() {
    for (name, case) in address_cases(include_str!("cases/add_addresses.yaml"), 4) {
        let mut list = addresses_of(&case.present);
        add_missing(&mut list, &addresses_of(&case.given));
        assert_eq!(list, addresses_of(&case.want.unwrap()), "{name}");
    }
}

#[test]
fn changes_of_addresses_are_detected_as_in_go() {
    for (name, case) in address_cases(include_str!("cases/address_changes.yaml"), 5) {
        let node = NodeData { addresses: case.present, ..NodeData::default() }.node();
        assert_eq!(differ(&node, &addresses_of(&case.given)), case.changed.unwrap(), "{name}");
    }
}

#[test]
fn a_refusal_names_the_field_and_the_remedy() {
    let messages = [
        Refusal::NoProviderId.to_string(),
        Refusal::OtherProviderId { present: "fake://1".into(), answered: "fake://2".into() }.to_string(),
        Refusal::ForeignProviderId("x".into()).to_string(),
        Refusal::from(by_node_ip("10.0.0.9", &[]).unwrap_err()).to_string(),
    ];
    let names = ["Instance.provider_id", "spec.providerID", "provider_id_prefixes", "alpha.kubernetes.io/provided-node-ip"];
    messages.iter().zip(names).for_each(|(message, name)| assert!(message.contains(name), "{message}"));
}
