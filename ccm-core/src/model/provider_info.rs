//! What a provider said of itself in the handshake.
use std::collections::{BTreeMap, BTreeSet};

/// What a provider may serve; see `Capability` in the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// Identity.Lead.
    Lead,
    /// Instances.BatchGetInstances.
    Instances,
    /// Instances.WatchInstances.
    WatchInstances,
    /// LoadBalancers.
    LoadBalancers,
    /// LoadBalancers.PutNodeSet.
    NodeSets,
    /// LoadBalancers.PlanLoadBalancer.
    PlanLoadBalancer,
    /// LoadBalancers.ListLoadBalancers.
    ListLoadBalancers,
    /// Routes.
    Routes,
    /// Zones.
    Zones,
}

/// A provider, as it described itself.
#[cfg_attr(test, derive(Default))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderInfo {
    /// Its permanent name.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// What it serves, as far as this core knows it.
    pub capabilities: BTreeSet<Capability>,
    /// The prefixes of `spec.providerID` that are its own; none is empty.
    pub provider_id_prefixes: Vec<String>,
    /// Which cloud is behind it.
    pub cloud_identity: String,
    /// Its own id of this cluster.
    pub cluster_id: Option<String>,
    /// What it can take at once.
    pub limits: Limits,
    /// The node labels that it reads.
    pub node_labels: KeySelector,
    /// The node annotations that it reads.
    pub node_annotations: KeySelector,
    /// The node taints that it reads.
    pub node_taints: KeySelector,
    /// The types of node conditions that it reads.
    pub node_conditions: BTreeSet<String>,
    /// The prefixes of Service annotations that it writes; none is empty.
    pub service_annotation_prefixes: Vec<String>,
}

impl ProviderInfo {
    /// Whether a providerID is this provider's.
    pub fn owns(&self, provider_id: &str) -> bool {
        self.provider_id_prefixes.iter().any(|prefix| provider_id.starts_with(prefix.as_str()))
    }
}

/// What a provider can take at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most items in one batch; at least 1.
    pub max_batch_size: usize,
    /// The most calls to Instances at one time; at least 1.
    pub max_concurrent_instance_calls: usize,
    /// The most calls to LoadBalancers at one time; at least 1.
    pub max_concurrent_load_balancer_calls: usize,
    /// The most calls to Routes at one time; at least 1.
    pub max_concurrent_route_calls: usize,
}

impl Default for Limits {
    /// What the contract says where a provider says nothing.
    fn default() -> Self {
        Self {
            max_batch_size: 100,
            max_concurrent_instance_calls: 4,
            max_concurrent_load_balancer_calls: 10,
            max_concurrent_route_calls: 4,
        }
    }
}

/// Keys and prefixes of labels or annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySelector {
    keys: BTreeSet<String>,
    prefixes: Vec<String>,
}

impl KeySelector {
    /// From the contract's form: a key that ends in `*` is a prefix.
    pub fn new(patterns: impl IntoIterator<Item = String>) -> Self {
        let mut selector = Self::default();
        for pattern in patterns {
            match pattern.strip_suffix('*') {
                Some(prefix) => selector.prefixes.push(prefix.to_owned()),
                None => drop(selector.keys.insert(pattern)),
            }
        }
        selector
    }

    /// The entries of a map whose keys are selected.
    pub fn select(&self, map: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        map.iter().filter(|(key, _)| self.matches(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Whether a key is selected.
    pub fn matches(&self, key: &str) -> bool {
        self.keys.contains(key) || self.prefixes.iter().any(|prefix| key.starts_with(prefix.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_selects_by_prefix_and_alone_everything() {
        let labels: BTreeMap<_, _> = ["a", "x/b", "x/c"].map(|key| (key.to_owned(), String::new())).into();
        let select = |patterns: &[&str]| {
            KeySelector::new(patterns.iter().map(ToString::to_string)).select(&labels).into_keys().collect::<Vec<_>>()
        };
        assert_eq!(select(&[]), Vec::<String>::new());
        assert_eq!(select(&["a", "missing"]), ["a"]);
        assert_eq!(select(&["x/*"]), ["x/b", "x/c"]);
        assert_eq!(select(&["*"]), ["a", "x/b", "x/c"]);
    }
}
