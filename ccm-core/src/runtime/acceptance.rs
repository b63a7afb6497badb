//! Which provider may be used: one with the required name, with a cluster id, and of the accepted cloud.
use async_trait::async_trait;
use kube::Client;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::leader_election;
use crate::cluster::events::{Event, EventType, Events, Subject};
use crate::cluster::nodes;
use crate::cluster::state::accepted::{Accepted, Rejection};
use crate::cluster::state::{StateError, StateStore, Stored};
use crate::config::{LeaderElectionConfig, ProviderConfig};
use crate::model::provider_info::ProviderInfo;
use crate::model::term::Term;
use crate::names;
use crate::provider::{Judge, Verdict};

/// Judges every handshake. It reads the cluster and writes nothing but an event: the leader writes what is accepted.
pub struct Acceptance {
    records: Records,
    required_name: Option<String>,
    allow_untagged_cloud: bool,
    events: Events,
    /// The UID of kube-system, the subject of events if there is no ConfigMap.
    cluster_uid: String,
    terms: watch::Receiver<Option<Term>>,
    told: Mutex<Option<String>>,
}

/// The records in the cluster about accepted clouds.
#[derive(Clone)]
pub(super) struct Records {
    client: Client,
    lease: LeaderElectionConfig,
    by_hand: Option<String>,
}

/// Why it cannot be determined whether a cloud is accepted.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordsError {
    /// The ConfigMap.
    #[error("ConfigMap {}/{map}: {error}", names::NAMESPACE)]
    State {
        /// Its name.
        map: String,
        /// What is wrong.
        #[source]
        error: StateError,
    },
    /// The lease, or the nodes.
    #[error("{0} cannot be read: {1}")]
    Api(&'static str, #[source] kube::Error),
}

impl Records {
    /// By the flags. `accept` is `--accept-cloud-identity`.
    pub(super) fn new(client: Client, lease: &LeaderElectionConfig, accept: Option<&String>) -> Self {
        Self { client, lease: lease.clone(), by_hand: accept.cloned() }
    }

    /// The record for a provider in its ConfigMap.
    pub(super) async fn stored(&self, provider: &str) -> Result<Option<Stored>, RecordsError> {
        let store = StateStore::new(self.client.clone(), provider);
        store.load().await.map_err(|error| RecordsError::State { map: store.name().to_owned(), error })
    }

    /// The accepted cloud by the record for a provider and by the mirror on the lease.
    async fn accepted(&self, provider: &str, stored: Option<&Stored>) -> Result<Accepted, RecordsError> {
        let mirror = leader_election::mirror(&self.client, &self.lease).await.map_err(|it| RecordsError::Api("the lease", it))?;
        let map = || format!("{}{provider}", names::STATE_CONFIG_MAP_PREFIX);
        Accepted::of(provider, stored, mirror.as_ref()).map_err(|it| RecordsError::State { map: map(), error: it.into() })
    }

    /// Whether the cloud found is the accepted one.
    pub(super) async fn judge(&self, accepted: &Accepted, found: &str) -> Result<Result<(), Rejection>, RecordsError> {
        let by_hand = self.by_hand.as_deref() == Some(found);
        let traces = accepted.needs_traces(by_hand) && self.has_traces().await?;
        Ok(accepted.judge(found, by_hand, traces))
    }

    /// Whether a node carries our annotation.
    async fn has_traces(&self) -> Result<bool, RecordsError> {
        let found = nodes::any_is_annotated(&self.client, names::annotations::APPLIED_LABELS).await;
        found.map_err(|error| RecordsError::Api("nodes", error))
    }
}

impl Acceptance {
    /// From the flags of the provider. During one of `terms`, its cloud is the accepted one, whatever the records in the cluster are.
    pub(super) fn new(
        records: Records,
        config: &ProviderConfig,
        events: Events,
        cluster_uid: &str,
        terms: watch::Receiver<Option<Term>>,
    ) -> Self {
        Self {
            records,
            required_name: config.required_name.clone(),
            allow_untagged_cloud: config.allow_untagged_cloud,
            events,
            cluster_uid: cluster_uid.to_owned(),
            terms,
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
            "the provider reports no cluster id, so it cannot distinguish this cluster's resources from another's; configure one in \
             the provider, or give --allow-untagged-cloud"
                .to_owned(),
        ))
    }

    async fn judge_identity(&self, info: &ProviderInfo) -> Result<(), Verdict> {
        let found = &info.cloud_identity;
        let rejection = self.rejection(info).await.map_err(|error| {
            Verdict::Later(format!(
                "the record of the accepted cloud cannot be read: {error}; if reading it is forbidden, compare the names in the Role of \
                 deploy/rbac.yaml with the ConfigMap's and the lease's"
            ))
        })?;
        let (reason, message, verdict) = match rejection {
            Ok(()) => {
                self.told.lock().take();
                return Ok(());
            }
            Err(Rejection::Another { accepted }) => {
                let message = identity_changed(&accepted, found);
                (names::events::CLOUD_IDENTITY_CHANGED, message, Verdict::IdentityChanged { accepted })
            }
            Err(Rejection::Lost) => {
                let message = identity_lost(&info.name, found);
                (names::events::CLOUD_IDENTITY_LOST, message.clone(), Verdict::Unusable(message))
            }
        };
        self.tell(info, reason, message).await;
        Err(verdict)
    }

    async fn rejection(&self, info: &ProviderInfo) -> Result<Result<(), Rejection>, RecordsError> {
        let accepted = match self.of_the_term(info) {
            Some(accepted) => accepted,
            None => self.records.accepted(&info.name, self.records.stored(&info.name).await?.as_ref()).await?,
        };
        self.records.judge(&accepted, &info.cloud_identity).await
    }

    /// During a term the term decides: the leader is about to restore what was deleted or changed in the cluster meanwhile.
    fn of_the_term(&self, info: &ProviderInfo) -> Option<Accepted> {
        let term = self.terms.borrow().clone().filter(|term| term.cloud.provider == info.name)?;
        Some(Accepted { identity: Some(term.cloud.identity.clone()), epoch: term.epoch, set_back: false })
    }

    /// One event per message, not one per handshake.
    async fn tell(&self, info: &ProviderInfo, reason: &str, message: String) {
        if self.told.lock().replace(message.clone()).as_ref() == Some(&message) {
            return;
        }
        let map = self.records.stored(&info.name).await.ok().flatten().map(|stored| stored.subject());
        let namespace = || Subject {
            kind: "Namespace",
            namespace: String::new(),
            name: names::NAMESPACE.to_owned(),
            uid: self.cluster_uid.clone(),
        };
        let subject = map.unwrap_or_else(namespace);
        self.events.publish(Event { subject, event_type: EventType::Warning, reason: reason.to_owned(), message });
    }
}

/// What a lost record of the accepted cloud means, and what to do, for events and readiness.
fn identity_lost(provider: &str, found: &str) -> String {
    format!(
        "the record of the accepted cloud is lost: neither ConfigMap {}/{}{provider} nor the lease has it, and nodes show that ccm-core worked \
         here before. ccm-core changes nothing in the cluster or the cloud. The provider's cloud identity is {found:?}: if that is this cluster's \
         cloud, give --accept-cloud-identity={found}",
        names::NAMESPACE,
        names::STATE_CONFIG_MAP_PREFIX
    )
}

/// What a changed identity means and what to do, for events and readiness.
pub fn identity_changed(accepted: &str, found: &str) -> String {
    format!(
        "the provider's cloud identity is {found:?} and the accepted one {accepted:?}: ccm-core changes nothing in the cluster or the cloud. If the \
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

#[cfg(test)]
mod tests;
