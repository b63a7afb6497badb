//! The configuration file: what the suite may touch, and the hooks. It is read once and checked here.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::hooks::Fault;

/// What a person tells the suite about the cloud. Every field is optional; a run without mutations needs none.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// The exact `cloud_identity` in which the suite may make and remove things.
    pub cloud_identity: Option<String>,
    /// The UID of the cluster under which the suite works; a new one for each run unless set.
    pub cluster_uid: Option<String>,
    /// Machines that exist, and stay as they are during the run.
    #[serde(default)]
    pub machines: Vec<Machine>,
    /// CIDRs for which the suite may make and remove routes.
    #[serde(default)]
    pub test_cidrs: Vec<String>,
    /// Annotations that each Service of the suite has.
    #[serde(default)]
    pub service_annotations: BTreeMap<String, String>,
    /// An annotation of a Service that the provider cannot use.
    pub invalid_annotation: Option<Annotation>,
    /// Commands that work in the cloud.
    #[serde(default)]
    pub hooks: HookCommands,
}

/// A machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Machine {
    /// The name of its node.
    pub name: String,
    /// Its `spec.providerID`.
    pub provider_id: String,
}

/// An annotation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Annotation {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// Shell commands. `{dir}` is the folder of the provider that the suite started.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HookCommands {
    /// Makes a running machine of the name `{name}`, and ends when the cloud has it.
    pub create_machine: Option<String>,
    /// Stops the machine `{name}`.
    pub stop_machine: Option<String>,
    /// Deletes the machine `{name}`.
    pub delete_machine: Option<String>,
    /// Prints what exists in the cloud, one thing a line; a line of this run's holds the UID of its cluster.
    pub list_resources: Option<String>,
    /// Causes the fault `{fault}`.
    pub set_fault: Option<String>,
    /// Ends all faults.
    pub clear_faults: Option<String>,
    /// What replaces `{fault}`, for each fault that the cloud can have.
    #[serde(default)]
    pub faults: BTreeMap<Fault, String>,
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("--config {path}: cannot be read: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file has another form.
    #[error("--config {path}: {source}")]
    Form {
        /// The file.
        path: PathBuf,
        /// The parser's reason, with the field.
        source: serde_yaml_ng::Error,
    },
}

impl Config {
    /// Reads the file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        serde_yaml_ng::from_str(&text).map_err(|source| ConfigError::Form { path: path.to_owned(), source })
    }
}
