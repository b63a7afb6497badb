//! Whether the API server is reachable, determined by one probe for all clients. Waiting requests continue when it is back. It is
//! away while it gives no HTTP response: a refusal or a server error is a response, and concerns only its request.
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

/// The time between two probes while it is away.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a probe may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether it is away. Clones share it.
#[derive(Clone, Debug)]
pub struct Presence {
    away: Arc<watch::Sender<bool>>,
    unanswered: Arc<Notify>,
}

impl Default for Presence {
    /// It counts as reachable while there is no probe.
    fn default() -> Self {
        Self { away: Arc::new(watch::Sender::new(false)), unanswered: Arc::default() }
    }
}

impl Presence {
    /// A request was not answered: the probe determines whether the API server is away.
    pub fn doubt(&self) {
        self.unanswered.notify_one();
    }

    /// Whether it is away: for tests.
    #[cfg(test)]
    pub fn is_away(&self) -> bool {
        *self.away.borrow()
    }

    /// Returns when it is there.
    pub async fn present(&self) {
        drop(self.away.subscribe().wait_for(|away| !away).await);
    }

    /// Returns when it is back after it was away.
    pub async fn returned(&self) {
        let mut away = self.away.subscribe();
        if away.wait_for(|away| *away).await.is_err() || away.wait_for(|away| !away).await.is_err() {
            pending::<()>().await;
        }
    }

    /// Probes after each unanswered request, and while it is away. `client` must not report to this presence itself.
    pub async fn watch(self, client: Client) {
        loop {
            self.unanswered.notified().await;
            let Err(error) = probe(&client).await else { continue };
            let since = Instant::now();
            tracing::warn!(error, "the API server is away; reads and writes wait for it");
            self.away.send_replace(true);
            while probe(&client).await.is_err() {
                sleep(PAUSE).await;
            }
            tracing::info!(away = ?since.elapsed(), "the API server is back");
            self.away.send_replace(false);
        }
    }
}

/// Whether an answer came at all.
async fn probe(client: &Client) -> Result<(), String> {
    match timeout(PATIENCE, client.apiserver_version()).await {
        Ok(Err(error)) if is_unanswered(&error) => Err(error.to_string()),
        Ok(_) => Ok(()),
        Err(_) => Err(format!("no answer within {PATIENCE:?}")),
    }
}

/// Whether a request failed without an answer by HTTP.
pub fn is_unanswered(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Service(_) | kube::Error::HyperError(_) | kube::Error::ReadEvents(_))
}

#[cfg(test)]
mod tests;
