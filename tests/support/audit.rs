//! What ccm-core asked of the API server, by the API server's own audit log.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::rbac;

const POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - level: Metadata
    users: [USER]
  - level: None
";

/// The log of one API server.
#[derive(Clone, Debug)]
pub struct Audit {
    log: PathBuf,
    policy: PathBuf,
}

/// One request and its outcome.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// `get`, `patch`, `delete`, ….
    pub verb: String,
    /// What it was about.
    #[serde(default)]
    pub object_ref: Object,
    /// How it ended.
    #[serde(default)]
    pub response_status: Status,
}

/// What a request was about.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Object {
    /// `nodes`, `leases`, ….
    pub resource: String,
    /// `status`, or nothing.
    pub subresource: String,
    /// The object's name; empty for lists and watches.
    pub name: String,
}

/// How a request ended.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The HTTP status.
    pub code: u16,
}

/// Writes to nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeWrites {
    /// Patches and updates that succeeded, by node.
    pub successful: BTreeMap<String, usize>,
    /// Those refused because the node had changed.
    pub conflicts: usize,
    /// The names of the nodes that were deleted, in order.
    pub deleted: Vec<String>,
}

impl NodeWrites {
    /// The most writes that any node got.
    pub fn most(&self) -> usize {
        self.successful.values().copied().max().unwrap_or_default()
    }

    /// All successful writes.
    pub fn total(&self) -> usize {
        self.successful.values().sum()
    }
}

impl Audit {
    /// A log in `dir`, for an API server that is started with [`Audit::flags`].
    pub fn new(dir: &Path) -> Result<Self> {
        let audit = Self { log: dir.join("audit.jsonl"), policy: dir.join("audit-policy.yaml") };
        fs::write(&audit.policy, POLICY.replace("USER", rbac::USER))?;
        Ok(audit)
    }

    /// kube-apiserver's flags.
    pub fn flags(&self) -> Vec<String> {
        let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
        vec![
            flag("audit-policy-file", &self.policy),
            flag("audit-log-path", &self.log),
            "--audit-log-mode=blocking-strict".into(),
        ]
    }

    /// Every request of ccm-core's so far.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        let text = fs::read_to_string(&self.log).with_context(|| format!("cannot read {}", self.log.display()))?;
        // The last line may still be being written.
        let complete = text.rfind('\n').map_or("", |end| &text[..end]);
        complete.lines().map(|line| serde_json::from_str(line).with_context(|| line.to_owned())).collect()
    }

    /// The writes to nodes among them.
    pub fn node_writes(&self) -> Result<NodeWrites> {
        let mut writes = NodeWrites::default();
        for entry in self.entries()?.into_iter().filter(|entry| entry.object_ref.resource == "nodes") {
            match (entry.verb.as_str(), entry.response_status.code) {
                ("patch" | "update", 200..=299) => *writes.successful.entry(entry.object_ref.name).or_default() += 1,
                ("patch" | "update" | "delete", 409) => writes.conflicts += 1,
                ("delete", 200..=299) => writes.deleted.push(entry.object_ref.name),
                _ => {}
            }
        }
        Ok(writes)
    }

    /// Successful writes to Services, by Service.
    pub fn service_writes(&self) -> Result<BTreeMap<String, usize>> {
        let mut writes = BTreeMap::new();
        for entry in self.entries()?.into_iter().filter(|entry| entry.object_ref.resource == "services") {
            if matches!((entry.verb.as_str(), entry.response_status.code), ("patch" | "update" | "delete", 200..=299)) {
                *writes.entry(entry.object_ref.name).or_default() += 1;
            }
        }
        Ok(writes)
    }

    /// What ccm-core tried and may not, in words.
    pub fn forbidden(&self) -> Result<Vec<String>> {
        let refused = self.entries()?.into_iter().filter(|entry| entry.response_status.code == 403);
        Ok(refused
            .map(|Entry { verb, object_ref: o, .. }| format!("{verb} {} {} {}", o.resource, o.subresource, o.name))
            .collect())
    }
}
