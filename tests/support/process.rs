//! Child processes whose output goes to a file and that never outlive their owner.
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, Result};
use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// How long a killed process may take to vanish.
const REAP: Duration = Duration::from_secs(5);

/// Whether children are in process groups of their own.
static SHIELDED: AtomicBool = AtomicBool::new(false);

/// Runs a command whose progress, on stderr, is to be seen. `Command::output` would keep that for itself.
pub async fn shown(mut command: Command) -> std::io::Result<Output> {
    command.stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true).spawn()?.wait_with_output().await
}

/// From now on Ctrl-C in the terminal reaches no child: for a program that hears it itself and then stops them in order.
/// Tests leave it as it is, since nobody would stop their children.
pub fn shield_children() {
    SHIELDED.store(true, Ordering::Relaxed);
}

/// A running child. Dropping it kills it with -9 and waits until it is gone.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program whose output is appended to `DIR/NAME.log`.
    pub fn start(name: &str, command: Command, dir: &Path) -> Result<Self> {
        Self::spawn(name, command, dir, |command, log| {
            command.stdin(Stdio::null()).stdout(log);
        })
    }

    /// Like [`Process::start`], but stdin and stdout are the caller's; see [`Process::pipes`].
    pub fn start_piped(name: &str, command: Command, dir: &Path) -> Result<Self> {
        Self::spawn(name, command, dir, |command, _| {
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
        })
    }

    fn spawn(name: &str, mut command: Command, dir: &Path, io: impl FnOnce(&mut Command, File)) -> Result<Self> {
        let log = dir.join(format!("{name}.log"));
        let open = || OpenOptions::new().create(true).append(true).open(&log);
        if SHIELDED.load(Ordering::Relaxed) {
            command.process_group(0);
        }
        io(&mut command, open().with_context(|| format!("cannot open {}", log.display()))?);
        let program = command.as_std().get_program().to_string_lossy().into_owned();
        let child =
            command.stderr(open()?).kill_on_drop(true).spawn().with_context(|| format!("cannot start {name} ({program})"))?;
        Ok(Self { name: name.to_owned(), child, log })
    }

    /// The ends of the pipes of a process that was started with them. They answer once.
    pub fn pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        self.child.stdin.take().zip(self.child.stdout.take())
    }

    /// Its process id, while it was not waited for.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Where its output goes.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// How it ended, if it has.
    pub fn exited(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// kill -9, and waits for the end.
    pub async fn kill(&mut self) -> Result<()> {
        self.child.kill().await.with_context(|| format!("cannot kill {}", self.name))
    }

    /// SIGTERM, unless it has ended by itself.
    pub fn terminate(&mut self) -> Result<()> {
        if self.exited()?.is_some() {
            return Ok(());
        }
        let pid = self.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let pid = pid.with_context(|| format!("{} has ended already", self.name))?;
        Ok(kill_process(pid, Signal::TERM)?)
    }

    /// Waits for the end.
    pub async fn ended(&mut self, within: Duration) -> Result<ExitStatus> {
        let status = tokio::time::timeout(within, self.child.wait()).await;
        Ok(status.with_context(|| format!("{} did not end within {within:?}", self.name))??)
    }

    /// SIGTERM, then waits for an end with exit code 0.
    pub async fn stop(&mut self, within: Duration) -> Result<()> {
        self.terminate()?;
        let status = self.ended(within).await?;
        anyhow::ensure!(status.success(), "{} ended with {status} after SIGTERM\n{}", self.name, tail(&self.log, 20));
        Ok(())
    }

    /// `VmRSS` and `VmHWM` of the process in KiB, where the system tells (Linux).
    pub fn memory(&self) -> Option<Memory> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id()?)).ok()?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok());
        Some(Memory { resident_kib: field("VmRSS:")?, peak_kib: field("VmHWM:")? })
    }

    /// The processor time that it has used so far, its own and the kernel's, where the system tells (Linux).
    pub fn cpu(&self) -> Option<Duration> {
        cpu_of(&fs::read_to_string(format!("/proc/{}/stat", self.id()?)).ok()?, clock_ticks_per_second())
    }
}

/// utime and stime, fields 14 and 15. The second field, the name in brackets, may contain anything.
fn cpu_of(stat: &str, ticks_per_second: u64) -> Option<Duration> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks: u64 = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 1000 / ticks_per_second))
}

/// Resident memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Now, in KiB.
    pub resident_kib: u64,
    /// The most so far, in KiB.
    pub peak_kib: u64,
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.child.start_kill().is_err() {
            return;
        }
        let deadline = Instant::now() + REAP;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// The last lines of a file, as text; empty if there is none.
pub fn tail(path: &Path, lines: usize) -> String {
    let text = fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let all: Vec<_> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read_past_a_name_with_spaces_and_brackets() {
        let stat = "42 (a ) b) S 1 42 42 0 -1 4194560 1000 0 0 0 150 25 0 0 20 0 8 0 100 1000000 500";
        assert_eq!(cpu_of(stat, 100), Some(Duration::from_millis(1750)));
        assert_eq!(cpu_of("42 (cut", 100), None);
    }
}
