//! What the cloud demands of what it is told, in its API as in its configuration. A refusal names the field by its path
//! (`instances[2].zone`). It decides nothing else.
use std::net::IpAddr;

use super::derive::Layout;
use super::model::{Address, AddressType, Failure, FailureCode, Spec, Volume};

/// The longest cloud identity that the protocol allows, in bytes.
const LONGEST_IDENTITY: usize = 256;

/// Checks a machine; `path` is where it stands.
pub fn spec(layout: &Layout, path: &str, spec: &Spec) -> Result<(), Failure> {
    name(&format!("{path}.name"), &spec.name)?;
    if let Some(zone) = &spec.zone {
        known_zone(layout, &format!("{path}.zone"), zone)?;
    }
    if spec.id.as_ref().is_some_and(|id| id.is_empty() || id.contains('/')) {
        return Err(invalid(&format!("{path}.id"), "must be a word without a slash"));
    }
    for (index, one) in spec.addresses.iter().enumerate() {
        address(&format!("{path}.addresses[{index}].address"), one)?;
    }
    for (index, one) in spec.pod_cidrs.iter().enumerate() {
        cidr(&format!("{path}.podCidrs[{index}]"), one)?;
    }
    Ok(())
}

/// Checks a disk.
pub fn volume(layout: &Layout, path: &str, volume: &Volume) -> Result<(), Failure> {
    if volume.id.is_empty() {
        return Err(invalid(&format!("{path}.id"), "is missing"));
    }
    known_zone(layout, &format!("{path}.zone"), &volume.zone)
}

/// Checks what names the cloud.
pub fn identity(path: &str, identity: &str) -> Result<(), Failure> {
    let fits = (1..=LONGEST_IDENTITY).contains(&identity.len());
    if fits { Ok(()) } else { Err(invalid(path, &format!("must have 1 to {LONGEST_IDENTITY} bytes"))) }
}

/// A refusal that names a field.
pub fn invalid(path: &str, problem: &str) -> Failure {
    Failure::new(FailureCode::Invalid, format!("{path}: {problem}"))
}

fn name(path: &str, name: &str) -> Result<(), Failure> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    match name {
        "" => Err(invalid(path, "is missing")),
        _ if name.len() <= 253 && name.chars().all(allowed) && name.starts_with(ends) && name.ends_with(ends) => Ok(()),
        _ => Err(invalid(path, &format!("{name:?} is no node name: lower-case letters, digits, '-' and '.', at most 253"))),
    }
}

fn known_zone(layout: &Layout, path: &str, zone: &str) -> Result<(), Failure> {
    if layout.zones.iter().any(|known| known == zone) {
        return Ok(());
    }
    Err(invalid(path, &format!("there is no zone {zone:?}; the zones are {}", layout.zones.join(", "))))
}

fn address(path: &str, address: &Address) -> Result<(), Failure> {
    let text = address.address.as_str();
    let is_ip = matches!(address.kind, AddressType::InternalIP | AddressType::ExternalIP);
    if is_ip && text.parse::<IpAddr>().is_err() {
        return Err(invalid(path, &format!("{text:?} is no IP address")));
    }
    if text.is_empty() { Err(invalid(path, "is missing")) } else { Ok(()) }
}

fn cidr(path: &str, text: &str) -> Result<(), Failure> {
    let parts = text.split_once('/').and_then(|(ip, bits)| Some((ip.parse::<IpAddr>().ok()?, bits.parse::<u8>().ok()?)));
    match parts {
        Some((IpAddr::V4(_), 0..=32) | (IpAddr::V6(_), 0..=128)) => Ok(()),
        _ => Err(invalid(path, &format!("{text:?} is no CIDR such as 10.244.1.0/24"))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_names_the_field() {
        let address = |kind, text: &str| Address { kind, address: text.to_owned() };
        let good = Spec::named("a");
        let bad_ip = vec![address(AddressType::Hostname, "a"), address(AddressType::InternalIP, "300.1.1.1")];
        let table = [
            (Spec::default(), "instances[2].name: is missing"),
            (Spec::named("Up"), "instances[2].name: \"Up\" is no node name"),
            (Spec { zone: Some("moon".into()), ..good.clone() }, "instances[2].zone: there is no zone"),
            (Spec { id: Some("a/b".into()), ..good.clone() }, "instances[2].id: must be"),
            (Spec { addresses: bad_ip, ..good.clone() }, "instances[2].addresses[1].address: \"300.1.1.1\""),
            (Spec { pod_cidrs: vec!["10.0.0.0/40".into()], ..good }, "instances[2].podCidrs[0]: \"10.0.0.0/40\""),
        ];
        for (case, expected) in table {
            let message = spec(&Layout::default(), "instances[2]", &case).unwrap_err().message;
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
