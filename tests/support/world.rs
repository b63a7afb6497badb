//! One test's own world: an API server, the rules that ccm-core lives under, and a folder for everything.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, thread};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::{Api, Client};
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::audit::{Audit, Scope};
use crate::control_plane::{self, ControlPlane};
use crate::core::CoreSpec;
use crate::kubelet::Kubelets;
use crate::process::tail;
use crate::rbac;
use crate::services::Services;
use crate::simulated::ProviderSpec;
use crate::wait::{PATIENCE, eventually};

/// Each world has an API server, which takes some 400 MB: no more at one time than this, however many tests run.
static ROOM: Semaphore = Semaphore::const_new(6);

/// How much of each log a failed test shows.
const SHOWN_LINES: usize = 60;

/// An API server with ccm-core's `ServiceAccount`. A test ends with [`World::end`]; without that, the ends of all logs are
/// printed when the world goes.
pub struct World {
    control_plane: Option<ControlPlane>,
    admin: Client,
    account: PathBuf,
    audit: Audit,
    dir: Option<TempDir>,
    ended: bool,
    _room: SemaphorePermit<'static>,
}

impl World {
    /// A new one. The folder's path is short, since a socket's path may have about 100 bytes at most.
    pub async fn start() -> Result<Self> {
        Self::audited(Scope::Everything).await
    }

    /// A new one whose API server logs just some requests.
    pub async fn audited(scope: Scope) -> Result<Self> {
        let room = ROOM.acquire().await?;
        let dir = tempfile::Builder::new().prefix("ccm-").tempdir()?;
        let audit = Audit::new(dir.path(), scope)?;
        let control_plane = ControlPlane::start(dir.path(), &audit.flags()).await?;
        let admin = control_plane::client(control_plane.kubeconfig()).await?;
        rbac::install(&admin).await?;
        let account = rbac::kubeconfig(&admin, control_plane.kubeconfig(), dir.path()).await?;
        let control_plane = Some(control_plane);
        Ok(Self { control_plane, admin, account, audit, dir: Some(dir), ended: false, _room: room })
    }

    /// The test's folder.
    pub fn dir(&self) -> &Path {
        self.dir.as_ref().map_or(Path::new(""), TempDir::path)
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> Option<&Path> {
        self.control_plane.as_ref().map(ControlPlane::kubeconfig)
    }

    /// The administrator.
    pub fn admin(&self) -> Client {
        self.admin.clone()
    }

    /// The kubelets of all nodes.
    pub fn kubelets(&self) -> Kubelets {
        Kubelets::new(self.admin())
    }

    /// The Services that users make.
    pub fn services(&self) -> Services {
        Services::new(self.admin())
    }

    /// What ccm-core asked of the API server.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// A provider to be started.
    pub fn provider(&self) -> ProviderSpec {
        ProviderSpec::new(self.dir())
    }

    /// A core to be started on default flags, under its `ServiceAccount`, for [`World::provider`].
    pub fn core(&self) -> CoreSpec {
        CoreSpec::new(self.dir(), &self.account, &self.provider().endpoint())
    }

    /// Events of one reason, from every namespace.
    pub async fn events(&self, reason: &str) -> Result<Vec<Event>> {
        let all = Api::<Event>::all(self.admin()).list(&ListParams::default()).await?;
        Ok(all.into_iter().filter(|event| event.reason.as_deref() == Some(reason)).collect())
    }

    /// How many warnings there are by one of ccm-core's controllers, repeats included, by the name of what they are about.
    pub async fn warnings(&self, controller: &str) -> Result<BTreeMap<String, i32>> {
        let mut warnings = BTreeMap::new();
        for event in Api::<Event>::all(self.admin()).list(&ListParams::default()).await? {
            if event.type_.as_deref() == Some("Warning") && event.reporting_controller.as_deref() == Some(controller) {
                let times = event.series.map_or(1, |series| series.count);
                *warnings.entry(event.regarding.and_then(|about| about.name).unwrap_or_default()).or_default() += times;
            }
        }
        Ok(warnings)
    }

    /// Waits for an event of this reason and answers the first one's message.
    pub async fn event(&self, reason: &str) -> Result<String> {
        eventually(&format!("an event {reason}"), PATIENCE, async || {
            let event = self.events(reason).await?.into_iter().next().context("there is none")?;
            Ok(event.note.unwrap_or_default())
        })
        .await
    }

    /// The end of a test that passed: nothing was forbidden to ccm-core, nothing panicked.
    pub async fn end(self) -> Result<()> {
        for log in self.logs() {
            let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
            ensure!(!text.contains("panicked at"), "{} tells of a panic", log.display());
        }
        self.end_after_panics().await
    }

    /// The end of a test that passed and had tasks panic.
    pub async fn end_after_panics(mut self) -> Result<()> {
        let forbidden = self.audit.forbidden()?;
        ensure!(forbidden.is_empty(), "deploy/rbac.yaml does not allow what ccm-core tried: {forbidden:?}");
        if let Some(control_plane) = self.control_plane.take() {
            control_plane.stop().await?;
        }
        self.ended = true;
        Ok(())
    }

    fn logs(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.dir()).into_iter().flatten().flatten();
        let mut logs: Vec<_> =
            entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "log")).collect();
        logs.sort();
        logs
    }

    fn show_logs(&self) {
        for log in self.logs() {
            eprintln!("---- the end of {}\n{}", log.display(), tail(&log, SHOWN_LINES));
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !self.ended || thread::panicking() {
            self.show_logs();
            if env::var_os("CCM_TEST_KEEP").is_some()
                && let Some(dir) = self.dir.take()
            {
                eprintln!("---- CCM_TEST_KEEP is set: everything is left in {}", dir.keep().display());
            }
        }
        // Before the folder goes.
        self.control_plane = None;
    }
}
