//! A machine as a provider described it: what Kubernetes would refuse is left out, with a warning.
use std::collections::BTreeMap;

use ccm_proto::v1;
use ipnet::IpNet;

use crate::model::instance::{Instance, InstanceState};
use crate::model::node::{Address, AddressType};
use crate::model::provider_info::ProviderInfo;

use super::reader::Reader;
use super::{MAX_PROVIDER_ID, invalid, syntax};
use crate::provider::ProviderError;

/// The most labels that a provider can add to a node. They and an annotation about them are written to it.
const MAX_LABELS: usize = 100;

/// Reads one; `path` is its path in the response.
pub fn read(path: &str, wire: v1::Instance, info: &ProviderInfo) -> Result<Instance, ProviderError> {
    let state = state(&wire).ok_or_else(|| invalid(&format!("{path}.state"), "is not set, or not one that this core knows"))?;
    let provider_id = provider_id(path, wire.provider_id, info)?;
    let mut reader = Reader::new(path);
    let instance = Instance {
        provider_id,
        state,
        instance_type: reader.label("instance_type", wire.instance_type),
        zone: reader.label("zone", wire.zone),
        region: reader.label("region", wire.region),
        addresses: reader.addresses(wire.addresses),
        additional_labels: reader.labels(wire.additional_labels.into_iter().collect()),
        pod_cidrs: reader.pod_cidrs(wire.pod_cidrs),
        warnings: Vec::new(),
    };
    Ok(Instance { warnings: reader.finish(wire.warnings), ..instance })
}

/// Where a machine is, from `GetZone`.
pub fn set_zone(instance: &mut Instance, zone: v1::Zone) {
    let mut reader = Reader::new("zone");
    instance.zone = reader.label("zone", zone.zone);
    instance.region = reader.label("region", zone.region);
    instance.warnings.extend(reader.finish(Vec::new()));
}

fn state(wire: &v1::Instance) -> Option<InstanceState> {
    match v1::InstanceState::try_from(wire.state).ok()? {
        v1::InstanceState::Unspecified => None,
        v1::InstanceState::Pending => Some(InstanceState::Pending),
        v1::InstanceState::Running => Some(InstanceState::Running),
        v1::InstanceState::Stopped => Some(InstanceState::Stopped),
        v1::InstanceState::Deleted => Some(InstanceState::Deleted),
    }
}

fn provider_id(path: &str, id: String, info: &ProviderInfo) -> Result<Option<String>, ProviderError> {
    let path = format!("{path}.provider_id");
    if id.len() > MAX_PROVIDER_ID {
        return Err(invalid(&path, &format!("is longer than {MAX_PROVIDER_ID} bytes")));
    }
    if !id.is_empty() && !info.owns(&id) {
        let prefixes = info.provider_id_prefixes.join("\", \"");
        return Err(invalid(&path, &format!("\"{id}\" begins with none of the provider's own prefixes (\"{prefixes}\")")));
    }
    Ok((!id.is_empty()).then_some(id))
}

impl Reader<'_> {
    fn label(&mut self, field: &str, value: Option<String>) -> Option<String> {
        value.filter(|it| !it.is_empty()).filter(|it| self.passes(field, it, syntax::label_value(it)))
    }

    fn labels(&mut self, mut labels: BTreeMap<String, String>) -> BTreeMap<String, String> {
        labels.retain(|key, value| {
            self.passes("additional_labels", key, syntax::label_key(key))
                && self.passes(format!("additional_labels[\"{key}\"]"), value, syntax::label_value(value))
        });
        if labels.len() > MAX_LABELS {
            self.drop(
                "additional_labels",
                &format!("has {} labels where {MAX_LABELS} are taken, the first by key", labels.len()),
            );
        }
        labels.into_iter().take(MAX_LABELS).collect()
    }

    fn addresses(&mut self, wire: Vec<v1::NodeAddress>) -> Vec<Address> {
        wire.into_iter().enumerate().filter_map(|(index, it)| self.address(index, it)).collect()
    }

    fn address(&mut self, index: usize, wire: v1::NodeAddress) -> Option<Address> {
        let Some(kind) = address_type(&wire) else {
            self.drop(format!("addresses[{index}].type"), "is not set, or not one that this core knows");
            return None;
        };
        let check = match kind {
            AddressType::InternalIp | AddressType::ExternalIp => syntax::ip(&wire.address),
            AddressType::Hostname | AddressType::InternalDns | AddressType::ExternalDns => syntax::dns_name(&wire.address),
        };
        let passes = self.passes(format!("addresses[{index}].address"), &wire.address, check);
        passes.then_some(Address { kind, value: wire.address })
    }

    fn pod_cidrs(&mut self, cidrs: Vec<String>) -> Vec<String> {
        let check = |text: &str| text.parse::<IpNet>().map(drop).map_err(|_| "is not a CIDR");
        let kept = cidrs.into_iter().enumerate().filter(|(index, it)| self.passes(format!("pod_cidrs[{index}]"), it, check(it)));
        kept.map(|(_, it)| it).collect()
    }
}

/// None if it is not set, or not one that this core knows.
pub(super) fn address_type(wire: &v1::NodeAddress) -> Option<AddressType> {
    match v1::NodeAddressType::try_from(wire.r#type).ok()? {
        v1::NodeAddressType::Unspecified => None,
        v1::NodeAddressType::Hostname => Some(AddressType::Hostname),
        v1::NodeAddressType::InternalIp => Some(AddressType::InternalIp),
        v1::NodeAddressType::ExternalIp => Some(AddressType::ExternalIp),
        v1::NodeAddressType::InternalDns => Some(AddressType::InternalDns),
        v1::NodeAddressType::ExternalDns => Some(AddressType::ExternalDns),
    }
}
