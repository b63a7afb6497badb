//! Writes to Services: our finalizer, annotations, and the status with our condition. What others keep in the same lists stays.
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use kube::Client;
use kube::api::{GetParams, Patch};
use kube::core::Request;
use serde_json::{Map, Value, json};

use super::{WriteError, identity, params};
use crate::cluster::gate::Gate;
use crate::cluster::{answer, convert};
use crate::model::load_balancer::{Ingress, IpMode, LoadBalancerStatus, PortStatus, Protocol};
use crate::model::service::{Condition, Service};
use crate::names;

/// The longest message that a condition may have, in bytes.
const LONGEST_MESSAGE: usize = 32_768;

/// What changes of a Service's metadata, in one write; absent means "as it is".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServicePatch {
    /// Whether it shall have [`names::LOAD_BALANCER_FINALIZER`].
    pub finalizer: Option<bool>,
    /// Annotations to set, or with `None` to remove.
    pub annotations: BTreeMap<String, Option<String>>,
}

impl ServicePatch {
    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What changes of a Service's status, and of the annotations that go with it, in one write; absent means "as it is".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusPatch {
    /// The whole of `status.loadBalancer`.
    pub load_balancer: Option<LoadBalancerStatus>,
    /// Our condition.
    pub condition: Option<ConditionChange>,
    /// Annotations to set, or with `None` to remove: the API server takes metadata with the status.
    pub annotations: BTreeMap<String, Option<String>>,
}

impl StatusPatch {
    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What becomes of the condition [`names::LOAD_BALANCER_READY`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionChange {
    /// It is this. Times are kept in whole seconds, and a message of more than 32768 bytes is cut.
    Set(Condition),
    /// It goes.
    Remove,
}

/// The only way to write to Services.
#[derive(Clone)]
pub struct ServiceWriter {
    client: Client,
    gate: Gate,
}

impl ServiceWriter {
    /// A writer behind a gate.
    pub fn new(client: Client, gate: Gate) -> Self {
        Self { client, gate }
    }

    /// The gate, for those who want to know before they begin.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// This very Service as the API server has it now, past every cache; [`WriteError::Gone`] if there is none of its UID.
    pub async fn get(&self, service: &Service) -> Result<Service, WriteError> {
        let request = services(service).get(&service.name, &GetParams::default());
        let found = convert::service(answer::object(&self.client, request).await?);
        if found.uid == service.uid { Ok(found) } else { Err(WriteError::Gone) }
    }

    /// Changes finalizer and annotations at once, if the Service is still at the resourceVersion that was read. The answer to
    /// the removal of the last finalizer from a Service that is being deleted is the Service as it was then.
    pub async fn patch(&self, service: &Service, patch: &ServicePatch) -> Result<Service, WriteError> {
        self.gate.check_when_present().await?;
        let body = Patch::Strategic(metadata_body(service, patch));
        let request = services(service).patch(&service.name, &params(), &body);
        Ok(convert::service(answer::object(&self.client, request).await?))
    }

    /// Changes the status and annotations at once, if the Service is still at the resourceVersion that was read.
    pub async fn patch_status(&self, service: &Service, patch: &StatusPatch) -> Result<Service, WriteError> {
        self.gate.check_when_present().await?;
        let body = Patch::Strategic(status_body(service, patch));
        let request = services(service).patch_subresource("status", &service.name, &params(), &body);
        Ok(convert::service(answer::object(&self.client, request).await?))
    }
}

/// The Services beside this one.
fn services(service: &Service) -> Request {
    Request::new(format!("/api/v1/namespaces/{}/services", service.namespace))
}

/// Finalizers are merged one by one, so that those of others stay whatever happens to ours.
fn metadata_body(service: &Service, patch: &ServicePatch) -> Value {
    let mut metadata = identity(&service.uid, &service.resource_version);
    if let Some(wanted) = patch.finalizer {
        let list = if wanted { "finalizers" } else { "$deleteFromPrimitiveList/finalizers" };
        metadata.insert(list.into(), json!([names::LOAD_BALANCER_FINALIZER]));
    }
    put_annotations(&mut metadata, &patch.annotations);
    json!({ "metadata": metadata })
}

fn put_annotations(metadata: &mut Map<String, Value>, annotations: &BTreeMap<String, Option<String>>) {
    if !annotations.is_empty() {
        metadata.insert("annotations".into(), json!(annotations));
    }
}

fn status_body(service: &Service, patch: &StatusPatch) -> Value {
    let mut status = Map::new();
    if let Some(load_balancer) = &patch.load_balancer {
        status.insert("loadBalancer".into(), load_balancer_body(load_balancer));
    }
    match &patch.condition {
        Some(ConditionChange::Set(condition)) => {
            status.insert("conditions".into(), json!([condition_body(condition)]));
        }
        Some(ConditionChange::Remove) => {
            status.insert("conditions".into(), json!([{ "$patch": "delete", "type": names::LOAD_BALANCER_READY }]));
        }
        None => {}
    }
    let mut metadata = identity(&service.uid, &service.resource_version);
    put_annotations(&mut metadata, &patch.annotations);
    json!({ "metadata": metadata, "status": status })
}

/// As a whole: fields of an entry that we don't know must not outlive it.
fn load_balancer_body(status: &LoadBalancerStatus) -> Value {
    let mut body = Map::from_iter([("$patch".to_owned(), json!("replace"))]);
    if !status.ingress.is_empty() {
        body.insert("ingress".into(), status.ingress.iter().map(ingress_body).collect());
    }
    body.into()
}

fn ingress_body(ingress: &Ingress) -> Value {
    let mut body = match ingress.address.ip() {
        Some((ip, None)) => json!({ "ip": ip }),
        Some((ip, Some(IpMode::Vip))) => json!({ "ip": ip, "ipMode": "VIP" }),
        Some((ip, Some(IpMode::Proxy))) => json!({ "ip": ip, "ipMode": "Proxy" }),
        None => json!({}),
    };
    if let Some(name) = ingress.address.hostname() {
        body["hostname"] = json!(name);
    }
    if !ingress.ports.is_empty() {
        body["ports"] = ingress.ports.iter().map(port_body).collect();
    }
    body
}

fn port_body(status: &PortStatus) -> Value {
    let protocol = match status.protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::Sctp => "SCTP",
    };
    let mut body = json!({ "port": status.port, "protocol": protocol });
    if let Some(error) = &status.error {
        body["error"] = json!(error);
    }
    body
}

fn condition_body(condition: &Condition) -> Value {
    let mut body = json!({
        "type": names::LOAD_BALANCER_READY,
        "status": if condition.ready { "True" } else { "False" },
        "reason": condition.reason,
        "message": cut(&condition.message),
        "lastTransitionTime": condition.since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    });
    if condition.observed_generation > 0 {
        body["observedGeneration"] = json!(condition.observed_generation);
    }
    body
}

fn cut(message: &str) -> &str {
    &message[..message.floor_char_boundary(LONGEST_MESSAGE)]
}
