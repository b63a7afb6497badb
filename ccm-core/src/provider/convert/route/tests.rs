//! Lists and results with parts that are missing, of no use or contradictory, one row each.
#![allow(clippy::unwrap_used, clippy::panic)]
use std::time::Duration;

use super::*;
use crate::model::node::AddressType;
use crate::provider::Outcome as Kind;

fn wire(destination: &str) -> v1::Route {
    v1::Route {
        destination_cidr: destination.to_owned(),
        target_node_name: "a".to_owned(),
        owner: v1::RouteOwner::ThisCluster.into(),
        ..v1::Route::default()
    }
}

fn part(routes: Vec<v1::Route>, observed_at: Option<i64>) -> v1::ListRoutesResponse {
    let observed_at = observed_at.map(|seconds| prost_types::Timestamp { seconds, nanos: 0 });
    v1::ListRoutesResponse { routes, observed_at }
}

fn read(messages: Vec<v1::ListRoutesResponse>) -> Result<RouteTable, ProviderError> {
    route_table(messages, Timestamp::from_second(1000).unwrap(), &LeftOut::default())
}

fn read_one(wire: v1::Route) -> Route {
    read(vec![part(vec![wire], None)]).unwrap().routes.remove(0)
}

fn address(kind: v1::NodeAddressType, value: &str) -> v1::NodeAddress {
    v1::NodeAddress { r#type: kind.into(), address: value.to_owned() }
}

#[test]
fn a_listed_route_is_read_whole_and_deleted_as_it_was_listed() {
    let whole = v1::Route {
        name: "r".to_owned(),
        target_provider_id: Some("fake://1".to_owned()),
        target_addresses: vec![address(v1::NodeAddressType::InternalIp, "10.0.0.1")],
        blackhole: true,
        target_description: "eni-1".to_owned(),
        ..wire("10.244.3.0/24")
    };
    let route = read_one(whole.clone());
    let target = RouteTarget {
        node_name: Some("a".to_owned()),
        provider_id: Some("fake://1".to_owned()),
        addresses: vec![Address { kind: AddressType::InternalIp, value: "10.0.0.1".to_owned() }],
        description: "eni-1".to_owned(),
    };
    let destination = "10.244.3.0/24".parse().unwrap();
    assert_eq!(route, Route { name: "r".to_owned(), target, destination, is_blackhole: true, is_ours: true });
    assert_eq!(deletion((7, &route)), v1::DeleteRouteItem { key: "7".to_owned(), route: Some(whole) });
}

#[test]
fn what_is_unknown_of_a_target_is_none_and_not_empty() {
    let bare = v1::Route { target_node_name: String::new(), target_provider_id: Some(String::new()), ..wire("fd00::/64") };
    assert_eq!(read_one(bare).target, RouteTarget::default());
}

#[test]
fn host_bits_of_a_destination_are_cut_off() {
    for (listed, read) in [("10.0.1.7/24", "10.0.1.0/24"), ("fd00::7/64", "fd00::/64"), ("0.0.0.0/0", "0.0.0.0/0")] {
        assert_eq!(read_one(wire(listed)).destination.to_string(), read);
    }
}

#[test]
fn only_this_cluster_is_us() {
    let owners = [(v1::RouteOwner::ThisCluster as i32, true), (v1::RouteOwner::Other as i32, false), (0, false), (99, false)];
    for (owner, is_ours) in owners {
        assert_eq!(read_one(v1::Route { owner, ..wire("10.0.1.0/24") }).is_ours, is_ours, "owner {owner}");
    }
}

#[test]
fn what_cannot_be_used_is_left_out_and_reported_once_for_each_text() {
    let left_out = LeftOut::default();
    let list = || vec![part(vec![wire("Internet"), wire("10.0.1.0/24"), wire("")], None), part(vec![wire("Internet")], None)];
    for _ in 0..2 {
        let table = route_table(list(), Timestamp::UNIX_EPOCH, &left_out).unwrap();
        assert_eq!(table.routes.len(), 1);
    }
    assert!(!left_out.report("", "Internet", "") && !left_out.report("", "", ""));
    assert!(left_out.report("", "AzureCloud", ""));
    let addresses =
        vec![address(v1::NodeAddressType::Unspecified, "10.0.0.1"), address(v1::NodeAddressType::InternalIp, "10.0.0.2")];
    let route = read_one(v1::Route { target_addresses: addresses, ..wire("10.0.1.0/24") });
    assert_eq!(route.target.addresses.iter().map(|it| it.value.as_str()).collect::<Vec<_>>(), ["10.0.0.2"]);
}

#[test]
fn the_earliest_time_of_a_list_counts_and_one_in_the_future_is_an_error() {
    let times = |times: &[Option<i64>]| read(times.iter().map(|time| part(vec![], *time)).collect());
    assert_eq!(times(&[]).unwrap().observed_at, None);
    assert_eq!(times(&[None]).unwrap().observed_at, None);
    let earliest = times(&[Some(900), None, Some(800), Some(1000)]).unwrap();
    assert_eq!(earliest.observed_at, Some(Timestamp::from_second(800).unwrap()));
    let error = times(&[Some(900), Some(9000)]).unwrap_err();
    assert!(error.reason == "INTERNAL" && error.message.contains("observed_at"), "{error}");
}

fn result(key: &str, outcome: Outcome) -> v1::RouteResult {
    v1::RouteResult { key: key.to_owned(), outcome: Some(outcome) }
}

fn done(key: &str) -> v1::RouteResult {
    result(key, Outcome::Done(v1::RouteDone {}))
}

#[test]
fn results_go_to_their_items_whatever_their_order() {
    let poll = |seconds| v1::InProgress { poll_after: Some(prost_types::Duration { seconds, nanos: 0 }), message: String::new() };
    let results = vec![
        result("3", Outcome::InProgress(poll(86_400))),
        result("2", Outcome::InProgress(v1::InProgress::default())),
        done("0"),
        result("1", Outcome::TargetNotFound(v1::RouteTargetNotFound {})),
        result("4", Outcome::InProgress(poll(0))),
    ];
    let wait = |seconds| Ok(RouteOutcome::InProgress(Duration::from_secs(seconds)));
    let expected = [
        Ok(RouteOutcome::Done),
        Ok(RouteOutcome::TargetNotFound),
        wait(5),
        wait(3600),
        Ok(RouteOutcome::InProgress(Duration::from_millis(100))),
    ];
    assert_eq!(route_results(5, results), expected);
}

#[test]
fn a_result_that_is_missing_double_or_empty_is_an_error_of_its_item_alone() {
    let empty = v1::RouteResult { key: "3".to_owned(), outcome: None };
    let answers = route_results(4, vec![done("0"), done("1"), done("1"), empty, done("stranger")]);
    assert_eq!(answers[0], Ok(RouteOutcome::Done));
    for (index, what) in [(1, "\"1\" was answered 2 times"), (2, "there is none for \"2\""), (3, "results[3]: has no outcome")] {
        let error = answers[index].as_ref().unwrap_err();
        assert!(error.reason == "INTERNAL" && error.message.contains(what), "{error}");
    }
}

#[test]
fn an_error_of_an_item_is_that_item_s_unimplemented_included() {
    let error = |code: tonic::Code, reason: v1::ErrorReason| {
        Outcome::Error(v1::ItemError { code: code.into(), reason: reason.into(), message: "words".to_owned(), retry_after: None })
    };
    let results = vec![
        result("0", error(tonic::Code::Unimplemented, v1::ErrorReason::NotImplemented)),
        result("1", error(tonic::Code::FailedPrecondition, v1::ErrorReason::NotOwned)),
        result("2", error(tonic::Code::Aborted, v1::ErrorReason::Conflict)),
        done("3"),
    ];
    let answers = route_results(4, results);
    let outcomes: Vec<_> = answers[..3].iter().map(|it| it.as_ref().unwrap_err().outcome).collect();
    assert_eq!(outcomes, [Kind::Terminal, Kind::Terminal, Kind::Retry { after: None }]);
    assert_eq!(answers[3], Ok(RouteOutcome::Done));
}

#[test]
fn a_wanted_route_crosses_whole() {
    let wanted = WantedRoute {
        destination: "fd00:1::/64".parse().unwrap(),
        node_name: "a".to_owned(),
        node_uid: "u".to_owned(),
        provider_id: Some("fake://a".to_owned()),
        addresses: vec![Address { kind: AddressType::ExternalIp, value: "192.0.2.1".to_owned() }],
    };
    let item = creation((0, &wanted));
    let route = v1::Route {
        target_provider_id: Some("fake://a".to_owned()),
        target_addresses: vec![address(v1::NodeAddressType::ExternalIp, "192.0.2.1")],
        owner: 0,
        ..wire("fd00:1::/64")
    };
    assert_eq!(item, v1::CreateRouteItem { key: "0".to_owned(), name_hint: "u".to_owned(), route: Some(route) });
}
