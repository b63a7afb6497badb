//! The writes to a Service around a call to the provider. What is written was decided in `decide`; where the Service has
//! changed meanwhile it is read again, and the same answer is settled anew, as long as it is still the same Service.
use std::collections::BTreeMap;

use jiff::Timestamp;

use super::decide::{adopt, annotations, failing, pending, removed};
use crate::cluster::patch::{ServicePatch, ServiceWriter, StatusPatch, WriteError};
use crate::model::load_balancer::Ensured;
use crate::model::service::Service;
use crate::names;
use crate::provider::ProviderError;

/// How often a Service that keeps changing is tried before it has to wait.
const ATTEMPTS: u32 = 5;

/// Adds the finalizer, and notes which class it stands for.
pub async fn hold(writer: &ServiceWriter, service: &Service) -> Result<Service, WriteError> {
    let class = service.load_balancer_class.clone().unwrap_or_default();
    let note = (names::annotations::LOAD_BALANCER_CLASS.to_owned(), Some(class));
    writer.patch(service, &ServicePatch { finalizer: Some(true), annotations: BTreeMap::from([note]) }).await
}

/// What is written for an answer.
#[derive(Clone, Copy, Debug)]
pub enum Deed<'answer> {
    /// All is as asked: annotations, then the status, which says that all is done.
    Settle(&'answer Ensured),
    /// Just annotations.
    Annotate(&'answer BTreeMap<String, String>),
    /// The load balancer is gone: the status, then the finalizer, with which the Service may vanish.
    Release {
        /// Somebody else needs the finalizer.
        keeps_finalizer: bool,
    },
    /// The cloud is at work, in these words.
    Wait(&'answer str),
    /// It failed.
    Fail(&'answer ProviderError),
}

/// Writes what follows from an answer. Answers the Service as it is then. Where the provider has gone since it answered, the write
/// waits until it is there again; the end of the term drops it.
pub async fn act(writer: &ServiceWriter, service: &Service, deed: Deed<'_>) -> Result<Service, WriteError> {
    let mut latest = service.clone();
    if !matches!(deed, Deed::Fail(_) | Deed::Release { .. }) {
        let epoch = writer.gate().check_lease()?;
        writer.gate().opened(epoch).await?;
    }
    for _ in 0..ATTEMPTS {
        match attempt(writer, &latest, deed).await {
            Err(WriteError::Conflict) => latest = read_again(writer, service).await?,
            written => return written,
        }
    }
    Err(WriteError::Conflict)
}

async fn attempt(writer: &ServiceWriter, service: &Service, deed: Deed<'_>) -> Result<Service, WriteError> {
    let now = Timestamp::now();
    match deed {
        Deed::Settle(ensured) => {
            let service = write(writer, service, &adopt(service, ensured, now).0).await?;
            write_status(writer, &service, &adopt(&service, ensured, now).1).await
        }
        Deed::Annotate(wanted) => write(writer, service, &annotations(service, wanted)).await,
        Deed::Release { keeps_finalizer } => {
            let service = write_status(writer, service, &removed(service, keeps_finalizer).0).await?;
            write(writer, &service, &removed(&service, keeps_finalizer).1).await
        }
        Deed::Wait(message) => write_status(writer, service, &pending(service, message, now)).await,
        Deed::Fail(error) => write_status(writer, service, &failing(service, error, now)).await,
    }
}

async fn write(writer: &ServiceWriter, service: &Service, patch: &ServicePatch) -> Result<Service, WriteError> {
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
