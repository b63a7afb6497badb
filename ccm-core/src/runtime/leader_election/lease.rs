//! The lease in Kubernetes: reading, creating and replacing it, each within a time limit, never over a version that was not seen.
use std::time::Duration;

use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

use super::decide::Record;
use crate::cluster::presence::is_unanswered;
use crate::cluster::state::mirror::Mirror;

/// The lease as it was last read or written.
pub(super) struct LeaseObject {
    api: Api<Lease>,
    namespace: String,
    name: String,
    seen: Option<Lease>,
    mirror: Option<Mirror>,
    timeout: Duration,
}

/// Why the lease could not be read or written. Whether a write was carried out is unknown after either.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The API server refused it or could not be reached.
    #[error("lease {name}: {source}")]
    Api {
        /// NAMESPACE/NAME.
        name: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// The API server did not answer in time.
    #[error("lease {name}: no answer from the API server within {timeout:?}")]
    Timeout {
        /// NAMESPACE/NAME.
        name: String,
        /// How long was waited.
        timeout: Duration,
    },
}

impl LeaseError {
    /// Whether no answer came at all.
    pub(super) fn is_unanswered(&self) -> bool {
        match self {
            Self::Api { source, .. } => is_unanswered(source),
            Self::Timeout { .. } => true,
        }
    }

    /// Whether someone else wrote the lease meanwhile.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::Api { source, .. } if matches!(&**source, kube::Error::Api(status) if status.code == 409))
    }
}

impl LeaseObject {
    pub(super) fn new(client: Client, namespace: &str, name: &str, timeout: Duration) -> Self {
        let api = Api::namespaced(client, namespace);
        Self { api, namespace: namespace.to_owned(), name: name.to_owned(), seen: None, mirror: None, timeout }
    }

    /// NAMESPACE/NAME.
    pub(super) fn describe(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// What it says now; none: there is no lease.
    pub(super) async fn read(&mut self) -> Result<Option<Record>, LeaseError> {
        self.seen = self.within(self.api.get_opt(&self.name)).await?;
        Ok(self.seen.as_ref().map(record))
    }

    /// What every write puts on it from now on, unless it carries one of a later term; none: what it carries stays.
    pub(super) fn set_mirror(&mut self, mirror: Option<Mirror>) {
        self.mirror = mirror;
    }

    /// What it carried when it was last read or written.
    pub(super) fn mirror(&self) -> Option<Mirror> {
        Mirror::of(self.seen.as_ref()?.metadata.annotations.as_ref())
    }

    /// Creates it, unless there is one.
    pub(super) async fn create(&mut self, record: &Record) -> Result<Record, LeaseError> {
        let mut lease = Lease { metadata: self.metadata(), spec: Some(spec(record, None)) };
        self.annotate(&mut lease);
        let created = self.within(self.api.create(&PostParams::default(), &lease)).await?;
        Ok(self.stored(created))
    }

    /// Replaces it, unless it is another version than the one last seen. Foreign labels, annotations and fields stay.
    pub(super) async fn replace(&mut self, record: &Record) -> Result<Record, LeaseError> {
        let mut lease = self.seen.clone().unwrap_or_else(|| Lease { metadata: self.metadata(), spec: None });
        lease.spec = Some(spec(record, lease.spec.take()));
        self.annotate(&mut lease);
        let replaced = self.within(self.api.replace(&self.name, &PostParams::default(), &lease)).await?;
        Ok(self.stored(replaced))
    }

    fn stored(&mut self, lease: Lease) -> Record {
        let stored = record(&lease);
        self.seen = Some(lease);
        stored
    }

    fn annotate(&self, lease: &mut Lease) {
        if let Some(mirror) = &self.mirror {
            mirror.write(lease.metadata.annotations.get_or_insert_default());
        }
    }

    fn metadata(&self) -> ObjectMeta {
        ObjectMeta { name: Some(self.name.clone()), namespace: Some(self.namespace.clone()), ..ObjectMeta::default() }
    }

    async fn within<T>(&self, call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, LeaseError> {
        match tokio::time::timeout(self.timeout, call).await {
            Ok(answer) => answer.map_err(|source| LeaseError::Api { name: self.describe(), source: Box::new(source) }),
            Err(_) => Err(LeaseError::Timeout { name: self.describe(), timeout: self.timeout }),
        }
    }
}

fn record(lease: &Lease) -> Record {
    let spec = lease.spec.clone().unwrap_or_default();
    let count = |number: Option<i32>| number.and_then(|number| u32::try_from(number).ok()).unwrap_or_default();
    Record {
        holder: spec.holder_identity.unwrap_or_default(),
        seconds: count(spec.lease_duration_seconds),
        transitions: count(spec.lease_transitions),
        acquired: spec.acquire_time.map(|time| time.0),
        renewed: spec.renew_time.map(|time| time.0),
    }
}

fn spec(record: &Record, before: Option<LeaseSpec>) -> LeaseSpec {
    let number = |count: u32| Some(i32::try_from(count).unwrap_or(i32::MAX));
    LeaseSpec {
        holder_identity: Some(record.holder.clone()),
        lease_duration_seconds: number(record.seconds),
        lease_transitions: number(record.transitions),
        acquire_time: record.acquired.map(micro_time),
        renew_time: record.renewed.map(micro_time),
        ..before.unwrap_or_default()
    }
}

/// Kubernetes keeps microseconds.
fn micro_time(time: Timestamp) -> MicroTime {
    let down = TimestampRound::new().smallest(Unit::Microsecond).mode(RoundMode::Trunc);
    MicroTime(time.round(down).unwrap_or(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_the_way_to_a_lease_and_back() {
        let time = Timestamp::from_microsecond(1_700_000_000_123_456).ok();
        let written = Record { holder: "foo".to_owned(), seconds: 10, transitions: 1, acquired: time, renewed: time };
        let lease = Lease { metadata: ObjectMeta::default(), spec: Some(spec(&written, None)) };
        assert_eq!(record(&lease), written);
    }

    #[test]
    fn an_empty_or_odd_lease_is_nobodys() {
        assert_eq!(record(&Lease::default()), Record::default());
        let odd = LeaseSpec { lease_duration_seconds: Some(-1), lease_transitions: Some(-1), ..LeaseSpec::default() };
        assert_eq!(record(&Lease { metadata: ObjectMeta::default(), spec: Some(odd) }), Record::default());
    }

    #[test]
    fn fields_of_others_stay() {
        let before = LeaseSpec { strategy: Some("OldestEmulationVersion".to_owned()), ..LeaseSpec::default() };
        assert!(spec(&Record::default(), Some(before)).strategy.is_some());
    }
}
