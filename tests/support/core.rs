//! `ccm-core` as a process: how tests start it, and what it says of itself.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::process::Command;

use crate::binaries::Binaries;
use crate::ports::free_port;
use crate::process::{Memory, Process, tail};
use crate::wait::{PATIENCE, eventually};

/// Somebody else may have taken a port that was free: so often others are tried.
const ATTEMPTS: usize = 3;

/// An orderly end: the lease is given back, running work is waited for.
const STOP: Duration = Duration::from_secs(40);

/// Flags that make tests quick: everything happens, only sooner. The lease is short, so that a killed leader is soon replaced.
pub const QUICK: [&str; 6] = [
    "--node-monitor-period=500ms",
    "--node-deletion-confirmation=2s",
    "--node-status-update-frequency=2s",
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=300ms",
];

/// How a core is to be started.
#[derive(Clone, Debug)]
pub struct CoreSpec {
    name: String,
    dir: PathBuf,
    kubeconfig: PathBuf,
    endpoint: PathBuf,
    flags: Vec<String>,
    tasks: Option<PathBuf>,
}

impl CoreSpec {
    /// A core on default flags that logs to `DIR/ccm-core.log` and talks to the socket at `endpoint`.
    pub fn new(dir: &Path, kubeconfig: &Path, endpoint: &Path) -> Self {
        Self {
            name: "ccm-core".into(),
            dir: dir.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            endpoint: endpoint.to_owned(),
            flags: Vec::new(),
            tasks: None,
        }
    }

    /// With tasks that panic when [`Core::panic_in`] says so. Only debug builds can.
    #[must_use]
    pub fn with_panics(self) -> Self {
        Self { tasks: Some(self.dir.join(format!("{}-tasks", self.name))), ..self }
    }

    /// With [`QUICK`].
    #[must_use]
    pub fn quick(self) -> Self {
        QUICK.iter().fold(self, |spec, flag| spec.flag(flag))
    }

    /// With a flag; a later one replaces an earlier one of the same name.
    #[must_use]
    pub fn flag(mut self, flag: &str) -> Self {
        let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
        self.flags.retain(|other| name(other) != name(flag));
        self.flags.push(flag.to_owned());
        self
    }

    /// With a name of its own, where there are several.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// With another provider's socket.
    #[must_use]
    pub fn endpoint(self, endpoint: &Path) -> Self {
        Self { endpoint: endpoint.to_owned(), ..self }
    }

    /// The kubeconfig that it uses.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// With another way to the API server.
    #[must_use]
    pub fn through(self, kubeconfig: &Path) -> Self {
        Self { kubeconfig: kubeconfig.to_owned(), ..self }
    }

    /// Starts it and waits until it is alive; ready it may not be.
    pub async fn start(&self) -> Result<Core> {
        for _ in 0..ATTEMPTS {
            let mut core = self.start_once().await?;
            if core.came_alive().await? {
                return Ok(core);
            }
        }
        bail!("{} found no free port in {ATTEMPTS} attempts", self.name)
    }

    async fn start_once(&self) -> Result<Core> {
        let port = free_port()?;
        let mut command = Command::new(&Binaries::get().await?.core);
        command.arg(format!("--provider-endpoint=unix://{}", self.endpoint.display()));
        command.arg(format!("--kubeconfig={}", self.kubeconfig.display()));
        command.arg("--bind-address=127.0.0.1").arg(format!("--secure-port={port}")).args(&self.flags);
        if let Some(folder) = &self.tasks {
            fs::create_dir_all(folder)?;
            command.env("CCM_CORE_TEST_TASKS", folder);
        }
        let process = Process::start(&self.name, command, &self.dir)?;
        Ok(Core {
            process,
            port,
            tasks: self.tasks.clone(),
            http: reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?,
        })
    }
}

/// A running core.
#[derive(Debug)]
pub struct Core {
    process: Process,
    port: u16,
    tasks: Option<PathBuf>,
    http: reqwest::Client,
}

/// What `/readyz?verbose` answered.
#[derive(Clone, Debug)]
pub struct Readiness {
    /// Whether the status was 200.
    pub ready: bool,
    /// One line a concern.
    pub text: String,
}

impl Core {
    /// False if its port was taken by somebody else.
    async fn came_alive(&mut self) -> Result<bool> {
        let (process, http, url) = (&mut self.process, &self.http, format!("http://127.0.0.1:{}/livez", self.port));
        eventually("ccm-core to be alive", PATIENCE, async || {
            if let Some(status) = process.exited()? {
                let log = tail(process.log(), 20);
                return if log.contains("in use") {
                    Ok(Ok(false))
                } else {
                    Ok(Err(format!("ccm-core ended with {status}:\n{log}")))
                };
            }
            http.get(&url).send().await?.error_for_status()?;
            Ok(Ok(true))
        })
        .await?
        .map_err(anyhow::Error::msg)
    }

    /// The process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Its process id.
    pub fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Where it serves health and metrics.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its resident memory, where the system tells.
    pub fn memory(&self) -> Option<Memory> {
        self.process.memory()
    }

    /// What it says about being ready.
    pub async fn readiness(&self) -> Result<Readiness> {
        let answer = self.http.get(format!("http://127.0.0.1:{}/readyz?verbose", self.port)).send().await?;
        Ok(Readiness { ready: answer.status().is_success(), text: answer.text().await? })
    }

    /// Waits until it is ready.
    pub async fn ready(&self) -> Result<()> {
        eventually("ccm-core to be ready", PATIENCE, async || {
            let Readiness { ready, text } = self.readiness().await?;
            ensure!(ready, "/readyz says:\n{text}");
            Ok(())
        })
        .await
    }

    /// Waits until `/readyz?verbose` contains these words, in whatever case, and answers all of it.
    pub async fn readiness_says(&self, words: &str) -> Result<Readiness> {
        eventually(&format!("readiness to say \"{words}\""), PATIENCE, async || {
            let readiness = self.readiness().await?;
            ensure!(readiness.text.to_lowercase().contains(&words.to_lowercase()), "/readyz says:\n{}", readiness.text);
            Ok(readiness)
        })
        .await
    }

    /// A metric's value, summed over its labels; `None` if there is no such metric.
    pub async fn metric(&self, name: &str) -> Result<Option<f64>> {
        self.sum(name, &[]).await
    }

    /// How many calls of a method were made to the provider, or of those just the ones that ended with a code.
    pub async fn provider_calls(&self, method: &str, code: Option<&str>) -> Result<f64> {
        let labels = [Some(format!("method=\"{method}\"")), code.map(|code| format!("code=\"{code}\""))];
        let labels: Vec<_> = labels.into_iter().flatten().collect();
        Ok(self.sum("ccm_core_provider_requests_total", &labels).await?.unwrap_or_default())
    }

    /// The sum of a metric's samples that have all these labels.
    async fn sum(&self, name: &str, labels: &[String]) -> Result<Option<f64>> {
        let url = format!("http://127.0.0.1:{}/metrics", self.port);
        let text = self.http.get(url).send().await?.error_for_status()?.text().await?;
        let samples = text.lines().filter(|line| {
            line.split([' ', '{']).next() == Some(name) && labels.iter().all(|label| line.contains(label.as_str()))
        });
        let values = samples.map(|line| line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok()));
        Ok(values.collect::<Option<Vec<_>>>().context("a sample is no number")?.into_iter().reduce(|sum, value| sum + value))
    }

    /// How many deletion breakers hold.
    pub async fn breakers(&self) -> Result<f64> {
        let name = "ccm_core_node_deletion_breakers_tripped";
        self.metric(name).await?.with_context(|| format!("/metrics has no {name}"))
    }

    /// Waits until a deletion breaker holds.
    pub async fn breaker_holds(&self) -> Result<()> {
        eventually("a deletion breaker to hold", PATIENCE, async || {
            ensure!(self.breakers().await? >= 1.0, "the metric says that none does");
            Ok(())
        })
        .await
    }

    /// The names of the tasks that it runs, or ran, of a core [`CoreSpec::with_panics`].
    pub fn tasks(&self) -> Result<BTreeSet<String>> {
        let folder = self.tasks.as_ref().context("the core was not started with_panics")?;
        let names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect()
    }

    /// Makes every task of this name panic.
    pub fn panic_in(&self, task: &str) -> Result<()> {
        let folder = self.tasks.as_ref().context("the core was not started with_panics")?;
        fs::remove_file(folder.join(task)).with_context(|| format!("no task {task} runs, or this is a release build"))
    }

    /// Makes a task of this name block its thread for ever.
    pub fn stall(&self, task: &str) -> Result<()> {
        let folder = self.tasks.as_ref().context("the core was not started with_panics")?;
        Ok(fs::write(folder.join(task), "stall")?)
    }

    /// What `/livez` answers where it is not well.
    pub async fn lacks_liveness(&self) -> Result<Option<String>> {
        let answer = self.http.get(format!("http://127.0.0.1:{}/livez", self.port)).send().await?;
        if answer.status().is_success() { Ok(None) } else { Ok(Some(answer.text().await?)) }
    }

    /// Whether it holds the lease.
    pub async fn leads(&self) -> Result<bool> {
        Ok(self.metric("leader_election_master_status").await?.unwrap_or_default() > 0.0)
    }

    /// Its log.
    pub fn log(&self) -> &Path {
        self.process.log()
    }

    /// Waits until its log contains these words.
    pub async fn says(&self, words: &str) -> Result<()> {
        eventually(&format!("the log to say \"{words}\""), 2 * PATIENCE, async || {
            ensure!(fs::read_to_string(self.log())?.contains(words), "it does not");
            Ok(())
        })
        .await
    }

    /// Whether `/livez` is well.
    pub async fn is_alive(&self) -> Result<bool> {
        Ok(self.http.get(format!("http://127.0.0.1:{}/livez", self.port)).send().await?.status().is_success())
    }

    /// kill -9.
    pub async fn kill(&mut self) -> Result<()> {
        self.process.kill().await
    }

    /// SIGTERM, and waits for an end with exit code 0.
    pub async fn stop(mut self) -> Result<()> {
        self.process.stop(STOP).await
    }
}
