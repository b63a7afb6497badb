//! The clients of the API server, and the one request at the start.
pub mod clients;

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;

use self::clients::{Clients, Pace};
use crate::config::KubernetesConfig;
use crate::names;
use crate::telemetry::health::{Check, Health};

/// The pause before the next request to an API server that did not answer.
const PAUSE: Duration = Duration::from_secs(2);

/// Why there are no clients.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig cannot be used.
    #[error("--kubeconfig {path}: {source}")]
    Kubeconfig {
        /// The file.
        path: String,
        /// What is wrong with it.
        source: kube::config::KubeconfigError,
    },
    /// This process does not run in a Pod.
    #[error(
        "there is no --kubeconfig, and this process does not run in a Pod with a ServiceAccount: {0}; give --kubeconfig FILE"
    )]
    InCluster(#[from] kube::config::InClusterError),
    /// `--master` is not an address.
    #[error("--master: {0}")]
    Master(#[from] http::uri::InvalidUri),
    /// Proxies are not supported.
    #[error("the kubeconfig or the environment names the proxy {0} for the API server, and proxies are not supported; remove it")]
    Proxy(http::Uri),
    /// The client cannot be built.
    #[error("the client of the API server cannot be made: {0}")]
    Client(#[source] kube::Error),
    /// The API server refuses this account.
    #[error("the API server does not let this account read the namespace kube-system: {0}; grant the rules of deploy/rbac.yaml")]
    Forbidden(#[source] kube::Error),
}

/// The clients from `--kubeconfig`, otherwise from the Pod's ServiceAccount. The API server's back-pressure limits the requests
/// unless `--kube-api-qps` does.
pub async fn clients(config: &KubernetesConfig) -> Result<Clients, ConnectError> {
    let connection = connection(config).await?;
    if let Some(proxy) = &connection.proxy_url {
        return Err(ConnectError::Proxy(proxy.clone()));
    }
    let pace = config.qps.map(|qps| Pace { qps, burst: config.burst });
    Clients::new(&connection, pace).map_err(ConnectError::Client)
}

async fn connection(config: &KubernetesConfig) -> Result<kube::Config, ConnectError> {
    let mut connection = match &config.kubeconfig {
        None => kube::Config::incluster()?,
        Some(path) => {
            let invalid = |source| ConnectError::Kubeconfig { path: path.display().to_string(), source };
            let file = Kubeconfig::read_from(path).map_err(invalid)?;
            kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(invalid)?
        }
    };
    if let Some(master) = &config.master {
        connection.cluster_url = master.parse()?;
    }
    if connection.accept_invalid_certs {
        tracing::warn!(
            "the kubeconfig sets insecure-skip-tls-verify: the certificate of the API server is not verified; \
             give the kubeconfig the cluster's CA as certificate-authority-data instead"
        );
    }
    Ok(connection)
}

/// The UID of kube-system, which is the cluster's; waits for the API server. `None` if `shutdown` comes first.
pub async fn cluster_uid(client: &Client, health: &Health, shutdown: &CancellationToken) -> Result<Option<String>, ConnectError> {
    loop {
        match Api::<Namespace>::all(client.clone()).get(names::NAMESPACE).await {
            Ok(namespace) => {
                health.clear("kubernetes");
                return Ok(Some(namespace.metadata.uid.unwrap_or_default()));
            }
            Err(kube::Error::Api(status)) if status.code == 401 || status.code == 403 => {
                return Err(ConnectError::Forbidden(kube::Error::Api(status)));
            }
            Err(error) => {
                tracing::warn!(%error, "the API server does not answer; retrying");
                health.set("kubernetes", Check::Failed(format!("the API server does not answer: {error}")));
            }
        }
        tokio::select! {
            () = shutdown.cancelled() => return Ok(None),
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::causes;
    use crate::config::Config;

    #[tokio::test]
    async fn a_kubeconfig_that_is_not_there_is_named_with_its_flag_and_one_cause() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nope");
        let kubeconfig = format!("--kubeconfig={}", path.display());
        let config = Config::from_args(["ccm-core", "--provider-endpoint=unix:///run/ccm/provider.sock", &kubeconfig]).unwrap();
        let error = connection(&config.kubernetes).await.unwrap_err();
        let line = causes::line(&error);
        assert!(line.starts_with(&format!("--kubeconfig {}: ", path.display())), "{line}");
        assert_eq!(line.matches("No such file or directory").count(), 1, "{line}");
    }
}
