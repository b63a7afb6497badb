//! Malformed and contradictory answers, one row each.
#![allow(clippy::unwrap_used, clippy::panic)]
use std::collections::BTreeMap;

use crate::model::instance::{Instance, InstanceState};
use crate::provider::scripted;

use super::*;

const NOW: i64 = 1_700_000_000;

fn context() -> Context {
    Context { info: Arc::new(scripted::model_info()), identity: "here".into(), now: Timestamp::from_second(NOW).unwrap() }
}

fn at(seconds: i64) -> prost_types::Timestamp {
    prost_types::Timestamp { seconds, nanos: 0 }
}

fn machine() -> v1::Instance {
    v1::Instance { provider_id: "simulated://a".to_owned(), state: v1::InstanceState::Running.into(), ..Default::default() }
}

fn result(outcome: Outcome) -> v1::InstanceResult {
    v1::InstanceResult { node_name: "a".to_owned(), observed_at: Some(at(NOW)), outcome: Some(outcome) }
}

fn read(results: Vec<v1::InstanceResult>) -> Result<Answer, ProviderError> {
    let query = Arc::new(NodeQuery { node_name: "a".to_owned(), ..NodeQuery::default() });
    answers(&[query], v1::BatchGetInstancesResponse { results }, &context()).remove(0)
}

fn read_machine(machine: v1::Instance) -> Instance {
    match read(vec![result(Outcome::Instance(machine))]).unwrap().lookup {
        Lookup::Found(instance) => *instance,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_machine_without_an_id_is_the_one_that_was_asked_for_unless_it_is_deleted() {
    let nameless = |state: v1::InstanceState| v1::Instance { provider_id: String::new(), state: state.into(), ..machine() };
    let read = |provider_id: Option<&str>, state| {
        let query = NodeQuery { node_name: "a".to_owned(), provider_id: provider_id.map(str::to_owned), ..NodeQuery::default() };
        let results = vec![result(Outcome::Instance(nameless(state)))];
        answers(&[Arc::new(query)], v1::BatchGetInstancesResponse { results }, &context()).remove(0)
    };
    assert!(read(Some("simulated://a"), v1::InstanceState::Running).is_ok());
    assert!(read(None, v1::InstanceState::Deleted).is_ok(), "the core deletes no node that has no id");
    let refused = read(Some("simulated://a"), v1::InstanceState::Deleted).unwrap_err();
    assert_eq!(refused.reason, "INTERNAL");
    assert!(refused.message.contains("results[0].instance.provider_id: is missing"), "{}", refused.message);
}

#[test]
fn contradictory_answers_are_errors_that_name_the_field() {
    let found = || result(Outcome::Instance(machine()));
    let gone = || result(Outcome::NotFound(v1::InstanceNotFound {}));
    let with = |change: fn(&mut v1::Instance)| {
        let mut machine = machine();
        change(&mut machine);
        vec![result(Outcome::Instance(machine))]
    };
    for (expected, results) in [
        ("results: there is none for \"a\"", vec![]),
        ("results: there is none for \"a\"", vec![v1::InstanceResult { node_name: "A".to_owned(), ..found() }]),
        ("results[1].node_name: \"a\" was answered 2 times", vec![found(), found()]),
        ("results[0]: has no outcome", vec![v1::InstanceResult { outcome: None, ..found() }]),
        ("results[0].observed_at: is missing", vec![v1::InstanceResult { observed_at: None, ..found() }]),
        ("results[0].observed_at: is missing", vec![v1::InstanceResult { observed_at: None, ..gone() }]),
        ("results[0].observed_at: is not a time", vec![v1::InstanceResult { observed_at: Some(at(i64::MAX)), ..gone() }]),
        ("is in the future", vec![v1::InstanceResult { observed_at: Some(at(NOW + 301)), ..gone() }]),
        ("results[0].instance.state: is not set", with(|it| it.state = 0)),
        ("results[0].instance.state: is not set", with(|it| it.state = 99)),
        ("results[0].instance.provider_id: \"aws://a\" begins with none", with(|it| it.provider_id = "aws://a".to_owned())),
        ("results[0].instance.provider_id: is longer", with(|it| it.provider_id = format!("simulated://{}", "x".repeat(1024)))),
    ] {
        let error = read(results).unwrap_err();
        assert_eq!(error.reason, "INTERNAL", "{expected}");
        assert!(error.message.contains(expected), "\"{}\" does not say \"{expected}\"", error.message);
    }
}

#[test]
fn useless_values_are_left_out_with_a_warning_and_the_rest_stays() {
    let address = |kind: v1::NodeAddressType, text: &str| v1::NodeAddress { r#type: kind.into(), address: text.to_owned() };
    let instance = read_machine(v1::Instance {
        instance_type: Some("not a label".to_owned()),
        zone: Some("-zone".to_owned()),
        region: Some(String::new()),
        addresses: vec![
            address(v1::NodeAddressType::InternalIp, "10.0.0.1"),
            address(v1::NodeAddressType::ExternalIp, "not-an-ip"),
            address(v1::NodeAddressType::Unspecified, "10.0.0.2"),
            address(v1::NodeAddressType::InternalDns, "a..b"),
            address(v1::NodeAddressType::Hostname, "a.example"),
        ],
        additional_labels: [("good", "yes"), ("bad key", "x"), ("bad-value", "a b")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into(),
        pod_cidrs: vec!["10.1.0.0/24".to_owned(), "10.1.0.0".to_owned()],
        ..machine()
    });
    let values: Vec<_> = instance.addresses.iter().map(|it| it.value.as_str()).collect();
    assert_eq!(values, ["10.0.0.1", "a.example"]);
    assert_eq!(instance.additional_labels, BTreeMap::from([("good".to_owned(), "yes".to_owned())]));
    assert_eq!((instance.instance_type, instance.zone, instance.region), (None, None, None));
    assert_eq!(instance.pod_cidrs, ["10.1.0.0/24"]);
    assert!(instance.warnings.iter().all(|it| it.reason == "InvalidProviderAnswer"));
    let messages: Vec<_> = instance.warnings.iter().map(|it| it.message.as_str()).collect();
    for expected in [
        "results[0].instance.instance_type: \"not a label\" is not a label value",
        "results[0].instance.zone: \"-zone\"",
        "results[0].instance.addresses[1].address: \"not-an-ip\" is not an IP address",
        "results[0].instance.addresses[2].type: is not set",
        "results[0].instance.addresses[3].address: \"a..b\" is not a DNS name",
        "results[0].instance.additional_labels: \"bad key\"",
        "results[0].instance.additional_labels[\"bad-value\"]: \"a b\"",
        "results[0].instance.pod_cidrs[1]: \"10.1.0.0\" is not a CIDR",
    ] {
        assert!(messages.iter().any(|it| it.starts_with(expected)), "{expected} is missing in {messages:#?}");
    }
    assert_eq!(messages.len(), 8);
}

#[test]
fn every_expected_outcome_is_read() {
    let lookup = |outcome| read(vec![result(outcome)]).unwrap().lookup;
    let not_mine = v1::InstanceNotMine { message: "bare metal".to_owned() };
    let ambiguous = v1::InstanceAmbiguous { provider_ids: vec!["x".to_owned(), "y".to_owned()] };
    assert_eq!(lookup(Outcome::NotFound(v1::InstanceNotFound {})), Lookup::NotFound);
    assert_eq!(lookup(Outcome::NotMine(not_mine)), Lookup::NotMine("bare metal".to_owned()));
    assert_eq!(lookup(Outcome::Ambiguous(ambiguous)), Lookup::Ambiguous(vec!["x".to_owned(), "y".to_owned()]));
    let instance = read_machine(v1::Instance { provider_id: String::new(), ..machine() });
    assert_eq!((instance.provider_id, instance.state), (None, InstanceState::Running), "no id yet is no error");
}

#[test]
fn a_provider_may_give_its_own_warnings() {
    let own = |reason: &str| v1::Warning { reason: reason.to_owned(), message: "m".repeat(2000) };
    let warnings = read_machine(v1::Instance { warnings: vec![own("Deprecated"), own("two words")], ..machine() }).warnings;
    assert_eq!((warnings[0].reason.as_str(), warnings[0].message.len()), ("Deprecated", 1024));
    assert_eq!(warnings[1].reason, "ProviderWarning");
}

#[test]
fn an_error_of_one_item_leaves_the_others_alone() {
    let queries = ["a", "b"].map(|it| Arc::new(NodeQuery { node_name: it.to_owned(), ..NodeQuery::default() }));
    let bad = v1::ItemError { code: 14, message: "away".to_owned(), ..Default::default() };
    let results = vec![
        v1::InstanceResult { node_name: "stranger".to_owned(), ..result(Outcome::Instance(machine())) },
        v1::InstanceResult { node_name: "b".to_owned(), ..result(Outcome::NotFound(v1::InstanceNotFound {})) },
        result(Outcome::Error(bad)),
    ];
    let answers = answers(&queries, v1::BatchGetInstancesResponse { results }, &context());
    assert_eq!(answers[0].as_ref().unwrap_err().reason, "UNAVAILABLE");
    assert_eq!(answers[1].as_ref().unwrap().lookup, Lookup::NotFound);
    assert_eq!(&*answers[1].as_ref().unwrap().cloud_identity, "here");
}

#[test]
fn a_query_crosses_whole() {
    let kinds = AddressType::ALL.map(|kind| Address { kind, value: "v".to_owned() }).to_vec();
    let query =
        NodeQuery { node_name: "a".to_owned(), system_uuid: Some("u".to_owned()), addresses: kinds, ..NodeQuery::default() };
    let sent = request(&[Arc::new(query)]).queries.remove(0);
    assert_eq!(sent.addresses.iter().map(|it| it.r#type).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!((sent.system_uuid.as_deref(), sent.provider_id), (Some("u"), None));
}

#[test]
fn labels_are_taken_up_to_a_number() {
    let labels = |count| (0..count).map(|index| (format!("label-{index:03}"), "x".to_owned())).collect();
    for (count, taken, warnings) in [(100, 100, 0), (101, 100, 1)] {
        let instance = read_machine(v1::Instance { additional_labels: labels(count), ..machine() });
        assert_eq!((instance.additional_labels.len(), instance.warnings.len()), (taken, warnings));
    }
}
