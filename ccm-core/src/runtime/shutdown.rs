//! The signals: the first SIGTERM or SIGINT cancels a token, a second one ends the process at once.
use std::io;

use futures::stream::{Stream, StreamExt, poll_fn, select};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// A signal that requests the end of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Terminate,
    Interrupt,
}

impl Request {
    /// The exit code that a shell shows for a process that a signal ended.
    fn exit_code(self) -> i32 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

/// A token that SIGTERM or SIGINT cancels. Call it once, within tokio. It fails if signals cannot be handled.
pub fn on_signals() -> io::Result<CancellationToken> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let terminates = poll_fn(move |context| terminate.poll_recv(context)).map(|()| Request::Terminate);
    let interrupts = poll_fn(move |context| interrupt.poll_recv(context)).map(|()| Request::Interrupt);
    let token = CancellationToken::new();
    tokio::spawn(obey(select(terminates, interrupts), token.clone(), |code| std::process::exit(code)));
    Ok(token)
}

async fn obey(mut requests: impl Stream<Item = Request> + Unpin, token: CancellationToken, exit: impl FnOnce(i32)) {
    if let Some(first) = requests.next().await {
        info!(signal = ?first, "shutting down; a second signal ends the process at once");
        token.cancel();
    }
    if let Some(second) = requests.next().await {
        warn!(signal = ?second, "second signal: ending at once");
        exit(second.exit_code());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn after(requests: &[Request]) -> (bool, Option<i32>) {
        let (token, mut code) = (CancellationToken::new(), None);
        obey(futures::stream::iter(requests.to_vec()), token.clone(), |given| code = Some(given)).await;
        (token.is_cancelled(), code)
    }

    #[tokio::test]
    async fn the_first_signal_asks_and_the_second_ends() {
        assert_eq!(after(&[]).await, (false, None));
        assert_eq!(after(&[Request::Terminate]).await, (true, None));
        assert_eq!(after(&[Request::Terminate, Request::Interrupt]).await, (true, Some(130)));
        assert_eq!(after(&[Request::Interrupt, Request::Terminate]).await, (true, Some(143)));
    }
}
