//! The loop around a [`Scheduler`]: it hears what may have changed, begins what is due, and follows what has ended. Every controller
//! that works object by object runs in it.
use std::collections::HashMap;
use std::fmt::Display;
use std::time::Instant;

use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

use super::{Answered, Key, Priority, Scheduler};

/// How many keys are looked at before other tasks get their turn.
const LOOKS: usize = 1024;

/// What is due for an object.
#[derive(Debug)]
pub enum Due<P, W> {
    /// Nothing until it is named.
    Nothing,
    /// Nothing before this time.
    NotBefore(Instant),
    /// This, at a priority.
    Now(P, W),
}

/// A controller that works object by object.
pub trait Keyed: Send {
    /// How urgent its work is.
    type Priority: Priority;
    /// One piece of work.
    type Work: Send;
    /// How such a piece ended.
    type Outcome: Send + 'static;

    /// Waits until something may have changed, takes it in, and answers the objects to look at. It may be dropped at any time
    /// while it waits, and loses nothing then.
    fn hear(&mut self) -> impl Future<Output = Vec<Key>> + Send;

    /// How many objects may be worked on at one time; 0 while nothing can be done.
    fn limit(&self) -> usize;

    /// What is due for an object now. It is asked when the object was named, and again when there is a place for it.
    fn due(&mut self, key: &Key, now: Instant) -> Due<Self::Priority, Self::Work>;

    /// Does it.
    fn work(&self, work: Self::Work) -> impl Future<Output = Self::Outcome> + Send + 'static;

    /// Takes in how it ended, `None` if by a panic, and answers what that says about all calls. The object is looked at next.
    fn ended(&mut self, key: &Key, outcome: Option<Self::Outcome>, now: Instant) -> Answered;

    /// Called once each turn, when objects were looked at and before work begins: for what depends on all objects.
    fn turned(&mut self, _scheduler: &mut Scheduler<Self::Priority>, _now: Instant) {}
}

/// Runs until `shutdown`; then no work begins, and work that has begun is waited for.
pub async fn drive<C: Keyed>(mut controller: C, shutdown: &CancellationToken) {
    let (mut scheduler, mut tasks) = (Scheduler::default(), Tasks::default());
    loop {
        let now = now();
        scheduler.wake(now);
        look(&mut controller, &mut scheduler, now);
        controller.turned(&mut scheduler, now);
        begin(&mut controller, &mut scheduler, &mut tasks, now);
        if scheduler.has_named() && !shutdown.is_cancelled() {
            tokio::task::yield_now().await;
            continue;
        }
        tokio::select! {
            () = shutdown.cancelled() => break,
            keys = controller.hear() => keys.into_iter().for_each(|key| scheduler.name(key)),
            Some((key, outcome)) = tasks.next() => {
                let now = self::now();
                let answered = controller.ended(&key, outcome, now);
                scheduler.finish(&key, answered, now);
            }
            () = sleep_until(scheduler.wake_at(now)) => {}
        }
    }
    while tasks.next().await.is_some() {}
}

fn look<C: Keyed>(controller: &mut C, scheduler: &mut Scheduler<C::Priority>, now: Instant) {
    for _ in 0..LOOKS {
        let Some(key) = scheduler.take_named() else { return };
        match controller.due(&key, now) {
            Due::Now(priority, _) => scheduler.queue(&key, priority),
            Due::NotBefore(at) => scheduler.rest(&key, at),
            Due::Nothing => scheduler.idle(&key),
        }
    }
}

fn begin<C: Keyed>(controller: &mut C, scheduler: &mut Scheduler<C::Priority>, tasks: &mut Tasks<Key, C::Outcome>, now: Instant) {
    let limit = controller.limit();
    if limit == 0 {
        return;
    }
    while let Some((key, priority)) = scheduler.next(limit, now) {
        match controller.due(&key, now) {
            Due::Now(as_queued, work) if as_queued == priority => {
                scheduler.begin(&key, priority, now);
                tasks.start(key, controller.work(work));
            }
            Due::Now(other, _) => scheduler.queue(&key, other),
            Due::NotBefore(at) => scheduler.rest(&key, at),
            Due::Nothing => scheduler.idle(&key),
        }
    }
}

/// The work that runs, each piece with its key.
pub struct Tasks<K, O> {
    tasks: JoinSet<O>,
    keys: HashMap<Id, K>,
}

impl<K, O> Default for Tasks<K, O> {
    fn default() -> Self {
        Self { tasks: JoinSet::new(), keys: HashMap::new() }
    }
}

impl<K: Display, O: Send + 'static> Tasks<K, O> {
    /// Begins a piece of work.
    pub fn start(&mut self, key: K, work: impl Future<Output = O> + Send + 'static) {
        let id = self.tasks.spawn(work).id();
        self.keys.insert(id, key);
    }

    /// The next that ends, and how, `None` if by a panic; `None` where nothing runs.
    pub async fn next(&mut self) -> Option<(K, Option<O>)> {
        loop {
            let (id, outcome) = match self.tasks.join_next_with_id().await? {
                Ok((id, outcome)) => (id, Ok(outcome)),
                Err(error) => (error.id(), Err(error)),
            };
            let Some(key) = self.keys.remove(&id) else { continue };
            let outcome = outcome.inspect_err(|error| {
                tracing::error!(%key, %error, "work on an object panicked; it is retried after a pause");
            });
            return Some((key, outcome.ok()));
        }
    }
}

/// By tokio's clock, by which pauses are slept.
pub fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Sleeps until a time; for ever where there is none.
pub async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}
