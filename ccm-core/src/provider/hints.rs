//! Passes on which machines the provider saw change. A hint causes a look-up; nothing is decided from it.
use std::time::Duration;

use ccm_proto::v1;
use tokio::sync::broadcast;
use tokio::time::sleep;
use tonic::Status;

use super::backoff::Backoff;
use super::grpc::Method;
use super::session::{Live, LiveReceiver};
use crate::model::provider_info::Capability;

/// How many hints are kept for a receiver that is slow.
pub const KEPT: usize = 1024;

/// Machines whose state may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// Names of nodes.
    pub node_names: Vec<String>,
    /// Ids of machines.
    pub provider_ids: Vec<String>,
}

/// Keeps the stream open on every provider that serves it.
pub async fn keep(mut live: LiveReceiver, hints: broadcast::Sender<Hint>) {
    loop {
        let now = live.see().filter(|it| it.info.capabilities.contains(&Capability::WatchInstances));
        let watching = async {
            match now {
                Some(provider) => watch(&provider, &hints).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = watching => {}
            changed = live.changed() => if !changed { return },
        }
    }
}

async fn watch(provider: &Live, hints: &broadcast::Sender<Hint>) {
    let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(30));
    loop {
        match follow(provider, hints, &mut backoff).await {
            Ok(()) => tracing::debug!("the provider ended WatchInstances"),
            Err(status) => tracing::debug!(%status, "WatchInstances failed"),
        }
        sleep(backoff.delay()).await;
    }
}

async fn follow(provider: &Live, hints: &broadcast::Sender<Hint>, backoff: &mut Backoff) -> Result<(), Status> {
    let mut client = provider.connection.instances();
    let request = v1::WatchInstancesRequest {};
    let mut stream =
        provider.connection.call(Method::WatchInstances, request, |it| async move { client.watch_instances(it).await }).await?;
    while let Some(seen) = stream.message().await? {
        provider.connection.heard();
        backoff.reset();
        // Without a receiver the hint is not needed.
        drop(hints.send(Hint { node_names: seen.node_names, provider_ids: seen.provider_ids }));
    }
    Ok(())
}
