//! A real API server that ends with its owner. Which one: the binaries in `KUBEBUILDER_ASSETS` if that is set, otherwise the
//! Go program in `tests/control-plane`, which is built when it is needed first.
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::process::Process;

mod assets;
mod go_program;

/// A stop takes at most 5 seconds; more only on a machine that hangs.
const STOP: Duration = Duration::from_secs(20);

/// A running API server, and its etcd.
#[derive(Debug)]
pub struct ControlPlane {
    kubeconfig: PathBuf,
    /// In the order in which they are to be stopped.
    processes: Vec<Process>,
    /// The Go program stops when this is closed, however this process ends.
    _stdin: Option<tokio::process::ChildStdin>,
}

impl ControlPlane {
    /// Starts one that keeps everything in `dir`; `flags` go to kube-apiserver.
    pub async fn start(dir: &Path, flags: &[String]) -> Result<Self> {
        match assets_dir() {
            Some(assets) => assets::start(Path::new(&assets), dir, flags).await,
            None => go_program::start(dir, flags).await,
        }
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Stops it in good order. What it exits with is its own affair: etcd passes the signal on to itself.
    pub async fn stop(mut self) -> Result<()> {
        for process in &mut self.processes {
            process.terminate()?;
            process.ended(STOP).await?;
        }
        Ok(())
    }
}

/// Builds what an API server of our own needs; nothing where `KUBEBUILDER_ASSETS` is set. The first time takes minutes, with
/// progress on the terminal.
pub async fn build() -> Result<()> {
    if assets_dir().is_none() {
        go_program::build().await?;
    }
    Ok(())
}

fn assets_dir() -> Option<OsString> {
    env::var_os("KUBEBUILDER_ASSETS").filter(|assets| !assets.is_empty())
}

/// A client for whoever a kubeconfig stands for.
pub async fn client(kubeconfig: &Path) -> Result<Client> {
    let read = Kubeconfig::read_from(kubeconfig)?;
    let mut config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())
        .await
        .with_context(|| format!("{} is of no use", kubeconfig.display()))?;
    // A loaded machine is no failed test.
    config.read_timeout = None;
    Ok(Client::try_from(config)?)
}
