//! Which addresses a node shall have: the provider's, with kubelet's hostname, as kubelet's `--node-ip` filters and orders
//! them. Pure.
use std::net::IpAddr;

use crate::model::instance::Instance;
use crate::model::node::{Address, AddressType, Node};
use crate::names::annotations;

/// What is wrong with the addresses that kubelet was told to use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeIpError {
    /// Not an IP address.
    #[error("{0:?} is not an IP address: correct kubelet's --node-ip")]
    Unparsable(String),
    /// Neither one address nor one of each family.
    #[error("must be one IP address, or one IPv4 and one IPv6 address separated by a comma: correct kubelet's --node-ip")]
    NotDualStack,
    /// `0.0.0.0` and `::` say nothing in a pair.
    #[error("a pair of addresses must not contain 0.0.0.0 or ::, correct kubelet's --node-ip")]
    Unspecified,
    /// The provider does not know it.
    #[error("the provider knows no address {0} of this machine: correct kubelet's --node-ip, or the machine's interfaces")]
    Unknown(IpAddr),
}

/// The addresses to write; `None` if the node's are right, or the provider knows none.
pub fn changed(node: &Node, instance: &Instance) -> Result<Option<Vec<Address>>, NodeIpError> {
    let mut wanted = Vec::new();
    add_missing(&mut wanted, &instance.addresses);
    let node_ip = node.annotations.get(annotations::PROVIDED_NODE_IP);
    if wanted.is_empty() && (node_ip.is_none() || !node.is_uninitialized()) {
        return Ok(None);
    }
    if let Some(node_ip) = node_ip {
        // It must be one of the machine's own addresses; kubelet's hostname proves nothing.
        by_node_ip(node_ip, &wanted)?;
    }
    if !wanted.iter().any(is_hostname) {
        wanted.extend(node.addresses.iter().filter(|address| is_hostname(address)).cloned());
    }
    if let Some(node_ip) = node_ip {
        wanted = by_node_ip(node_ip, &wanted)?;
    }
    Ok(Some(wanted).filter(|wanted| differ(node, wanted)))
}

fn is_hostname(address: &Address) -> bool {
    address.kind == AddressType::Hostname
}

/// Order matters until a node is initialised: it decides its primary family. Nothing follows a later change of it, so
/// that a provider whose order varies causes no writes.
pub(super) fn differ(node: &Node, wanted: &[Address]) -> bool {
    if node.is_uninitialized() { node.addresses != wanted } else { sorted(&node.addresses) != sorted(wanted) }
}

fn sorted(addresses: &[Address]) -> Vec<(AddressType, &str)> {
    let mut list: Vec<_> = addresses.iter().map(|address| (address.kind, address.value.as_str())).collect();
    list.sort_unstable();
    list
}

/// Appends those that are not there yet.
pub(super) fn add_missing(list: &mut Vec<Address>, more: &[Address]) {
    for address in more {
        if !list.contains(address) {
            list.push(address.clone());
        }
    }
}

/// Addresses that equal a node IP come first, in the order of the node IPs, and are then the only ones of their types.
pub(super) fn by_node_ip(node_ip: &str, addresses: &[Address]) -> Result<Vec<Address>, NodeIpError> {
    let mut chosen: Vec<Address> = Vec::new();
    for ip in parse_node_ips(node_ip)? {
        let before = chosen.len();
        chosen.extend(addresses.iter().filter(|address| parse_ip(&address.value) == Some(ip)).cloned());
        if chosen.len() == before {
            return Err(NodeIpError::Unknown(ip));
        }
    }
    let taken: Vec<_> = chosen.iter().map(|address| address.kind).collect();
    chosen.extend(addresses.iter().filter(|address| !taken.contains(&address.kind)).cloned());
    Ok(chosen)
}

fn parse_node_ips(text: &str) -> Result<Vec<IpAddr>, NodeIpError> {
    let parse = |part: &str| parse_ip(part).ok_or_else(|| NodeIpError::Unparsable(part.to_owned()));
    let ips: Vec<IpAddr> = text.split(',').map(parse).collect::<Result<_, _>>()?;
    match ips.as_slice() {
        [first, second] if first.is_ipv4() == second.is_ipv4() => Err(NodeIpError::NotDualStack),
        [first, second] if first.is_unspecified() || second.is_unspecified() => Err(NodeIpError::Unspecified),
        [_] | [_, _] => Ok(ips),
        _ => Err(NodeIpError::NotDualStack),
    }
}

/// As lenient as Kubernetes: leading zeros in IPv4 are decimal, and an IPv4-mapped IPv6 address is the IPv4 address.
fn parse_ip(text: &str) -> Option<IpAddr> {
    let (head, tail) = text.split_at(text.rfind(':').map_or(0, |colon| colon + 1));
    let tail =
        if tail.contains('.') { tail.split('.').map(without_zeros).collect::<Vec<_>>().join(".") } else { tail.to_owned() };
    format!("{head}{tail}").parse::<IpAddr>().ok().map(|ip| ip.to_canonical())
}

fn without_zeros(digits: &str) -> &str {
    match digits.trim_start_matches('0') {
        "" if !digits.is_empty() => "0",
        rest => rest,
    }
}
