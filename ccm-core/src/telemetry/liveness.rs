//! What `/livez` reports: which task makes no progress, and whether the process holds a lease that it does not renew. A task that
//! waits for an API server or a provider is well. It decides nothing else.
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

#[cfg(test)]
mod tests;

/// How long a task may work without waiting.
const WORK: Duration = Duration::from_mins(1);
/// How long after its end a term of the elector may still be published: the elector ends it by itself.
const OVERDUE: Duration = Duration::from_secs(15);

/// All turns of loops that have begun and not ended. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Liveness(Arc<Mutex<Running>>);

#[derive(Debug, Default)]
struct Running {
    turns: BTreeMap<u64, Begun>,
    next: u64,
    lease: Option<Lease>,
}

/// Until when the lease is held that the elector publishes now, if it is held.
struct Lease(Box<dyn Fn() -> Option<std::time::Instant> + Send>);

impl std::fmt::Debug for Lease {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_tuple("Lease").field(&(self.0)()).finish()
    }
}

#[derive(Debug)]
struct Begun {
    name: &'static str,
    since: Instant,
    limit: Duration,
}

/// One turn of a loop, from its beginning until this is dropped.
#[derive(Debug)]
pub struct Turn {
    liveness: Liveness,
    id: u64,
}

impl Liveness {
    /// A loop begins to handle one wake-up. If that, or one part of it, takes longer than `limit`, the process is not alive.
    pub fn turn(&self, name: &'static str, limit: Duration) -> Turn {
        let mut running = self.0.lock();
        let id = running.next;
        running.next += 1;
        running.turns.insert(id, Begun { name, since: Instant::now(), limit });
        Turn { liveness: self.clone(), id }
    }

    /// One part of a turn of this name is done.
    pub fn goes_on(&self, name: &str) {
        let mut running = self.0.lock();
        running.turns.values_mut().filter(|turn| turn.name == name).for_each(|turn| turn.since = Instant::now());
    }

    /// The task, each stretch of work of which between two waits is a turn.
    pub fn watched<F: Future + Send + 'static>(
        &self,
        name: &'static str,
        task: F,
    ) -> impl Future<Output = F::Output> + Send + use<F> {
        let (liveness, mut task) = (self.clone(), Box::pin(task));
        poll_fn(move |context| {
            let _turn = liveness.turn(name, WORK);
            task.as_mut().poll(context)
        })
    }

    /// Judges the lease by what the elector publishes: until when it is held, or nothing while it is not.
    pub fn watch_lease(&self, held_until: impl Fn() -> Option<std::time::Instant> + Send + 'static) {
        self.0.lock().lease = Some(Lease(Box::new(held_until)));
    }

    /// The tasks that make no progress, and the lease if it is overdue.
    pub fn problems(&self) -> Vec<String> {
        let (now, running) = (Instant::now(), self.0.lock());
        let late = running.turns.values().filter(|turn| now.duration_since(turn.since) > turn.limit);
        let turns = late.map(|turn| {
            let since = Duration::from_secs(now.duration_since(turn.since).as_secs());
            format!("the task {} has made no progress for {}", turn.name, humantime::format_duration(since))
        });
        let lease = running.lease.as_ref().and_then(|lease| overdue((lease.0)()?, now));
        turns.chain(lease).collect()
    }
}

fn overdue(held_until: std::time::Instant, now: Instant) -> Option<String> {
    let late = now.into_std().checked_duration_since(held_until).filter(|late| *late > OVERDUE)?;
    let late = humantime::format_duration(Duration::from_secs(late.as_secs()));
    Some(format!("the lease was due to be renewed or given up {late} ago, and the elector did neither"))
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.liveness.0.lock().turns.remove(&self.id);
    }
}
