//! The batcher against a scripted provider, on paused time: how many calls, how large, how soon.
#![allow(clippy::unwrap_used, clippy::expect_used)]
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use tokio_stream::wrappers::WatchStream;

use super::*;
use crate::model::instance::Lookup;
use crate::provider::Outcome;

/// The reason of a scripted failure that is a panic.
const PANIC: &str = "PANIC";
const CALL: Duration = Duration::from_millis(20);

/// A provider that takes 20 ms, counts, and fails as told.
struct Scripted {
    standing: Mutex<Result<Limits, ProviderError>>,
    generation: watch::Sender<u64>,
    failures: Mutex<VecDeque<ProviderError>>,
    /// By the node that it is about.
    item_failures: Mutex<HashMap<String, ProviderError>>,
    calls: Mutex<Vec<(Instant, Vec<String>)>>,
    running: Mutex<(usize, usize)>,
}

struct Session(Arc<Scripted>, Limits);

struct Scenario {
    provider: Arc<Scripted>,
    batcher: Arc<Batcher>,
}

impl Source for Arc<Scripted> {
    fn current(&self) -> Result<Arc<dyn InstanceSession>, ProviderError> {
        let limits = self.standing.lock().clone()?;
        Ok(Arc::new(Session(Self::clone(self), limits)))
    }

    fn changes(&self) -> BoxStream<'static, ()> {
        WatchStream::from_changes(self.generation.subscribe()).map(drop).boxed()
    }
}

#[async_trait]
impl InstanceSession for Session {
    fn limits(&self) -> Limits {
        self.1
    }

    async fn batch_get(&self, queries: &[Arc<NodeQuery>]) -> Result<Vec<Result<Answer, ProviderError>>, ProviderError> {
        let names = queries.iter().map(|it| it.node_name.clone()).collect();
        self.0.calls.lock().push((Instant::now(), names));
        {
            let mut running = self.0.running.lock();
            running.0 += 1;
            running.1 = running.1.max(running.0);
        }
        tokio::time::sleep(CALL).await;
        self.0.running.lock().0 -= 1;
        let answer = Answer { lookup: Lookup::NotFound, observed_at: Timestamp::UNIX_EPOCH, cloud_identity: "here".into() };
        let failure = self.0.failures.lock().pop_front();
        assert!(failure.as_ref().is_none_or(|failure| failure.reason != PANIC), "scripted");
        failure.map_or(Ok(()), Err)?;
        let failures = self.0.item_failures.lock();
        let failure = |query: &Arc<NodeQuery>| failures.get(&query.node_name).cloned();
        Ok(queries.iter().map(|query| failure(query).map_or_else(|| Ok(answer.clone()), Err)).collect())
    }
}

impl Scenario {
    fn new(max_batch_size: usize, max_concurrent_instance_calls: usize) -> Self {
        let provider = Arc::new(Scripted {
            standing: Mutex::new(Ok(Limits { max_batch_size, max_concurrent_instance_calls, ..Limits::default() })),
            generation: watch::Sender::new(0),
            failures: Mutex::default(),
            item_failures: Mutex::default(),
            calls: Mutex::default(),
            running: Mutex::default(),
        });
        let metrics = ProviderMetrics::new(&mut Registry::default());
        let (batcher, work) = Batcher::start(Arc::new(Arc::clone(&provider)), metrics);
        tokio::spawn(work);
        Self { provider, batcher: Arc::new(batcher) }
    }

    fn look_up(&self, name: &str, priority: Priority) -> impl Future<Output = Result<Answer, ProviderError>> + Send + use<> {
        let (batcher, query) = (Arc::clone(&self.batcher), NodeQuery { node_name: name.to_owned(), ..NodeQuery::default() });
        async move { batcher.look_up(query, priority).await }
    }

    fn sizes(&self) -> Vec<usize> {
        self.provider.calls.lock().iter().map(|(_, names)| names.len()).collect()
    }

    fn change(&self, standing: Result<Limits, ProviderError>) {
        *self.provider.standing.lock() = standing;
        self.provider.generation.send_modify(|it| *it += 1);
    }
}

fn failing(reason: &str, after: Option<u64>) -> ProviderError {
    let outcome = Outcome::Retry { after: after.map(Duration::from_secs) };
    ProviderError { outcome, reason: reason.to_owned(), message: "scripted".to_owned() }
}

#[tokio::test(start_paused = true)]
async fn five_thousand_at_once_are_ten_full_batches_of_which_four_run_together() {
    let scenario = Scenario::new(500, 4);
    let started = Instant::now();
    let answers = join_all((0..5000).map(|n| scenario.look_up(&format!("node-{n}"), Priority::Initialize))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(scenario.sizes(), [500; 10]);
    assert_eq!(scenario.provider.running.lock().1, 4);
    assert!(started.elapsed() <= 3 * CALL + Duration::from_millis(10), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn five_thousand_that_trickle_in_over_ten_seconds_are_under_a_hundred_calls() {
    let scenario = Scenario::new(500, 4);
    let trickle = (0..5000).map(|n| {
        let look_up = scenario.look_up(&format!("node-{n}"), Priority::Initialize);
        async move {
            tokio::time::sleep(Duration::from_millis(2 * n)).await;
            look_up.await
        }
    });
    assert!(join_all(trickle).await.iter().all(Result::is_ok));
    let calls = scenario.sizes().len();
    assert!(calls < 30, "{calls} calls");
}

#[tokio::test(start_paused = true)]
async fn a_steady_stream_fills_its_batches_and_its_end_waits_for_nothing() {
    let scenario = Scenario::new(100, 4);
    let started = Instant::now();
    // 125 a second, for 32 s.
    let stream = (0..4000).map(|n| {
        let look_up = scenario.look_up(&format!("node-{n}"), Priority::Initialize);
        async move {
            tokio::time::sleep(Duration::from_millis(8 * n)).await;
            look_up.await
        }
    });
    assert!(join_all(stream).await.iter().all(Result::is_ok));
    let sizes = scenario.sizes();
    assert!(sizes.len() < 55, "{} calls", sizes.len());
    assert!(started.elapsed() < Duration::from_secs(32) + Duration::from_millis(300), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn one_alone_goes_almost_at_once() {
    let scenario = Scenario::new(500, 4);
    let started = Instant::now();
    scenario.look_up("a", Priority::Initialize).await.unwrap();
    assert!(started.elapsed() <= CALL + Duration::from_millis(7), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn when_the_cloud_limits_the_rate_nobody_calls_until_it_said() {
    let scenario = Scenario::new(2, 4);
    scenario.provider.failures.lock().push_back(failing("RATE_LIMITED", Some(30)));
    let first = scenario.look_up("a", Priority::Initialize).await;
    assert_eq!(first.unwrap_err().reason, "RATE_LIMITED");
    let answers = join_all((0..4).map(|n| scenario.look_up(&format!("node-{n}"), Priority::Initialize))).await;
    assert!(answers.iter().all(Result::is_ok));
    let calls = scenario.provider.calls.lock();
    assert!(calls[1].0 - calls[0].0 >= Duration::from_secs(30));
    assert!(calls[2].0 - calls[1].0 >= CALL, "a single call tries first");
}

#[tokio::test(start_paused = true)]
async fn a_failing_provider_is_not_hammered() {
    let scenario = Scenario::new(1, 4);
    scenario.provider.failures.lock().extend((0..100).map(|_| failing("UNAVAILABLE", None)));
    let answers = join_all((0..6).map(|n| scenario.look_up(&format!("node-{n}"), Priority::Initialize)));
    let started = Instant::now();
    assert!(answers.await.iter().all(Result::is_err));
    assert!(started.elapsed() > Duration::from_millis(250), "the last two waited for the back-off");
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_is_published_until_a_look_up_succeeds_again() {
    let scenario = Scenario::new(500, 4);
    let mut limit = scenario.batcher.rate_limit();
    assert_eq!(*limit.borrow_and_update(), None);
    scenario.provider.failures.lock().push_back(failing("RATE_LIMITED", Some(30)));
    scenario.look_up("a", Priority::Initialize).await.unwrap_err();
    limit.changed().await.unwrap();
    assert_eq!(limit.borrow_and_update().unwrap() - Instant::now(), Duration::from_secs(30));
    scenario.look_up("a", Priority::Initialize).await.unwrap();
    limit.changed().await.unwrap();
    assert_eq!(*limit.borrow_and_update(), None);
    scenario.provider.failures.lock().push_back(failing("UNAVAILABLE", Some(30)));
    scenario.look_up("a", Priority::Initialize).await.unwrap_err();
    assert!(!limit.has_changed().unwrap(), "an outage is no rate limit");
}

#[tokio::test(start_paused = true)]
async fn an_item_that_fails_slows_no_other_look_up() {
    for reason in ["RATE_LIMITED", "NOT_IMPLEMENTED", "CLOUD_UNAVAILABLE"] {
        let scenario = Scenario::new(500, 4);
        scenario.provider.item_failures.lock().insert("bad".to_owned(), failing(reason, Some(30)));
        let answers = join_all(["bad", "good"].map(|name| scenario.look_up(name, Priority::Initialize))).await;
        assert_eq!(answers[0].as_ref().unwrap_err().reason, reason);
        assert!(answers[1].is_ok());
        let started = Instant::now();
        assert!(scenario.look_up("another", Priority::Initialize).await.is_ok());
        assert!(started.elapsed() < Duration::from_millis(100), "{reason}: {:?}", started.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_by_what_it_holds_slows_no_other() {
    for reason in ["RESOURCE_EXHAUSTED", "INTERNAL", "BATCH_TOO_LARGE", PANIC] {
        let scenario = Scenario::new(500, 4);
        scenario.provider.failures.lock().extend((0..5).map(|_| failing(reason, Some(30))));
        for _ in 0..5 {
            assert!(scenario.look_up("bad", Priority::Initialize).await.is_err());
        }
        let started = Instant::now();
        assert!(scenario.look_up("good", Priority::Initialize).await.is_ok());
        assert!(started.elapsed() < Duration::from_millis(300), "{reason}: {:?}", started.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_pause_fails_look_ups_with_the_time_that_is_left() {
    let scenario = Scenario::new(2, 4);
    scenario.provider.failures.lock().push_back(failing("RATE_LIMITED", Some(600)));
    scenario.look_up("a", Priority::Initialize).await.unwrap_err();
    let error = scenario.look_up("b", Priority::Initialize).await.unwrap_err();
    assert!(matches!(error.outcome, Outcome::Retry { after: Some(after) } if after > Duration::from_secs(590)), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn without_a_provider_a_look_up_fails_at_once_and_so_do_those_that_wait() {
    let scenario = Scenario::new(2, 4);
    scenario.provider.failures.lock().push_back(failing("RATE_LIMITED", Some(50)));
    scenario.look_up("a", Priority::Initialize).await.unwrap_err();
    let waiting = tokio::spawn(scenario.look_up("b", Priority::Initialize));
    tokio::task::yield_now().await;
    let started = Instant::now();
    scenario.change(Err(failing("PROVIDER_NOT_READY", None)));
    assert_eq!(waiting.await.unwrap().unwrap_err().reason, "PROVIDER_NOT_READY");
    assert_eq!(scenario.look_up("c", Priority::Initialize).await.unwrap_err().reason, "PROVIDER_NOT_READY");
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn another_provider_behind_the_socket_brings_its_own_limits_and_no_old_back_off() {
    let scenario = Scenario::new(500, 4);
    scenario.provider.failures.lock().push_back(failing("RATE_LIMITED", Some(50)));
    scenario.look_up("a", Priority::Initialize).await.unwrap_err();
    scenario.change(Ok(Limits { max_batch_size: 3, max_concurrent_instance_calls: 1, ..Limits::default() }));
    let started = Instant::now();
    join_all((0..7).map(|n| scenario.look_up(&format!("node-{n}"), Priority::Lifecycle))).await;
    assert_eq!(scenario.sizes(), [1, 3, 3, 1]);
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_panic_over_one_answer_fails_its_look_ups_and_none_after_it() {
    let scenario = Scenario::new(500, 1);
    scenario.provider.failures.lock().push_back(failing(PANIC, None));
    let error = scenario.look_up("a", Priority::Initialize).await.unwrap_err();
    assert_eq!(error.reason, "PANICKED");
    assert!(scenario.look_up("a", Priority::Initialize).await.is_ok());
}
