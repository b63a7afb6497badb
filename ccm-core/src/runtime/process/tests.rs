//! The process and the tasks that last as long: what follows where one of them ends early.
#![allow(clippy::unwrap_used, clippy::panic)]
use std::time::Duration;

use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::*;
use crate::cluster::scripted::ApiServer;
use crate::provider::scripted::{self, Scripted};
use crate::runtime::terms::tests::parts;
use crate::telemetry::liveness;

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cloud-controller-manager";
const SOON: Duration = Duration::from_secs(5);

fn supervisor() -> Supervisor {
    Supervisor::new(liveness::Liveness::default())
}

#[tokio::test(start_paused = true)]
async fn the_terms_are_ended_as_at_shutdown_where_any_task_of_the_process_ends() {
    for name in [
        tasks::SESSION,
        tasks::BATCHES,
        tasks::PROVIDER_ELIGIBILITY,
        tasks::ELIGIBILITY,
        tasks::ELECTION,
        tasks::EVENTS,
        tasks::SERVING,
    ] {
        for panics in [true, false] {
            let (mut background, stop) = (supervisor(), CancellationToken::new());
            background.spawn("another", std::future::pending());
            background.spawn(name, async move { assert!(!panics, "injected") });
            let (orderly, ended) = oneshot::channel();
            let terms = async {
                stop.cancelled().await;
                orderly.send(()).unwrap();
            };
            let why = govern(&mut background, &stop, terms).await.unwrap();
            assert_eq!(why.task, name);
            assert_eq!(why.how == How::Returned, !panics);
            ended.await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_what_runs_the_terms_is_an_end_like_any_other() {
    let (mut background, stop) = (supervisor(), CancellationToken::new());
    let why = govern(&mut background, &stop, async { panic!("injected") }).await.unwrap();
    assert_eq!(why.to_string(), "the task leadership-terms panicked: injected");
    assert!(stop.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn an_orderly_end_has_no_cause() {
    let (mut background, stop) = (supervisor(), CancellationToken::new());
    background.spawn("session", std::future::pending());
    stop.cancel();
    assert_eq!(govern(&mut background, &stop, async {}).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_of_which_a_task_panics_gives_the_lease_back_and_fails() {
    let (folder, api) = (tempfile::tempdir().unwrap(), ApiServer::default());
    let _serving = Scripted::new(scripted::info()).serve(&folder.path().join("p.sock"));
    let parts = parts(&folder, &api, &["--controllers=-cloud-node,-cloud-node-lifecycle,-service"]);
    let (trigger, triggered) = oneshot::channel::<()>();
    let mut background = supervisor();
    background.spawn("injected", async move {
        drop(triggered.await);
        panic!("injected");
    });
    let process = tokio::spawn(async move { Box::pin(parts.run(&mut background, CancellationToken::new())).await });
    let holder = || api.object(LEASE).map(|lease| lease["spec"]["holderIdentity"].clone());
    let held = async {
        while holder() != Some(json!("me")) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(20), held).await.unwrap();

    trigger.send(()).unwrap();
    let why = timeout(SOON, process).await.unwrap().unwrap().unwrap_err();
    assert_eq!(why.to_string(), "the task injected panicked: injected");
    assert_eq!(holder(), Some(json!("")), "the lease is nobody's");
}
