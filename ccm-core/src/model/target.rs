//! The nodes that load balancers may send traffic to, reduced to what the provider reads, and named by their content.
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::node::{Address, Condition, Node, Taint};
use super::provider_info::ProviderInfo;

/// A node, as a provider sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `spec.providerID`.
    pub provider_id: Option<String>,
    /// The labels that the provider requests.
    pub labels: BTreeMap<String, String>,
    /// The annotations that the provider requests.
    pub annotations: BTreeMap<String, String>,
    /// The taints that the provider requests; never with the time at which they were added.
    pub taints: Vec<Taint>,
    /// The conditions that the provider requests.
    pub conditions: Vec<Condition>,
    /// `status.addresses`.
    pub addresses: Vec<Address>,
    /// `spec.podCIDRs`.
    pub pod_cidrs: Vec<String>,
    /// `status.nodeInfo.systemUUID`.
    pub system_uuid: Option<String>,
    /// The zone by the node's labels.
    pub zone: Option<String>,
    /// The region by the node's labels.
    pub region: Option<String>,
}

impl Target {
    /// A node, without what this provider does not read.
    pub fn of(node: &Node, provider: &ProviderInfo) -> Self {
        let taints = node.taints.iter().filter(|taint| provider.node_taints.matches(&taint.key));
        let conditions = node.conditions.iter().filter(|condition| provider.node_conditions.contains(&condition.kind));
        Self {
            name: node.name.clone(),
            uid: node.uid.clone(),
            provider_id: node.provider_id.clone(),
            labels: provider.node_labels.select(&node.labels),
            annotations: provider.node_annotations.select(&node.annotations),
            taints: taints.map(|taint| Taint { time_added: None, ..taint.clone() }).collect(),
            conditions: conditions.cloned().collect(),
            addresses: node.addresses.clone(),
            pod_cidrs: node.pod_cidrs.clone(),
            system_uuid: node.system_uuid.clone(),
            zone: node.zone().map(str::to_owned),
            region: node.region().map(str::to_owned),
        }
    }
}

/// Targets, each once, sorted by name. Clones share them.
#[derive(Clone, Debug)]
pub struct TargetSet {
    hash: Arc<str>,
    targets: Arc<[Target]>,
}

impl TargetSet {
    /// A set of these, in whatever order they come.
    pub fn new(targets: impl IntoIterator<Item = Target>) -> Self {
        let mut targets: Vec<_> = targets.into_iter().collect();
        targets.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let mut content = Content(Sha256::new());
        targets.hash(&mut content);
        let hash = hexadecimal(&content.0.finalize()).into();
        Self { hash, targets: targets.into() }
    }

    /// The same for the same content, and opaque: 64 hexadecimal digits.
    pub fn hash(&self) -> &Arc<str> {
        &self.hash
    }

    /// The targets.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// Whether every target of another set is in this one, by name.
    pub fn contains(&self, other: &Self) -> bool {
        let has = |name: &str| self.targets.binary_search_by(|target| target.name.as_str().cmp(name)).is_ok();
        other.targets.iter().all(|target| has(&target.name))
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }
}

impl PartialEq for TargetSet {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Eq for TargetSet {}

fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Feeds the `Hash` of a value to a hash that is wide enough to be the set's name.
struct Content(Sha256);

impl Hasher for Content {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Never called: the name is the whole digest.
    fn finish(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::node::{ConditionStatus, NetworkUnavailable, Ready};
    use crate::model::provider_info::KeySelector;

    fn node(name: &str) -> Node {
        Node {
            name: name.to_owned(),
            uid: format!("uid-{name}"),
            resource_version: "1".to_owned(),
            created_at: jiff::Timestamp::UNIX_EPOCH,
            deleted_at: None,
            labels: BTreeMap::from([("asked".to_owned(), "1".to_owned()), ("other".to_owned(), "1".to_owned())]),
            annotations: BTreeMap::new(),
            provider_id: None,
            taints: vec![Taint { key: "t".to_owned(), value: None, effect: "NoSchedule".to_owned(), time_added: None }],
            unschedulable: false,
            ready: Ready::True,
            conditions: vec![Condition { kind: "Ready".to_owned(), status: ConditionStatus::True }],
            network_unavailable: NetworkUnavailable::Absent,
            pod_cidrs: Vec::new(),
            addresses: Vec::new(),
            system_uuid: None,
        }
    }

    fn hash(nodes: &[Node], provider: &ProviderInfo) -> Arc<str> {
        Arc::clone(TargetSet::new(nodes.iter().map(|node| Target::of(node, provider))).hash())
    }

    #[test]
    fn only_what_was_asked_for_changes_the_name_of_a_set() {
        let modest = ProviderInfo { node_labels: KeySelector::new(["asked".to_owned()]), ..ProviderInfo::default() };
        let curious = ProviderInfo {
            node_labels: KeySelector::new(["*".to_owned()]),
            node_taints: KeySelector::new(["*".to_owned()]),
            node_conditions: ["Ready".to_owned()].into(),
            ..ProviderInfo::default()
        };
        let changes: [fn(&mut Node); 3] = [
            |node| drop(node.labels.insert("other".to_owned(), "2".to_owned())),
            |node| node.taints.clear(),
            |node| node.conditions.clear(),
        ];
        for change in changes {
            let mut changed = node("a");
            change(&mut changed);
            assert_eq!(hash(&[node("a")], &modest), hash(&[changed.clone()], &modest));
            assert_ne!(hash(&[node("a")], &curious), hash(&[changed], &curious));
        }
    }

    #[test]
    fn the_order_in_which_nodes_come_does_not_matter_and_their_uid_does() {
        let provider = ProviderInfo::default();
        let again = Node { uid: "another".to_owned(), ..node("b") };
        assert_eq!(hash(&[node("a"), node("b")], &provider), hash(&[node("b"), node("a")], &provider));
        assert_ne!(hash(&[node("a"), node("b")], &provider), hash(&[node("a"), again], &provider));
    }
}
