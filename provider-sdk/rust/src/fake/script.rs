//! A method's answers, scripted: a queue, and a fallback for when the queue is empty. Every call is recorded.
use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::watch;

type Once<Q, A> = Box<dyn FnOnce(Q) -> BoxFuture<'static, A> + Send>;
type Always<Q, A> = Arc<dyn Fn(Q) -> BoxFuture<'static, A> + Send + Sync>;

/// The answers `A` to the requests `Q` of one method. Clones share everything.
pub struct Script<Q, A> {
    inner: Arc<Inner<Q, A>>,
}

struct Inner<Q, A> {
    queue: Mutex<VecDeque<Once<Q, A>>>,
    always: Mutex<Always<Q, A>>,
    calls: Mutex<Vec<Q>>,
    count: watch::Sender<usize>,
}

impl<Q: Clone + Send + 'static, A: Send + 'static> Script<Q, A> {
    /// Answers every call by `always`.
    pub fn new(always: impl Fn(Q) -> A + Send + Sync + 'static) -> Self {
        let always: Always<Q, A> = Arc::new(move |request| std::future::ready(always(request)).boxed());
        let inner =
            Inner { queue: Mutex::default(), always: Mutex::new(always), calls: Mutex::default(), count: watch::Sender::new(0) };
        Self { inner: Arc::new(inner) }
    }

    /// Answers the next call that has no answer yet with `answer`.
    pub fn then(&self, answer: A) -> &Self {
        self.then_await(move |_| std::future::ready(answer))
    }

    /// Answers the next call that has no answer yet with what the future gives. A pending one makes the call hang.
    pub fn then_await<F: Future<Output = A> + Send + 'static>(&self, answer: impl FnOnce(Q) -> F + Send + 'static) -> &Self {
        self.inner.queue.lock().push_back(Box::new(move |request| answer(request).boxed()));
        self
    }

    /// Answers every call beyond the queue by `answer`, from now on.
    pub fn always(&self, answer: impl Fn(Q) -> A + Send + Sync + 'static) {
        self.always_await(move |request| std::future::ready(answer(request)));
    }

    /// The same with a future.
    pub fn always_await<F: Future<Output = A> + Send + 'static>(&self, answer: impl Fn(Q) -> F + Send + Sync + 'static) {
        *self.inner.always.lock() = Arc::new(move |request| answer(request).boxed());
    }

    /// The requests so far, the first one first.
    pub fn calls(&self) -> Vec<Q> {
        self.inner.calls.lock().clone()
    }

    /// How many requests there were.
    pub fn count(&self) -> usize {
        *self.inner.count.borrow()
    }

    /// Waits until there were at least `count` requests.
    pub async fn wait_for_calls(&self, count: usize) {
        // The sender lives in `self`: waiting cannot fail.
        let _ = self.inner.count.subscribe().wait_for(|calls| *calls >= count).await;
    }

    /// Makes a call.
    pub async fn call(&self, request: Q) -> A {
        self.inner.calls.lock().push(request.clone());
        self.inner.count.send_modify(|count| *count += 1);
        let next = self.inner.queue.lock().pop_front();
        let answer = match next {
            Some(once) => once(request),
            None => (self.inner.always.lock())(request),
        };
        answer.await
    }
}

impl<Q, A> Clone for Script<Q, A> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}
