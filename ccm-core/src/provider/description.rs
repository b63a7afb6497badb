//! From the provider's description of itself to [`ProviderInfo`], or everything that is wrong with it at once.
use std::collections::BTreeSet;

use ccm_proto::v1;

use crate::model::provider_info::{Capability, KeySelector, Limits, ProviderInfo};

/// The longest name, the longest identity and the longest prefix of a providerID, in bytes.
const MAX_NAME: usize = 40;
const MAX_IDENTITY: usize = 256;
const MAX_PREFIX: usize = 256;

/// Everything that is wrong with a description, each with its field and its remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the provider's description of itself is not valid: {}", .0.join("; "))]
pub struct Problems(pub Vec<String>);

/// Reads the answer to the handshake.
pub fn read(response: v1::GetProviderInfoResponse) -> Result<ProviderInfo, Problems> {
    let Some(info) = response.info else {
        return Err(Problems(vec!["info is missing: the provider must describe itself".to_owned()]));
    };
    let problems: Vec<_> =
        [version(&info), name(&info), prefixes(&info), annotation_prefixes(&info), identity(&info), limits_problem(&info)]
            .into_iter()
            .flatten()
            .collect();
    if problems.is_empty() { Ok(model(info)) } else { Err(Problems(problems)) }
}

fn version(info: &v1::ProviderInfo) -> Option<String> {
    let (found, ours) = (&info.protocol_version, ccm_proto::PROTOCOL_VERSION);
    (found != ours).then(|| {
        format!("info.protocol_version: the provider speaks \"{found}\" and this core \"{ours}\": run a provider of protocol {ours}, or the core for {found}")
    })
}

fn name(info: &v1::ProviderInfo) -> Option<String> {
    let name = &info.name;
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let valid = name.len() <= MAX_NAME
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && edge(name.as_bytes().first())
        && edge(name.as_bytes().last());
    (!valid).then(|| {
        let shown: String = name.chars().take(80).collect();
        format!("info.name: \"{shown}\" is not a DNS label of at most {MAX_NAME} characters (a-z, 0-9 and -): the provider must give one, such as \"simulated\"")
    })
}

fn prefixes(info: &v1::ProviderInfo) -> Option<String> {
    let prefixes = &info.provider_id_prefixes;
    if let Some(bad) = prefixes.iter().position(|it| it.is_empty() || it.len() > MAX_PREFIX) {
        return Some(format!(
            "info.provider_id_prefixes[{bad}] is empty or longer than {MAX_PREFIX} bytes: an empty one would claim every node; give such as \"simulated://\""
        ));
    }
    (prefixes.is_empty() && capabilities(info).contains(&Capability::Instances)).then(|| {
        "info.provider_id_prefixes is empty although INSTANCES is listed: give the beginnings of the provider's own providerIDs, such as \"simulated://\"".to_owned()
    })
}

fn annotation_prefixes(info: &v1::ProviderInfo) -> Option<String> {
    let bad = info.service_annotation_prefixes.iter().position(String::is_empty)?;
    Some(format!(
        "info.service_annotation_prefixes[{bad}] is empty: it would let the provider write every annotation; give such as \"example.com/\""
    ))
}

fn identity(info: &v1::ProviderInfo) -> Option<String> {
    let found = &info.cloud_identity;
    (found.is_empty() || found.len() > MAX_IDENTITY).then(|| {
        format!(
            "info.cloud_identity must have 1 to {MAX_IDENTITY} bytes and has {}: give what names the cloud for good, such as endpoint, account and region",
            found.len()
        )
    })
}

fn limits_problem(info: &v1::ProviderInfo) -> Option<String> {
    let limits = info.limits?;
    let zero = [
        ("max_batch_size", limits.max_batch_size),
        ("max_concurrent_instance_calls", limits.max_concurrent_instance_calls),
        ("max_concurrent_load_balancer_calls", limits.max_concurrent_load_balancer_calls),
        ("max_concurrent_route_calls", limits.max_concurrent_route_calls),
    ];
    let (field, _) = zero.into_iter().find(|(_, limit)| *limit == Some(0))?;
    Some(format!("info.limits.{field} is 0: give at least 1, or leave it unset for the default"))
}

fn capabilities(info: &v1::ProviderInfo) -> BTreeSet<Capability> {
    info.capabilities().filter_map(capability).collect()
}

fn capability(wire: v1::Capability) -> Option<Capability> {
    match wire {
        v1::Capability::Lead => Some(Capability::Lead),
        v1::Capability::Instances => Some(Capability::Instances),
        v1::Capability::WatchInstances => Some(Capability::WatchInstances),
        v1::Capability::Zones => Some(Capability::Zones),
        v1::Capability::Routes => Some(Capability::Routes),
        v1::Capability::LoadBalancers => Some(Capability::LoadBalancers),
        v1::Capability::NodeSets => Some(Capability::NodeSets),
        v1::Capability::PlanLoadBalancer => Some(Capability::PlanLoadBalancer),
        v1::Capability::ListLoadBalancers => Some(Capability::ListLoadBalancers),
        _ => None,
    }
}

fn model(info: v1::ProviderInfo) -> ProviderInfo {
    ProviderInfo {
        capabilities: capabilities(&info),
        limits: limits(info.limits.unwrap_or_default()),
        name: info.name,
        version: info.version,
        provider_id_prefixes: info.provider_id_prefixes,
        cloud_identity: info.cloud_identity,
        cluster_id: info.cluster_id.filter(|id| !id.is_empty()),
        node_labels: KeySelector::new(info.node_labels),
        node_annotations: KeySelector::new(info.node_annotations),
        node_taints: KeySelector::new(info.node_taints),
        node_conditions: info.node_conditions.into_iter().collect(),
        service_annotation_prefixes: info.service_annotation_prefixes,
    }
}

fn limits(limits: v1::ProviderLimits) -> Limits {
    let usual = Limits::default();
    let or = |said: Option<u32>, usual| said.map_or(usual, |said| said as usize);
    Limits {
        max_batch_size: or(limits.max_batch_size, usual.max_batch_size),
        max_concurrent_instance_calls: or(limits.max_concurrent_instance_calls, usual.max_concurrent_instance_calls),
        max_concurrent_load_balancer_calls: or(
            limits.max_concurrent_load_balancer_calls,
            usual.max_concurrent_load_balancer_calls,
        ),
        max_concurrent_route_calls: or(limits.max_concurrent_route_calls, usual.max_concurrent_route_calls),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn good() -> v1::ProviderInfo {
        v1::ProviderInfo {
            name: "simulated".to_owned(),
            version: "1.2".to_owned(),
            protocol_version: "v1".to_owned(),
            capabilities: vec![1, 2, 0, 13, 999],
            provider_id_prefixes: vec!["simulated://".to_owned()],
            cloud_identity: "here".to_owned(),
            ..Default::default()
        }
    }

    fn read_info(info: v1::ProviderInfo) -> Result<ProviderInfo, Problems> {
        read(v1::GetProviderInfoResponse { info: Some(info) })
    }

    #[test]
    fn a_good_description_is_read_with_the_defaults_of_the_contract() {
        let info = read_info(good()).unwrap();
        assert_eq!(info.capabilities, [Capability::Lead, Capability::Instances].into(), "unknown ones are ignored");
        assert_eq!(info.limits, Limits::default());
    }

    #[test]
    fn every_problem_names_its_field() {
        let limits = v1::ProviderLimits { max_batch_size: Some(0), ..Default::default() };
        for (field, info) in [
            ("info.name", v1::ProviderInfo { name: String::new(), ..good() }),
            ("info.name", v1::ProviderInfo { name: "Cloud_1".to_owned(), ..good() }),
            ("info.name", v1::ProviderInfo { name: "-cloud".to_owned(), ..good() }),
            ("info.name", v1::ProviderInfo { name: "x".repeat(41), ..good() }),
            ("info.protocol_version", v1::ProviderInfo { protocol_version: "v2".to_owned(), ..good() }),
            ("info.provider_id_prefixes is empty", v1::ProviderInfo { provider_id_prefixes: vec![], ..good() }),
            (
                "info.provider_id_prefixes[1]",
                v1::ProviderInfo { provider_id_prefixes: vec!["a".to_owned(), String::new()], ..good() },
            ),
            ("info.cloud_identity", v1::ProviderInfo { cloud_identity: String::new(), ..good() }),
            ("info.cloud_identity", v1::ProviderInfo { cloud_identity: "x".repeat(257), ..good() }),
            (
                "info.service_annotation_prefixes[0]",
                v1::ProviderInfo { service_annotation_prefixes: vec![String::new()], ..good() },
            ),
            ("info.limits.max_batch_size", v1::ProviderInfo { limits: Some(limits), ..good() }),
        ] {
            let problems = read_info(info).unwrap_err().0;
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert!(problems[0].starts_with(field), "{} does not name {field}", problems[0]);
        }
    }

    #[test]
    fn all_problems_are_told_at_once() {
        assert_eq!(read_info(v1::ProviderInfo::default()).unwrap_err().0.len(), 3);
        assert!(read(v1::GetProviderInfoResponse { info: None }).is_err());
    }

    #[test]
    fn a_provider_without_instances_needs_no_prefixes() {
        assert!(read_info(v1::ProviderInfo { provider_id_prefixes: vec![], capabilities: vec![], ..good() }).is_ok());
    }
}
