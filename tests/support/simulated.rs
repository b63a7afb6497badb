//! `provider-simulated` as a process, and its `ctl`.
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::process::Command;

use crate::binaries::Binaries;
use crate::cloud::Cloud;
use crate::ctl::{Calls, Ctl};
use crate::process::{Memory, Process, tail};
use crate::wait::{PATIENCE, eventually};

/// An orderly end: running calls are waited for.
const STOP: Duration = Duration::from_secs(40);

/// How a simulated provider is to be started. The same one started again has the same sockets and state.
#[derive(Clone, Debug)]
pub struct ProviderSpec {
    name: String,
    dir: PathBuf,
    program: Option<PathBuf>,
    cloud: Option<String>,
    flags: Vec<String>,
}

impl ProviderSpec {
    /// A provider with its cloud's state, its sockets and its log in `dir`.
    pub fn new(dir: &Path) -> Self {
        Self { name: "provider".into(), dir: dir.to_owned(), program: None, cloud: None, flags: Vec::new() }
    }

    /// With a further flag.
    #[must_use]
    pub fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
    }

    /// Another one beside the first, with its own control socket, log and state but the same endpoint.
    #[must_use]
    pub fn rival(self) -> Self {
        Self { name: "rival".into(), ..self }
    }

    /// The provider of a cloud that runs by itself, and survives it.
    #[must_use]
    pub fn of(self, cloud: &Cloud) -> Self {
        Self { cloud: Some(cloud.url().to_owned()), ..self }
    }

    /// Another build of it.
    #[must_use]
    pub fn program(self, program: PathBuf) -> Self {
        Self { program: Some(program), ..self }
    }

    /// The socket that ccm-core talks to.
    pub fn endpoint(&self) -> PathBuf {
        self.dir.join("provider.sock")
    }

    fn control(&self) -> PathBuf {
        self.dir.join(format!("{}-control.sock", self.name))
    }

    /// Starts the process and waits for nothing.
    pub async fn spawn(&self) -> Result<Process> {
        let mut command = Command::new(self.binary().await?);
        command.arg("serve").args(["--endpoint", &url(&self.endpoint()), "--control", &url(&self.control())]);
        match &self.cloud {
            Some(cloud) => command.args(["--cloud", cloud]),
            None => command.arg("--state").arg(self.dir.join(format!("{}-state", self.name))),
        };
        command.args(&self.flags);
        Process::start(&self.name, command, &self.dir)
    }

    /// Starts it and waits until it answers.
    pub async fn start(&self) -> Result<Provider> {
        let cloud = Ctl::of_provider(&self.binary().await?, &url(&self.control()));
        let mut provider = Provider { spec: self.clone(), cloud, process: self.spawn().await? };
        provider.answers().await?;
        Ok(provider)
    }

    async fn binary(&self) -> Result<PathBuf> {
        match &self.program {
            Some(program) => Ok(program.clone()),
            None => Ok(Binaries::get().await?.provider.clone()),
        }
    }
}

/// A running provider.
#[derive(Debug)]
pub struct Provider {
    spec: ProviderSpec,
    cloud: Ctl,
    process: Process,
}

impl Provider {
    async fn answers(&mut self) -> Result<()> {
        eventually("provider-simulated to answer", PATIENCE, async || {
            let ended = self.process.exited()?;
            if ended.is_none() {
                self.calls().await?;
            }
            Ok(ended)
        })
        .await
        .and_then(|ended| {
            let log = tail(self.process.log(), 20);
            ended.map_or(Ok(()), |status| Err(anyhow::anyhow!("provider-simulated ended with {status}:\n{log}")))
        })
    }

    /// How it was started.
    pub fn spec(&self) -> &ProviderSpec {
        &self.spec
    }

    /// The process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Its resident memory, where the system tells.
    pub fn memory(&self) -> Option<Memory> {
        self.process.memory()
    }

    /// A hand in its cloud. Calls are counted from the start of this process, by the provider's methods.
    pub fn cloud(&self) -> &Ctl {
        &self.cloud
    }

    /// `add`, `stop`, `start`, `terminate`, `forget`, `hide` or `unhide` machines.
    pub async fn machines(&self, action: &str, names: &[String]) -> Result<()> {
        self.cloud.machines(action, names).await
    }

    /// `fault set NAME`.
    pub async fn set_fault(&self, name: &str) -> Result<()> {
        self.cloud.set_fault(name).await
    }

    /// `fault clear`.
    pub async fn clear_faults(&self) -> Result<()> {
        self.cloud.clear_faults().await
    }

    /// Calls so far, by method.
    pub async fn calls(&self) -> Result<Calls> {
        self.cloud.calls().await
    }

    /// Calls of `BatchGetInstances` so far.
    pub async fn look_ups(&self) -> Result<u64> {
        Ok(self.calls().await?.of("BatchGetInstances"))
    }

    /// Waits until ccm-core has asked so many more times.
    pub async fn asked_again(&self, times: u64) -> Result<()> {
        let before = self.look_ups().await?;
        eventually("ccm-core to look machines up again", PATIENCE, async || {
            let now = self.look_ups().await?;
            ensure!(now >= before + times, "{} of {times} calls", now.saturating_sub(before));
            Ok(())
        })
        .await
    }

    /// kill -9.
    pub async fn kill(&mut self) -> Result<()> {
        self.process.kill().await
    }

    /// kill -9, and the same again: machines are as they were, faults are gone.
    pub async fn restart(&mut self) -> Result<()> {
        self.kill().await?;
        self.process = self.spec.spawn().await?;
        self.answers().await
    }

    /// SIGTERM, and waits for an end with exit code 0.
    pub async fn stop(mut self) -> Result<()> {
        self.process.stop(STOP).await
    }
}

fn url(path: &Path) -> String {
    format!("unix://{}", path.display())
}
