//! Providers that the suite starts itself (`--command`): start, signal, wait, end. It knows no rule.
use std::fs::OpenOptions;
use std::io;
use std::os::unix::net::UnixStream as Socket;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::case::{Checked, Ended};

/// How long a provider may take to listen.
const START: Duration = Duration::from_secs(30);

/// How providers are started, and the folder for their sockets and logs.
#[derive(Debug)]
pub struct Launcher {
    command: String,
    dir: TempDir,
}

/// How the provider gets its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The flag `--endpoint`.
    Flag,
    /// The environment variable `PROVIDER_ENDPOINT`.
    Environment,
}

/// A running provider; it is killed when this is dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// Its socket.
    pub socket: PathBuf,
}

impl Launcher {
    /// Starts providers with this shell command, to which `--endpoint=unix://…` is added.
    pub fn new(command: &str) -> io::Result<Self> {
        Ok(Self { command: command.to_owned(), dir: tempfile::Builder::new().prefix("ccm-conf").tempdir()? })
    }

    /// The folder; it replaces `{dir}` in commands.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The socket of the provider that most cases talk to.
    pub fn main_socket(&self) -> PathBuf {
        self.dir().join("provider.sock")
    }

    /// Starts a provider and waits for nothing.
    pub fn spawn(&self, socket: &Path, by: By) -> Checked<Running> {
        let stuck = |error: io::Error| Ended::Stuck(format!("--command cannot be started: {error}"));
        let endpoint = format!("unix://{}", socket.display());
        let mut line = format!("exec {}", self.command.replace("{dir}", &self.dir().display().to_string()));
        let mut shell = Command::new("sh");
        match by {
            By::Flag => line = format!("{line} --endpoint={endpoint}"),
            By::Environment => drop(shell.env("PROVIDER_ENDPOINT", &endpoint)),
        }
        let log = OpenOptions::new().create(true).append(true).open(self.log()).map_err(stuck)?;
        shell.args(["-c", &line]).stdin(Stdio::null()).kill_on_drop(true);
        shell.stdout(log.try_clone().map_err(stuck)?).stderr(log);
        Ok(Running { child: shell.spawn().map_err(stuck)?, socket: socket.to_owned() })
    }

    /// Starts a provider and waits until its socket takes connections.
    pub async fn start(&self, socket: &Path, by: By) -> Checked<Running> {
        let mut running = self.spawn(socket, by)?;
        let start = Instant::now();
        while Socket::connect(socket).is_err() {
            let ended = running.exited().map(|status| format!("it ended with {status}"));
            let late = (start.elapsed() > START).then(|| format!("it does not listen within {START:?}"));
            if let Some(why) = ended.or(late) {
                return Err(Ended::Stuck(format!("--command did not start a provider: {why}\n{}", self.tail())));
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(running)
    }

    fn log(&self) -> PathBuf {
        self.dir().join("provider.log")
    }

    /// The end of the providers' log.
    fn tail(&self) -> String {
        let text = std::fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }
}

impl Running {
    /// How it ended, if it did.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(id) = id {
            // It may have ended by itself.
            let _ = kill_process(id, Signal::TERM);
        }
    }

    /// Waits for its end.
    pub async fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        timeout(patience, self.child.wait()).await.ok().and_then(Result::ok)
    }

    /// Sends SIGKILL and waits.
    pub async fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill().await;
    }
}
