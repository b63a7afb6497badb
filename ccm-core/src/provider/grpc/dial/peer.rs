//! Who listens at the socket: the core sends requests to, and accepts answers from, processes of trusted users only. The mode of
//! the socket guards against foreign clients; this guards against a foreign process that listens in the provider's place.
use std::io;

use tokio::net::UnixStream;

use super::DialError;
use crate::provider::endpoint::Endpoint;

/// An error unless the listener's user is this process's own, root, or one of `listed`. The system notes a listener's user and
/// process when it begins to listen.
pub fn check(stream: &UnixStream, endpoint: &Endpoint, listed: &[u32]) -> Result<(), DialError> {
    let unknown = |source| DialError::UnknownPeer { endpoint: endpoint.clone(), source };
    let own = own_user().map_err(unknown)?;
    let peer = stream.peer_cred().map_err(unknown)?;
    if is_trusted(peer.uid(), own, listed) {
        return Ok(());
    }
    Err(DialError::Foreign { endpoint: endpoint.clone(), uid: peer.uid(), pid: peer.pid(), own })
}

/// A pair of sockets gives the process's own user without any unsafe call.
fn own_user() -> io::Result<u32> {
    Ok(UnixStream::pair()?.0.peer_cred()?.uid())
}

fn is_trusted(uid: u32, own: u32, listed: &[u32]) -> bool {
    uid == own || uid == 0 || listed.contains(&uid)
}

/// The process in words.
pub fn process(pid: Option<i32>) -> String {
    pid.map_or_else(|| "of which process is not known".to_owned(), |pid| format!("process {pid}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_own_user_root_and_those_listed_are_trusted() {
        for (uid, own, listed, trusted) in [
            (1000, 1000, &[][..], true),
            (0, 1000, &[], true),
            (0, 0, &[], true),
            (65534, 0, &[], false),
            (1001, 1000, &[], false),
            (1001, 1000, &[7, 1001], true),
            (1002, 1000, &[7, 1001], false),
        ] {
            assert_eq!(is_trusted(uid, own, listed), trusted, "{uid} by {own} with {listed:?}");
        }
    }

    #[tokio::test]
    async fn a_process_of_ones_own_may_listen() {
        let dir = tempfile::tempdir().unwrap();
        let endpoint: Endpoint = format!("unix://{}", dir.path().join("p.sock").display()).parse().unwrap();
        let _listener = tokio::net::UnixListener::bind(endpoint.path()).unwrap();
        let stream = UnixStream::connect(endpoint.path()).await.unwrap();
        check(&stream, &endpoint, &[]).unwrap();
    }
}
