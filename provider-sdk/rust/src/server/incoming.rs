//! The connections that a server accepts: those of users that may speak to it.
use std::io;
use std::time::Duration;

use futures::stream::{self, Stream};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::sleep;

/// How long accepting rests after an error, such as too many open files.
const REST: Duration = Duration::from_millis(100);

/// The users that may connect: this process's own, root, and those listed.
#[derive(Clone, Debug)]
pub(crate) struct AllowedUsers {
    own: u32,
    listed: Vec<u32>,
}

impl AllowedUsers {
    /// This process's user, root and `listed`.
    pub(crate) fn new(listed: Vec<u32>) -> io::Result<Self> {
        // A pair of sockets tells the process's own user without any unsafe call.
        let own = UnixStream::pair()?.0.peer_cred()?.uid();
        Ok(Self { own, listed })
    }

    fn allow(&self, uid: u32) -> bool {
        uid == self.own || uid == 0 || self.listed.contains(&uid)
    }

    /// Whether the peer may speak; a refusal is logged with its remedy.
    fn admit(&self, stream: &UnixStream) -> bool {
        match stream.peer_cred() {
            Ok(peer) if self.allow(peer.uid()) => true,
            Ok(peer) => {
                let remedy = "run both as one user, or add --allow-peer-uid";
                tracing::warn!(uid = peer.uid(), pid = peer.pid(), remedy, "refused a connection of another user");
                false
            }
            Err(error) => {
                tracing::warn!(%error, "refused a connection whose user is unknown");
                false
            }
        }
    }
}

/// The accepted connections, without end.
pub(crate) fn connections(listener: UnixListener, users: AllowedUsers) -> impl Stream<Item = io::Result<UnixStream>> {
    stream::unfold((listener, users), |(listener, users)| async {
        loop {
            match listener.accept().await {
                Ok((stream, _)) if users.admit(&stream) => return Some((Ok(stream), (listener, users))),
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(REST).await;
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_user_root_and_those_listed_may_connect() {
        let users = AllowedUsers { own: 1000, listed: vec![65532] };

        assert!([0, 1000, 65532].into_iter().all(|uid| users.allow(uid)));
        assert!(!users.allow(1001));
    }
}
