//! A server of a test: it ends with the test.
use std::future::Future;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::endpoint::Endpoint;
use crate::server::{ServeError, Server};

/// A server that runs in a task of its own. Dropped it ends at once, without draining.
pub struct Serving<E = ServeError> {
    endpoint: Endpoint,
    stop: CancellationToken,
    task: Option<JoinHandle<Result<(), E>>>,
}

impl Serving {
    /// Serves `server`; connections succeed once this has returned.
    pub async fn start(server: Server, endpoint: &str) -> Result<Self, ServeError> {
        let endpoint: Endpoint = endpoint.parse()?;
        let bound = server.endpoint(&endpoint.to_string()).bind().await?;
        Ok(Self::spawn(endpoint, |stop| async move { bound.serve(stop.cancelled_owned()).await }))
    }
}

impl<E: Send + 'static> Serving<E> {
    pub(crate) fn spawn<F>(endpoint: Endpoint, serve: impl FnOnce(CancellationToken) -> F) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let task = Some(tokio::spawn(serve(stop.clone())));
        Self { endpoint, stop, task }
    }

    /// Where it serves.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Asks it to shut down, without waiting.
    pub fn begin_stop(&self) {
        self.stop.cancel();
    }

    /// Asks it to shut down, and waits until it has.
    pub async fn stop(mut self) -> Result<(), E> {
        self.stop.cancel();
        match self.task.take() {
            Some(task) => task.await.unwrap_or(Ok(())),
            None => Ok(()),
        }
    }
}

impl<E> Drop for Serving<E> {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}
