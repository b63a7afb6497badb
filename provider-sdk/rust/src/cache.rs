//! A list of the cloud, read once for many answers. It knows nothing of what is listed, and never answers with less than a
//! whole list: a reading that fails is an error.
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::error::ProviderError;
use crate::provider::Result;

/// How long a reading may take before it counts as failed.
const LONGEST_READING: Duration = Duration::from_secs(60);

/// A list, and when it was read.
#[derive(Debug)]
pub struct Listed<T> {
    /// The list, in whatever form the provider keeps it.
    pub items: T,
    /// When the request to the cloud began, for [`Lookup::read_at`](crate::Lookup::read_at).
    pub read_at: SystemTime,
}

/// Lists once, answers many. A caller that asks while a reading runs waits for that reading; a caller that goes away does not end
/// it. A provider that is given another account or region while it runs needs a new cache.
///
/// ```
/// # use std::{collections::HashMap, time::Duration};
/// # use ccm_provider_sdk::{ListCache, Lookup, Result, v1};
/// # async fn list_machines() -> Result<HashMap<String, v1::Instance>> { Ok(HashMap::new()) }
/// # async fn answer(node_name: &str) -> Result<Lookup> {
/// let machines = ListCache::new(Duration::from_secs(10), list_machines);
/// let list = machines.get().await?;
/// let lookup = list.items.get(node_name).cloned().map_or(Lookup::not_found(), Lookup::found);
/// Ok(lookup.read_at(list.read_at))
/// # }
/// ```
pub struct ListCache<T> {
    max_age: Duration,
    list: Box<dyn Fn() -> BoxFuture<'static, Result<T>> + Send + Sync>,
    latest: Mutex<Option<Reading<T>>>,
}

type Outcome<T> = Option<Result<Arc<Listed<T>>>>;

/// A reading that runs or has ended.
struct Reading<T> {
    begun: Instant,
    outcome: watch::Receiver<Outcome<T>>,
    _task: AbortOnDropHandle<()>,
}

impl<T: Send + Sync + 'static> ListCache<T> {
    /// A cache whose lists count for `max_age` from the moment at which their reading began. `list` reads all of it; it MUST
    /// answer an error where the cloud gave only a part. What takes longer than a minute has failed.
    pub fn new<F>(max_age: Duration, list: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        Self { max_age, list: Box::new(move || list().boxed()), latest: Mutex::default() }
    }

    /// The list, read anew if it is too old. A failed reading is the error of everyone who waited for it; the next call begins
    /// another one.
    pub async fn get(&self) -> Result<Arc<Listed<T>>> {
        let mut outcome = self.reading();
        let outcome = outcome.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
        // A reading that ends without an outcome has panicked.
        outcome.unwrap_or_else(|| Err(ProviderError::internal("the provider panicked while it listed its cloud")))
    }

    fn reading(&self) -> watch::Receiver<Outcome<T>> {
        let mut latest = self.latest.lock();
        if let Some(reading) = latest.as_ref().filter(|reading| reading.counts(self.max_age)) {
            return reading.outcome.clone();
        }
        let reading = Reading::begin((self.list)());
        let outcome = reading.outcome.clone();
        *latest = Some(reading);
        outcome
    }
}

impl<T: Send + Sync + 'static> Reading<T> {
    fn begin(list: BoxFuture<'static, Result<T>>) -> Self {
        let (begun, read_at) = (Instant::now(), SystemTime::now());
        let (sender, outcome) = watch::channel(None);
        let task = tokio::spawn(async move {
            let items = timeout(LONGEST_READING, list).await;
            let late = |_| Err(ProviderError::deadline_exceeded("the cloud's list was not complete after a minute"));
            let listed = items.unwrap_or_else(late).map(|items| Arc::new(Listed { items, read_at }));
            // Keeps the list also when every caller has gone away.
            sender.send_replace(Some(listed));
        });
        Self { begun, outcome, _task: AbortOnDropHandle::new(task) }
    }

    /// Whether callers still get what this reading brings: while it runs, and until its list is too old.
    fn counts(&self, max_age: Duration) -> bool {
        match &*self.outcome.borrow() {
            None => self.outcome.has_changed().is_ok(),
            Some(Ok(_)) => self.begun.elapsed() < max_age,
            Some(Err(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests;
