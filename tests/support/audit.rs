//! What ccm-core asked of the API server, by the API server's own audit log.
use std::collections::BTreeMap;
use std::fs;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde::Deserialize;

use crate::rbac;

const POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - level: Metadata
    users: [USER]
    # WHICH
  - level: None
";

/// In place of `# WHICH`.
const NODE_WRITES: &str = r#"verbs: [patch, update]
    resources: [{ group: "", resources: [nodes, nodes/status] }]"#;

/// Which requests of the account are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// All.
    #[default]
    Everything,
    /// Patches and updates of nodes, so that a benchmark is not about the log.
    NodeWrites,
}

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
    /// When the API server received it.
    pub request_received_timestamp: Timestamp,
    /// When it was answered.
    pub stage_timestamp: Timestamp,
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
    pub fn new(dir: &Path, scope: Scope) -> Result<Self> {
        let audit = Self { log: dir.join("audit.jsonl"), policy: dir.join("audit-policy.yaml") };
        let policy = POLICY.replace("USER", rbac::USER);
        fs::write(&audit.policy, if scope == Scope::NodeWrites { policy.replace("# WHICH", NODE_WRITES) } else { policy })?;
        Ok(audit)
    }

    /// kube-apiserver's flags.
    pub fn flags(&self) -> Vec<String> {
        let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
        vec![
            flag("audit-policy-file", &self.policy),
            flag("audit-log-path", &self.log),
            "--audit-log-mode=blocking-strict".into(),
            // Never a second file.
            "--audit-log-maxsize=100000".into(),
        ]
    }

    /// Every request of ccm-core's so far.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        self.follow().entries()
    }

    /// The log, to be read as it grows.
    pub fn follow(&self) -> Follow {
        Follow { log: self.log.clone(), read: 0 }
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

/// A reader of the log that remembers how far it is.
#[derive(Clone, Debug)]
pub struct Follow {
    log: PathBuf,
    read: u64,
}

impl Follow {
    /// Every request since the last look.
    pub fn entries(&mut self) -> Result<Vec<Entry>> {
        let mut bytes = Vec::new();
        let mut file = File::open(&self.log).with_context(|| format!("cannot open {}", self.log.display()))?;
        file.seek(SeekFrom::Start(self.read))?;
        file.read_to_end(&mut bytes)?;
        // The last line may still be being written.
        bytes.truncate(bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1));
        self.read += bytes.len() as u64;
        let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).with_context(|| String::from_utf8_lossy(line).into_owned())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follower_reads_each_complete_line_once() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let audit = Audit::new(dir.path(), Scope::NodeWrites)?;
        let (first, second) = (line("a"), line("b"));
        let mut follow = audit.follow();
        let mut names = |text: String| -> Result<Vec<String>> {
            fs::write(&audit.log, text)?;
            Ok(follow.entries()?.into_iter().map(|entry| entry.object_ref.name).collect())
        };
        assert_eq!(names(format!("{first}\n{}", &second[..9]))?, ["a"]);
        assert_eq!(names(format!("{first}\n{second}\n"))?, ["b"]);
        assert!(names(format!("{first}\n{second}\n"))?.is_empty());
        Ok(())
    }

    fn line(name: &str) -> String {
        let time = "2026-01-01T00:00:00.000001Z";
        format!(
            r#"{{"verb":"patch","objectRef":{{"name":"{name}"}},"requestReceivedTimestamp":"{time}","stageTimestamp":"{time}"}}"#
        )
    }
}
