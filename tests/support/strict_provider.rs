//! The provider of `tests/python` as a process: a server without an SDK that holds every call of ccm-core to the contract.
//! It has a cloud of its own. What ccm-core does wrong it writes down; a test asks for that at its end.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::sync::OnceCell;

use crate::binaries::{Target, workspace};
use crate::process::{Process, shown, tail};
use crate::wait::{PATIENCE, eventually};

/// An orderly end: running calls are waited for.
const STOP: Duration = Duration::from_secs(40);

/// The name that `deploy/rbac.yaml` has in it.
const NAME: &str = "simulated";

static PYTHON: OnceCell<PathBuf> = OnceCell::const_new();

/// A running strict provider.
#[derive(Debug)]
pub struct StrictProvider {
    dir: PathBuf,
    process: Process,
}

/// What there is in its cloud, and what was called since its process started.
#[derive(Clone, Debug, Deserialize)]
pub struct Sight {
    /// All load balancers.
    pub load_balancers: Vec<LoadBalancer>,
    /// Calls by method.
    pub calls: BTreeMap<String, u64>,
}

/// A load balancer in the cloud.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct LoadBalancer {
    /// Its address.
    pub address: String,
    /// The name of the Service that it is marked with.
    pub service_name: String,
    /// The names of the nodes that get its traffic, sorted.
    pub targets: Vec<String>,
    /// `CREATING`, `ACTIVE` or `DELETING`.
    pub state: String,
    /// How often anything about it was changed.
    pub changes: u64,
}

impl Sight {
    /// How often these methods were called.
    pub fn calls_of(&self, methods: &[&str]) -> u64 {
        methods.iter().filter_map(|method| self.calls.get(*method)).sum()
    }
}

impl StrictProvider {
    /// Starts one with everything in `dir`, its socket at `dir/provider.sock`, and waits until it serves.
    pub async fn start(dir: &Path) -> Result<Self> {
        let mut provider = Self { dir: dir.to_owned(), process: spawn(dir).await? };
        provider.serves().await?;
        Ok(provider)
    }

    /// The process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// `add`, `stop`, `start`, `terminate` or `forget` machines.
    pub async fn machines(&self, action: &str, names: &[String]) -> Result<()> {
        self.command(&json!({ "do": action, "names": names })).await.map(drop)
    }

    /// It holds no node set any more, as a provider may at any time.
    pub async fn forget_sets(&self) -> Result<()> {
        self.command(&json!({ "do": "forget-sets" })).await.map(drop)
    }

    /// Another leader with a higher epoch was here, and has gone.
    pub async fn supersede(&self) -> Result<()> {
        self.command(&json!({ "do": "supersede" })).await.map(drop)
    }

    /// Each mutation takes so long.
    pub async fn slow_down(&self, by: Duration) -> Result<()> {
        self.command(&json!({ "do": "slow-down", "names": [by.as_secs_f64().to_string()] })).await.map(drop)
    }

    /// What there is.
    pub async fn sight(&self) -> Result<Sight> {
        Ok(serde_json::from_value(self.command(&json!({ "do": "show" })).await?)?)
    }

    /// Every sentence of the contract that ccm-core broke, each with its call. Empty is right.
    pub fn violations(&self) -> Result<String> {
        Ok(fs::read_to_string(self.dir.join("violations.jsonl"))?)
    }

    /// kill -9, and the same again: its cloud is as it was.
    pub async fn restart(&mut self) -> Result<()> {
        self.process.kill().await?;
        self.process = spawn(&self.dir).await?;
        self.serves().await
    }

    /// SIGTERM, the end in good order, and the same again: its cloud is as it was.
    pub async fn renew(&mut self) -> Result<()> {
        self.drain().await?;
        self.process = spawn(&self.dir).await?;
        self.serves().await
    }

    /// SIGTERM, and waits for an end with exit code 0.
    pub async fn stop(mut self) -> Result<()> {
        self.drain().await
    }

    async fn drain(&mut self) -> Result<()> {
        self.process.stop(STOP).await?;
        ensure!(!self.dir.join("provider.sock").exists(), "it left its socket");
        Ok(())
    }

    async fn serves(&mut self) -> Result<()> {
        let ended = eventually("the strict provider to serve", PATIENCE, async || {
            let ended = self.process.exited()?;
            if ended.is_none() {
                command(&self.dir, &json!({ "do": "show" })).await?;
            }
            Ok(ended)
        });
        match ended.await? {
            None => Ok(()),
            Some(status) => bail!("the strict provider ended with {status}:\n{}", tail(self.process.log(), 20)),
        }
    }

    async fn command(&self, what: &Value) -> Result<Value> {
        command(&self.dir, what).await
    }
}

async fn spawn(dir: &Path) -> Result<Process> {
    let mut command = Command::new(PYTHON.get_or_try_init(python).await?);
    command.arg("-B").arg(workspace().join("tests/python/strict_server.py")).arg("serve").arg("--name").arg(NAME);
    command.arg("--endpoint").arg(format!("unix://{}", dir.join("provider.sock").display())).arg("--dir").arg(dir);
    Process::start("strict-provider", command, dir)
}

/// The interpreter with the packages that it needs. Where they are missing they are installed, and pip's progress is shown.
async fn python() -> Result<PathBuf> {
    let script = workspace().join("tests/python/prepare");
    let mut command = Command::new(&script);
    command.env("CARGO_TARGET_DIR", Target::of_this_process()?.dir).stdin(Stdio::null());
    let output = shown(command).await.with_context(|| format!("cannot run {}", script.display()))?;
    ensure!(output.status.success(), "{} ended with {}: see its messages above", script.display(), output.status);
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

/// One line of JSON there, one back.
async fn command(dir: &Path, what: &Value) -> Result<Value> {
    let mut socket = UnixStream::connect(dir.join("commands.sock")).await?;
    socket.write_all(format!("{what}\n").as_bytes()).await?;
    let mut line = String::new();
    BufReader::new(socket).read_line(&mut line).await?;
    let answer: Value = serde_json::from_str(&line).with_context(|| format!("{what} was answered by {line:?}"))?;
    ensure!(answer.get("error").is_none(), "{what} failed: {}", answer["error"]);
    Ok(answer)
}
