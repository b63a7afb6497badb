//! Reports what becomes of a Service's load balancer: events, each failure once, a log line, metrics. `act` writes the condition, since
//! that is a write to the Service.
use super::decide::LeftUnmanaged;
use crate::cluster::events::{Event, EventType, Events};
use crate::cluster::patch::WriteError;
use crate::model::instance::Warning;
use crate::model::service::Service;
use crate::names::events;
use crate::provider::ProviderError;
use crate::telemetry::cloud_health::CloudHealth;
use crate::telemetry::event_dedup::EventDedup;
use crate::telemetry::metrics::ServiceMetrics;

/// What a call does, for people: the reason of the event if it fails, and words for its message.
pub type Doing = (&'static str, &'static str);
/// Ensure.
pub const SYNCING: Doing = (events::SYNC_LOAD_BALANCER_FAILED, "syncing");
/// An update of the targets.
pub const UPDATING: Doing = (events::UPDATE_LOAD_BALANCER_FAILED, "updating the hosts of the");
/// A deletion.
pub const DELETING: Doing = (events::SYNC_LOAD_BALANCER_FAILED, "deleting");

/// Sends events, and remembers which were sent.
pub struct Status {
    events: Events,
    metrics: ServiceMetrics,
    cloud: CloudHealth,
    /// By reason, and what the event is about.
    sent: EventDedup<(String, String)>,
}

impl Status {
    /// Nothing was sent yet.
    pub fn new(events: Events, metrics: ServiceMetrics, cloud: CloudHealth) -> Self {
        Self { events, metrics, cloud, sent: EventDedup::default() }
    }

    /// A load balancer is about to be made or changed.
    pub fn ensuring(&self, service: &Service) {
        self.metrics.syncs.inc();
        self.once(service, EventType::Normal, events::ENSURING_LOAD_BALANCER, "Ensuring load balancer", "");
    }

    /// It is in the desired state. What failed before is over; a failure after this is new.
    pub fn ensured(&self, service: &Service, targets: usize) {
        self.forget(&service.key());
        tracing::info!(service = service.key(), targets, "a load balancer is in the desired state");
        self.normal(service, events::ENSURED_LOAD_BALANCER, "Ensured load balancer");
        self.without_targets(service, targets);
    }

    /// It has other targets now; `fixes` says whether it is in the desired state with that.
    pub fn updated(&self, service: &Service, targets: usize, fixes: bool) {
        if fixes {
            self.forget(&service.key());
        }
        tracing::debug!(service = service.key(), targets, "a load balancer has other targets");
        if targets > 0 {
            self.normal(service, events::UPDATED_LOAD_BALANCER, "Updated load balancer with new hosts");
        }
        self.without_targets(service, targets);
    }

    /// It is about to be removed.
    pub fn deleting(&self, service: &Service) {
        self.metrics.syncs.inc();
        self.once(service, EventType::Normal, events::DELETING_LOAD_BALANCER, "Deleting load balancer", "");
    }

    /// It is gone.
    pub fn deleted(&self, service: &Service) {
        self.forget(&service.key());
        tracing::info!(service = service.key(), "a load balancer is gone");
        self.normal(service, events::DELETED_LOAD_BALANCER, "Deleted load balancer");
    }

    /// A call failed. The same reason is one event until something succeeds, whatever its words.
    pub fn failed(&self, service: &Service, (event, doing): Doing, error: &ProviderError) {
        tracing::debug!(service = service.key(), reason = error.reason, error = error.message, "{doing} failed");
        self.cloud.called(&service.key(), Some(error));
        self.once(service, EventType::Warning, event, &format!("Error {doing} load balancer: {error}"), &error.reason);
    }

    /// A call was answered.
    pub fn answered(&self, service: &Service) {
        self.cloud.called(&service.key(), None);
    }

    /// A plan failed, which changes nothing. Readiness says so where the reason concerns all.
    pub fn plan_failed(&self, service: &Service, error: &ProviderError) {
        tracing::debug!(service = service.key(), reason = error.reason, error = error.message, "a plan failed");
        self.cloud.called(&service.key(), Some(error));
    }

    /// The API server refused a write that belongs to a call.
    pub fn not_written(&self, service: &Service, (event, doing): Doing, error: &WriteError) {
        let message = format!("Error {doing} load balancer: the Service was not written: {error}");
        self.once(service, EventType::Warning, event, &message, "write");
    }

    /// What the provider wants the user to know although the call succeeded.
    pub fn warned(&self, service: &Service, warnings: &[Warning]) {
        for Warning { reason, message } in warnings {
            if self.is_new(service, reason, message) {
                self.publish(service, EventType::Warning, reason.clone(), message.clone());
            }
        }
    }

    /// A Service of ours is left unmanaged.
    pub fn left_unmanaged(&self, service: &Service, why: &LeftUnmanaged) {
        match why {
            LeftUnmanaged::Class(class) => {
                let class = if class.is_empty() { "the default class".to_owned() } else { format!("class {class:?}") };
                let message = format!(
                    "The load balancer stays as it is: {class} is not served any more; add it to --load-balancer-classes (or set \
                     --load-balancer-default-class), or remove the load balancer and the finalizer by hand"
                );
                self.once(service, EventType::Warning, events::LOAD_BALANCER_CLASS_NOT_SERVED, &message, "");
            }
            LeftUnmanaged::Unsupported => {
                let message = "The provider does not serve load balancers: everything stays as it is until one does";
                self.once(service, EventType::Warning, events::LOAD_BALANCERS_UNSUPPORTED, message, "");
            }
        }
    }

    /// The load balancer differs from the desired state.
    pub fn drifted(&self, service: &Service, changes: &[String], repair: bool) {
        self.metrics.drift_found.inc();
        let what = changes.join("; ");
        let then = if repair { "it is repaired" } else { "it stays so (--load-balancer-drift=report)" };
        let message = format!("The load balancer is not as it was made, and {then}. Ensure would: {what}");
        self.once(service, EventType::Warning, events::LOAD_BALANCER_DRIFT, &message, &what);
    }

    /// The Service is gone, or nothing is wrong any more.
    pub fn forget(&self, key: &str) {
        self.sent.forget(key);
        self.cloud.forget(key);
    }

    fn without_targets(&self, service: &Service, targets: usize) {
        if targets == 0 {
            let message = "There are no available nodes for LoadBalancer";
            self.once(service, EventType::Warning, events::UNAVAILABLE_LOAD_BALANCER, message, "");
        }
    }

    fn normal(&self, service: &Service, reason: &'static str, message: &str) {
        self.publish(service, EventType::Normal, reason.to_owned(), message.to_owned());
    }

    fn once(&self, service: &Service, event_type: EventType, reason: &'static str, message: &str, about: &str) {
        if self.is_new(service, reason, about) {
            if event_type == EventType::Warning {
                tracing::warn!(service = service.key(), reason, "{message}");
            }
            self.publish(service, event_type, reason.to_owned(), message.to_owned());
        }
    }

    fn is_new(&self, service: &Service, reason: &str, about: &str) -> bool {
        self.sent.is_new(&service.key(), &service.uid, (reason.to_owned(), about.to_owned()))
    }

    fn publish(&self, service: &Service, event_type: EventType, reason: String, message: String) {
        self.events.publish(Event { subject: service.into(), event_type, reason, message });
    }
}
