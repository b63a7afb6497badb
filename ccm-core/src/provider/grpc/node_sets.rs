//! Which node sets the provider at the other end of a connection has. Each is sent once, however many calls need it at the same
//! time. The caller knows the content of a set and how to send it.
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;

use crate::provider::{ProviderError, capabilities};

/// How many sets a provider keeps at least: those that were used last.
const KEPT: usize = 8;

type Sent = Shared<BoxFuture<'static, Result<(), ProviderError>>>;

/// Sets by hash, the one used last at the back.
#[derive(Default)]
pub struct NodeSets {
    sets: Mutex<Sets>,
}

#[derive(Default)]
struct Sets {
    entries: VecDeque<Entry>,
    sendings: u64,
}

struct Entry {
    hash: Arc<str>,
    sending: u64,
    sent: Sent,
}

/// The number that distinguishes one sending of a set from an earlier or a later one.
#[derive(Debug)]
pub struct Sending(u64);

impl NodeSets {
    /// Returns once the provider has the set, and sends it only if no other call has sent it or is sending it. A failure is returned
    /// to all waiting callers; a later caller tries again. The sending continues if the callers go away.
    pub async fn sent<F>(&self, hash: &Arc<str>, send: impl FnOnce() -> F) -> Result<Sending, ProviderError>
    where
        F: Future<Output = Result<(), ProviderError>> + Send + 'static,
    {
        let (sending, sent) = self.join(hash, send);
        let result = sent.await;
        if result.is_err() {
            self.forget(&sending);
        }
        result.map(|()| sending)
    }

    /// The provider no longer has it. A later sending of the same set is not affected.
    pub fn forget(&self, sending: &Sending) {
        self.sets.lock().entries.retain(|entry| entry.sending != sending.0);
    }

    fn join<F>(&self, hash: &Arc<str>, send: impl FnOnce() -> F) -> (Sending, Sent)
    where
        F: Future<Output = Result<(), ProviderError>> + Send + 'static,
    {
        let mut sets = self.sets.lock();
        let at = sets.entries.iter().position(|entry| entry.hash == *hash);
        let entry = at.and_then(|at| sets.entries.remove(at)).unwrap_or_else(|| {
            sets.sendings += 1;
            Entry { hash: Arc::clone(hash), sending: sets.sendings, sent: spawn(send()) }
        });
        let joined = (Sending(entry.sending), entry.sent.clone());
        sets.entries.push_back(entry);
        while sets.entries.len() > KEPT {
            sets.entries.pop_front();
        }
        joined
    }
}

impl fmt::Debug for NodeSets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.sets.lock().entries.iter().map(|entry| &entry.hash)).finish()
    }
}

fn spawn(work: impl Future<Output = Result<(), ProviderError>> + Send + 'static) -> Sent {
    let task = tokio::spawn(work);
    let ended = |_| Err(capabilities::retry("STOPPED", "sending the node set was broken off"));
    async move { task.await.unwrap_or_else(ended) }.boxed().shared()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::{join_all, ready};

    use super::*;

    #[tokio::test]
    async fn whoever_wants_a_set_at_the_same_time_shares_its_sending_and_its_failure() {
        let (sets, sends) = (NodeSets::default(), Arc::new(AtomicUsize::new(0)));
        let send = |result: Result<(), ProviderError>| {
            let sends = Arc::clone(&sends);
            move || {
                sends.fetch_add(1, Ordering::SeqCst);
                async move {
                    tokio::task::yield_now().await;
                    result
                }
            }
        };
        let hash: Arc<str> = "h".into();
        let failure = || Err(capabilities::retry("UNAVAILABLE", "away"));
        let failed = join_all((0..200).map(|_| sets.sent(&hash, send(failure())))).await;
        assert!(failed.iter().all(|it| it.as_ref().is_err_and(|error| error.message == "away")));
        assert_eq!(sends.load(Ordering::SeqCst), 1);

        let sent = join_all((0..200).map(|_| sets.sent(&hash, send(Ok(()))))).await;
        assert!(sent.iter().all(Result::is_ok));
        assert_eq!(sends.load(Ordering::SeqCst), 2);

        for stale in sent {
            sets.forget(&stale.unwrap());
            sets.sent(&hash, send(Ok(()))).await.unwrap();
        }
        assert_eq!(sends.load(Ordering::SeqCst), 3, "all of them spoke of the same sending");
    }

    #[tokio::test]
    async fn the_set_that_was_not_used_for_longest_is_sent_again() {
        let sets = NodeSets::default();
        let names: Vec<Arc<str>> = (0..=KEPT).map(|n| n.to_string().into()).collect();
        for name in &names[..KEPT] {
            sets.sent(name, || ready(Ok(()))).await.unwrap();
        }
        sets.sent(&names[0], || ready(Ok(()))).await.unwrap();
        sets.sent(&names[KEPT], || ready(Ok(()))).await.unwrap();
        assert_eq!(format!("{sets:?}"), r#"["2", "3", "4", "5", "6", "7", "0", "8"]"#);
    }
}
