//! Reads and writes the ConfigMap. Every write names the version it was made from, so that two writers never undo each other.
//! It does not ask the gate: who may write is for the caller to know.
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};

use super::{Object, State, codec};
use crate::cluster::patch::FIELD_MANAGER;
use crate::names;

/// How often a small change is repeated on a newer version before the conflict is reported.
const ATTEMPTS: usize = 5;

/// Why the state could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A value is not what this program writes. Nothing is reset; a person has to look.
    #[error("key {key:?} cannot be read ({source}): repair it, or remove the key to begin it anew")]
    Unreadable {
        /// The key of the ConfigMap's data.
        key: &'static str,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The ConfigMap was changed, created or deleted meanwhile: load it again.
    #[error("the ConfigMap has changed meanwhile")]
    Conflict,
    /// The API server refused, or could not be reached.
    #[error("the ConfigMap could not be read or written: {0}")]
    Api(#[source] kube::Error),
}

impl StateError {
    pub(super) fn unreadable(key: &'static str, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Unreadable { key, source: Box::new(source) }
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

/// What was there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// There is no such ConfigMap.
    Missing,
    /// The state.
    Found(Box<State>),
}

impl Loaded {
    /// The state; an empty one, which the first save creates, where there is none.
    pub fn into_state(self) -> State {
        match self {
            Self::Missing => State::default(),
            Self::Found(state) => *state,
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

    /// The state as the API server has it now.
    pub async fn load(&self) -> Result<Loaded, StateError> {
        match self.maps.get_opt(&self.name).await? {
            None => Ok(Loaded::Missing),
            Some(map) => Ok(Loaded::Found(Box::new(codec::decode(map)?))),
        }
    }

    /// Writes the state: creates the ConfigMap if the state came from none, otherwise changes exactly the version that was
    /// read. On [`StateError::Conflict`] nothing was written. Afterwards the state can be changed and saved again.
    pub async fn save(&self, state: &mut State) -> Result<(), StateError> {
        let map = match &state.object {
            None => self.maps.create(&PostParams::default(), &self.new_map(state)).await?,
            Some(object) => {
                let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
                self.maps.patch(&self.name, &params, &Patch::Merge(codec::patch(state, object))).await?
            }
        };
        state.object = Some(Object {
            name: self.name.clone(),
            uid: map.metadata.uid.unwrap_or_default(),
            resource_version: map.metadata.resource_version.unwrap_or_default(),
        });
        Ok(())
    }

    /// Trusts a cloud from now on, whichever was trusted before.
    pub async fn accept_identity(&self, identity: &str) -> Result<(), StateError> {
        self.update(|state| state.accepted_identity = Some(identity.to_owned())).await.map(drop)
    }

    /// The accepted identity; where there is none yet, the one found becomes it (trust on first use).
    pub async fn accepted_identity_or(&self, found: &str) -> Result<String, StateError> {
        let accept =
            |state: &mut State| state.accepted_identity = state.accepted_identity.take().or_else(|| Some(found.to_owned()));
        let state = self.update(accept).await?;
        Ok(state.accepted_identity.unwrap_or_else(|| found.to_owned()))
    }

    /// The epoch of a new term, stored before it is used: greater than every one before, and at least the lease's count of
    /// transitions.
    pub async fn next_epoch(&self, lease_transitions: u64) -> Result<u64, StateError> {
        let advance = |state: &mut State| state.epoch = (state.epoch + 1).max(lease_transitions);
        Ok(self.update(advance).await?.epoch)
    }

    /// Changes the newest version, again if it was not the newest; writes nothing where nothing changes.
    async fn update(&self, change: impl Fn(&mut State) + Send + Sync) -> Result<State, StateError> {
        let mut conflict = StateError::Conflict;
        for _ in 0..ATTEMPTS {
            let before = self.load().await?.into_state();
            let mut state = before.clone();
            change(&mut state);
            if state == before && state.object.is_some() {
                return Ok(state);
            }
            match self.save(&mut state).await {
                Ok(()) => return Ok(state),
                Err(StateError::Conflict) => conflict = StateError::Conflict,
                Err(error) => return Err(error),
            }
        }
        Err(conflict)
    }

    fn new_map(&self, state: &State) -> ConfigMap {
        let data = codec::encode(state).into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        ConfigMap {
            metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
            data: Some(data.collect()),
            ..ConfigMap::default()
        }
    }
}
