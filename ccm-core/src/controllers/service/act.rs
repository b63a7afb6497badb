//! The writes to a Service around a call to the provider. What is written was decided in `decide`; where the Service has
//! changed meanwhile it is read again, and the same answer is settled anew, as long as it is still the same Service.
use std::collections::BTreeMap;

use jiff::Timestamp;

use super::decide::{annotations, failed, in_desired_state, in_progress, removed};
use crate::cluster::patch::{ServicePatch, ServiceWriter, StatusPatch, WriteError};
use crate::model::load_balancer::Ensured;
use crate::model::service::Service;
use crate::names;
use crate::provider::ProviderError;

/// How often a Service that keeps changing is tried before it has to wait.
const ATTEMPTS: u32 = 5;

/// Adds the finalizer, and an annotation of the class that it stands for.
pub async fn add_finalizer(writer: &ServiceWriter, service: &Service) -> Result<Service, WriteError> {
    let class = service.load_balancer_class.clone().unwrap_or_default();
    let noted = (names::annotations::LOAD_BALANCER_CLASS.to_owned(), Some(class));
    writer.patch(service, &ServicePatch { finalizer: Some(true), annotations: BTreeMap::from([noted]) }).await
}

/// What is written for an answer.
#[derive(Clone, Copy, Debug)]
pub enum Write<'answer> {
    /// The load balancer is in the desired state: the status with the annotations, in one write.
    InDesiredState(&'answer Ensured),
    /// Just annotations.
    Annotations(&'answer BTreeMap<String, String>),
    /// The load balancer is gone: the status, then the finalizer, with which the Service may vanish.
    RemoveFinalizer {
        /// Another controller needs the finalizer.
        keeps_finalizer: bool,
    },
    /// The cloud is at work, in these words.
    InProgress(&'answer str),
    /// The call failed.
    Failed(&'answer ProviderError),
}

/// Writes what follows from an answer. Answers the Service as it is then. Where the provider has gone since it answered, the write
/// waits until the provider is there again; the end of the term drops it.
pub async fn act(writer: &ServiceWriter, service: &Service, write: Write<'_>) -> Result<Service, WriteError> {
    let mut latest = service.clone();
    if !matches!(write, Write::Failed(_) | Write::RemoveFinalizer { .. }) {
        let epoch = writer.gate().check_lease()?;
        writer.gate().opened(epoch).await?;
    }
    for _ in 0..ATTEMPTS {
        match attempt(writer, &latest, write).await {
            Err(WriteError::Conflict) => latest = read_again(writer, service).await?,
            written => return written,
        }
    }
    Err(WriteError::Conflict)
}

async fn attempt(writer: &ServiceWriter, service: &Service, write: Write<'_>) -> Result<Service, WriteError> {
    let now = Timestamp::now();
    match write {
        Write::InDesiredState(ensured) => write_status(writer, service, &in_desired_state(service, ensured, now)).await,
        Write::Annotations(wanted) => write_metadata(writer, service, &annotations(service, wanted)).await,
        Write::RemoveFinalizer { keeps_finalizer } => {
            let service = write_status(writer, service, &removed(service, keeps_finalizer).0).await?;
            write_metadata(writer, &service, &removed(&service, keeps_finalizer).1).await
        }
        Write::InProgress(message) => write_status(writer, service, &in_progress(service, message, now)).await,
        Write::Failed(error) => write_status(writer, service, &failed(service, error, now)).await,
    }
}

async fn write_metadata(writer: &ServiceWriter, service: &Service, patch: &ServicePatch) -> Result<Service, WriteError> {
    if patch.is_empty() { Ok(service.clone()) } else { writer.patch(service, patch).await }
}

async fn write_status(writer: &ServiceWriter, service: &Service, patch: &StatusPatch) -> Result<Service, WriteError> {
    if patch.is_empty() { Ok(service.clone()) } else { writer.patch_status(service, patch).await }
}

/// Past every cache. What was answered says nothing of another Service, or of one that wants something else now.
async fn read_again(writer: &ServiceWriter, before: &Service) -> Result<Service, WriteError> {
    let now = writer.get(before).await?;
    let same = now.uid == before.uid
        && now.is_load_balancer == before.is_load_balancer
        && now.has_finalizer() == before.has_finalizer()
        && now.deleted_at.is_some() == before.deleted_at.is_some();
    if same { Ok(now) } else { Err(WriteError::Gone) }
}
