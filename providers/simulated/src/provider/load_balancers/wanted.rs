//! What a Service asks for, in the words of the cloud: its ports, its annotations, its nodes. Pure. Whatever the user can
//! mend is refused by the path of its field or the key of its annotation.
use std::collections::HashMap;

use ccm_provider_sdk::{ProviderError, Result, v1};

use crate::cloud::load_balancers::model::{Family, IpMode, Listener, MAX_QPS, Mark, Protocol, Publish, Target, Targets, Wanted};

/// The prefix of everything that this provider reads and writes in Kubernetes.
pub const PREFIX: &str = "simulated.ccm-core.dev/";
/// The most queries a second.
pub const MAX_QPS_ANNOTATION: &str = "simulated.ccm-core.dev/load-balancer-max-qps";
/// The label of the nodes that shall be targets.
pub const NODE_LABEL_ANNOTATION: &str = "simulated.ccm-core.dev/load-balancer-node-label";
/// How clients are told to reach it.
pub const ADDRESS_ANNOTATION: &str = "simulated.ccm-core.dev/load-balancer-address";
/// How traffic arrives at targets.
pub const IP_MODE_ANNOTATION: &str = "simulated.ccm-core.dev/load-balancer-ip-mode";
/// Where the name is written.
pub const NAME_ANNOTATION: &str = "simulated.ccm-core.dev/load-balancer-name";

/// All that the Service asks for.
pub fn wanted(cluster: &v1::ClusterRef, service: &v1::Service, nodes: &[v1::Node]) -> Result<Wanted> {
    let annotations = &service.annotations;
    Ok(Wanted {
        mark: mark(cluster, service),
        ip_families: families(service),
        publish: one_of(annotations, ADDRESS_ANNOTATION, &[("ip", Publish::Ip), ("hostname", Publish::Hostname)])?
            .unwrap_or_default(),
        ip_mode: one_of(annotations, IP_MODE_ANNOTATION, &[("VIP", IpMode::Vip), ("Proxy", IpMode::Proxy)])?,
        listeners: service.ports.iter().enumerate().map(|(index, port)| listener(index, port)).collect::<Result<_>>()?,
        targets: targets(service, nodes)?,
        max_qps: max_qps(annotations)?,
    })
}

/// Whose the load balancer of the Service is.
pub fn mark(cluster: &v1::ClusterRef, service: &v1::Service) -> Mark {
    Mark {
        cluster_uid: cluster.uid.clone(),
        service_uid: service.uid.clone(),
        namespace: service.namespace.clone(),
        service: service.name.clone(),
    }
}

/// The nodes that the Service wants traffic sent to, initialised or not.
pub fn targets(service: &v1::Service, nodes: &[v1::Node]) -> Result<Targets> {
    let label = node_label(&service.annotations)?;
    let chosen = |node: &&v1::Node| label.is_none_or(|(key, value)| node.labels.get(key).is_some_and(|has| has == value));
    let target = |node: &v1::Node| Target { node: node.name.clone(), provider_id: node.provider_id.clone() };
    Ok(Targets::new(nodes.iter().filter(chosen).map(target).collect()))
}

/// What the user should know of a Service that gets its load balancer all the same.
pub fn warnings(service: &v1::Service) -> Vec<v1::Warning> {
    let asked = service.load_balancer_ip.as_deref().filter(|address| !address.is_empty());
    let warning = asked.map(|address| v1::Warning {
        reason: "LoadBalancerIPIgnored".into(),
        message: format!(
            "spec.loadBalancerIP {address} is ignored: this cloud chooses addresses itself, of 198.18.0.0/15 and 2001:db8::/32. \
             The field is deprecated; remove it"
        ),
    });
    warning.into_iter().collect()
}

fn families(service: &v1::Service) -> Vec<Family> {
    let family = |family| match family {
        v1::IpFamily::Ipv4 => Some(Family::IPv4),
        v1::IpFamily::Ipv6 => Some(Family::IPv6),
        v1::IpFamily::Unspecified => None,
    };
    let families: Vec<_> = service.ip_families().filter_map(family).collect();
    // An API server without dual stack leaves the field empty.
    if families.is_empty() { vec![Family::IPv4] } else { families }
}

fn listener(index: usize, port: &v1::ServicePort) -> Result<Listener> {
    let field = |name: &str| format!("ports[{index}].{name}");
    let protocol = match port.protocol() {
        v1::Protocol::Tcp => Protocol::Tcp,
        v1::Protocol::Udp => Protocol::Udp,
        v1::Protocol::Sctp => {
            let words = "this cloud balances TCP and UDP, not SCTP; remove the port, or use another protocol";
            return Err(ProviderError::user_configuration(&field("protocol"), words));
        }
        v1::Protocol::Unspecified => return Err(ProviderError::invalid_request(&field("protocol"), "required")),
    };
    let number = |name: &str, number: u32| {
        let number = u16::try_from(number).ok().filter(|number| *number > 0);
        number.ok_or_else(|| ProviderError::invalid_request(&field(name), "must be 1 to 65535"))
    };
    let node_port = port.node_port.map(|node_port| number("node_port", node_port)).transpose()?;
    Ok(Listener { port: number("port", port.port)?, protocol, node_port })
}

fn max_qps(annotations: &HashMap<String, String>) -> Result<Option<u32>> {
    let Some(text) = annotations.get(MAX_QPS_ANNOTATION) else { return Ok(None) };
    let max_qps = text.parse().ok().filter(|max_qps| (1..=MAX_QPS).contains(max_qps));
    let refusal = || ProviderError::user_configuration(MAX_QPS_ANNOTATION, format!("{text:?} is no number from 1 to {MAX_QPS}"));
    max_qps.map(Some).ok_or_else(refusal)
}

fn node_label(annotations: &HashMap<String, String>) -> Result<Option<(&str, &str)>> {
    let Some(text) = annotations.get(NODE_LABEL_ANNOTATION) else { return Ok(None) };
    let label = text.split_once('=').filter(|(key, _)| key.len() > PREFIX.len() && key.starts_with(PREFIX));
    let refusal = || {
        let words = format!("{text:?} must have the form KEY=VALUE, and KEY must begin with {PREFIX}");
        ProviderError::user_configuration(NODE_LABEL_ANNOTATION, words)
    };
    label.map(Some).ok_or_else(refusal)
}

fn one_of<T: Copy>(annotations: &HashMap<String, String>, key: &str, known: &[(&str, T)]) -> Result<Option<T>> {
    let Some(text) = annotations.get(key) else { return Ok(None) };
    let value = known.iter().find(|(word, _)| word == text).map(|(_, value)| *value);
    let words: Vec<_> = known.iter().map(|(word, _)| *word).collect();
    let refusal = || ProviderError::user_configuration(key, format!("{text:?} must be one of {}", words.join(", ")));
    value.map(Some).ok_or_else(refusal)
}

#[cfg(test)]
mod tests;
