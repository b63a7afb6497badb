//! What a process has used, as the system tells (Linux), and flags that mean times.
use std::time::Duration;

use anyhow::{Context, Result, bail};
use ccm_test_support::process::Process;

/// What one process has used so far.
#[derive(Clone, Debug)]
pub struct Usage {
    /// Which process.
    pub name: &'static str,
    /// Seconds of processor time.
    pub cpu: Option<f64>,
    /// The most resident memory (VmHWM) in MiB.
    pub peak: Option<f64>,
}

impl Usage {
    /// Of a running process.
    pub fn of(name: &'static str, process: &Process) -> Self {
        let cpu = process.cpu().map(|cpu| cpu.as_secs_f64());
        Self { name, cpu, peak: process.memory().map(|memory| crate::mib(memory.peak_kib)) }
    }
}

/// Does something that needs a process, and fails if the process ends meanwhile.
pub async fn while_running<T>(process: &mut Process, work: impl Future<Output = Result<T>>) -> Result<T> {
    const FOREVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    tokio::select! {
        done = work => done,
        ended = process.ended(FOREVER) => bail!("a process ended before its work was done: {}", ended?),
    }
}

/// A time in milliseconds, as `20ms`.
pub fn milliseconds(text: &str) -> Result<Duration> {
    let number = text.strip_suffix("ms").and_then(|number| number.parse().ok());
    number.map(Duration::from_millis).with_context(|| format!("{text:?} is no time in milliseconds: give it as 20ms"))
}

/// No count here is so large that this loses anything.
#[allow(clippy::cast_precision_loss)]
pub fn number(count: impl TryInto<u64>) -> f64 {
    count.try_into().unwrap_or(u64::MAX) as f64
}
