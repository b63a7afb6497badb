//! Writes to nodes and Services. Each write asks the write guard first, names its object by UID, and fails rather than overwrite a
//! version that was not read.
mod nodes;
mod services;

use kube::api::PatchParams;
use kube::core::Status;
use serde_json::{Map, Value, json};

pub use self::nodes::{NetworkCondition, NodePatch, NodeStatusPatch, NodeWriter};
pub use self::services::{ConditionChange, ServicePatch, ServiceWriter, StatusPatch};
use super::gate::Closed;
use super::presence;
use crate::model::ownership::Ownership;

/// The field manager of every write.
pub const FIELD_MANAGER: &str = "ccm-core";

/// Why a write did not happen, or may not have.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// This process may not write now.
    #[error("not written: {0}")]
    Closed(#[from] Closed),
    /// The node is not the provider's to write to, or to delete. A controller that asks for it has decided by something old.
    #[error("not written: the node {}", .0.describe())]
    NotOurs(Ownership),
    /// The object has changed since it was read; read it again.
    #[error("the object has changed meanwhile")]
    Conflict,
    /// The object is gone.
    #[error("the object is gone")]
    Gone,
    /// The API server refused, or could not be reached.
    #[error(transparent)]
    Api(kube::Error),
}

impl WriteError {
    /// Whether no answer came at all: the API server is away, which `presence` logs once.
    pub fn is_unanswered(&self) -> bool {
        matches!(self, Self::Api(error) if presence::is_unanswered(error))
    }

    /// Whether the API server refused the write, so that a retry fails in the same way until a person changes something.
    pub fn is_refused(&self) -> bool {
        let retryable = |code| matches!(code, 408 | 425 | 429);
        matches!(self, Self::Api(kube::Error::Api(status)) if (400..500).contains(&status.code) && !retryable(status.code))
    }
}

impl From<kube::Error> for WriteError {
    fn from(error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) if status.code == 409 => Self::Conflict,
            kube::Error::Api(status) if status.code == 404 || names_another_object(status) => Self::Gone,
            _ => Self::Api(error),
        }
    }
}

/// A patch by UID alone that finds another object of the same name is refused as a change of the UID, and not as a conflict.
fn names_another_object(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 422 && causes.into_iter().any(|cause| cause.field == "metadata.uid")
}

fn params() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// The part of a patch's metadata that restricts it to one version of one object.
fn identity(uid: &str, resource_version: &str) -> Map<String, Value> {
    let mut metadata = Map::new();
    metadata.insert("uid".into(), json!(uid));
    metadata.insert("resourceVersion".into(), json!(resource_version));
    metadata
}
