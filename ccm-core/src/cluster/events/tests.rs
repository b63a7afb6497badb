//! What is written of an event, and that repeats become counts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use serde_json::json;

use super::*;
use crate::cluster::scripted::{ApiServer, Call, service_model};

fn note(message: &str) -> Event {
    let subject = Subject { kind: "Node", namespace: String::new(), name: "a".into(), uid: "u1".into() };
    Event { subject, event_type: EventType::Warning, reason: "TopologyDrift".into(), message: message.into() }
}

async fn written(notes: impl IntoIterator<Item = Event>) -> Vec<Call> {
    let server = ApiServer::default();
    let (events, task) = Events::start(server.client(), Presence::default(), "cloud-node-controller", "me");
    notes.into_iter().for_each(|note| events.publish(note));
    // With its last sender gone the task ends once it has written everything.
    drop(events);
    task.await;
    server.calls()
}

#[tokio::test]
async fn an_event_says_what_happened_to_what_and_who_says_so() {
    let calls = written([note("it moved")]).await;
    let [call] = calls.as_slice() else { panic!("{calls:?}") };
    assert_eq!((call.method.as_str(), call.path.as_str()), ("POST", "/apis/events.k8s.io/v1/namespaces/default/events"));
    let body = &call.body;
    assert_eq!((body["reason"].as_str(), body["type"].as_str()), (Some("TopologyDrift"), Some("Warning")));
    assert_eq!((body["note"].as_str(), body["regarding"]["uid"].as_str()), (Some("it moved"), Some("u1")));
    assert_eq!(body["reportingController"].as_str(), Some("cloud-node-controller"));
}

#[tokio::test]
async fn an_event_about_a_service_stands_beside_it() {
    let service = service_model(&json!({ "metadata": { "namespace": "shop", "name": "web", "uid": "u2" } }));
    let calls = written([Event { subject: Subject::from(&service), ..note("no quota") }]).await;
    let [call] = calls.as_slice() else { panic!("{calls:?}") };
    assert_eq!(call.path, "/apis/events.k8s.io/v1/namespaces/shop/events");
    let regarding = json!({ "apiVersion": "v1", "kind": "Service", "namespace": "shop", "name": "web", "uid": "u2" });
    assert_eq!((&call.body["metadata"]["namespace"], &call.body["regarding"]), (&json!("shop"), &regarding));
}

#[tokio::test]
async fn a_repeat_becomes_a_count() {
    let calls = written([note("it moved"), note("it moved")]).await;
    assert_eq!(calls.iter().map(|call| call.method.as_str()).collect::<Vec<_>>(), ["POST", "PATCH"]);
    assert_eq!(calls[1].body["series"]["count"].as_i64(), Some(2));
}

#[tokio::test]
async fn other_words_are_another_event() {
    let calls = written([note("to b"), note("to c"), note("to c")]).await;
    assert_eq!(calls.iter().map(|call| call.method.as_str()).collect::<Vec<_>>(), ["POST", "POST", "PATCH"]);
    assert_eq!((calls[1].body["note"].as_str(), calls[2].body["note"].as_str()), (Some("to c"), Some("to c")));
}

#[tokio::test]
async fn a_message_that_is_too_long_is_cut_between_characters() {
    let long = format!("{}é", "x".repeat(LONGEST_MESSAGE - 1));
    let calls = written([note(&long)]).await;
    assert_eq!(calls[0].body["note"].as_str(), Some(&long[..LONGEST_MESSAGE - 1]));
}

#[test]
fn what_does_not_fit_the_queue_is_dropped_and_counted() {
    let (events, mut queue) = Events::queue(1);
    events.publish(note("first"));
    events.publish(note("second"));
    assert_eq!(events.dropped.load(Ordering::Relaxed), 1);
    assert_eq!(queue.try_recv().unwrap().message, "first");
}
