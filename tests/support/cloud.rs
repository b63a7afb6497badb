//! `provider-simulated cloud` as a process: a cloud that survives its providers.
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::binaries::Binaries;
use crate::ctl::Ctl;
use crate::process::{Process, tail};
use crate::wait::PATIENCE;

/// An orderly end: running calls are waited for.
const STOP: Duration = Duration::from_secs(20);

/// A running cloud.
#[derive(Debug)]
pub struct Cloud {
    process: Process,
    url: String,
    ctl: Ctl,
}

impl Cloud {
    /// Starts one that logs to `DIR/cloud.log` and waits until it answers. Its state is in memory: it is never killed.
    pub async fn start(dir: &Path, flags: &[&str]) -> Result<Self> {
        let binary = &Binaries::get().await?.provider;
        let mut command = Command::new(binary);
        command.arg("cloud").args(flags);
        let mut process = Process::start_piped("cloud", command, dir)?;
        let (_, stdout) = process.pipes().context("the cloud has no pipes")?;
        let mut url = String::new();
        tokio::time::timeout(PATIENCE, BufReader::new(stdout).read_line(&mut url)).await.context("the cloud says nothing")??;
        ensure!(url.starts_with("http"), "the cloud did not start:\n{}", tail(process.log(), 20));
        let url = url.trim().to_owned();
        Ok(Self { ctl: Ctl::of_cloud(binary, &url), process, url })
    }

    /// Where it answers.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A hand in it. Calls are those that all providers made, by the cloud's own methods.
    pub fn ctl(&self) -> &Ctl {
        &self.ctl
    }

    /// SIGTERM, and waits for an end with exit code 0.
    pub async fn stop(mut self) -> Result<()> {
        self.process.stop(STOP).await
    }
}
