//! What stands on the stage: a cluster, ccm-core and its provider; how it is set up and struck.
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use ccm_test_support::binaries::{self, Binaries};
use ccm_test_support::control_plane::{self, ControlPlane};
use ccm_test_support::core::{Core, CoreSpec};
use ccm_test_support::kubelet::Kubelets;
use ccm_test_support::process::tail;
use ccm_test_support::rbac;
use ccm_test_support::simulated::{Provider, ProviderSpec};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DeleteParams;
use kube::{Api, Client};
use tempfile::TempDir;

use crate::news::{News, PREFIX};
use crate::routes;
use crate::screen::Screen;
use crate::services;

/// The version that the provider's second build has.
pub const OTHER_VERSION: &str = "2.0.0-demo";

/// The lease in a user's own cluster, so that its real cloud-controller-manager is not disturbed.
const LEASE: &str = "ccm-demo";

/// What ccm-core keeps in the cluster for this provider.
const STATE: &str = "ccm-core-simulated";

/// Quick enough to be watched.
const FLAGS: [&str; 3] = ["--node-monitor-period=1s", "--node-deletion-confirmation=3s", "--node-status-update-frequency=5s"];

/// Everything that runs.
pub struct Stage {
    cluster: Cluster,
    /// The administrator.
    pub client: Client,
    /// The kubelets of the demo's nodes.
    pub kubelets: Kubelets,
    /// What happens to the nodes.
    pub news: News,
    /// The simulated provider; the story kills and replaces it.
    pub provider: Provider,
    /// Its other build.
    pub other_build: PathBuf,
    /// ccm-core.
    pub core: Core,
    dir: TempDir,
}

enum Cluster {
    Own(ControlPlane),
    Given(PathBuf),
}

impl Cluster {
    fn kubeconfig(&self) -> &Path {
        match self {
            Self::Own(control_plane) => control_plane.kubeconfig(),
            Self::Given(path) => path,
        }
    }
}

/// Builds what is not built yet, an API server included where one of our own is wanted. Answers the provider's other build.
pub async fn build(own_cluster: bool) -> Result<PathBuf> {
    if own_cluster {
        control_plane::build().await?;
    }
    Binaries::get().await?;
    binaries::another_provider(OTHER_VERSION).await
}

impl Stage {
    /// Starts everything.
    pub async fn set(kubeconfig: Option<&Path>, other_build: PathBuf, screen: &Screen) -> Result<Self> {
        screen.heading("Setting up");
        let dir = tempfile::Builder::new().prefix("ccm-demo-").tempdir()?;
        let cluster = cluster(kubeconfig, dir.path(), screen).await?;
        let client = control_plane::client(cluster.kubeconfig()).await?;
        let news = News::listen(client.clone(), screen.clone());
        let mut provider = ProviderSpec::new(dir.path()).start().await?;
        screen.act(&format!("provider-simulated serves a cloud on a Unix socket (pid {})", pid(provider.process().id())));
        let core = core(&cluster, &client, dir.path(), &provider).await?;
        screen.act(&format!("ccm-core runs (pid {}) and leads", pid(core.id())));
        Ok(Self { cluster, kubelets: Kubelets::new(client.clone()), client, news, provider, other_build, core, dir })
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        self.cluster.kubeconfig()
    }

    /// Where logs and sockets are.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The ends of the logs, for when something went wrong.
    pub fn show_logs(&self, screen: &Screen) {
        for entry in fs::read_dir(self.dir()).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "log") {
                screen.heading(&format!("The end of {}", entry.path().display()));
                Screen::plain(&tail(&entry.path(), 40));
            }
        }
    }

    /// Stops everything, and removes what was put into a cluster that goes on.
    pub async fn strike(self, screen: &Screen) -> Result<()> {
        screen.heading("Cleaning up");
        drop(self.news);
        // While somebody is there to take the finalizer off.
        services::clear(&self.client).await?;
        self.core.stop().await?;
        self.provider.stop().await?;
        match self.cluster {
            Cluster::Own(control_plane) => control_plane.stop().await?,
            Cluster::Given(_) => clear(&self.client).await?,
        }
        screen.act("all processes ended in good order");
        Ok(())
    }
}

/// A process id for people.
pub fn pid(id: Option<u32>) -> String {
    id.map_or_else(|| "gone".to_owned(), |id| id.to_string())
}

async fn cluster(kubeconfig: Option<&Path>, dir: &Path, screen: &Screen) -> Result<Cluster> {
    if let Some(path) = kubeconfig {
        let path = fs::canonicalize(path).with_context(|| format!("--kubeconfig: {}", path.display()))?;
        let client = control_plane::client(&path).await?;
        let version = client.apiserver_version().await.context("--kubeconfig: its cluster does not answer")?;
        screen.act(&format!("your cluster answers: Kubernetes {}", version.git_version));
        clear(&client).await?;
        return Ok(Cluster::Given(path));
    }
    let control_plane = ControlPlane::start(dir, &[]).await?;
    let client = control_plane::client(control_plane.kubeconfig()).await?;
    rbac::install(&client).await?;
    let version = client.apiserver_version().await?;
    screen.act(&format!("a real kube-apiserver {} with etcd serves", version.git_version));
    Ok(Cluster::Own(control_plane))
}

async fn core(cluster: &Cluster, client: &Client, dir: &Path, provider: &Provider) -> Result<Core> {
    let (kubeconfig, lease) = match cluster {
        Cluster::Own(control_plane) => (rbac::kubeconfig(client, control_plane.kubeconfig(), dir).await?, None),
        Cluster::Given(path) => (path.clone(), Some(format!("--leader-elect-resource-name={LEASE}"))),
    };
    let spec = CoreSpec::new(dir, &kubeconfig, &provider.spec().endpoint());
    let cluster_cidr = format!("--cluster-cidr={}", routes::CLUSTER_CIDR);
    let flags = FLAGS.into_iter().chain(lease.as_deref()).chain([cluster_cidr.as_str()]);
    let core = flags.fold(spec, CoreSpec::flag).start().await?;
    core.ready().await?;
    Ok(core)
}

/// Removes everything of the demo's from a user's cluster.
async fn clear(client: &Client) -> Result<()> {
    let kubelets = Kubelets::new(client.clone());
    let ours: Vec<_> = kubelets.all().await?.into_keys().filter(|name| name.starts_with(PREFIX)).collect();
    kubelets.remove(&ours).await?;
    forgive_absence(Api::<ConfigMap>::namespaced(client.clone(), rbac::NAMESPACE).delete(STATE, &DeleteParams::default()).await)?;
    forgive_absence(Api::<Lease>::namespaced(client.clone(), rbac::NAMESPACE).delete(LEASE, &DeleteParams::default()).await)
}

fn forgive_absence<T>(outcome: kube::Result<T>) -> Result<()> {
    match outcome {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        outcome => Ok(outcome.map(drop)?),
    }
}
