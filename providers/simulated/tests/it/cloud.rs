//! The cloud's API over plain HTTP, as README.md documents it.
use std::time::Duration;

use serde_json::{Value, json};

use crate::processes::{eventually, program, start_cloud};

async fn post(url: &str, path: &str, body: &Value) -> (u16, Value) {
    let response = reqwest::Client::new().post(format!("{url}{path}")).json(body).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn get(url: &str, path: &str) -> Value {
    reqwest::get(format!("{url}{path}")).await.unwrap().json().await.unwrap()
}

#[tokio::test]
async fn kill_9_of_the_cloud_keeps_every_acknowledged_change() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().to_str().unwrap();
    let (mut cloud, url) = start_cloud(&["--state", state]);
    let identity = get(&url, "/v1/cloud").await["cloudIdentity"].clone();
    for n in 0..20 {
        let change = json!({"action": "add", "instances": [{"name": format!("node-{n}")}]});
        assert_eq!(post(&url, "/v1/changes", &change).await.0, 200);
    }
    cloud.kill();
    let (_cloud, url) = start_cloud(&["--state", state]);
    assert_eq!(get(&url, "/v1/instances").await.as_array().unwrap().len(), 20);
    assert_eq!(get(&url, "/v1/cloud").await["cloudIdentity"], identity);
}

#[tokio::test]
async fn a_second_cloud_on_the_same_state_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().to_str().unwrap();
    let _first = start_cloud(&["--state", state]);
    let second = program().args(["cloud", "--state", state]).output().unwrap();
    let message = String::from_utf8(second.stderr).unwrap();
    assert!(!second.status.success() && message.contains("another process uses"), "{message}");
}

#[tokio::test]
async fn beyond_the_rate_limit_the_answer_is_429_with_retry_after() {
    let (_cloud, url) = start_cloud(&["--auto-instances", "--rate-limit", "0.01", "--rate-burst", "1"]);
    assert_eq!(post(&url, "/v1/lookup", &json!([{"name": "a"}])).await.0, 200);
    let refused = reqwest::Client::new().post(format!("{url}/v1/lookup")).json(&json!([{"name": "a"}])).send().await.unwrap();
    assert_eq!(refused.status().as_u16(), 429);
    let seconds: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((90..=101).contains(&seconds), "{seconds}");
    assert_eq!(get(&url, "/v1/calls").await, json!({"LookUp": 2, "OverlappingMutations": 0}));
}

#[tokio::test]
async fn a_lagging_cloud_shows_changes_later() {
    let (_cloud, url) = start_cloud(&["--lag", "300ms"]);
    let asked = tokio::time::Instant::now();
    post(&url, "/v1/changes", &json!({"action": "add", "instances": [{"name": "a"}]})).await;
    assert_eq!(get(&url, "/v1/instances").await.as_array().unwrap().len(), 1);
    let seen = async || post(&url, "/v1/lookup", &json!([{"name": "a"}])).await.1["items"][0]["outcome"]["found"].is_object();
    eventually(async || seen().await.then_some(())).await;
    assert!(asked.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn refusals_are_json_with_a_code_and_the_path_of_the_field() {
    let (_cloud, url) = start_cloud(&[]);
    let table = [
        ("/v1/changes", json!({"action": "add", "instances": [{"name": "a", "zone": "moon"}]}), 400, "instances[0].zone"),
        ("/v1/changes", json!({"action": "stop", "instances": [{"name": "ghost"}]}), 404, "ghost"),
        ("/v1/changes", json!({"action": "explode", "instances": []}), 400, "explode"),
        ("/v1/faults", json!({"name": "gremlins"}), 400, "gremlins"),
        ("/v1/nothing", json!({}), 404, "README.md"),
    ];
    for (path, body, status, words) in table {
        let (got, answer) = post(&url, path, &body).await;
        let message = answer["message"].as_str().unwrap();
        assert!(got == status && message.contains(words), "{path} {body}: {got} {message}");
    }
}

#[test]
fn a_wrong_configuration_is_refused_by_its_path() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cloud.yaml");
    std::fs::write(&file, "instances: [{name: a}, {name: b}, {name: c, zone: moon}]").unwrap();
    let output = program().args(["cloud", "--config", file.to_str().unwrap()]).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && message.contains("instances[2].zone"), "{message}");
}
