//! What a provider answered about load balancers: an answer without its required fields is an error; a part of it that Kubernetes
//! would refuse is left out, with a warning.
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use ccm_proto::v1;
use v1::ensure_load_balancer_deleted_response::Outcome as DeleteOutcome;
use v1::ensure_load_balancer_response::Outcome as EnsureOutcome;
use v1::plan_load_balancer_response::Outcome as PlanOutcome;
use v1::update_load_balancer_response::Outcome as UpdateOutcome;

use super::reader::Reader;
use super::{invalid, poll_after, syntax};
use crate::model::load_balancer::{
    Ensured, Extras, Ingress, IngressAddress, IpMode, LoadBalancerStatus, OwnedLoadBalancer, Planned, PortStatus, Progress,
    Protocol,
};
use crate::model::provider_info::ProviderInfo;
use crate::provider::ProviderError;
use crate::provider::classify::shorten;

#[cfg(test)]
mod tests;

/// The annotations of the core itself begin so.
const OWN_ANNOTATIONS: &str = "ccm-core.dev/";
/// The longest value of an annotation, in bytes; all of an object's together may have 256 KiB.
const MAX_ANNOTATION: usize = 16 << 10;
/// The most changes of a plan that are passed on.
const MAX_CHANGES: usize = 100;

/// The answer of EnsureLoadBalancer.
pub fn ensured(response: v1::EnsureLoadBalancerResponse, info: &ProviderInfo) -> Result<Progress<Ensured>, ProviderError> {
    match response.outcome.ok_or_else(no_outcome)? {
        EnsureOutcome::Ready(it) => ready("ready", it, info).map(Progress::Done),
        EnsureOutcome::InProgress(it) => Ok(in_progress(&it)),
        EnsureOutcome::ImplementedElsewhere(it) => Ok(elsewhere(&it)),
    }
}

/// The answer of UpdateLoadBalancer.
pub fn updated(response: v1::UpdateLoadBalancerResponse, info: &ProviderInfo) -> Result<Progress<Extras>, ProviderError> {
    match response.outcome.ok_or_else(no_outcome)? {
        UpdateOutcome::Updated(it) => {
            let mut reader = Reader::new("updated");
            let annotations = reader.annotations(it.annotations, info);
            Ok(Progress::Done(Extras { annotations, warnings: reader.finish(it.warnings) }))
        }
        UpdateOutcome::InProgress(it) => Ok(in_progress(&it)),
        UpdateOutcome::ImplementedElsewhere(it) => Ok(elsewhere(&it)),
    }
}

/// The answer of EnsureLoadBalancerDeleted.
pub fn deleted(response: v1::EnsureLoadBalancerDeletedResponse) -> Result<Progress<()>, ProviderError> {
    match response.outcome.ok_or_else(no_outcome)? {
        DeleteOutcome::Done(_) => Ok(Progress::Done(())),
        DeleteOutcome::InProgress(it) => Ok(in_progress(&it)),
    }
}

/// The answer of PlanLoadBalancer.
pub fn planned(response: v1::PlanLoadBalancerResponse, info: &ProviderInfo) -> Result<Progress<Planned>, ProviderError> {
    match response.outcome.ok_or_else(no_outcome)? {
        PlanOutcome::Plan(it) if it.changes.is_empty() => {
            let as_is = v1::LoadBalancerReady { status: it.status, annotations: it.annotations, warnings: Vec::new() };
            Ok(Progress::Done(Planned::AsAsked(ready("plan", as_is, info)?)))
        }
        PlanOutcome::Plan(it) => {
            let changes = it.changes.iter().take(MAX_CHANGES).map(|change| shorten(change).to_owned());
            Ok(Progress::Done(Planned::Changes(changes.collect())))
        }
        PlanOutcome::InProgress(it) => Ok(in_progress(&it)),
        PlanOutcome::ImplementedElsewhere(it) => Ok(elsewhere(&it)),
    }
}

/// The messages of ListLoadBalancers, all of them. What is wrong with an address is logged: a load balancer counts without it.
pub fn owned(messages: Vec<v1::ListLoadBalancersResponse>) -> Result<Vec<OwnedLoadBalancer>, ProviderError> {
    messages.into_iter().flat_map(|it| it.load_balancers).enumerate().map(|(index, it)| one_owned(index, it)).collect()
}

fn one_owned(index: usize, wire: v1::OwnedLoadBalancer) -> Result<OwnedLoadBalancer, ProviderError> {
    let path = format!("load_balancers[{index}]");
    if wire.name.is_empty() {
        return Err(invalid(&format!("{path}.name"), "is missing"));
    }
    let mut reader = Reader::new(&path);
    let status = LoadBalancerStatus { ingress: reader.all_ingress(wire.status.unwrap_or_default()) };
    for warning in reader.finish(Vec::new()) {
        tracing::warn!(load_balancer = wire.name, "{}", warning.message);
    }
    let said = |text: Option<String>| text.filter(|it| !it.is_empty());
    Ok(OwnedLoadBalancer {
        name: wire.name,
        service_uid: said(wire.service_uid),
        service_namespace: said(wire.service_namespace),
        service_name: said(wire.service_name),
        status,
    })
}

fn no_outcome() -> ProviderError {
    invalid("outcome", "is missing, or not one that this core knows")
}

fn in_progress<T>(wire: &v1::InProgress) -> Progress<T> {
    Progress::InProgress { poll_after: poll_after(wire), message: shorten(&wire.message).to_owned() }
}

fn elsewhere<T>(wire: &v1::ImplementedElsewhere) -> Progress<T> {
    Progress::ImplementedElsewhere(shorten(&wire.message).to_owned())
}

fn ready(path: &str, wire: v1::LoadBalancerReady, info: &ProviderInfo) -> Result<Ensured, ProviderError> {
    let mut reader = Reader::new(path);
    let wire_status =
        wire.status.ok_or_else(|| invalid(&reader.at("status"), "is missing: the load balancer's addresses are"))?;
    let (said, ingress) = (wire_status.ingress.len(), reader.all_ingress(wire_status));
    let annotations = reader.annotations(wire.annotations, info);
    let at = reader.at("status.ingress");
    let warnings = reader.finish(wire.warnings);
    // An answer without a usable address must not remove the Service's addresses.
    if said == 0 {
        return Err(invalid(&at, "is empty: while there is no address the answer is in_progress"));
    }
    if ingress.is_empty() {
        let first = warnings.first().map_or("", |it| it.message.as_str());
        return Err(invalid(&at, &format!("not one of {said} can be used ({first})")));
    }
    Ok(Ensured { status: LoadBalancerStatus { ingress }, extras: Extras { warnings, annotations } })
}

impl Reader<'_> {
    fn all_ingress(&mut self, wire: v1::LoadBalancerStatus) -> Vec<Ingress> {
        wire.ingress.into_iter().enumerate().filter_map(|(index, it)| self.ingress(index, it)).collect()
    }

    fn ingress(&mut self, index: usize, wire: v1::LoadBalancerIngress) -> Option<Ingress> {
        let at = format!("status.ingress[{index}]");
        if wire.ip.is_none() && wire.hostname.is_none() {
            self.drop(&at, "has neither ip nor hostname");
        }
        let ip = wire.ip.and_then(|ip| self.ip(&at, &ip)).map(|ip| (ip, self.ip_mode(&at, wire.ip_mode)));
        let hostname = wire.hostname.and_then(|name| self.hostname(&at, &name));
        let unset = wire.ip_mode == i32::from(v1::LoadBalancerIpMode::Unspecified);
        let address = IngressAddress::of(ip, hostname)?;
        if address.ip().is_none() && !unset {
            self.drop(format!("{at}.ip_mode"), "is for ip only, and there is no ip");
        }
        let ports = wire.ports.into_iter().enumerate();
        let ports = ports.filter_map(|(index, it)| self.port(&format!("{at}.ports[{index}]"), it)).collect();
        Some(Ingress { address, ports })
    }

    fn ip(&mut self, at: &str, text: &str) -> Option<IpAddr> {
        self.passes(format!("{at}.ip"), text, syntax::ip(text));
        text.parse::<IpAddr>().ok().map(|it| it.to_canonical())
    }

    fn ip_mode(&mut self, at: &str, wire: i32) -> Option<IpMode> {
        match v1::LoadBalancerIpMode::try_from(wire) {
            Ok(v1::LoadBalancerIpMode::Unspecified) => None,
            Ok(v1::LoadBalancerIpMode::Vip) => Some(IpMode::Vip),
            Ok(v1::LoadBalancerIpMode::Proxy) => Some(IpMode::Proxy),
            Err(_) => {
                self.drop(format!("{at}.ip_mode"), "is not one that this core knows");
                None
            }
        }
    }

    /// Case and a closing dot mean nothing in DNS, and Kubernetes takes neither.
    fn hostname(&mut self, at: &str, text: &str) -> Option<String> {
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        self.passes(format!("{at}.hostname"), text, syntax::hostname(&name)).then_some(name)
    }

    /// A port whose error is invalid is left out completely: without its error it would seem to work.
    fn port(&mut self, at: &str, wire: v1::PortStatus) -> Option<PortStatus> {
        let Some(port) = u16::try_from(wire.port).ok().filter(|port| *port > 0) else {
            self.drop(format!("{at}.port"), &format!("{} is not a port", wire.port));
            return None;
        };
        let Some(protocol) = protocol(wire.protocol) else {
            self.drop(format!("{at}.protocol"), "is not set, or not one that this core knows");
            return None;
        };
        let error = wire.error.filter(|it| !it.is_empty());
        let told = error.as_ref().is_none_or(|it| self.passes(format!("{at}.error"), it, syntax::port_error(it)));
        told.then_some(PortStatus { port, protocol, error })
    }

    fn annotations(&mut self, wire: HashMap<String, String>, info: &ProviderInfo) -> BTreeMap<String, String> {
        let mut annotations: BTreeMap<_, _> = wire.into_iter().collect();
        annotations.retain(|key, value| self.passes("annotations", key, annotation(key, value, info)));
        annotations
    }
}

fn annotation(key: &str, value: &str, info: &ProviderInfo) -> Result<(), &'static str> {
    if key.starts_with(OWN_ANNOTATIONS) {
        return Err("is the core's own");
    }
    if !info.service_annotation_prefixes.iter().any(|prefix| key.starts_with(prefix.as_str())) {
        return Err("begins with none of the declared service_annotation_prefixes");
    }
    if value.len() > MAX_ANNOTATION {
        return Err("has a value of more than 16 KiB");
    }
    syntax::label_key(key).map_err(|_| "is not an annotation's key")
}

fn protocol(wire: i32) -> Option<Protocol> {
    match v1::Protocol::try_from(wire).ok()? {
        v1::Protocol::Unspecified => None,
        v1::Protocol::Tcp => Some(Protocol::Tcp),
        v1::Protocol::Udp => Some(Protocol::Udp),
        v1::Protocol::Sctp => Some(Protocol::Sctp),
    }
}
