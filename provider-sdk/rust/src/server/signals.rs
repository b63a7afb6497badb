//! The signals that end a server.
use tokio::signal::unix::{SignalKind, signal};

/// Completes at SIGTERM or SIGINT. Where the system refuses to deliver one of them, only the other counts.
pub async fn termination() {
    tokio::select! {
        () = next(SignalKind::terminate()) => {}
        () = next(SignalKind::interrupt()) => {}
    }
    tracing::info!("asked to end");
}

async fn next(kind: SignalKind) {
    match signal(kind) {
        Ok(mut signals) => {
            signals.recv().await;
        }
        Err(error) => {
            tracing::warn!(?kind, %error, "this signal will not be heard");
            std::future::pending::<()>().await;
        }
    }
}
