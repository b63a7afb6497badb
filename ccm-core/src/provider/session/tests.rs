//! Sessions over real sockets: providers that come late, die, come back, lie, or are none.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use ccm_proto::v1;
use futures::future::join_all;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;
use tokio::task::JoinHandle;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use super::*;
use crate::model::instance::{Answer, Lookup, NodeQuery};
use crate::model::provider_info::Capability;
use crate::model::term::Cloud;
use crate::provider::scripted::{self, Scripted};
use crate::provider::{Instances, Outcome, Priority, ProviderState, Verdict};

mod handshakes;
mod peers;

/// Accepts any cloud until told otherwise.
#[derive(Default)]
struct Scripts(Mutex<Option<Verdict>>);

#[async_trait]
impl Judge for Scripts {
    async fn judge(&self, _: &ProviderInfo) -> Result<(), Verdict> {
        self.0.lock().clone().map_or(Ok(()), Err)
    }
}

struct Scenario {
    dir: TempDir,
    handle: Handle,
    judge: Arc<Scripts>,
    term: watch::Sender<Option<Term>>,
    work: JoinHandle<()>,
}

impl Drop for Scenario {
    fn drop(&mut self) {
        self.work.abort();
    }
}

impl Scenario {
    fn new() -> Self {
        Self::with_handshakes_every(Duration::from_millis(200))
    }

    fn with_handshakes_every(handshake_interval: Duration) -> Self {
        Self::with(|config| SessionConfig { handshake_interval, ..config })
    }

    fn with(change: impl FnOnce(SessionConfig) -> SessionConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = change(SessionConfig {
            deadlines: Deadlines { handshake: Duration::from_millis(500), ..Deadlines::default() },
            metrics: ProviderMetrics::new(&mut Registry::default()),
            ..scripted::session_in(dir.path())
        });
        let (judge, term) = (Arc::new(Scripts::default()), watch::Sender::new(None));
        let (handle, work) = Session::start(config, Arc::clone(&judge) as Arc<dyn Judge>, term.subscribe());
        Self { dir, handle, judge, term, work: tokio::spawn(work) }
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("p.sock")
    }

    async fn until(&self, what: &str, holds: impl FnMut(&ProviderState) -> bool) -> ProviderState {
        let mut state = self.handle.state();
        let reached = tokio::time::timeout(Duration::from_secs(20), state.wait_for(holds)).await.map(|it| it.unwrap().clone());
        reached.unwrap_or_else(|_| panic!("never {what}: {:?}", self.handle.state().borrow().clone()))
    }

    async fn until_ready(&self) -> Arc<ProviderInfo> {
        self.until("ready", |it| it.ready().is_some()).await.ready().unwrap().clone()
    }

    async fn until_disconnected(&self, words: &str) {
        self.until(words, |it| matches!(it, ProviderState::Disconnected { message, .. } if message.contains(words))).await;
    }

    async fn until_unusable(&self, words: &str) {
        self.until(words, |it| matches!(it, ProviderState::Unusable { message } if message.contains(words))).await;
    }

    fn lead(&self, epoch: u64) {
        let valid_until = Instant::now() + Duration::from_secs(15);
        let cloud = Arc::new(Cloud::of(&scripted::model_info()));
        self.term.send_replace(Some(Term { epoch, cloud, holder: "me".into(), valid_until }));
    }

    fn instances(&self) -> Arc<Batcher> {
        let (batcher, work) = self.handle.instances();
        tokio::spawn(work);
        Arc::new(batcher)
    }
}

async fn until_led(provider: &Scripted, what: &str, holds: impl FnMut(&Vec<Option<v1::LeadRequest>>) -> bool) {
    let mut led = provider.led.subscribe();
    let reached = tokio::time::timeout(Duration::from_secs(20), led.wait_for(holds)).await.map(drop);
    reached.unwrap_or_else(|_| panic!("never {what}: {:?}", provider.led.borrow().clone()));
}

fn named(name: &str) -> NodeQuery {
    NodeQuery { node_name: name.to_owned(), ..NodeQuery::default() }
}

#[tokio::test]
async fn a_provider_that_starts_late_is_found_and_introduced_to_the_cluster() {
    let scenario = Scenario::new();
    scenario.until_disconnected("is the provider sidecar running?").await;
    assert!(scenario.handle.current().is_err());
    let provider = Scripted::new(scripted::info());
    let _serving = provider.serve(&scenario.socket());
    assert_eq!(scenario.until_ready().await.name, "simulated");
    let hello = provider.handshakes.borrow()[0].clone();
    assert_eq!((hello.cluster.unwrap().uid, hello.protocol_versions), ("uid".to_owned(), vec!["v1".to_owned()]));
    assert!(scenario.handle.current().is_ok());
}

#[tokio::test]
async fn a_provider_that_dies_idle_is_missed_at_once_and_another_build_takes_over() {
    let scenario = Scenario::new();
    let serving = Scripted::new(scripted::info()).serve(&scenario.socket());
    scenario.until_ready().await;
    drop(serving);
    scenario.until_disconnected("").await;
    scenario.until_disconnected("the socket file was left behind").await;
    let _serving = Scripted::new(v1::ProviderInfo { version: "0.2".to_owned(), ..scripted::info() }).serve(&scenario.socket());
    assert_eq!(scenario.until_ready().await.version, "0.2");
}

#[tokio::test]
async fn what_cannot_be_a_provider_is_told_apart() {
    let scenario = Scenario::new();
    std::fs::write(scenario.socket(), "").unwrap();
    scenario.until_disconnected("is not a socket").await;
    std::fs::remove_file(scenario.socket()).unwrap();

    let listener = UnixListener::bind(scenario.socket()).unwrap();
    let garbage = tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            drop(socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\nthis is not the server that you look for").await);
        }
    });
    scenario.until_disconnected("does not speak gRPC").await;
    garbage.abort();
    std::fs::remove_file(scenario.socket()).unwrap();

    let silent = UnixListener::bind(scenario.socket()).unwrap();
    scenario.until_disconnected("does not answer the handshake").await;
    drop(silent);
    std::fs::remove_file(scenario.socket()).unwrap();

    let _serving = Scripted::new(scripted::info()).serve(&scenario.socket());
    scenario.until_ready().await;
}

#[tokio::test]
async fn another_protocol_version_is_named_and_noticed_when_it_changes() {
    let scenario = Scenario::new();
    let provider = Scripted::new(v1::ProviderInfo { protocol_version: "v2".to_owned(), ..scripted::info() });
    let _serving = provider.serve(&scenario.socket());
    scenario.until_unusable("the provider speaks \"v2\" and this core \"v1\"").await;

    let mut details = ErrorDetails::new();
    details.set_error_info("PROTOCOL_VERSION_UNSUPPORTED", "ccm.provider.v1", HashMap::new());
    *provider.info.lock() = Err(Status::with_error_details(Code::FailedPrecondition, "only v7 here", details));
    scenario.until_unusable("only v7 here").await;

    *provider.info.lock() = Err(Status::unimplemented("unknown service"));
    scenario.until_unusable("does not serve ccm.provider.v1.Identity").await;

    *provider.info.lock() = Ok(scripted::info());
    scenario.until_ready().await;
}

#[tokio::test]
async fn an_invalid_description_names_its_fields() {
    let scenario = Scenario::new();
    let _serving =
        Scripted::new(v1::ProviderInfo { cloud_identity: String::new(), ..scripted::info() }).serve(&scenario.socket());
    scenario.until_unusable("info.cloud_identity").await;
}

#[tokio::test]
async fn the_judge_has_the_last_word_and_its_doubt_takes_nothing_away() {
    let scenario = Scenario::new();
    *scenario.judge.0.lock() = Some(Verdict::Later("the API server is away".to_owned()));
    let provider = Scripted::new(scripted::info());
    let _serving = provider.serve(&scenario.socket());
    scenario.until_disconnected("the API server is away").await;
    *scenario.judge.0.lock() = None;
    scenario.until_ready().await;
    *scenario.judge.0.lock() = Some(Verdict::Later("away again".to_owned()));
    assert!(scenario.handle.confirm().await.is_err(), "an earlier verdict confirms nothing");
    assert!(scenario.handle.current().is_ok(), "and takes nothing away");

    *scenario.judge.0.lock() = Some(Verdict::IdentityChanged { accepted: "there".to_owned() });
    let error = scenario.handle.confirm().await.unwrap_err();
    assert!(error.message.contains("\"there\" was accepted"), "{}", error.message);
    assert!(matches!(&*scenario.handle.state().borrow(), ProviderState::IdentityChanged { accepted, .. } if accepted == "there"));
    assert!(scenario.handle.current().is_err());
}

#[tokio::test]
async fn a_confirmation_shakes_hands_now_and_sees_what_changed_behind_the_connection() {
    let scenario = Scenario::new();
    assert_eq!(scenario.handle.confirm().await.unwrap_err().reason, "PROVIDER_NOT_READY");
    let provider = Scripted::new(scripted::info());
    let _serving = provider.serve(&scenario.socket());
    scenario.until_ready().await;
    *provider.info.lock() = Ok(v1::ProviderInfo { cloud_identity: "elsewhere".to_owned(), ..scripted::info() });
    assert_eq!(scenario.handle.confirm().await.unwrap().cloud_identity, "elsewhere");
    assert_eq!(&*scenario.handle.current().unwrap().identity, "elsewhere");
}

#[tokio::test]
async fn look_ups_cross_the_socket_with_ids_and_come_back_with_the_clouds_identity() {
    let scenario = Scenario::new();
    let provider = Scripted::new(scripted::info());
    let _serving = provider.serve(&scenario.socket());
    scenario.until_ready().await;
    let instances = scenario.instances();
    let names: Vec<_> = (0..250).map(|n| format!("node-{n}")).collect();
    let answers = join_all(names.iter().map(|name| instances.look_up(named(name), Priority::Initialize))).await;
    for (name, answer) in names.iter().zip(answers) {
        let answer = answer.unwrap();
        assert_eq!(&*answer.cloud_identity, "here");
        assert!(matches!(answer.lookup, Lookup::Found(it) if it.provider_id == Some(format!("simulated://{name}"))));
    }
    let batches = provider.batches.lock();
    // They cross side by side, in any order.
    let mut sizes: Vec<_> = batches.iter().map(|(_, names)| names.len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [50, 100, 100]);
    let metadata = &batches[0].0;
    let text = |key: &str| metadata.get(key).unwrap().to_str().unwrap().to_owned();
    assert_eq!(text("x-request-id").len(), 36);
    assert_eq!(text("traceparent").split('-').map(str::len).collect::<Vec<_>>(), [2, 32, 16, 2]);
    assert_eq!(text("grpc-timeout"), "10000000u");
}

#[tokio::test]
async fn an_answer_that_arrives_after_the_cloud_changed_is_discarded() {
    let scenario = Scenario::new();
    let provider = Scripted::new(scripted::info());
    let _serving = provider.serve(&scenario.socket());
    scenario.until_ready().await;
    let held = Arc::clone(&provider.gate).acquire_many_owned(1000).await.unwrap();
    let instances = scenario.instances();
    let look_up = tokio::spawn(async move { instances.look_up(named("a"), Priority::Lifecycle).await });
    tokio::time::timeout(Duration::from_secs(10), async {
        while provider.batches.lock().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    *provider.info.lock() = Ok(v1::ProviderInfo { cloud_identity: "elsewhere".to_owned(), ..scripted::info() });
    scenario.handle.confirm().await.unwrap();
    drop(held);
    assert_eq!(look_up.await.unwrap().unwrap_err().reason, "CLOUD_IDENTITY_CHANGED");
}

#[tokio::test]
async fn a_batch_that_dies_with_its_provider_is_an_error_at_once() {
    let scenario = Scenario::new();
    let provider = Scripted::new(scripted::info());
    let serving = provider.serve(&scenario.socket());
    scenario.until_ready().await;
    let _held = Arc::clone(&provider.gate).acquire_many_owned(1000).await.unwrap();
    let instances = scenario.instances();
    let look_up = tokio::spawn(async move { instances.look_up(named("a"), Priority::Lifecycle).await });
    while provider.batches.lock().is_empty() {
        tokio::task::yield_now().await;
    }
    let killed = Instant::now();
    drop(serving);
    assert_eq!(look_up.await.unwrap().unwrap_err().outcome, Outcome::Unknown);
    assert!(killed.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn refused_credentials_make_hands_be_shaken_soon() {
    let scenario = Scenario::with_handshakes_every(Duration::from_hours(1));
    let provider = Scripted::new(scripted::info());
    *provider.edit.lock() = |_| Err(Status::unauthenticated("the key was revoked"));
    let _serving = provider.serve(&scenario.socket());
    scenario.until_ready().await;
    let error = scenario.instances().look_up(named("a"), Priority::Lifecycle).await.unwrap_err();
    assert_eq!((error.outcome, error.reason.as_str()), (Outcome::Terminal, "UNAUTHENTICATED"));
    let mut handshakes = provider.handshakes.subscribe();
    tokio::time::timeout(Duration::from_secs(20), handshakes.wait_for(|it| it.len() == 2)).await.unwrap().unwrap();
}

#[tokio::test]
async fn zones_fill_in_what_instances_leave_out() {
    let scenario = Scenario::new();
    let capabilities = vec![v1::Capability::Instances.into(), v1::Capability::Zones.into()];
    let _serving = Scripted::new(v1::ProviderInfo { capabilities, ..scripted::info() }).serve(&scenario.socket());
    scenario.until_ready().await;
    let instances = scenario.instances();
    let answers = join_all(["a", "gone", "broken"].map(|it| instances.look_up(named(it), Priority::Initialize))).await;
    let found = |answer: &Result<_, _>| match answer {
        Ok(Answer { lookup: Lookup::Found(it), .. }) => (it.zone.clone(), it.region.clone(), it.warnings.len()),
        other => panic!("{other:?}"),
    };
    assert_eq!(found(&answers[0]), (Some("zone-a".to_owned()), None, 1), "what is no label is left out with a warning");
    assert_eq!(found(&answers[1]), (None, None, 0));
    assert_eq!(answers[2].as_ref().unwrap_err().message, "the zones are away");
}

#[tokio::test]
async fn a_provider_without_instances_is_not_asked() {
    let scenario = Scenario::new();
    let _serving = Scripted::new(v1::ProviderInfo { capabilities: vec![], ..scripted::info() }).serve(&scenario.socket());
    scenario.until_ready().await;
    let error = scenario.instances().look_up(named("a"), Priority::Initialize).await.unwrap_err();
    assert_eq!(error.outcome, Outcome::Unsupported);
}

#[tokio::test]
async fn a_word_of_leadership_holds_for_an_hour_at_most() {
    let scenario = Scenario::new();
    let provider = Scripted::new(scripted::info());
    let _serving = provider.serve(&scenario.socket());
    scenario.until_ready().await;
    scenario.lead(3);
    scenario.term.send_modify(|term| {
        term.iter_mut().for_each(|term| term.valid_until += Duration::from_hours(10_000));
    });
    until_led(&provider, "told", |led| led.iter().flatten().any(|word| word.valid_for.unwrap().seconds == 3600)).await;
    assert!(provider.led.borrow().iter().flatten().all(|word| word.valid_for.unwrap().seconds <= 3600));
}

#[tokio::test]
async fn leadership_is_told_renewed_and_taken_back() {
    let scenario = Scenario::new();
    let provider = Scripted::new(scripted::info());
    let serving = provider.serve(&scenario.socket());
    assert!(scenario.until_ready().await.capabilities.contains(&Capability::Lead));
    scenario.lead(3);
    until_led(&provider, "told", |led| led.len() == 1).await;
    scenario.lead(3);
    until_led(&provider, "renewed", |led| led.len() == 2).await;
    {
        let led = provider.led.borrow();
        let word = led[1].as_ref().unwrap();
        assert_eq!((word.epoch, word.holder.as_str(), word.cluster.as_ref().unwrap().uid.as_str()), (3, "me", "uid"));
        assert!((13..=15).contains(&word.valid_for.unwrap().seconds));
    }
    scenario.term.send_replace(None);
    until_led(&provider, "taken back", |led| led.len() == 3 && led[2].is_none()).await;
    scenario.lead(4);
    until_led(&provider, "told again", |led| led.get(3).is_some_and(Option::is_some)).await;
    scenario.lead(5);
    until_led(&provider, "told of a new epoch on a new stream", |led| led.len() == 6 && led[4].is_none() && led[5].is_some())
        .await;

    drop(serving);
    scenario.until_disconnected("").await;
    let successor = Scripted::new(scripted::info());
    let _serving = successor.serve(&scenario.socket());
    until_led(&successor, "told on the new connection", |led| led.len() == 1).await;
}

#[tokio::test]
async fn a_refused_lead_is_tried_again() {
    let scenario = Scenario::new();
    let provider = Scripted::new(scripted::info());
    let mut details = ErrorDetails::new();
    details.set_error_info("NOT_LEADING", "ccm.provider.v1", HashMap::new());
    provider.lead_failures.lock().push_back(Status::with_error_details(Code::FailedPrecondition, "epoch 9 was seen", details));
    let _serving = provider.serve(&scenario.socket());
    scenario.lead(3);
    until_led(&provider, "told after a refusal", |led| led.len() == 1).await;
}

#[tokio::test]
async fn hints_arrive() {
    let scenario = Scenario::new();
    let provider = Scripted::new(scripted::info());
    let _serving = provider.serve(&scenario.socket());
    let mut hints = scenario.handle.hints();
    scenario.until_ready().await;
    tokio::time::timeout(Duration::from_secs(10), async {
        while provider.seen.receiver_count() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    provider.seen.send_replace(vec!["a".to_owned()]);
    assert_eq!(hints.recv().await.unwrap().node_names, ["a"]);
}
