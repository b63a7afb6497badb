//! What has to change for a load balancer to be as wanted. Pure. `ensure` acts on it and `plan` says it in words: neither can
//! know of a change that the other does not.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::cloud::load_balancers::model::{Family, IpMode, Listener, LoadBalancer, Protocol, Publish, Target, Wanted};

/// A change. In words it begins with a verb and names what it concerns: "add target node-7".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// There is none yet.
    Create(String),
    /// An address of a family more.
    AddFamily(Family),
    /// An address of a family less.
    RemoveFamily(Family),
    /// The same addresses in another order.
    ReorderFamilies(Vec<Family>),
    /// Another way in which clients are told to reach it.
    Publish(Publish),
    /// Another way in which traffic arrives at targets; `None` leaves that to Kubernetes.
    SetIpMode(Option<IpMode>),
    /// A port more.
    AddListener(Listener),
    /// A port less.
    RemoveListener(u16, Protocol),
    /// Another port on the targets: from the first to the second.
    MoveListener(u16, Protocol, Option<u16>, Option<u16>),
    /// A target more.
    AddTarget(String),
    /// A target less.
    RemoveTarget(String),
    /// Another machine of the same name.
    ReplaceTarget(String),
    /// A maximum of queries a second; `None` takes it away.
    SetMaxQps(Option<u32>),
}

/// The changes that make `present`, or nothing, be as wanted under this name. None means that all is as it shall be.
pub fn difference(name: &str, present: Option<&LoadBalancer>, wanted: &Wanted) -> Vec<Change> {
    let Some(present) = present.map(|present| &present.wanted) else { return vec![Change::Create(name.to_owned())] };
    let mut changes = families(&present.ip_families, &wanted.ip_families);
    changes.extend((present.publish != wanted.publish).then_some(Change::Publish(wanted.publish)));
    changes.extend((present.ip_mode != wanted.ip_mode).then_some(Change::SetIpMode(wanted.ip_mode)));
    changes.extend(listeners(&present.listeners, &wanted.listeners));
    changes.extend(targets(&present.targets.0, &wanted.targets.0));
    changes.extend((present.max_qps != wanted.max_qps).then_some(Change::SetMaxQps(wanted.max_qps)));
    changes
}

fn families(present: &[Family], wanted: &[Family]) -> Vec<Change> {
    let more = wanted.iter().filter(|family| !present.contains(family)).map(|family| Change::AddFamily(*family));
    let less = present.iter().filter(|family| !wanted.contains(family)).map(|family| Change::RemoveFamily(*family));
    let changes: Vec<_> = more.chain(less).collect();
    if changes.is_empty() && present != wanted { vec![Change::ReorderFamilies(wanted.to_vec())] } else { changes }
}

fn listeners(present: &[Listener], wanted: &[Listener]) -> Vec<Change> {
    let by_port =
        |listeners: &[Listener]| -> BTreeMap<_, _> { listeners.iter().map(|one| ((one.port, one.protocol), *one)).collect() };
    let (present, wanted) = (by_port(present), by_port(wanted));
    let changed = wanted.iter().filter_map(|(key, one)| match present.get(key) {
        None => Some(Change::AddListener(*one)),
        Some(old) if old == one => None,
        Some(old) => Some(Change::MoveListener(one.port, one.protocol, old.node_port, one.node_port)),
    });
    let less = present.keys().filter(|key| !wanted.contains_key(key)).map(|(port, of)| Change::RemoveListener(*port, *of));
    changed.chain(less).collect()
}

fn targets(present: &[Target], wanted: &[Target]) -> Vec<Change> {
    if present == wanted {
        return Vec::new();
    }
    let by_node = |targets: &'_ [Target]| -> BTreeMap<String, Option<String>> {
        targets.iter().map(|target| (target.node.clone(), target.provider_id.clone())).collect()
    };
    let (present, wanted) = (by_node(present), by_node(wanted));
    let nodes: BTreeSet<_> = present.keys().chain(wanted.keys()).collect();
    let change = |node: &String| match (present.get(node), wanted.get(node)) {
        (None, _) => Some(Change::AddTarget(node.clone())),
        (_, None) => Some(Change::RemoveTarget(node.clone())),
        (Some(old), Some(new)) => (old != new).then(|| Change::ReplaceTarget(node.clone())),
    };
    nodes.into_iter().filter_map(change).collect()
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(name) => write!(f, "create load balancer {name}"),
            Self::AddFamily(family) => write!(f, "add an {family} address"),
            Self::RemoveFamily(family) => write!(f, "remove the {family} address"),
            Self::ReorderFamilies(families) => {
                let families: Vec<_> = families.iter().map(Family::to_string).collect();
                write!(f, "order addresses as {}", families.join(", "))
            }
            Self::Publish(Publish::Ip) => f.write_str("publish addresses in place of a hostname"),
            Self::Publish(Publish::Hostname) => f.write_str("publish a hostname in place of addresses"),
            Self::SetIpMode(Some(mode)) => write!(f, "set IP mode to {mode}"),
            Self::SetIpMode(None) => f.write_str("remove IP mode"),
            Self::AddListener(Listener { port, protocol, node_port }) => {
                write!(f, "add listener {port}/{protocol} to node port {}", Port(*node_port))
            }
            Self::RemoveListener(port, protocol) => write!(f, "remove listener {port}/{protocol}"),
            Self::MoveListener(port, protocol, from, to) => {
                write!(f, "change listener {port}/{protocol} node port {} to {}", Port(*from), Port(*to))
            }
            Self::AddTarget(node) => write!(f, "add target {node}"),
            Self::RemoveTarget(node) => write!(f, "remove target {node}"),
            Self::ReplaceTarget(node) => write!(f, "replace target {node} by another machine of that name"),
            Self::SetMaxQps(Some(max_qps)) => write!(f, "set max QPS to {max_qps}"),
            Self::SetMaxQps(None) => f.write_str("remove max QPS"),
        }
    }
}

/// A port that there may be.
struct Port(Option<u16>);

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(port) => port.fmt(f),
            None => f.write_str("none"),
        }
    }
}

#[cfg(test)]
mod tests;
