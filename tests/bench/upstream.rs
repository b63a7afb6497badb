//! Upstream's cloud-controller-manager as a process: the Go module in `tests/bench/upstream`, built when it is needed first.
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use ccm_test_support::binaries::{Target, workspace};
use ccm_test_support::ctl::Calls;
use ccm_test_support::process::{Process, shown};
use ccm_test_support::rbac;
use ccm_test_support::world::World;
use clap::ValueEnum;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::OnceCell;

/// Where upstream's module is, from the root of the source tree.
const MODULE: &str = "tests/bench/upstream";

/// What upstream offers for large clusters: workers and requests to the API server in numbers that never bind.
const TUNED: [&str; 5] = [
    "--concurrent-node-syncs=64",
    "--concurrent-node-status-updates=64",
    "--concurrent-node-lifecycle-syncs=64",
    "--kube-api-qps=10000",
    "--kube-api-burst=10000",
];

/// An orderly end.
const STOP: Duration = Duration::from_secs(20);

static BUILT: OnceCell<PathBuf> = OnceCell::const_new();

/// With which flags upstream runs, if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Flags {
    /// Those that it has by default.
    Default,
    /// Those that it offers for large clusters.
    Tuned,
    /// It does not run.
    None,
}

impl Flags {
    /// As words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "upstream, default flags",
            Self::Tuned => "upstream, tuned flags",
            Self::None => "upstream",
        }
    }
}

/// The running manager, with its cloud inside.
pub struct Upstream {
    process: Process,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Upstream {
    /// Starts it under ccm-core's account, which may do everything from now on, without leader election unless `more` says so.
    pub async fn start(world: &World, flags: Flags, latency: Duration, more: &[String]) -> Result<Self> {
        rbac::allow_everything(&world.admin()).await?;
        let mut command = Command::new(program().await?);
        command.args(["--cloud-provider=simulated", "--secure-port=0", "--webhook-secure-port=0", "--leader-elect=false"]);
        command.arg(format!("--kubeconfig={}", world.core().kubeconfig().display()));
        command.arg(format!("--simulated-latency={}us", latency.as_micros()));
        command.args(if flags == Flags::Tuned { &TUNED[..] } else { &[] }).args(more);
        let mut process = Process::start_piped("upstream", command, world.dir())?;
        let (stdin, stdout) = process.pipes().context("upstream's manager has no pipes")?;
        Ok(Self { process, stdin, stdout: BufReader::new(stdout).lines() })
    }

    /// The process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Calls to its cloud so far.
    pub async fn calls(&mut self) -> Result<Calls> {
        self.stdin.write_all(b"\n").await?;
        let line = self.stdout.next_line().await?.context("upstream's manager has ended")?;
        Ok(Calls(serde_json::from_str(&line).with_context(|| format!("upstream's manager printed {line}"))?))
    }

    /// SIGTERM, and waits for an end with exit code 0.
    pub async fn stop(mut self) -> Result<()> {
        self.process.stop(STOP).await
    }
}

/// Builds the program, and answers where it is. Go decides what there is to do, and names each package that it compiles.
pub async fn program() -> Result<&'static PathBuf> {
    BUILT.get_or_try_init(build).await
}

async fn build() -> Result<PathBuf> {
    let (target, module) = (Target::of_this_process()?.dir, workspace().join(MODULE));
    let program = target.join("upstream").join("cloud-controller-manager");
    let mut go = Command::new(find_go(&target).await?);
    go.args(["build", "-v", "-trimpath", "-ldflags=-s -w", "-o"]).arg(&program).arg(".").current_dir(&module);
    go.env("CGO_ENABLED", "0").env("GOTOOLCHAIN", "local").env("GOWORK", "off").stdin(Stdio::null());
    eprintln!("building upstream's manager from {MODULE}: minutes the first time");
    let status = go.kill_on_drop(true).status().await.context("cannot run Go")?;
    ensure!(status.success(), "go build in {MODULE} ended with {status}: see its messages above");
    Ok(program)
}

async fn find_go(target: &Path) -> Result<String> {
    let script = workspace().join("tests/control-plane/find-go");
    let mut command = Command::new(&script);
    command.env("CARGO_TARGET_DIR", target);
    let output = shown(command).await?;
    ensure!(output.status.success(), "{} ended with {}: see its messages above", script.display(), output.status);
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
