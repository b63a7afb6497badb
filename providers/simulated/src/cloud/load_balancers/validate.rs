//! What the cloud demands of a load balancer. A refusal names the field by its path (`listeners[1]`).
use super::model::{Listener, MAX_QPS, Wanted};
use crate::cloud::model::Failure;
use crate::cloud::validate::invalid;

/// The longest name: what fits into one label of a DNS name.
pub const LONGEST_NAME: usize = 63;

/// Checks a name and what it shall be.
pub fn wanted(name: &str, wanted: &Wanted) -> Result<(), Failure> {
    self::name("name", name)?;
    for (path, uid) in [("mark.clusterUid", &wanted.mark.cluster_uid), ("mark.serviceUid", &wanted.mark.service_uid)] {
        if uid.is_empty() {
            return Err(invalid(path, "is missing"));
        }
    }
    families(wanted)?;
    listeners(&wanted.listeners)?;
    max_qps("maxQps", wanted.max_qps)
}

/// Checks a name: letters, digits and dashes, at most 63. It becomes a part of DNS names and of paths.
pub fn name(path: &str, name: &str) -> Result<(), Failure> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(allowed) {
        return Ok(());
    }
    Err(invalid(path, &format!("{name:?} is no name of a load balancer: letters, digits and '-', at most {LONGEST_NAME}")))
}

/// Checks a maximum of queries a second.
pub fn max_qps(path: &str, max_qps: Option<u32>) -> Result<(), Failure> {
    match max_qps {
        Some(max_qps) if !(1..=MAX_QPS).contains(&max_qps) => Err(invalid(path, &format!("must be 1 to {MAX_QPS}"))),
        _ => Ok(()),
    }
}

fn families(wanted: &Wanted) -> Result<(), Failure> {
    match wanted.ip_families.as_slice() {
        [] => Err(invalid("ipFamilies", "must name at least one")),
        [first, second] if first == second => Err(invalid("ipFamilies", "names one twice")),
        [_] | [_, _] => Ok(()),
        _ => Err(invalid("ipFamilies", "names one twice")),
    }
}

fn listeners(listeners: &[Listener]) -> Result<(), Failure> {
    for (index, one) in listeners.iter().enumerate() {
        let path = format!("listeners[{index}]");
        if one.port == 0 || one.node_port == Some(0) {
            return Err(invalid(&path, "a port is 1 to 65535"));
        }
        if listeners[..index].iter().any(|other| (other.port, other.protocol) == (one.port, one.protocol)) {
            return Err(invalid(&path, &format!("{}/{} stands there already", one.port, one.protocol)));
        }
    }
    Ok(())
}
