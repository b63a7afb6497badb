//! Reads and writes the ConfigMap. Every write names the version it was made from, so that two writers never undo each other.
//! It does not ask the gate: who may write is for the caller to know.
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::Value;

use super::{Object, State, Stored, codec};
use crate::cluster::patch::FIELD_MANAGER;
use crate::names;

/// Why the state could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A value is not what this program writes. Nothing is reset; a person has to look.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The ConfigMap was changed, created or deleted meanwhile: load it again.
    #[error("the ConfigMap has changed meanwhile")]
    Conflict,
    /// Another leader has written the ConfigMap: nothing of it is this one's any more.
    #[error("the ConfigMap is of epoch {stored}, and this term of {epoch}: another process leads")]
    Superseded {
        /// The epoch that it names.
        stored: u64,
        /// The epoch of this term.
        epoch: u64,
    },
    /// It would have to be restored, and the lease is not held.
    #[error("the ConfigMap is damaged, and the lease is not held")]
    NotLeading,
    /// The API server refused, or could not be reached.
    #[error("the ConfigMap could not be read or written: {0}")]
    Api(#[source] kube::Error),
}

/// A key whose value cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("key {key:?} cannot be read ({problem}): repair it, or remove the key")]
pub struct Unreadable {
    /// The key of the ConfigMap's data.
    pub key: &'static str,
    /// What is wrong with its value.
    pub problem: String,
}

impl Unreadable {
    pub(super) fn new(key: &'static str, problem: &dyn std::error::Error) -> Self {
        Self { key, problem: problem.to_string() }
    }
}

impl From<kube::Error> for StateError {
    fn from(error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) if matches!(status.code, 404 | 409) => Self::Conflict,
            _ => Self::Api(error),
        }
    }
}

/// The ConfigMap `ccm-core-PROVIDER` in `kube-system`.
#[derive(Clone)]
pub struct StateStore {
    maps: Api<ConfigMap>,
    name: String,
}

impl StateStore {
    /// The store of the provider of this name.
    pub fn new(client: Client, provider: &str) -> Self {
        let name = format!("{}{provider}", names::STATE_CONFIG_MAP_PREFIX);
        Self { maps: Api::namespaced(client, names::NAMESPACE), name }
    }

    /// The ConfigMap's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the API server has now; none: there is no such ConfigMap.
    pub async fn load(&self) -> Result<Option<Stored>, StateError> {
        Ok(self.maps.get_opt(&self.name).await?.map(codec::decode))
    }

    /// Writes the state: creates the ConfigMap if the state came from none, otherwise changes exactly the version that was
    /// read. On [`StateError::Conflict`] nothing was written. Afterwards the state can be changed and saved again.
    pub async fn save(&self, state: &mut State) -> Result<(), StateError> {
        let map = match &state.object {
            None => self.maps.create(&PostParams::default(), &self.new_map(state)).await?,
            Some(object) => self.patch(codec::patch(state, object)).await?,
        };
        state.object = Some(self.object(map));
        Ok(())
    }

    /// Writes identity and epoch of a state into the version that was read, and leaves alone what cannot be read.
    pub(super) async fn save_standing(&self, state: &State, object: &Object) -> Result<(), StateError> {
        self.patch(codec::standing_patch(state, object)).await?;
        Ok(())
    }

    async fn patch(&self, patch: Value) -> Result<ConfigMap, kube::Error> {
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        self.maps.patch(&self.name, &params, &Patch::Merge(patch)).await
    }

    fn object(&self, map: ConfigMap) -> Object {
        Object {
            name: self.name.clone(),
            uid: map.metadata.uid.unwrap_or_default(),
            resource_version: map.metadata.resource_version.unwrap_or_default(),
        }
    }

    fn new_map(&self, state: &State) -> ConfigMap {
        let data = codec::encode(state).into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        ConfigMap {
            metadata: ObjectMeta { name: Some(self.name.clone()), annotations: annotations(state), ..ObjectMeta::default() },
            data: Some(data.collect()),
            ..ConfigMap::default()
        }
    }
}

fn annotations(state: &State) -> Option<BTreeMap<String, String>> {
    let request = state.release_request.clone()?;
    Some(BTreeMap::from([(names::annotations::RELEASE_BREAKER.to_owned(), request)]))
}
