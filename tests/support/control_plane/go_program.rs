//! The API server of `tests/control-plane`. Its build script decides whether there is anything to build.
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{ChildStdout, Command};
use tokio::sync::OnceCell;

use super::ControlPlane;
use crate::binaries::{Target, workspace};
use crate::process::{Process, shown, tail};

/// A start takes seconds; the machine may be busy compiling.
const START: Duration = Duration::from_mins(3);

static PROGRAM: OnceCell<PathBuf> = OnceCell::const_new();

#[derive(Deserialize)]
struct Announcement {
    kubeconfig: PathBuf,
}

/// Builds the program unless it is up to date. The first time takes minutes; its progress goes to the terminal.
pub(super) async fn build() -> Result<&'static PathBuf> {
    PROGRAM.get_or_try_init(run_script).await
}

async fn run_script() -> Result<PathBuf> {
    let script = workspace().join("tests/control-plane/build");
    let mut command = Command::new(&script);
    command.env("CARGO_TARGET_DIR", Target::of_this_process()?.dir).stdin(Stdio::null());
    let output = shown(command).await.with_context(|| format!("cannot run {}", script.display()))?;
    ensure!(output.status.success(), "{} ended with {}: see its messages above", script.display(), output.status);
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

pub(super) async fn start(dir: &Path, flags: &[String]) -> Result<ControlPlane> {
    let mut command = Command::new(build().await?);
    command.arg("--dir").arg(dir.join("control-plane")).arg("--exit-with-parent").arg("--").args(flags);
    let mut process = Process::start_piped("control-plane", command, dir)?;
    let (stdin, stdout) = process.pipes().context("the control plane has no pipes")?;
    let announced = tokio::time::timeout(START, announcement(stdout)).await.context("the control plane is not ready yet")?;
    let announced = announced.with_context(|| format!("the control plane did not start:\n{}", tail(process.log(), 40)))?;
    Ok(ControlPlane { kubeconfig: announced.kubeconfig, processes: vec![process], _stdin: Some(stdin) })
}

async fn announcement(stdout: ChildStdout) -> Result<Announcement> {
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).await?;
    Ok(serde_json::from_str(&line)?)
}
