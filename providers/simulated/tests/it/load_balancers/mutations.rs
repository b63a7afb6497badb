//! One mutation of a load balancer at a time: who waits, who is counted, and what becomes of work whose caller is gone.
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::leading::{Leading, nodes, service};
use crate::processes::{eventually, start_cloud};

/// How long a mutation takes here.
const LATENCY: &str = "300ms";

fn wanted(node: &str) -> Value {
    json!({
        "mark": {"clusterUid": "c", "serviceUid": "s", "namespace": "default", "service": "web"},
        "ipFamilies": ["IPv4"],
        "listeners": [{"port": 80, "protocol": "TCP", "nodePort": 30_000}],
        "targets": [{"node": node}],
    })
}

async fn put(url: &str, name: &str, process: &str, node: &str) -> Value {
    let request = reqwest::Client::new().put(format!("{url}/v1/load-balancers/{name}"));
    let response = request.header("x-provider-process", process).json(&wanted(node)).send().await.unwrap();
    response.json().await.unwrap()
}

async fn get(url: &str, path: &str) -> Value {
    reqwest::get(format!("{url}{path}")).await.unwrap().json().await.unwrap()
}

async fn overlapping(url: &str) -> Value {
    get(url, "/v1/calls").await["OverlappingMutations"].clone()
}

#[tokio::test]
async fn two_of_one_process_are_counted_and_two_of_different_ones_are_not() {
    let (_cloud, url) = start_cloud(&["--latency", LATENCY]);
    let started = Instant::now();
    tokio::join!(put(&url, "web", "one", "a"), put(&url, "web", "other", "b"), put(&url, "db", "one", "a"));
    assert!(started.elapsed() >= Duration::from_millis(600), "one did not wait its turn");
    assert_eq!(overlapping(&url).await, 0);
    let answers = tokio::join!(put(&url, "web", "one", "c"), put(&url, "web", "one", "d"));
    assert_eq!(overlapping(&url).await, 1);
    let mut mutations = [&answers.0, &answers.1].map(|answer| answer["mutations"].as_u64().unwrap());
    mutations.sort_unstable();
    assert_eq!(mutations, [3, 4], "both took effect, one after the other");
}

#[tokio::test]
async fn a_mutation_whose_client_is_gone_is_made_as_a_whole() {
    let (_cloud, url) = start_cloud(&["--latency", LATENCY]);
    let client = reqwest::Client::builder().timeout(Duration::from_millis(100)).build().unwrap();
    let request = client.put(format!("{url}/v1/load-balancers/web")).json(&wanted("node-1"));
    assert!(request.send().await.unwrap_err().is_timeout());
    let there = eventually(async || Some(get(&url, "/v1/load-balancer-records").await).filter(|all| *all != json!([]))).await;
    assert_eq!(there[0]["wanted"]["targets"], json!([{"node": "node-1"}]));
    assert_eq!(there[0]["addresses"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_new_leaders_call_waits_for_what_its_predecessor_has_sent_to_the_cloud() {
    let (_cloud, url) = start_cloud(&["--latency", LATENCY]);
    let mut core = Leading::start(&["--cloud", &url]).await;
    let web = service("u", &[]);
    let dropped = {
        let first = nodes(&["node-1"]);
        let lead = core.lead.take();
        let sent = async {
            eventually(async || (get(&url, "/v1/calls").await["PutLoadBalancer"] == 1).then_some(())).await;
            drop(lead);
        };
        tokio::join!(core.ensure(&web, &first), sent).0
    };
    assert!(dropped.is_err(), "{dropped:?}");
    core.lead().await;
    core.ready(&web, &nodes(&["node-2"])).await;
    assert_eq!(overlapping(&url).await, 0);
    assert_eq!((&core.there()[0]["targets"], &core.there()[0]["mutations"]), (&json!(["node-2"]), &json!(2)));
}

#[tokio::test]
async fn two_hundred_at_once_have_an_address_each() {
    let state = tempfile::tempdir().unwrap();
    let core = Leading::start(&["--latency", "5ms", "--state", state.path().to_str().unwrap()]).await;
    let services: Vec<_> = (0..200).map(|n| service(&format!("u{n}"), &[])).collect();
    let targets = nodes(&["node-1"]);
    join_all(services.iter().map(|service| core.ready(service, &targets))).await;
    let there = core.there();
    let addresses: std::collections::HashSet<_> = there.iter().map(|one| one["addresses"][0].to_string()).collect();
    assert_eq!((there.len(), addresses.len()), (200, 200));
}

#[tokio::test]
async fn a_request_that_makes_no_sense_is_refused_by_its_field() {
    let (_cloud, url) = start_cloud(&[]);
    let client = reqwest::Client::new();
    let bad = json!({"mark": {"clusterUid": "c", "serviceUid": ""}, "ipFamilies": ["IPv4"], "listeners": [], "targets": []});
    let table = [
        (client.put(format!("{url}/v1/load-balancers/web")).json(&bad), "mark.serviceUid"),
        (client.put(format!("{url}/v1/load-balancers/a_b")).json(&wanted("a")), "name"),
        (client.get(format!("{url}/v1/load-balancers")), "clusterUid"),
        (client.delete(format!("{url}/v1/load-balancers/web")), "clusterUid"),
    ];
    for (request, words) in table {
        let response = request.send().await.unwrap();
        assert_eq!(response.status().as_u16(), 400, "{words}");
        let body: Value = response.json().await.unwrap();
        assert!(body["message"].as_str().unwrap().contains(words), "{body}");
    }
}

#[tokio::test]
async fn the_request_of_the_documentation_is_understood() {
    let (_cloud, url) = start_cloud(&[]);
    let example = include_str!("../../../README.md").split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    let wanted: Value = serde_json::from_str(example).unwrap();
    let request = reqwest::Client::new().put(format!("{url}/v1/load-balancers/web")).json(&wanted);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["wanted"], wanted);
}
