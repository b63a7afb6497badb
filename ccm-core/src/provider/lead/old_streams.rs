//! Lead streams on connections that take no more calls, while the calls on them end.
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::provider::count::Count;
use crate::provider::session::Live;

/// How long a provider is led on a connection that takes no more calls: the longest grace of a provider and its last answer.
const DRAIN: Duration = Duration::from_mins(2);

/// Those of one session. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct OldStreams {
    count: Count,
    /// Sent to when a provider refused another stream of the epoch.
    refused: Arc<watch::Sender<()>>,
}

impl OldStreams {
    /// The rest of a stream's life.
    pub fn drain(&self, provider: Arc<Live>, leading: BoxFuture<'static, ()>) -> impl Future<Output = ()> + Send + use<> {
        let (counted, refused) = (self.count.add(), self.refused.subscribe());
        async move {
            let _counted = counted;
            tokio::select! {
                () = leading => {}
                () = replaced(refused, &provider) => {}
                () = provider.connection.ended() => {}
                () = sleep(DRAIN) => tracing::warn!("the provider did not end its old connection; Lead is closed there"),
            }
        }
    }

    /// Another stream was refused. Whether an old one may be why; then this returns once that has ended.
    pub async fn explain_refusal(&self) -> bool {
        let explained = self.count.any();
        if explained {
            self.refused.send_replace(());
            self.count.none().await;
        }
        explained
    }
}

/// Returns when another stream was refused, and no call runs under the old one.
async fn replaced(mut refused: watch::Receiver<()>, provider: &Live) {
    match refused.changed().await {
        Ok(()) => provider.connection.idle().await,
        // Nobody opens another one.
        Err(_) => std::future::pending().await,
    }
}
