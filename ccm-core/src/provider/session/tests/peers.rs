//! Who listens at the socket: processes of other users, which only root can start. Elsewhere a process of one's own.
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::*;

/// Listens as another user; prints how many bytes the first connection sends.
const LISTENER: &str = "
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
os.setuid(int(sys.argv[2]))
listener.listen()
print('listening', flush=True)
while True:
    connection, _ = listener.accept()
    print(len(connection.recv(65536)), flush=True)
";

/// A user that owns nothing.
const NOBODY: u32 = 65534;

struct Listener(Child, BufReader<ChildStdout>);

impl Drop for Listener {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Listener {
    fn start(path: &std::path::Path, uid: u32) -> Self {
        let mut python = Command::new("python3");
        python.args(["-c", LISTENER]).arg(path).arg(uid.to_string()).stdout(Stdio::piped());
        let mut child = python.spawn().expect("python3 can be started");
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut listener = Self(child, output);
        assert_eq!(listener.line(), "listening");
        listener
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// How many bytes the first connection sent.
    async fn bytes(mut self) -> usize {
        tokio::task::spawn_blocking(move || self.line().parse().unwrap()).await.unwrap()
    }
}

fn own_uid() -> u32 {
    tokio::net::UnixStream::pair().unwrap().0.peer_cred().unwrap().uid()
}

#[tokio::test]
async fn a_listener_of_another_user_is_refused_before_a_byte_is_sent_unless_it_is_listed() {
    let own = own_uid();
    let foreign = [(NOBODY, vec![], false), (NOBODY, vec![1, NOBODY], true), (own, vec![], true)];
    let possible = foreign.into_iter().filter(|(uid, ..)| own == 0 || *uid == own);
    for (uid, peer_uids, taken) in possible {
        let what = format!("{uid} by {own} with {peer_uids:?}");
        let scenario = Scenario::with(|config| SessionConfig { peer_uids, ..config });
        let listener = Listener::start(&scenario.socket(), uid);
        let pid = listener.0.id();
        if !taken {
            let state = scenario.until(&what, |it| capabilities::standing(it).message.contains("--provider-peer-uid")).await;
            let said = capabilities::standing(&state).message;
            for word in [&format!("user {uid}"), &format!("process {pid}"), "p.sock", &format!("--provider-peer-uid={uid}")] {
                assert!(said.contains(word), "{said} does not name {word}");
            }
        }
        assert_eq!(listener.bytes().await > 0, taken, "{what}");
    }
}
