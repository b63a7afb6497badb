//! What is written after an answer.
use std::collections::BTreeMap;

use jiff::Timestamp;

use super::*;
use crate::cluster::patch::{ConditionChange, ServicePatch, StatusPatch};
use crate::controllers::service::tests::fixtures::{address, refusal};
use crate::model::load_balancer::{Ensured, Extras, Ingress, IngressAddress, IpMode, LoadBalancerStatus, PortStatus, Protocol};
use crate::model::service::{Condition, Service};
use crate::names::annotations::LOAD_BALANCER_CLASS;
use crate::provider::Outcome;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn answer(ingress: impl IntoIterator<Item = Ingress>) -> Ensured {
    Ensured { status: LoadBalancerStatus { ingress: ingress.into_iter().collect() }, extras: Extras::default() }
}

fn ip(mode: Option<IpMode>) -> Ingress {
    Ingress { address: IngressAddress::Ip("203.0.113.1".parse().unwrap(), mode), ports: vec![] }
}

fn both(mode: Option<IpMode>) -> Ingress {
    let (ip, name) = ("203.0.113.1".parse().unwrap(), "lb.example.com".to_owned());
    Ingress { address: IngressAddress::IpAndHostname(ip, mode, name), ports: vec![] }
}

fn service() -> Service {
    service_model(&finished("s"))
}

fn set_to(change: Option<ConditionChange>) -> Condition {
    match change {
        Some(ConditionChange::Set(condition)) => condition,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_as_it_should_be_is_not_written() {
    assert!(in_desired_state(&service(), &answer([ip(None)]), at(99)).is_empty());
}

#[test]
fn the_api_servers_default_mode_is_the_same_as_none_and_another_is_not() {
    let with_mode = |mode| Service { status: LoadBalancerStatus { ingress: vec![ip(mode)] }, ..service() };
    let (vip, proxy) = (Some(IpMode::Vip), Some(IpMode::Proxy));
    for (there, answered, written) in [
        (None, None, false),
        (vip, None, false),
        (None, vip, false),
        (vip, vip, false),
        (proxy, proxy, false),
        (vip, proxy, true),
        (proxy, None, true),
    ] {
        let status = in_desired_state(&with_mode(there), &answer([ip(answered)]), at(99));
        assert_eq!(status.load_balancer.is_some(), written, "{there:?} {answered:?}");
    }
    let with_name = Service { status: LoadBalancerStatus { ingress: vec![both(vip)] }, ..service() };
    let written = |ingress| in_desired_state(&with_name, &answer([ingress]), at(99)).load_balancer.is_some();
    assert!(!written(both(None)) && written(both(proxy)) && written(ip(vip)));
}

#[test]
fn the_status_is_written_as_it_was_answered_in_its_order() {
    let ports = vec![PortStatus { port: 80, protocol: Protocol::Tcp, error: Some("Refused".to_owned()) }];
    let hostname = Ingress { address: IngressAddress::Hostname("lb.example.com".to_owned()), ports };
    let v6 = address("2001:db8::1");
    let answers = [vec![], vec![hostname.clone()], vec![v6.clone(), ip(None)], vec![ip(None), v6], vec![hostname, ip(None)]];
    for ingress in answers {
        let status = in_desired_state(&service(), &answer(ingress.clone()), at(99));
        assert_eq!(status.load_balancer, Some(LoadBalancerStatus { ingress }));
    }
}

#[test]
fn a_condition_keeps_its_time_while_it_holds_and_gets_another_when_it_turns() {
    let ready = |ready| Condition { ready, reason: "R".into(), message: "m".into(), observed_generation: 1, since: at(1) };
    let of = |condition| Service { condition, generation: 3, ..service() };
    let (good, error) = (answer([ip(None)]), refusal(Outcome::Terminal, "QUOTA_EXCEEDED"));
    for (name, before, change, ready, since) in [
        ("none, and ready", None, in_desired_state(&of(None), &good, at(99)), true, 99),
        ("failing, and ready", Some(false), in_desired_state(&of(Some(ready(false))), &good, at(99)), true, 99),
        ("ready with other words", Some(true), in_desired_state(&of(Some(ready(true))), &good, at(99)), true, 1),
        ("none, and failing", None, failed(&of(None), &error, at(99)), false, 99),
        ("ready, and failing", Some(true), failed(&of(Some(ready(true))), &error, at(99)), false, 99),
        ("failing with other words", Some(false), failed(&of(Some(ready(false))), &error, at(99)), false, 1),
        ("ready, and at work", Some(true), in_progress(&of(Some(ready(true))), "", at(99)), false, 99),
        ("failing, and at work", Some(false), in_progress(&of(Some(ready(false))), "", at(99)), false, 1),
    ] {
        let condition = set_to(change.condition);
        assert_eq!((condition.ready, condition.since), (ready, at(since)), "{name}, before {before:?}");
        assert_eq!(condition.observed_generation, 3, "{name}");
    }
}

#[test]
fn the_same_words_are_not_written_twice() {
    let error = refusal(Outcome::Terminal, "QUOTA_EXCEEDED");
    let told = Service { condition: Some(set_to(failed(&service(), &error, at(1)).condition)), ..service() };
    assert!(failed(&told, &error, at(99)).is_empty());
    let waits = Service { condition: Some(set_to(in_progress(&service(), "soon", at(1)).condition)), ..service() };
    assert!(in_progress(&waits, "soon", at(99)).is_empty());
    assert!(!in_progress(&waits, "now", at(99)).is_empty());
}

#[test]
fn a_failure_is_told_in_the_providers_words_and_leaves_the_addresses() {
    for (reason, word) in [
        ("QUOTA_EXCEEDED", "QuotaExceeded"),
        ("UNAVAILABLE", "Unavailable"),
        ("HTTP_500", "Http500"),
        ("", "Failed"),
        ("__", "Failed"),
        ("500_X", "Failed"),
    ] {
        let patch = failed(&service(), &refusal(Outcome::Terminal, reason), at(99));
        assert_eq!(patch.load_balancer, None);
        let condition = set_to(patch.condition);
        assert_eq!((condition.reason.as_str(), condition.message), (word, format!("scripted {reason}")));
    }
    let condition = set_to(in_progress(&service(), "", at(99)).condition);
    assert_eq!(
        (condition.reason.as_str(), condition.message.as_str()),
        ("InProgress", "the cloud is at work on the load balancer")
    );
}

#[test]
fn just_the_annotations_that_differ_are_written() {
    let service = service_model(&with(finished("s"), |it| {
        it["metadata"]["annotations"] = json!({ "fake/a": "1", "fake/b": "2", "other": "3" });
    }));
    let wanted: BTreeMap<_, _> =
        [("fake/a", "1"), ("fake/b", "3"), ("fake/c", "4")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    let patch = annotations(&service, &wanted);
    let news = [("fake/b", "3"), ("fake/c", "4")].map(|(k, v)| (k.to_owned(), Some(v.to_owned())));
    assert_eq!(patch, ServicePatch { finalizer: None, annotations: news.into() });
    let ensured = Ensured { extras: Extras { annotations: wanted, warnings: vec![] }, ..answer([ip(None)]) };
    assert_eq!(in_desired_state(&service, &ensured, at(99)).annotations, patch.annotations);
    assert!(annotations(&service, &BTreeMap::new()).is_empty());
}

#[test]
fn a_service_that_stays_loses_all_that_is_ours_and_one_that_goes_just_the_finalizer() {
    let note = || (LOAD_BALANCER_CLASS.to_owned(), None);
    let kept = StatusPatch { condition: Some(ConditionChange::Remove), ..StatusPatch::default() };
    let cleared = StatusPatch { load_balancer: Some(LoadBalancerStatus::default()), ..kept.clone() };
    let deleted = with(finished("s"), |it| it["metadata"]["deletionTimestamp"] = json!("2024-05-06T07:08:09Z"));
    let bare = with(finished("s"), |it| {
        it["status"] = json!({});
        it["metadata"]["annotations"] = json!({});
    });
    for (name, service, keeps, status, annotations) in [
        ("of another type", finished("s"), false, cleared, vec![note()]),
        ("of another's class, and with its addresses", finished("s"), true, kept, vec![note()]),
        ("deleted", deleted, false, StatusPatch::default(), vec![note()]),
        ("bare", bare, false, StatusPatch::default(), vec![]),
    ] {
        let (found, patch) = removed(&service_model(&service), keeps);
        assert_eq!(found, status, "{name}");
        let finalizer = (!keeps).then_some(false);
        assert_eq!(patch, ServicePatch { finalizer, annotations: annotations.into_iter().collect() }, "{name}");
    }
}

#[test]
fn a_service_that_was_taken_over_gets_the_note_of_its_class() {
    let taken_over = |class: Option<&str>| Service {
        load_balancer_class: class.map(str::to_owned),
        annotations: BTreeMap::new(),
        ..service()
    };
    let patch = in_desired_state(&taken_over(Some("served")), &answer([ip(None)]), at(99));
    assert_eq!(patch.annotations, [(LOAD_BALANCER_CLASS.to_owned(), Some("served".to_owned()))].into());
    let patch = in_desired_state(&taken_over(None), &answer([ip(None)]), at(99));
    assert!(patch.is_empty(), "without a note it is of the default class");
}
