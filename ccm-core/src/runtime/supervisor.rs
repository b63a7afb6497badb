//! Owns the long tasks and reports each that ends without being asked to, by its name. What follows from such an end is for the
//! owner to decide: the end of the leadership term, or of the process.
use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::{Instant, timeout, timeout_at};

use crate::telemetry::liveness::Liveness;

#[cfg(debug_assertions)]
mod injection;
#[cfg(test)]
mod tests;

/// What a panic drops can end other tasks a moment before the panic itself is reported: the panic is the cause to name.
const CAUSE: Duration = Duration::from_millis(100);
/// How long a task that was aborted may take to stop. One that stands still never does, and `/livez` names it.
const STOP: Duration = Duration::from_secs(5);

/// Named tasks. Dropping it aborts them.
pub struct Supervisor {
    tasks: JoinSet<()>,
    names: HashMap<Id, (&'static str, AbortHandle)>,
    liveness: Liveness,
    /// An unexpected end whose cause is still being looked for.
    first: Option<Ended>,
}

/// A task that ended although nothing had asked it to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the task {task} {how}")]
pub struct Ended {
    /// The task's name.
    pub task: &'static str,
    /// How it ended.
    pub how: How,
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// With this message.
    Panicked(String),
    /// It returned.
    Returned,
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(message) => write!(f, "panicked: {message}"),
            Self::Returned => f.write_str("ended early"),
        }
    }
}

impl Supervisor {
    /// No tasks yet. Turns of tasks are reported to `liveness`.
    pub fn new(liveness: Liveness) -> Self {
        Self { tasks: JoinSet::new(), names: HashMap::new(), liveness, first: None }
    }

    /// Runs a task under a name for logs and readiness.
    pub fn spawn(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        #[cfg(debug_assertions)]
        let task = injection::panics_on_demand(name, task);
        let task = self.tasks.spawn(self.liveness.watched(name, task));
        self.names.insert(task.id(), (name, task));
    }

    /// The next task that ends. Never returns where there is none.
    pub async fn next(&mut self) -> Ended {
        let ended = match self.first.take() {
            Some(ended) => ended,
            None => match self.join().await {
                Some(ended) => ended,
                None => std::future::pending().await,
            },
        };
        let panicked = |ended: &Ended| matches!(ended.how, How::Panicked(_));
        if panicked(&ended) {
            return ended;
        }
        self.first = Some(ended);
        let deadline = Instant::now() + CAUSE;
        while let Ok(Some(cause)) = timeout_at(deadline, self.join()).await {
            if panicked(&cause) {
                self.first = Some(cause);
                break;
            }
        }
        match self.first.take() {
            Some(ended) => ended,
            None => std::future::pending().await,
        }
    }

    /// Waits until the task of this name has ended. Answers how; nothing where it had ended before.
    pub async fn finished(&mut self, name: &str) -> Option<How> {
        while self.names.values().any(|(running, _)| *running == name) {
            match self.join().await {
                Some(ended) if ended.task == name => return Some(ended.how),
                Some(_) => {}
                None => break,
            }
        }
        None
    }

    /// Waits until all tasks have ended, which were asked to. False: some still run after `limit`.
    pub async fn finish(&mut self, limit: Duration) -> bool {
        let all = async {
            while let Some(ended) = self.join().await {
                if let How::Panicked(message) = ended.how {
                    tracing::error!(task = ended.task, panic = message, "a task panicked while it was ending");
                }
            }
        };
        timeout(limit, all).await.is_ok()
    }

    /// Aborts the tasks of this name.
    pub fn abort(&self, name: &str) {
        self.names.values().filter(|(running, _)| *running == name).for_each(|(_, task)| task.abort());
    }

    /// Aborts all tasks and waits until they have stopped.
    pub async fn shutdown(&mut self) {
        self.tasks.abort_all();
        if !self.finish(STOP).await {
            let tasks: Vec<_> = self.names.values().map(|(name, _)| name).collect();
            tracing::error!(?tasks, "tasks do not stop: they stand still, and /livez reports it");
        }
    }

    async fn join(&mut self) -> Option<Ended> {
        loop {
            let (id, how) = match self.tasks.join_next_with_id().await? {
                Ok((id, ())) => (id, Some(How::Returned)),
                Err(error) => (error.id(), panic_of(error)),
            };
            let task = self.names.remove(&id).map(|(name, _)| name);
            if let (Some(task), Some(how)) = (task, how) {
                return Some(Ended { task, how });
            }
        }
    }
}

/// Nothing where the task was aborted.
fn panic_of(error: JoinError) -> Option<How> {
    error.try_into_panic().ok().map(|panic| How::Panicked(message(&*panic)))
}

/// What a panic says.
pub fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".to_owned())
}
