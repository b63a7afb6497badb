//! Makes batches of concurrent look-ups. One task owns the queue; callers wait for their answers. When a batch goes is
//! decided here from three small state machines without I/O: `queue`, `pace` and `window`. It knows no gRPC.
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, FuturesUnordered, StreamExt};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use crate::model::instance::{Answer, NodeQuery};
use crate::model::provider_info::Limits;

use super::capabilities::retry;
use super::metrics::ProviderMetrics;
use super::{Instances, Priority, ProviderError};
use pace::Pace;
use queue::{Item, Queue};
use window::Window;

mod pace;
mod queue;
#[cfg(test)]
mod tests;
mod window;

/// The reason of look-ups over whose answer this process panicked.
const PANICKED: &str = "PANICKED";

type Reply = oneshot::Sender<Result<Answer, ProviderError>>;

/// Where batches go.
pub trait Source: Send + Sync + 'static {
    /// The provider as it is now, or how it stands that there is none.
    fn current(&self) -> Result<Arc<dyn InstanceSession>, ProviderError>;

    /// An item whenever [`Source::current`] would answer otherwise than before.
    fn changes(&self) -> BoxStream<'static, ()>;
}

/// One handshake's worth of a provider.
#[async_trait]
pub trait InstanceSession: Send + Sync + 'static {
    /// What it can take.
    fn limits(&self) -> Limits;

    /// One call: an answer for each query, in order, or the error of the whole batch.
    async fn batch_get(&self, queries: &[Arc<NodeQuery>]) -> Result<Vec<Result<Answer, ProviderError>>, ProviderError>;
}

/// Look-ups that become batches. Every caller should ask for all it wants at once: a batch holds what waits together.
pub struct Batcher {
    source: Arc<dyn Source>,
    asks: mpsc::UnboundedSender<Ask>,
    rate_limit: watch::Receiver<Option<Instant>>,
}

struct Ask {
    query: NodeQuery,
    priority: Priority,
    reply: Reply,
}

impl Batcher {
    /// The batcher, and the task that does its work until the batcher is dropped.
    pub fn start(source: Arc<dyn Source>, metrics: ProviderMetrics) -> (Self, impl Future<Output = ()> + Send) {
        let (asks, received) = mpsc::unbounded_channel();
        let (limit, rate_limit) = watch::channel(None);
        let driver = Driver {
            changes: source.changes(),
            source: Arc::clone(&source),
            asks: received,
            queue: Queue::default(),
            running: FuturesUnordered::new(),
            pace: Pace::default(),
            window: Window::default(),
            limit,
            metrics,
        };
        (Self { source, asks, rate_limit }, driver.run())
    }

    /// Until when all look-ups pause because the cloud limits their rate; nothing once a look-up has succeeded again.
    pub fn rate_limit(&self) -> watch::Receiver<Option<Instant>> {
        self.rate_limit.clone()
    }
}

#[async_trait]
impl Instances for Batcher {
    async fn look_up(&self, query: NodeQuery, priority: Priority) -> Result<Answer, ProviderError> {
        drop(self.source.current()?);
        let stopped = || retry("STOPPED", "ccm-core is shutting down");
        let (reply, answer) = oneshot::channel();
        self.asks.send(Ask { query, priority, reply }).map_err(|_| stopped())?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }
}

struct Driver {
    source: Arc<dyn Source>,
    changes: BoxStream<'static, ()>,
    asks: mpsc::UnboundedReceiver<Ask>,
    queue: Queue,
    running: FuturesUnordered<BoxFuture<'static, Finished>>,
    pace: Pace,
    window: Window,
    limit: watch::Sender<Option<Instant>>,
    metrics: ProviderMetrics,
}

struct Finished {
    items: Vec<Item>,
    started: Instant,
    outcome: Result<Vec<Result<Answer, ProviderError>>, ProviderError>,
}

impl Driver {
    async fn run(mut self) {
        loop {
            let due = self.dispatch();
            self.publish();
            tokio::select! {
                ask = self.asks.recv() => match ask {
                    Some(ask) => self.admit(ask),
                    None => return,
                },
                Some(finished) = self.running.next() => self.settle(finished),
                () = wait_until(due), if due.is_some() => {}
                Some(()) = self.changes.next() => self.pace = Pace::default(),
            }
        }
    }

    fn admit(&mut self, first: Ask) {
        let now = Instant::now();
        self.window.arrived(now);
        let mut next = Some(first);
        while let Some(ask) = next {
            self.queue.push(ask.query, ask.priority, ask.reply, now);
            next = self.asks.try_recv().ok();
        }
    }

    /// Sends what may go now; answers when to look again, if time alone will change something.
    fn dispatch(&mut self) -> Option<Instant> {
        while !self.queue.is_empty() {
            let now = Instant::now();
            let session = match self.source.current() {
                Ok(session) => session,
                Err(error) => {
                    self.queue.fail_all(&error);
                    break;
                }
            };
            if let Some(error) = self.pace.gives_up(now) {
                self.queue.fail_all(&error);
                break;
            }
            let limits = session.limits();
            if self.running.len() >= self.pace.concurrency(limits.max_concurrent_instance_calls) {
                break;
            }
            let full = self.queue.len() >= limits.max_batch_size;
            let closes = if full { now } else { self.window.closes(self.queue.oldest(), now) };
            let due = self.pace.next_at().map_or(closes, |paused| paused.max(closes));
            if due > now {
                return Some(due);
            }
            self.launch(session, limits.max_batch_size, now);
        }
        None
    }

    fn launch(&mut self, session: Arc<dyn InstanceSession>, max: usize, started: Instant) {
        let items = self.queue.take(max);
        if items.is_empty() {
            return;
        }
        self.window.sent(started, items.len() >= max);
        #[allow(clippy::cast_precision_loss)] // a batch is no 2^52
        self.metrics.batch_size.observe(items.len() as f64);
        let queries: Vec<_> = items.iter().map(|item| Arc::clone(&item.query)).collect();
        self.running.push(Box::pin(async move {
            // A panic over one answer fails its batch, not every look-up from then on.
            let outcome = AssertUnwindSafe(session.batch_get(&queries)).catch_unwind().await;
            let outcome =
                outcome.unwrap_or_else(|_| Err(retry(PANICKED, "ccm-core panicked over the answer; its log says where")));
            Finished { items, started, outcome }
        }));
    }

    fn publish(&self) {
        let until = self.pace.rate_limited_until();
        self.limit.send_if_modified(|known| std::mem::replace(known, until) != until);
    }

    fn settle(&mut self, finished: Finished) {
        let now = Instant::now();
        match finished.outcome {
            Err(error) => {
                self.pace.failed(&error, now);
                finished.items.into_iter().for_each(|item| item.answer(&Err(error.clone())));
            }
            // An item that failed says nothing about the others, not even that the cloud limits their rate.
            Ok(answers) => {
                self.pace.succeeded(finished.started);
                finished.items.into_iter().zip(&answers).for_each(|(item, answer)| item.answer(answer));
            }
        }
    }
}

async fn wait_until(due: Option<Instant>) {
    if let Some(due) = due {
        sleep_until(due).await;
    }
}
