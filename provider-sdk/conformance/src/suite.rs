//! What all cases of a run share: the provider's description, the cluster that stands for the suite, and what it may do.
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ccm_proto::v1::{Capability, ClusterRef, GetProviderInfoRequest, ProviderInfo};
use tokio::sync::Mutex;
use tonic::transport::Channel;

use crate::case::{Case, Need};
use crate::config::{Config, Machine};
use crate::connection;
use crate::hooks::Hooks;
use crate::journal::Journal;
use crate::process::{Launcher, Running};

/// The suite's epochs are multiples of this, and ccm-core counts by one: so the suite knows its own.
pub const EPOCH_STEP: u64 = 1 << 10;

/// The lowest epoch of the suite, far above those of a cluster.
pub const FIRST_EPOCH: u64 = 1 << 40;

/// What all cases share.
#[derive(Debug)]
pub struct Suite {
    /// The provider's socket.
    pub socket: PathBuf,
    /// What the provider said of itself.
    pub info: ProviderInfo,
    /// The cluster on whose behalf the suite calls.
    pub cluster: ClusterRef,
    /// What the person configured.
    pub config: Config,
    /// Machines that exist.
    pub machines: Vec<Machine>,
    /// The commands of the configuration.
    pub hooks: Hooks,
    /// Whether the suite may change the cloud.
    pub mutations: bool,
    /// What the suite makes is noted here first.
    pub journal: Journal,
    /// How the suite starts providers.
    pub launcher: Option<Launcher>,
    /// The provider that it started for most cases.
    pub process: Mutex<Option<Running>>,
    /// The next epoch.
    pub epoch: AtomicU64,
}

impl Suite {
    /// Another connection to the provider.
    pub fn connect(&self) -> Channel {
        connection::channel(&self.socket)
    }

    /// An epoch above every one that the suite used before.
    pub fn next_epoch(&self) -> u64 {
        self.epoch.fetch_add(EPOCH_STEP, Ordering::Relaxed)
    }

    /// Whether the provider lists the capability.
    pub fn serves(&self, capability: Capability) -> bool {
        self.info.capabilities.contains(&i32::from(capability))
    }

    /// The items that one batch may have.
    pub fn max_batch(&self) -> usize {
        let limit = self.info.limits.as_ref().and_then(|limits| limits.max_batch_size);
        limit.unwrap_or(100) as usize
    }

    /// The first need of the case that this run does not meet.
    pub fn lacks(&self, case: &Case) -> Option<Need> {
        case.needs.iter().copied().find(|need| !self.meets(*need))
    }

    fn meets(&self, need: Need) -> bool {
        match need {
            Need::Capability(capability) => self.serves(capability),
            Need::Mutations => self.mutations,
            Need::Command => self.launcher.is_some(),
            Need::Machines(count) => self.machines.len() >= count,
            Need::Hook(hook) => self.hooks.has(hook),
            Need::Fault(fault) => self.hooks.can(fault),
            Need::TestCidrs(count) => self.config.test_cidrs.len() >= count,
            Need::InvalidAnnotation => self.config.invalid_annotation.is_some(),
        }
    }
}

/// The handshake's request.
pub fn handshake(cluster: &ClusterRef) -> GetProviderInfoRequest {
    GetProviderInfoRequest {
        cluster: Some(cluster.clone()),
        core_version: concat!("provider-conformance/", env!("CARGO_PKG_VERSION")).into(),
        protocol_versions: vec![ccm_proto::PROTOCOL_VERSION.into()],
        ..GetProviderInfoRequest::default()
    }
}

/// The path of a `unix://` endpoint.
pub fn socket_of(endpoint: &str) -> Result<PathBuf, String> {
    let path = endpoint.strip_prefix("unix://").filter(|path| path.starts_with('/'));
    path.map(|path| Path::new(path).to_owned())
        .ok_or_else(|| format!("{endpoint:?} does not have the form unix:///absolute/path"))
}
