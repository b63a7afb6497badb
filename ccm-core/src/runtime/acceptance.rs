//! Which provider may be used: the one asked for by name, with a cluster id, and of the cloud that was accepted before.
use async_trait::async_trait;
use kube::Client;
use parking_lot::Mutex;

use crate::cluster::events::{Events, Grade, Note};
use crate::cluster::state::{Loaded, State, StateStore};
use crate::config::ProviderConfig;
use crate::model::provider_info::ProviderInfo;
use crate::names;
use crate::provider::{Judge, Verdict};

/// Judges every handshake. It reads the cluster and writes nothing but an event: the leader writes what is accepted.
pub struct Acceptance {
    client: Client,
    required_name: Option<String>,
    allow_untagged_cloud: bool,
    accept: Option<String>,
    events: Events,
    told: Mutex<Option<String>>,
}

impl Acceptance {
    /// By the flags of the provider.
    pub fn new(client: Client, config: &ProviderConfig, events: Events) -> Self {
        Self {
            client,
            required_name: config.required_name.clone(),
            allow_untagged_cloud: config.allow_untagged_cloud,
            accept: config.accept_cloud_identity.clone(),
            events,
            told: Mutex::new(None),
        }
    }

    fn judge_name(&self, info: &ProviderInfo) -> Result<(), Verdict> {
        match &self.required_name {
            Some(name) if *name != info.name => Err(Verdict::Unusable(format!(
                "--cloud-provider={name} was given and the provider behind the socket is {:?}; run the sidecar of {name}, or correct the flag",
                info.name
            ))),
            _ => Ok(()),
        }
    }

    fn judge_cluster_id(&self, info: &ProviderInfo) -> Result<(), Verdict> {
        if info.cluster_id.is_some() || self.allow_untagged_cloud {
            return Ok(());
        }
        Err(Verdict::Unusable(
            "the provider has no cluster id, so it could not tell this cluster's resources from another's; configure one in the \
             provider, or give --allow-untagged-cloud"
                .to_owned(),
        ))
    }

    async fn judge_identity(&self, info: &ProviderInfo) -> Result<(), Verdict> {
        let store = StateStore::new(self.client.clone(), &info.name);
        let state = match store.load().await {
            Ok(Loaded::Missing) => return Ok(()),
            Ok(Loaded::Found(state)) => state,
            Err(error) => {
                return Err(Verdict::Later(format!(
                    "which cloud was accepted cannot be read from ConfigMap {}/{}: {error}; if reading it is forbidden, name that ConfigMap \
                 in the Role of deploy/rbac.yaml",
                    names::NAMESPACE,
                    store.name()
                )));
            }
        };
        match &state.accepted_identity {
            Some(accepted) if *accepted != info.cloud_identity && self.accept.as_ref() != Some(&info.cloud_identity) => {
                self.tell(&state, accepted, &info.cloud_identity);
                Err(Verdict::IdentityChanged { accepted: accepted.clone() })
            }
            _ => Ok(()),
        }
    }

    /// One event for each identity that was found, not one for each handshake.
    fn tell(&self, state: &State, accepted: &str, found: &str) {
        if self.told.lock().replace(found.to_owned()).as_deref() == Some(found) {
            return;
        }
        if let Some(subject) = state.subject() {
            let reason = names::events::CLOUD_IDENTITY_CHANGED.to_owned();
            self.events.publish(Note { subject, grade: Grade::Warning, reason, message: identity_changed(accepted, found) });
        }
    }
}

/// What a changed identity means and what to do, for events and readiness.
pub fn identity_changed(accepted: &str, found: &str) -> String {
    format!(
        "the provider's cloud identity is {found:?} and the accepted one {accepted:?}: nothing is changed in the cluster or the cloud. If the \
         sidecar's image, project or region is wrong, correct it; if the cloud was changed on purpose, give --accept-cloud-identity={found}"
    )
}

#[async_trait]
impl Judge for Acceptance {
    async fn judge(&self, info: &ProviderInfo) -> Result<(), Verdict> {
        self.judge_name(info)?;
        self.judge_cluster_id(info)?;
        self.judge_identity(info).await
    }
}
