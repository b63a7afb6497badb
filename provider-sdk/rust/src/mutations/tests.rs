//! What takes minutes or is hard to see from outside: kept results, their age, and panics. The clock is paused.
#![allow(clippy::unwrap_used, clippy::panic)]
use std::future::{pending, ready};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

type Words = Mutations<&'static str, usize>;

struct Case {
    mutations: Words,
    started: Arc<AtomicUsize>,
}

impl Case {
    fn new() -> Self {
        Self { mutations: Words::new(TaskTracker::new()), started: Arc::default() }
    }

    /// Runs a request whose work takes `length` and tells how many pieces of work had begun by then.
    async fn run(&self, request: &'static str, length: Duration) -> Result<Progress<usize>> {
        let started = Arc::clone(&self.started);
        let work = async move {
            let number = started.fetch_add(1, Ordering::SeqCst) + 1;
            tokio::time::sleep(length).await;
            Ok(Progress::Done(number))
        };
        self.mutations.run(mutation(request), work).await
    }
}

fn mutation(request: &'static str) -> Mutation<&'static str> {
    let answer_by = Some(Instant::now() + Duration::from_secs(10));
    Mutation { key: "key".into(), method: "Test", request, answer_by, lost: CancellationToken::new() }
}

const LONG: Duration = Duration::from_mins(1);

#[tokio::test(start_paused = true)]
async fn equal_requests_at_one_time_share_one_piece_of_work() {
    let case = Case::new();
    let length = Duration::from_secs(1);

    let (a, b) = tokio::join!(case.run("same", length), case.run("same", length));

    assert_eq!((a.unwrap(), b.unwrap()), (Progress::Done(1), Progress::Done(1)));
}

#[tokio::test(start_paused = true)]
async fn different_requests_at_one_time_run_one_after_the_other() {
    let case = Case::new();
    let (length, started) = (Duration::from_secs(1), Instant::now());

    let (a, b, c) = tokio::join!(case.run("a", length), case.run("b", length), case.run("c", length));

    let numbers: std::collections::BTreeSet<_> = [a, b, c].map(|done| format!("{:?}", done.unwrap())).into();
    assert_eq!(numbers.len(), 3);
    assert!(started.elapsed() >= 3 * length);
}

#[tokio::test(start_paused = true)]
async fn a_kept_result_is_handed_over_once() {
    let case = Case::new();
    assert!(matches!(case.run("same", LONG).await.unwrap(), Progress::InProgress(_)));
    tokio::time::sleep(LONG).await;

    assert_eq!(case.run("same", LONG).await.unwrap(), Progress::Done(1));
    assert!(matches!(case.run("same", LONG).await.unwrap(), Progress::InProgress(_)));
    assert_eq!(case.started.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_kept_result_is_dropped_for_a_changed_request() {
    let case = Case::new();
    assert!(matches!(case.run("old", LONG).await.unwrap(), Progress::InProgress(_)));
    tokio::time::sleep(LONG).await;

    assert_eq!(case.run("new", Duration::ZERO).await.unwrap(), Progress::Done(2));
    assert_eq!(case.run("old", Duration::ZERO).await.unwrap(), Progress::Done(3));
}

#[tokio::test(start_paused = true)]
async fn a_kept_result_is_no_longer_believed_after_minutes() {
    let case = Case::new();
    assert!(matches!(case.run("same", LONG).await.unwrap(), Progress::InProgress(_)));
    tokio::time::sleep(LONG + KEPT_FOR).await;

    assert_eq!(case.run("same", Duration::ZERO).await.unwrap(), Progress::Done(2));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_only_waited_leaves_no_work_behind() {
    let case = Case::new();
    let (running, waiting) = tokio::join!(case.run("running", LONG), case.run("waiting", LONG));

    assert!(matches!((running.unwrap(), waiting.unwrap()), (Progress::InProgress(_), Progress::InProgress(_))));
    tokio::time::sleep(2 * LONG).await;
    assert_eq!(case.started.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn requests_that_wait_run_in_the_order_of_their_arrival() {
    const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let case = Arc::new(Case::new());
    let calls = NAMES.iter().enumerate().map(|(at, name)| {
        let case = Arc::clone(&case);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(at.try_into().unwrap())).await;
            case.run(name, Duration::from_secs(1)).await.unwrap()
        })
    });
    let calls: Vec<_> = calls.collect();

    for (at, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.unwrap(), Progress::Done(at + 1), "{}", NAMES[at]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_gave_up_holds_nobody_up() {
    let case = Case::new();
    let impatient = Mutation { answer_by: Some(Instant::now() + Duration::from_secs(1)), ..mutation("impatient") };
    let work = async { panic!("it must not start") };

    let (_, gave_up, next) = tokio::join!(
        case.run("running", Duration::from_secs(2)),
        case.mutations.run(impatient, work),
        case.run("next", Duration::ZERO)
    );

    assert!(matches!(gave_up.unwrap(), Progress::InProgress(_)));
    assert_eq!(next.unwrap(), Progress::Done(2));
    assert!(case.mutations.state.lock().queues.is_first("key", None), "nobody waits any more");
}

#[tokio::test(start_paused = true)]
async fn an_error_that_nobody_waited_for_is_told_once() {
    let case = Case::new();
    let work = async {
        tokio::time::sleep(LONG).await;
        Err(ProviderError::quota_exceeded("full"))
    };
    assert!(matches!(case.mutations.run(mutation("same"), work).await.unwrap(), Progress::InProgress(_)));
    tokio::time::sleep(LONG).await;

    assert_eq!(case.run("same", Duration::ZERO).await.unwrap_err().reason, v1::ErrorReason::QuotaExceeded);
    assert_eq!(case.run("same", Duration::ZERO).await.unwrap(), Progress::Done(1));
}

#[tokio::test(start_paused = true)]
async fn work_that_was_cancelled_takes_no_new_callers() {
    let case = Case::new();
    let running = mutation("same");
    let lost = running.lost.clone();
    let again = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        lost.cancel();
        case.run("same", Duration::ZERO).await
    };

    let (ended, again) = tokio::join!(case.mutations.run(running, pending()), again);

    assert_eq!(ended.unwrap_err().reason, v1::ErrorReason::NotLeading);
    assert_eq!(again.unwrap(), Progress::Done(1));
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_leader_is_lost_while_it_waits_never_starts() {
    let case = Case::new();
    let waiting = mutation("waiting");
    let lost = waiting.lost.clone();
    let depose = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        lost.cancel();
    };
    let work = async { panic!("it must not start") };

    let (_, waited, ()) = tokio::join!(case.run("running", Duration::from_secs(2)), case.mutations.run(waiting, work), depose);

    assert_eq!(waited.unwrap_err().reason, v1::ErrorReason::NotLeading);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_result_and_frees_the_key() {
    let case = Case::new();

    let failed = case.mutations.run(mutation("same"), async { panic!("a bug") }).await;

    assert_eq!(failed.unwrap_err().code, tonic::Code::Internal);
    assert_eq!(case.run("same", Duration::ZERO).await.unwrap(), Progress::Done(1));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_is_itself_still_at_work_is_asked_again() {
    let case = Case::new();
    let slow = Progress::InProgress(v1::InProgress { poll_after: None, message: "the cloud is at it".into() });

    let first = case.mutations.run(mutation("same"), ready(Ok(slow.clone()))).await.unwrap();

    assert_eq!(first, slow);
    assert_eq!(case.run("same", Duration::ZERO).await.unwrap(), Progress::Done(1));
}

#[tokio::test(start_paused = true)]
async fn a_lost_leader_ends_the_work_before_the_next_one_starts() {
    let case = Case::new();
    let running = mutation("running");
    let lost = running.lost.clone();
    let depose = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        lost.cancel();
    };

    let (ended, next, ()) = tokio::join!(case.mutations.run(running, pending()), case.run("next", Duration::ZERO), depose);

    assert_eq!(ended.unwrap_err().reason, v1::ErrorReason::NotLeading);
    assert_eq!(next.unwrap(), Progress::Done(1));
}
