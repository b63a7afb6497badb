//! Several mutations of one batch as one piece of work, for clouds that change several things in one call. What is blocked by an
//! earlier mutation of its key, or runs already, is left out: [`Mutations::run`] sees to it, as to the outcomes of the others.
use std::future::Future;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{Entry, Mutations, Sender, State, guarded, tell};
use crate::error::ProviderError;
use crate::provider::{Progress, Result};

impl<R, T> Mutations<R, T>
where
    R: PartialEq + Send + Sync + 'static,
    T: Clone + Send + Sync + 'static,
{
    /// Begins one piece of work for those of the requests that nothing blocks. `work` gets their positions, and answers one
    /// result for each in this order. Their callers then `run` them, one by one, and attach.
    pub(crate) fn begin_together<W>(
        &self,
        method: &'static str,
        lost: &CancellationToken,
        requests: Vec<(String, R)>,
        work: impl FnOnce(&[usize]) -> W,
    ) where
        W: Future<Output = Result<Vec<Result<Progress<T>>>>> + Send + 'static,
    {
        let (positions, waiting) = self.begin_free(method, lost, requests);
        if positions.is_empty() {
            return;
        }
        let (work, lost) = (work(&positions), lost.clone());
        let task = async move {
            let results = guarded(method, lost, work).await.and_then(|results| results);
            for ((key, sender), result) in waiting.iter().zip(one_each(results, waiting.len())) {
                tell(method, key, sender, result);
            }
        };
        self.tasks.spawn(task.in_current_span());
    }

    /// The positions of the requests that nothing blocks, and where their outcomes are to be told.
    fn begin_free(
        &self,
        method: &'static str,
        lost: &CancellationToken,
        requests: Vec<(String, R)>,
    ) -> (Vec<usize>, Vec<(String, Sender<T>)>) {
        let State { entries, queues } = &mut *self.state.lock();
        entries.retain(|_, entry| !entry.useless());
        let mut begun = (Vec::new(), Vec::new());
        for (position, (key, request)) in requests.into_iter().enumerate() {
            let is_blocked = entries.get(&key).is_some_and(|entry| entry.running() || *entry.request == request);
            if lost.is_cancelled() || is_blocked || !queues.is_first(&key, None) {
                continue;
            }
            let (sender, entry) = Entry::begin(Arc::new(request), method, lost.clone());
            entries.insert(key.clone(), entry);
            begun.0.push(position);
            begun.1.push((key, sender));
        }
        begun
    }
}

/// One result for each of so many; any other number is a defect of the provider.
fn one_each<T>(results: Result<Vec<Result<Progress<T>>>>, count: usize) -> Vec<Result<Progress<T>>> {
    let error = match results {
        Ok(results) if results.len() == count => return results,
        Ok(results) => ProviderError::internal(format!("the provider answered {} of {count} items", results.len())),
        Err(error) => error,
    };
    (0..count).map(|_| Err(error.clone())).collect()
}
