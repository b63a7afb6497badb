//! Terms whose tasks panic or end early, with a provider behind a real socket and a scripted API server; the test is the elector.
#![allow(clippy::unwrap_used, clippy::panic)]
use std::time::Instant;

use prometheus_client::registry::Registry;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::cluster::presence::Presence;
use crate::cluster::scripted::ApiServer;
use crate::config::Config;
use crate::provider::Anyone;
use crate::provider::scripted::{self, Scripted, Serving};
use crate::provider::session::Session;
use crate::runtime::kubernetes::clients::Clients;
use crate::runtime::{Metrics, Parts};
use crate::telemetry::health::Health;
use crate::telemetry::metrics::NodeMetrics;

/// How soon a term must have ended, and the most patience otherwise.
const SOON: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(20);

/// Parts of a process without an election of its own.
pub fn parts(folder: &TempDir, api: &ApiServer, args: &[&str]) -> Parts {
    let endpoint = format!("--provider-endpoint=unix://{}", folder.path().join("p.sock").display());
    let args = ["ccm-core", &endpoint, "--allow-untagged-cloud"].into_iter().chain(args.iter().copied());
    let client = api.client();
    let clients = Clients {
        requests: client.clone(),
        watches: client.clone(),
        election: client.clone(),
        probe: client.clone(),
        presence: Presence::default(),
    };
    let (metrics, health) = (Metrics::new(&mut Registry::default()), Health::default());
    Parts {
        config: Config::from_args(args).unwrap(),
        client,
        clients,
        cluster_uid: "uid".to_owned(),
        identity: "me".to_owned(),
        metrics,
        health,
    }
}

struct Scenario {
    leading: watch::Sender<Option<Leading>>,
    resting: watch::Receiver<bool>,
    term: watch::Receiver<Option<Term>>,
    health: Health,
    nodes: NodeMetrics,
    shutdown: CancellationToken,
    terms: JoinHandle<()>,
    session: JoinHandle<()>,
    _kept: (TempDir, Serving),
}

impl Scenario {
    /// Terms with these tasks.
    fn new(start: Start) -> Self {
        let (folder, api) = (tempfile::tempdir().unwrap(), ApiServer::default());
        let serving = Scripted::new(scripted::info()).serve(&folder.path().join("p.sock"));
        let (term, terms) = watch::channel(None);
        let (handle, session) = Session::start(scripted::session_in(folder.path()), Arc::new(Anyone), terms.clone());
        let session = tokio::spawn(session);
        let (batcher, _) = handle.instances();
        let (resting, rests) = watch::channel(false);
        let (events, _) = Events::queue(100);
        let parts = parts(&folder, &api, &["--leader-elect=false"]);
        let (health, nodes) = (parts.health.clone(), parts.metrics.nodes.clone());
        let rate_limit = batcher.rate_limit();
        let wires =
            Wires { handle, instances: Arc::new(batcher), rate_limit, events, term, mirror: watch::channel(None).0, resting };
        let (leading, leadings) = watch::channel(None);
        let shutdown = CancellationToken::new();
        let (serving_terms, asked) = (Terms { start, ..Terms::new(parts, wires) }, shutdown.clone());
        let serve = async move { serving_terms.serve(leadings, &asked).await };
        let task = tokio::spawn(serve);
        Self { leading, resting: rests, term: terms, health, nodes, shutdown, terms: task, session, _kept: (folder, serving) }
    }

    /// Gains the lease, and waits until the term has begun.
    async fn gain(&mut self) {
        self.leading.send_replace(Some(Leading::without_election("me")));
        timeout(PATIENCE, self.term.wait_for(Option::is_some)).await.unwrap().unwrap();
    }

    /// Waits until the term has ended and the lease is to be given back, and does that as the elector would.
    async fn gives_back(&mut self) {
        let began = Instant::now();
        timeout(PATIENCE, self.resting.wait_for(|resting| *resting)).await.unwrap().unwrap();
        assert!(self.term.borrow().is_none(), "nothing writes when the lease goes");
        assert!(began.elapsed() < SOON, "it took {:?}", began.elapsed());
        self.leading.send_replace(None);
    }

    async fn end(self) {
        self.shutdown.cancel();
        timeout(PATIENCE, self.terms).await.unwrap().unwrap();
        self.session.abort();
    }
}

/// A term of which one task ends in this way, and another one only when it is told to.
fn with(reports: TermReports, stop: &CancellationToken, spawn: impl FnOnce(&mut Running)) -> Running {
    let (mut running, stop) = (Running::new(reports), stop.clone());
    running.tasks.spawn("service", async move { stop.cancelled().await });
    spawn(&mut running);
    running
}

fn controller_panics(_: &Terms, _: TermStore, reports: TermReports, stop: &CancellationToken) -> Running {
    with(reports, stop, |it| it.tasks.spawn("cloud-node", async { panic!("injected") }))
}

fn watch_returns(_: &Terms, _: TermStore, reports: TermReports, stop: &CancellationToken) -> Running {
    with(reports, stop, |it| it.tasks.spawn("node-watch", async {}))
}

fn writer_panics(_: &Terms, _: TermStore, reports: TermReports, stop: &CancellationToken) -> Running {
    with(reports, stop, |it| it.writers.spawn("node-events", async { panic!("injected") }))
}

fn all_is_well(_: &Terms, _: TermStore, reports: TermReports, stop: &CancellationToken) -> Running {
    with(reports, stop, |_| {})
}

#[tokio::test(flavor = "multi_thread")]
async fn whichever_task_of_a_term_ends_the_term_ends_with_it_and_the_lease_is_left_to_others() {
    let cases: [(Start, &str); 3] = [
        (controller_panics, "the task cloud-node panicked: injected"),
        (watch_returns, "the task node-watch ended early"),
        (writer_panics, "the task node-events panicked: injected"),
    ];
    for (start, words) in cases {
        let mut scenario = Scenario::new(start);
        scenario.leading.send_replace(Some(Leading::without_election("me")));
        scenario.gives_back().await;
        let check = scenario.health.checks().remove(broken::CHECK);
        assert!(matches!(&check, Some(Check::Warning(message)) if message.contains(words)), "{check:?}");
        // It contends again, and the term that follows ends alike.
        timeout(PATIENCE, scenario.resting.wait_for(|resting| !*resting)).await.unwrap().unwrap();
        scenario.leading.send_replace(Some(Leading::without_election("me")));
        scenario.gives_back().await;
        scenario.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_term_whose_tasks_run_goes_on() {
    let mut scenario = Scenario::new(all_is_well);
    scenario.gain().await;
    assert!(timeout(Duration::from_secs(1), scenario.resting.wait_for(|resting| *resting)).await.is_err());
    assert!(scenario.term.borrow().is_some());
    scenario.end().await;
}

fn says_much(_: &Terms, _: TermStore, mut reports: TermReports, stop: &CancellationToken) -> Running {
    reports.health.set("node-deletion", Check::Warning("no node is deleted".to_owned()));
    reports.nodes.breakers_tripped.set(1);
    reports.runs("cloud-node");
    with(reports, stop, |_| {})
}

/// Waits until readiness has the line of [`says_much`], or not, and the gauge this value.
async fn reported(scenario: &Scenario, line: bool, gauge: i64) {
    let now = || (scenario.health.checks().contains_key("node-deletion"), scenario.nodes.breakers_tripped.get());
    let so = async {
        while now() != (line, gauge) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, so).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_lost_the_lease_reports_nothing_that_only_a_leader_knows() {
    let mut scenario = Scenario::new(says_much);
    let before = scenario.health.checks();
    scenario.gain().await;
    reported(&scenario, true, 1).await;
    scenario.leading.send_replace(None);
    reported(&scenario, false, 0).await;
    assert_eq!(scenario.health.checks(), before);
    scenario.end().await;
}
