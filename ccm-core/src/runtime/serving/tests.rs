//! Each endpoint, through the router and once over a real socket.
#![allow(clippy::unwrap_used)]
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower::ServiceExt;

use super::*;
use crate::telemetry::metrics::{ControllerMetrics, LeaderMetrics, NodeMetrics, ProcessMetrics};

fn endpoints(health: &Health, registry: Registry) -> Endpoints {
    let config = Config::from_args(["ccm-core", "--provider-endpoint=unix:///run/p.sock"]).unwrap();
    Endpoints::new(&config, health.clone(), Arc::new(registry)).unwrap()
}

async fn fetch(endpoints: Endpoints, path: &str) -> (u16, String) {
    let response = endpoints.router().oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn get_with(health: &Health, path: &str) -> (u16, String) {
    fetch(endpoints(health, Registry::default()), path).await
}

#[tokio::test]
async fn a_process_whose_checks_are_well_or_warn_is_ready() {
    let health = Health::default();
    health.set("provider", Check::Ok);
    health.set("deletion", Check::Warning("a breaker holds".to_owned()));
    assert_eq!(get_with(&health, "/readyz").await, (200, "ok".to_owned()));
    let listed = "[!]deletion: warning: a breaker holds\n[+]provider ok\nreadyz check passed\n";
    assert_eq!(get_with(&health, "/readyz?verbose").await, (200, listed.to_owned()));
}

#[tokio::test]
async fn a_failed_check_makes_it_unready_and_is_always_listed() {
    let health = Health::default();
    health.set("cache", Check::Ok);
    health.set("provider", Check::Failed("no socket".to_owned()));
    let listed = "[+]cache ok\n[-]provider: failed: no socket\nreadyz check failed\n";
    assert_eq!(get_with(&health, "/readyz").await, (500, listed.to_owned()));
    for path in ["/livez", "/healthz"] {
        assert_eq!(get_with(&health, path).await, (200, "ok".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_stands_still_makes_it_not_alive() {
    let health = Health::default();
    let turn = health.liveness().turn("session", Duration::from_secs(60));
    tokio::time::advance(Duration::from_secs(61)).await;
    for path in ["/livez", "/healthz"] {
        let (status, text) = get_with(&health, path).await;
        assert_eq!((status, text.as_str()), (500, "the task session has made no progress for 1m 1s\nlivez check failed\n"));
    }
    drop(turn);
    assert_eq!(get_with(&health, "/livez").await, (200, "ok".to_owned()));
}

#[tokio::test]
async fn metrics_have_gos_names() {
    let mut registry = Registry::default();
    NodeMetrics::new(&mut registry);
    LeaderMetrics::new(&mut registry).set_leading("cloud-controller-manager", true);
    ControllerMetrics::new(&mut registry).set_running("cloud-node-controller", true);
    ProcessMetrics::register(&mut registry);
    let (status, text) = fetch(endpoints(&Health::default(), registry), "/metrics").await;
    assert_eq!(status, 200);
    let expected = [
        "leader_election_master_status{name=\"cloud-controller-manager\"} 1\n",
        "running_managed_controllers{name=\"cloud-node-controller\",manager=\"cloud-controller-manager\"} 1\n",
        "node_controller_initial_node_sync_delay_seconds_bucket",
        "process_resident_memory_bytes ",
        "process_start_time_seconds ",
    ];
    for line in expected {
        assert!(text.contains(line), "{line} is not in:\n{text}");
    }
}

#[tokio::test]
async fn the_configuration_and_the_version_are_json() {
    let (_, config) = get_with(&Health::default(), "/configz").await;
    let config: Value = serde_json::from_str(&config).unwrap();
    assert_eq!(config["ccm-core.dev"]["provider"]["endpoint"], "unix:///run/p.sock");
    let (_, version) = get_with(&Health::default(), "/version").await;
    assert!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");
}

#[tokio::test]
async fn a_free_port_is_served_until_shutdown_and_a_taken_one_names_the_flag() {
    let server = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let (address, shutdown) = (server.address(), CancellationToken::new());
    let taken = Server::bind(address).await.unwrap_err().to_string();
    assert!(taken.starts_with("--bind-address, --secure-port: ") && taken.contains(&address.to_string()), "{taken}");
    let served = tokio::spawn(server.serve(endpoints(&Health::default(), Registry::default()), shutdown.clone()));
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("ok"), "{answer}");
    shutdown.cancel();
    served.await.unwrap().unwrap();
}
