//! A way to the API server that can be cut or can fall silent, for a core that must outlive both.
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use kube::config::Kubeconfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What becomes of the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// It passes.
    Passes,
    /// Connections are closed, and new ones at once: as if the server were killed.
    IsRefused,
    /// Connections live, and nothing passes in either direction: as if packets were swallowed.
    IsSwallowed,
}

/// A proxy on loopback; it ends when dropped.
#[derive(Debug)]
pub struct Proxy {
    kubeconfig: PathBuf,
    traffic: Arc<watch::Sender<Traffic>>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Stands before the server of a kubeconfig; writes another kubeconfig that leads through it into `dir`.
    pub async fn start(dir: &Path, through: &Path) -> Result<Self> {
        let mut config = Kubeconfig::read_from(through)?;
        let cluster = config.clusters.first_mut().and_then(|named| named.cluster.as_mut()).context("no cluster")?;
        let server: http::Uri = cluster.server.as_deref().context("no server")?.parse()?;
        let target = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port_u16().context("no port")?));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        cluster.server = Some(format!("https://127.0.0.1:{}", listener.local_addr()?.port()));
        let kubeconfig = dir.join("proxied.kubeconfig");
        std::fs::write(&kubeconfig, serde_json::to_string_pretty(&config)?)?;
        let traffic = Arc::new(watch::Sender::new(Traffic::Passes));
        let task = tokio::spawn(accept(listener, target, Arc::clone(&traffic)));
        Ok(Self { kubeconfig, traffic, task })
    }

    /// The kubeconfig that leads through it.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// From now on.
    pub fn let_traffic(&self, traffic: Traffic) {
        self.traffic.send_replace(traffic);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, traffic: Arc<watch::Sender<Traffic>>) {
    while let Ok((client, _)) = listener.accept().await {
        let traffic = traffic.subscribe();
        if *traffic.borrow() != Traffic::IsRefused {
            tokio::spawn(forward(client, target, traffic));
        }
    }
}

async fn forward(client: TcpStream, target: SocketAddr, traffic: watch::Receiver<Traffic>) {
    let Ok(server) = TcpStream::connect(target).await else { return };
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let mut refused = traffic.clone();
    tokio::select! {
        () = copy(from_client, to_server, traffic.clone()) => {}
        () = copy(from_server, to_client, traffic) => {}
        _ = refused.wait_for(|traffic| *traffic == Traffic::IsRefused) => {}
    }
}

/// What is swallowed is lost for good, so that the connection is of no use afterwards.
async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, traffic: watch::Receiver<Traffic>) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let passes = *traffic.borrow() == Traffic::Passes;
        if passes && to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
