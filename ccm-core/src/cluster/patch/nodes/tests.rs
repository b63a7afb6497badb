//! What is sent to the API server about nodes, and what its answers are taken for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use serde_json::{Value, json};

use super::*;
use crate::cluster::gate::Closed;
use crate::cluster::gate::tests::gate;
use crate::cluster::scripted::{ApiServer, Call, model};
use crate::model::node::{Address, AddressType, NetworkUnavailable, Ready};
use crate::names::annotations;
use crate::provider::ProviderState;

fn stored() -> Value {
    json!({
        "metadata": { "name": "a", "uid": "u1", "labels": { "kept": "1" } },
        "spec": { "taints": [{ "key": "old", "effect": "NoSchedule" }] },
        "status": { "addresses": [{ "type": "InternalIP", "address": "10.0.0.9" }, { "type": "Hostname", "address": "a" }] },
    })
}

fn with_provider_id(id: &str) -> Value {
    let mut node = stored();
    node["spec"]["providerID"] = json!(id);
    node
}

fn last(server: &ApiServer) -> Call {
    server.calls().pop().expect("nothing was asked")
}

fn some_patch() -> NodePatch {
    NodePatch { provider_id: Some("test://1".into()), ..NodePatch::default() }
}

fn addresses(list: &[Address]) -> NodeStatusPatch {
    NodeStatusPatch { addresses: Some(list.to_vec()), ..NodeStatusPatch::default() }
}

#[tokio::test]
async fn a_patch_names_the_object_and_its_version_and_holds_only_what_changes() {
    let server = ApiServer::with_nodes([stored()]);
    let (_open, gate) = gate();
    let writer = NodeWriter::new(server.client(), gate);
    let time = "2024-05-06T07:08:09Z".parse().unwrap();
    let taint = Taint { key: "k".into(), value: Some("v".into()), effect: "NoExecute".into(), time_added: Some(time) };
    let patch = NodePatch {
        labels: [("l".to_owned(), "1".to_owned())].into(),
        annotations: [("n".to_owned(), "2".to_owned())].into(),
        provider_id: Some("test://1".into()),
        taints: Some(vec![taint.clone()]),
    };
    let after = writer.patch(&server.node("a"), &patch).await.unwrap();
    let call = last(&server);
    assert_eq!((call.method.as_str(), call.path.as_str()), ("PATCH", "/api/v1/nodes/a"));
    assert!(call.query.contains("fieldManager=ccm-core"), "{}", call.query);
    assert_eq!(
        call.body,
        json!({
            "metadata": { "uid": "u1", "resourceVersion": "1", "labels": { "l": "1" }, "annotations": { "n": "2" } },
            "spec": {
                "providerID": "test://1",
                "taints": [{ "key": "k", "value": "v", "effect": "NoExecute", "timeAdded": "2024-05-06T07:08:09Z" }],
            },
        })
    );
    assert_eq!((after.labels["kept"].as_str(), after.taints), ("1", vec![taint]));
}

#[tokio::test]
async fn the_last_taint_is_removed_by_an_empty_list_and_absent_taints_are_left_alone() {
    let server = ApiServer::with_nodes([stored()]);
    let (_open, gate) = gate();
    let writer = NodeWriter::new(server.client(), gate);
    let after = writer.patch(&server.node("a"), &some_patch()).await.unwrap();
    assert_eq!((after.taints.len(), &last(&server).body["spec"]["taints"]), (1, &Value::Null));
    let after = writer.patch(&after, &NodePatch { taints: Some(vec![]), ..NodePatch::default() }).await.unwrap();
    assert_eq!((after.taints.len(), &last(&server).body["spec"]["taints"]), (0, &json!([])));
}

#[tokio::test]
async fn addresses_are_replaced_as_a_whole_in_their_order() {
    let server = ApiServer::with_nodes([stored()]);
    let (_open, gate) = gate();
    let address = |value: &str| Address { kind: AddressType::InternalIp, value: value.into() };
    let wanted = [address("fd00::1"), address("10.0.0.1")];
    let after = NodeWriter::new(server.client(), gate).patch_status(&server.node("a"), &addresses(&wanted)).await.unwrap();
    let call = last(&server);
    assert_eq!(call.path, "/api/v1/nodes/a/status");
    assert_eq!(call.body["status"]["addresses"][0], json!({ "$patch": "replace" }));
    assert_eq!(call.body["metadata"], json!({ "uid": "u1", "resourceVersion": "1" }));
    assert_eq!(after.addresses, wanted);
}

#[tokio::test]
async fn the_network_condition_is_merged_by_its_type_whatever_else_changed_of_the_node() {
    let mut stored = with_provider_id("test://1");
    stored["status"]["conditions"] = json!([
        { "type": "NetworkUnavailable", "status": "True", "reason": "NoRouteCreated", "lastTransitionTime": "2024-05-06T07:08:09Z" },
        { "type": "Ready", "status": "False", "reason": "KubeletNotReady" },
    ]);
    let server = ApiServer::with_nodes([stored.clone()]);
    let (_open, gate) = gate();
    let writer = NodeWriter::new(server.client(), gate);
    let old = server.node("a");
    stored["status"]["conditions"][1]["status"] = json!("True");
    server.put_node(stored);
    let after = writer.network_condition(&old, true).await.unwrap();
    assert_eq!(
        (after.network_unavailable, after.ready, after.conditions.len()),
        (NetworkUnavailable::RouteCreated, Ready::True, 2)
    );
    let call = last(&server);
    assert_eq!((call.path.as_str(), &call.body["metadata"]), ("/api/v1/nodes/a/status", &json!({ "uid": "u1" })));
    let [condition] = &call.body["status"]["conditions"].as_array().unwrap()[..] else { panic!("{}", call.body) };
    let text = |field: &str| condition[field].as_str().unwrap().to_owned();
    assert_eq!(["type", "status", "reason"].map(text), ["NetworkUnavailable", "False", "RouteCreated"]);
    assert_eq!(text("lastHeartbeatTime"), text("lastTransitionTime"));
    assert!(text("lastTransitionTime").parse::<Timestamp>().is_ok() && text("lastTransitionTime").ends_with('Z'));
    assert_eq!(call.body["status"].as_object().unwrap().len(), 1);

    let after = writer.network_condition(&old, false).await.unwrap();
    assert_eq!(after.network_unavailable, NetworkUnavailable::NoRouteCreated);
}

#[tokio::test]
async fn the_network_condition_is_never_written_to_another_node_of_the_same_name() {
    let server = ApiServer::with_nodes([with_provider_id("test://1")]);
    let (_open, gate) = gate();
    let writer = NodeWriter::new(server.client(), gate);
    let old = server.node("a");
    let mut other = with_provider_id("test://1");
    other["metadata"]["uid"] = json!("u2");
    server.put_node(other);
    assert!(matches!(writer.network_condition(&old, true).await, Err(WriteError::Gone)));
    assert_eq!(server.node("a").network_unavailable, NetworkUnavailable::Absent);
}

#[tokio::test]
async fn a_write_from_an_old_reading_is_a_conflict_and_changes_nothing() {
    let server = ApiServer::with_nodes([with_provider_id("test://1")]);
    let (_open, gate) = gate();
    let writer = NodeWriter::new(server.client(), gate);
    let old = server.node("a");
    server.put_node(with_provider_id("test://2"));
    assert!(matches!(writer.patch(&old, &some_patch()).await, Err(WriteError::Conflict)));
    assert!(matches!(writer.patch_status(&old, &addresses(&old.addresses)).await, Err(WriteError::Conflict)));
    assert!(matches!(writer.delete(&old).await, Err(WriteError::Conflict)));
    assert_eq!(server.node("a").provider_id.as_deref(), Some("test://2"));
}

#[tokio::test]
async fn a_node_that_is_gone_is_told_from_one_that_could_not_be_written() {
    let server = ApiServer::with_nodes([stored()]);
    let (_open, gate) = gate();
    let writer = NodeWriter::new(server.client(), gate);
    let node = server.node("a");
    let stranger = model(&json!({ "metadata": { "name": "b", "uid": "u2" } }));
    assert!(matches!(writer.get("b").await, Err(WriteError::Gone)));
    assert!(matches!(writer.patch(&stranger, &some_patch()).await, Err(WriteError::Gone)));
    server.before_write(|_| Some(500));
    assert!(matches!(writer.patch(&node, &some_patch()).await, Err(WriteError::Api(_))));
}

#[tokio::test]
async fn a_deletion_carries_both_preconditions() {
    let server = ApiServer::with_nodes([with_provider_id("test://1")]);
    let (_open, gate) = gate();
    NodeWriter::new(server.client(), gate).delete(&server.node("a")).await.unwrap();
    assert_eq!(last(&server).body["preconditions"], json!({ "uid": "u1", "resourceVersion": "1" }));
}

#[tokio::test]
async fn a_closed_gate_keeps_every_write_in_and_lets_reads_out() {
    let server = ApiServer::with_nodes([stored()]);
    let (open, gate) = gate();
    let writer = NodeWriter::new(server.client(), gate);
    let node = writer.get("a").await.unwrap();
    open.provider.send_replace(ProviderState::Unusable { message: "gone".into() });
    assert!(matches!(writer.patch(&node, &some_patch()).await, Err(WriteError::Closed(Closed::ProviderNotReady))));
    open.term.send_replace(None);
    assert!(matches!(writer.patch(&node, &some_patch()).await, Err(WriteError::Closed(Closed::NotLeading))));
    assert!(matches!(writer.patch_status(&node, &addresses(&[])).await, Err(WriteError::Closed(Closed::NotLeading))));
    assert!(matches!(writer.network_condition(&node, true).await, Err(WriteError::Closed(Closed::NotLeading))));
    assert!(matches!(writer.delete(&node).await, Err(WriteError::Closed(Closed::NotLeading))));
    assert_eq!(server.calls().len(), 1);
    writer.get("a").await.unwrap();
}

#[tokio::test]
async fn a_write_or_deletion_that_ownership_forbids_is_refused_whatever_was_decided() {
    let mut unmanaged = with_provider_id("test://1");
    unmanaged["metadata"]["annotations"] = json!({ annotations::UNMANAGED: "true" });
    let cases = [
        (with_provider_id("test://1"), true, true),
        (stored(), true, false),
        (with_provider_id("other://1"), false, false),
        (unmanaged, false, false),
    ];
    for (stored, writes, deletes) in cases {
        let server = ApiServer::with_nodes([stored]);
        let (_open, gate) = gate();
        let writer = NodeWriter::new(server.client(), gate);
        let labels = NodePatch { labels: [("l".to_owned(), "1".to_owned())].into(), ..NodePatch::default() };
        let node = server.node("a");
        let writes_of_each = [
            writer.patch_status(&node, &addresses(&node.addresses)).await,
            writer.patch(&server.node("a"), &labels).await,
            writer.network_condition(&node, true).await,
        ];
        for refused in writes_of_each {
            assert_eq!(refused.is_ok(), writes, "{:?}: {refused:?}", node.provider_id);
        }
        let refused = writer.delete(&server.node("a")).await;
        assert_eq!(refused.is_ok(), deletes, "{:?}: {refused:?}", node.provider_id);
        let text = refused.map_err(|error| error.to_string());
        assert!(deletes || text.is_err_and(|text| text.starts_with("not written: the node has ")));
        assert_eq!(server.writes().len(), 3 * usize::from(writes) + usize::from(deletes));
    }
}
