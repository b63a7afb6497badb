//! What is sent to the API server about Services. tests/e2e/service_patches.rs shows what the real one makes of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use serde_json::{Value, json};

use super::*;
use crate::cluster::gate::Closed;
use crate::cluster::gate::tests::gate;
use crate::cluster::scripted::{ApiServer, Call, service_model};
use crate::model::load_balancer::IngressAddress;

const KEY: &str = "shop/web";
const PATH: &str = "/api/v1/namespaces/shop/services/web";

fn other_condition() -> Value {
    json!({ "type": "Theirs", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2024-01-01T00:00:00Z" })
}

fn stored() -> Value {
    json!({
        "metadata": {
            "namespace": "shop", "name": "web", "uid": "u1",
            "finalizers": ["example.com/theirs"], "annotations": { "kept": "1", "old": "2" },
        },
        "spec": { "type": "LoadBalancer" },
        "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.9" }] }, "conditions": [other_condition()] },
    })
}

fn condition(message: &str) -> Condition {
    Condition {
        ready: false,
        reason: "Provisioning".into(),
        message: message.into(),
        observed_generation: 0,
        since: "2024-05-06T07:08:09.123Z".parse().unwrap(),
    }
}

fn ip(text: &str, mode: Option<IpMode>) -> Ingress {
    Ingress { address: IngressAddress::Ip(text.parse().unwrap(), mode), ports: vec![] }
}

fn both() -> Ingress {
    let (ip, mode) = ("192.0.2.2".parse().unwrap(), Some(IpMode::Vip));
    Ingress { address: IngressAddress::IpAndHostname(ip, mode, "both.example.com".into()), ports: vec![] }
}

fn set(condition: Condition) -> StatusPatch {
    StatusPatch { condition: Some(ConditionChange::Set(condition)), ..StatusPatch::default() }
}

fn finalizer(wanted: bool) -> ServicePatch {
    ServicePatch { finalizer: Some(wanted), ..ServicePatch::default() }
}

fn last(server: &ApiServer) -> Call {
    server.calls().pop().expect("nothing was asked")
}

#[tokio::test]
async fn finalizer_and_annotations_are_one_patch_that_names_the_object_and_its_version() {
    let server = ApiServer::with_services([stored()]);
    let (_open, gate) = gate();
    let patch = ServicePatch {
        finalizer: Some(true),
        annotations: [("new".to_owned(), Some("3".to_owned())), ("old".to_owned(), None)].into(),
    };
    let after = ServiceWriter::new(server.client(), gate).patch(&server.service(KEY).unwrap(), &patch).await.unwrap();
    let call = last(&server);
    assert_eq!((call.method.as_str(), call.path.as_str()), ("PATCH", PATH));
    assert!(call.query.contains("fieldManager=ccm-core"), "{}", call.query);
    assert_eq!(
        call.body,
        json!({
            "metadata": {
                "uid": "u1", "resourceVersion": "1",
                "finalizers": ["service.kubernetes.io/load-balancer-cleanup"],
                "annotations": { "new": "3", "old": null },
            },
        })
    );
    assert_eq!(after.finalizers, [names::LOAD_BALANCER_FINALIZER, "example.com/theirs"]);
    assert_eq!(after.annotations.keys().collect::<Vec<_>>(), ["kept", "new"]);
}

#[tokio::test]
async fn only_our_finalizer_is_taken_away() {
    let server = ApiServer::with_services([stored()]);
    let (_open, gate) = gate();
    let writer = ServiceWriter::new(server.client(), gate);
    let with = writer.patch(&server.service(KEY).unwrap(), &finalizer(true)).await.unwrap();
    let without = writer.patch(&with, &finalizer(false)).await.unwrap();
    assert_eq!(without.finalizers, ["example.com/theirs"]);
    let metadata = &last(&server).body["metadata"];
    assert_eq!(metadata["$deleteFromPrimitiveList/finalizers"], json!([names::LOAD_BALANCER_FINALIZER]));
    assert!(metadata["finalizers"].is_null());
}

#[tokio::test]
async fn addresses_and_condition_are_written_together_and_the_conditions_of_others_stay() {
    let server = ApiServer::with_services([stored()]);
    let (_open, gate) = gate();
    let error = PortStatus { port: 80, protocol: Protocol::Udp, error: Some("Busy".into()) };
    let name = Ingress { address: IngressAddress::Hostname("lb.example.com".into()), ports: vec![error] };
    let status =
        LoadBalancerStatus { ingress: vec![ip("192.0.2.1", Some(IpMode::Proxy)), ip("2001:db8::1", None), both(), name] };
    let ready = Condition { ready: true, observed_generation: 3, ..condition("fine") };
    let patch = StatusPatch { load_balancer: Some(status.clone()), ..set(ready.clone()) };
    let after = ServiceWriter::new(server.client(), gate).patch_status(&server.service(KEY).unwrap(), &patch).await.unwrap();
    let call = last(&server);
    assert_eq!(call.path, format!("{PATH}/status"));
    assert_eq!(
        call.body,
        json!({
            "metadata": { "uid": "u1", "resourceVersion": "1" },
            "status": {
                "loadBalancer": {
                    "$patch": "replace",
                    "ingress": [
                        { "ip": "192.0.2.1", "ipMode": "Proxy" },
                        { "ip": "2001:db8::1" },
                        { "ip": "192.0.2.2", "ipMode": "VIP", "hostname": "both.example.com" },
                        { "hostname": "lb.example.com", "ports": [{ "port": 80, "protocol": "UDP", "error": "Busy" }] },
                    ],
                },
                "conditions": [{
                    "type": "LoadBalancerReady", "status": "True", "reason": "Provisioning", "message": "fine",
                    "lastTransitionTime": "2024-05-06T07:08:09Z", "observedGeneration": 3,
                }],
            },
        })
    );
    assert_eq!(after.status, status);
    assert_eq!(after.condition, Some(Condition { since: "2024-05-06T07:08:09Z".parse().unwrap(), ..ready }));
    assert_eq!(server.object(PATH).unwrap()["status"]["conditions"][0], other_condition());
}

#[tokio::test]
async fn what_is_not_named_stays_and_an_empty_status_takes_all_addresses_away() {
    let server = ApiServer::with_services([stored()]);
    let (_open, gate) = gate();
    let writer = ServiceWriter::new(server.client(), gate);
    let after = writer.patch_status(&server.service(KEY).unwrap(), &set(condition("wait"))).await.unwrap();
    assert_eq!(after.status.ingress, [ip("192.0.2.9", None)]);
    let none = StatusPatch { load_balancer: Some(LoadBalancerStatus::default()), ..StatusPatch::default() };
    let after = writer.patch_status(&after, &none).await.unwrap();
    assert_eq!((after.status.ingress.len(), after.condition.is_some()), (0, true));
    assert_eq!(last(&server).body["status"], json!({ "loadBalancer": { "$patch": "replace" } }));
}

#[tokio::test]
async fn our_condition_alone_is_removed() {
    let server = ApiServer::with_services([stored()]);
    let (_open, gate) = gate();
    let writer = ServiceWriter::new(server.client(), gate);
    let remove = StatusPatch { condition: Some(ConditionChange::Remove), ..StatusPatch::default() };
    let with = writer.patch_status(&server.service(KEY).unwrap(), &set(condition("wait"))).await.unwrap();
    let without = writer.patch_status(&with, &remove).await.unwrap();
    assert_eq!((with.condition.is_some(), without.condition), (true, None));
    let instruction = json!([{ "$patch": "delete", "type": "LoadBalancerReady" }]);
    assert_eq!(last(&server).body["status"], json!({ "conditions": instruction }));
    assert_eq!(server.object(PATH).unwrap()["status"]["conditions"], json!([other_condition()]));
}

#[tokio::test]
async fn a_message_that_is_too_long_is_cut_between_characters() {
    let server = ApiServer::with_services([stored()]);
    let (_open, gate) = gate();
    let long = format!("{}é", "x".repeat(LONGEST_MESSAGE - 1));
    let patch = set(condition(&long));
    ServiceWriter::new(server.client(), gate).patch_status(&server.service(KEY).unwrap(), &patch).await.unwrap();
    let body = last(&server).body;
    assert_eq!(body["status"]["conditions"][0]["message"].as_str(), Some(&long[..LONGEST_MESSAGE - 1]));
}

#[tokio::test]
async fn an_old_reading_is_a_conflict_and_another_service_of_the_name_is_not_the_one_meant() {
    let server = ApiServer::with_services([stored()]);
    let (_open, gate) = gate();
    let writer = ServiceWriter::new(server.client(), gate);
    let old = server.service(KEY).unwrap();
    server.put_service(stored());
    assert!(matches!(writer.patch(&old, &finalizer(true)).await, Err(WriteError::Conflict)));
    assert!(matches!(writer.patch_status(&old, &set(condition("wait"))).await, Err(WriteError::Conflict)));
    assert_eq!(writer.get(&old).await.unwrap(), server.service(KEY).unwrap());
    let mut another = stored();
    another["metadata"]["uid"] = json!("u2");
    server.put_service(another);
    assert!(matches!(writer.get(&old).await, Err(WriteError::Gone)));
    server.remove(PATH);
    assert!(matches!(writer.get(&old).await, Err(WriteError::Gone)));
    assert!(matches!(writer.patch(&old, &finalizer(true)).await, Err(WriteError::Gone)));
}

#[tokio::test]
async fn a_service_that_is_being_deleted_goes_with_its_last_finalizer() {
    let mut service = stored();
    service["metadata"]["finalizers"] = json!([names::LOAD_BALANCER_FINALIZER]);
    service["metadata"]["deletionTimestamp"] = json!("2024-05-06T07:08:09Z");
    let server = ApiServer::with_services([service]);
    let (_open, gate) = gate();
    let writer = ServiceWriter::new(server.client(), gate);
    let last = writer.patch(&server.service(KEY).unwrap(), &finalizer(false)).await.unwrap();
    assert!(!last.has_finalizer() && server.service(KEY).is_none());
}

#[tokio::test]
async fn a_closed_gate_keeps_every_write_in_and_lets_reads_out() {
    let server = ApiServer::with_services([stored()]);
    let (open, gate) = gate();
    let writer = ServiceWriter::new(server.client(), gate);
    open.term.send_replace(None);
    let service = writer.get(&service_model(&stored())).await.unwrap();
    let closed = |result| matches!(result, Err(WriteError::Closed(Closed::NotLeading)));
    assert!(closed(writer.patch(&service, &finalizer(true)).await));
    assert!(closed(writer.patch_status(&service, &set(condition("wait"))).await));
    assert_eq!(server.writes(), Vec::<String>::new());
}
