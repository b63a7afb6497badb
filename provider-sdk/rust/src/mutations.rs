//! One writer per thing: of the mutations of one key, one runs at a time, in a task of its own that outlives its caller. An
//! equal request attaches to it, different ones wait in the order of their arrival. What a key or a request is, the services
//! decide.
use std::collections::HashMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use ccm_proto::v1;
use futures::FutureExt as _;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::error::ProviderError;
use crate::provider::{Progress, Result};
use queue::{Place, Queues};

/// How long a result that nobody waited for is kept for the next equal request. Older ones are dropped, since the cloud may
/// have changed: the request runs again.
const KEPT_FOR: Duration = Duration::from_mins(5);

mod queue;
mod together;

/// The mutations of one service. `R` is a request, whole; `T` what its success tells.
pub(crate) struct Mutations<R, T> {
    state: Mutex<State<R, T>>,
    tasks: TaskTracker,
}

struct State<R, T> {
    entries: HashMap<String, Entry<R, T>>,
    queues: Queues,
}

/// One mutation, asked for.
pub(crate) struct Mutation<R> {
    /// The thing that is changed.
    pub(crate) key: String,
    /// The method, for messages.
    pub(crate) method: &'static str,
    /// Everything that tells one request from another.
    pub(crate) request: R,
    /// When the caller is answered `InProgress` if there is nothing better.
    pub(crate) answer_by: Option<Instant>,
    /// Ends the work.
    pub(crate) lost: CancellationToken,
}

struct Entry<R, T> {
    request: Arc<R>,
    method: &'static str,
    started: Instant,
    outcome: Outcome<T>,
    lost: CancellationToken,
}

/// `None` while the work runs, then when it ended and how.
type Ended<T> = Option<(Instant, Result<Progress<T>>)>;
type Outcome<T> = watch::Receiver<Ended<T>>;
type Sender<T> = watch::Sender<Ended<T>>;

/// What a request finds.
enum Turn<T> {
    /// Its own work, running or just ended.
    Mine(Outcome<T>, Instant),
    /// Another's, that must end first; `None`: somebody who waits before this one begins at once.
    Blocked(Option<Outcome<T>>, &'static str),
}

/// A place in the queue of a key, given up when this is dropped.
struct Waiting<'a, R, T> {
    mutations: &'a Mutations<R, T>,
    key: &'a str,
    place: Place,
}

impl<R, T> Drop for Waiting<'_, R, T> {
    fn drop(&mut self) {
        self.mutations.state.lock().queues.leave(self.key, &self.place);
    }
}

impl<R, T> Mutations<R, T>
where
    R: PartialEq + Send + Sync + 'static,
    T: Clone + Send + Sync + 'static,
{
    /// Nothing runs yet; the tasks are counted by `tasks`.
    pub(crate) fn new(tasks: TaskTracker) -> Self {
        Self { state: Mutex::new(State { entries: HashMap::new(), queues: Queues::default() }), tasks }
    }

    /// Runs `work`, or attaches to the equal request that runs already, once nothing else runs for the key. Answers
    /// `InProgress` when the time is up; what has begun then goes on, what has not is dropped.
    pub(crate) async fn run<W>(&self, mutation: Mutation<R>, work: W) -> Result<Progress<T>>
    where
        W: Future<Output = Result<Progress<T>>> + Send + 'static,
    {
        let Mutation { key, method, request, answer_by, lost } = mutation;
        let request = Arc::new(request);
        let (mut work, mut waiting) = (Some(work), None);
        loop {
            match self.turn(&key, method, &request, &lost, &mut work, &mut waiting)? {
                Turn::Mine(outcome, started) => {
                    drop(waiting);
                    return match until(answer_by, ended(outcome.clone())).await {
                        Some(result) => self.collect(&key, &outcome, result),
                        None => Ok(in_progress(format!("{method} has been at work for {} s", started.elapsed().as_secs()))),
                    };
                }
                Turn::Blocked(outcome, other) => {
                    if until(answer_by, moved(outcome, waiting.as_mut(), &lost)).await.is_none() {
                        return Ok(in_progress(format!("{method} waits for an earlier {other} to end")));
                    }
                }
            }
        }
    }

    fn turn<'a, W>(
        &'a self,
        key: &'a str,
        method: &'static str,
        request: &Arc<R>,
        lost: &CancellationToken,
        work: &mut Option<W>,
        waiting: &mut Option<Waiting<'a, R, T>>,
    ) -> Result<Turn<T>>
    where
        W: Future<Output = Result<Progress<T>>> + Send + 'static,
    {
        let State { entries, queues } = &mut *self.state.lock();
        if lost.is_cancelled() {
            return Err(lost_leadership(method));
        }
        entries.retain(|_, entry| !entry.useless());
        match entries.get(key) {
            Some(entry) if entry.request == *request && !entry.ending() => {
                return Ok(Turn::Mine(entry.outcome.clone(), entry.started));
            }
            found => {
                let running = found.filter(|entry| entry.running());
                if running.is_some() || !queues.is_first(key, waiting.as_ref().map(|waiting| &waiting.place)) {
                    let waiting = waiting.get_or_insert_with(|| Waiting { mutations: self, key, place: queues.join(key) });
                    waiting.place.changes.mark_unchanged();
                    let (outcome, method) = running.map_or((None, "call"), |it| (Some(it.outcome.clone()), it.method));
                    return Ok(Turn::Blocked(outcome, method));
                }
            }
        }
        let work = work.take().ok_or_else(|| ProviderError::internal("a mutation was started twice"))?;
        let (sender, entry) = Entry::begin(Arc::clone(request), method, lost.clone());
        let mine = Turn::Mine(entry.outcome.clone(), entry.started);
        entries.insert(key.to_owned(), entry);
        self.spawn(key.to_owned(), method, lost.clone(), sender, work);
        Ok(mine)
    }

    fn spawn<W>(&self, key: String, method: &'static str, lost: CancellationToken, sender: Sender<T>, work: W)
    where
        W: Future<Output = Result<Progress<T>>> + Send + 'static,
    {
        let task = async move {
            let result = guarded(method, lost, work).await.and_then(|result| result);
            tell(method, &key, &sender, result);
        };
        self.tasks.spawn(task.in_current_span());
    }

    /// Hands a result over: it is kept no longer.
    fn collect(&self, key: &str, outcome: &Outcome<T>, result: Result<Progress<T>>) -> Result<Progress<T>> {
        let entries = &mut self.state.lock().entries;
        if entries.get(key).is_some_and(|entry| entry.outcome.same_channel(outcome)) {
            entries.remove(key);
        }
        result
    }
}

impl<R, T> Entry<R, T> {
    /// Work that begins now, and where its outcome is to be told.
    fn begin(request: Arc<R>, method: &'static str, lost: CancellationToken) -> (Sender<T>, Self) {
        let (sender, outcome) = watch::channel(None);
        (sender, Self { request, method, started: Instant::now(), outcome, lost })
    }

    fn running(&self) -> bool {
        self.outcome.borrow().is_none()
    }

    /// Whether it was cancelled and has not ended yet: nobody attaches to that any more.
    fn ending(&self) -> bool {
        self.running() && self.lost.is_cancelled()
    }

    /// Whether it has ended with something that tells the next request nothing.
    fn useless(&self) -> bool {
        match &*self.outcome.borrow() {
            None => false,
            Some((_, Ok(Progress::InProgress(_)))) => true,
            Some((_, Err(error))) if error.reason == v1::ErrorReason::NotLeading => true,
            Some((at, _)) => at.elapsed() > KEPT_FOR,
        }
    }
}

/// Runs work to its end, its panic or the end of the leadership. The work is dropped in here: it has truly ended when this has.
async fn guarded<O>(method: &'static str, lost: CancellationToken, work: impl Future<Output = O>) -> Result<O> {
    tokio::select! {
        biased;
        () = lost.cancelled() => Err(lost_leadership(method)),
        result = AssertUnwindSafe(work).catch_unwind() => result.map_err(|_| panicked(method)),
    }
}

fn tell<T>(method: &'static str, key: &str, sender: &Sender<T>, result: Result<Progress<T>>) {
    // The entry has a receiver of its own.
    if sender.receiver_count() <= 1 {
        let error = result.as_ref().err().map(ProviderError::chain);
        tracing::info!(method, key, error, "a mutation ended that nobody waited for any more");
    }
    sender.send_replace(Some((Instant::now(), result)));
}

/// Completes when it is time to look again whose turn it is.
async fn moved<R, T: Clone>(running: Option<Outcome<T>>, waiting: Option<&mut Waiting<'_, R, T>>, lost: &CancellationToken) {
    let changed = async {
        match waiting {
            // The sender lives as long as anybody waits.
            Some(waiting) => drop(waiting.place.changes.changed().await),
            None => std::future::pending().await,
        }
    };
    let ended = async {
        match running {
            Some(outcome) => drop(ended(outcome).await),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = changed => {}
        () = ended => {}
        () = lost.cancelled() => {}
    }
}

async fn ended<T: Clone>(mut outcome: Outcome<T>) -> Result<Progress<T>> {
    let ended = outcome.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
    ended.map_or_else(|| Err(ProviderError::unavailable("the provider ended before the work did")), |(_, result)| result)
}

async fn until<O>(at: Option<Instant>, future: impl Future<Output = O>) -> Option<O> {
    match at {
        Some(at) => timeout_at(at, future).await.ok(),
        None => Some(future.await),
    }
}

fn in_progress<T>(message: String) -> Progress<T> {
    Progress::InProgress(v1::InProgress { poll_after: None, message })
}

fn lost_leadership(method: &str) -> ProviderError {
    ProviderError::not_leading(format!("the leadership under which {method} was asked for has ended"))
}

/// The error of a call whose provider code panicked.
pub(crate) fn panicked(method: &str) -> ProviderError {
    ProviderError::internal(format!("the provider panicked in {method}; its log says where"))
}

#[cfg(test)]
#[path = "mutations/tests.rs"]
mod tests;
