//! etcd and kube-apiserver as binaries, the way `setup-envtest` lays them out.
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::process::Command;

use super::{ControlPlane, client};
use crate::ports::free_port;
use crate::process::{Process, tail};
use crate::wait::eventually;

/// A start takes seconds; the machine may be busy compiling.
const START: Duration = Duration::from_mins(3);

/// Somebody else may have taken a port that was free: so often others are tried.
const ATTEMPTS: usize = 3;

/// Admission that waits for controllers which do not run here.
const WITHOUT_ADMISSION: &str = "ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection,ResourceQuota";

pub(super) async fn start(assets: &Path, dir: &Path, flags: &[String]) -> Result<ControlPlane> {
    for name in ["etcd", "kube-apiserver"] {
        ensure!(assets.join(name).is_file(), "KUBEBUILDER_ASSETS: {} has no {name}", assets.display());
    }
    let mut attempt = 0;
    loop {
        attempt += 1;
        match start_once(assets, &dir.join(format!("control-plane-{attempt}")), flags).await {
            Err(error) if attempt < ATTEMPTS && format!("{error:#}").contains("address already in use") => {}
            outcome => return outcome,
        }
    }
}

async fn start_once(assets: &Path, dir: &Path, flags: &[String]) -> Result<ControlPlane> {
    fs::create_dir_all(dir)?;
    let (etcd_port, port) = (free_port()?, free_port()?);
    let etcd = Process::start("etcd", etcd(assets, dir, etcd_port, free_port()?), dir)?;
    let token = uuid::Uuid::new_v4().to_string();
    fs::write(dir.join("tokens.csv"), format!("{token},admin,admin,\"system:masters\"\n"))?;
    let mut server = Process::start("kube-apiserver", api_server(assets, dir, etcd_port, port, flags), dir)?;
    let kubeconfig = ready(dir, port, &token, &mut server).await?;
    Ok(ControlPlane { kubeconfig, processes: vec![server, etcd], _stdin: None })
}

fn etcd(assets: &Path, dir: &Path, port: u16, peer_port: u16) -> Command {
    let (client, peer) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peer_port}"));
    let mut command = Command::new(assets.join("etcd"));
    command.arg("--data-dir").arg(dir.join("etcd")).arg("--unsafe-no-fsync=true");
    command.arg(format!("--listen-client-urls={client}")).arg(format!("--advertise-client-urls={client}"));
    command.arg(format!("--listen-peer-urls={peer}")).arg(format!("--initial-advertise-peer-urls={peer}"));
    command.arg(format!("--initial-cluster=default={peer}"));
    command
}

fn api_server(assets: &Path, dir: &Path, etcd_port: u16, port: u16, flags: &[String]) -> Command {
    let path = |name: &str| dir.join(name).display().to_string();
    // The server makes its own certificate; that key serves to sign ServiceAccount tokens as well.
    let key = path("certificates/apiserver.key");
    let mut command = Command::new(assets.join("kube-apiserver"));
    command.current_dir(dir).args([
        format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
        "--bind-address=127.0.0.1".into(),
        "--advertise-address=127.0.0.1".into(),
        "--endpoint-reconciler-type=none".into(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", path("certificates")),
        "--authorization-mode=Node,RBAC".into(),
        format!("--token-auth-file={}", path("tokens.csv")),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".into(),
        format!("--service-account-signing-key-file={key}"),
        format!("--service-account-key-file={key}"),
        "--service-cluster-ip-range=10.96.0.0/16,fd00:10:96::/112".into(),
        format!("--disable-admission-plugins={WITHOUT_ADMISSION}"),
        "--shutdown-watch-termination-grace-period=1s".into(),
    ]);
    command.args(flags);
    command
}

async fn ready(dir: &Path, port: u16, token: &str, server: &mut Process) -> Result<PathBuf> {
    let kubeconfig = dir.join("kubeconfig");
    let log = server.log().to_owned();
    let running = async || -> Result<()> {
        if let Some(status) = server.exited()? {
            // No use in waiting on: the outer error says why.
            return Ok(fs::write(&kubeconfig, format!("ended with {status}"))?);
        }
        let certificate = fs::read(dir.join("certificates/apiserver.crt"))?;
        fs::write(&kubeconfig, admin(port, token, &certificate)?)?;
        client(&kubeconfig).await?.request_text(http::Request::get("/readyz").body(Vec::new())?).await?;
        Ok(())
    };
    eventually("kube-apiserver to be ready", START, running).await.with_context(|| tail(&log, 40))?;
    ensure!(server.exited()?.is_none(), "kube-apiserver did not start:\n{}", tail(&log, 40));
    Ok(kubeconfig)
}

fn admin(port: u16, token: &str, certificates: &[u8]) -> Result<String> {
    let authority = crate::rbac::base64(certificates);
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "admin",
        "clusters": [{ "name": "admin", "cluster": { "server": format!("https://127.0.0.1:{port}"), "certificate-authority-data": authority } }],
        "users": [{ "name": "admin", "user": { "token": token } }],
        "contexts": [{ "name": "admin", "context": { "cluster": "admin", "user": "admin" } }],
    });
    Ok(serde_json::to_string_pretty(&config)?)
}
