//! Whose node a node is. Every controller decides by this one answer, and the writer of nodes asks for it again.
use super::node::Node;
use super::provider_info::ProviderInfo;

/// What a node is to a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// Its providerID has one of the provider's prefixes.
    Ours,
    /// It has no providerID. It may be initialised and tainted, and is never deleted.
    Unclaimed,
    /// Its providerID has none of the provider's prefixes.
    Foreign,
}

impl Ownership {
    /// Whether a controller may look the node up and write to it.
    pub fn is_managed(self) -> bool {
        matches!(self, Self::Ours | Self::Unclaimed)
    }

    /// Whether a controller may delete the node.
    pub fn is_deletable(self) -> bool {
        self == Self::Ours
    }

    /// For people: what is true of a node of this ownership.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Ours => "has a providerID of this provider",
            Self::Unclaimed => "has no providerID",
            Self::Foreign => "has a providerID with none of this provider's prefixes",
        }
    }
}

impl ProviderInfo {
    /// What a node is to this provider.
    pub fn ownership(&self, node: &Node) -> Ownership {
        match &node.provider_id {
            Some(id) if self.owns(id) => Ownership::Ours,
            Some(_) => Ownership::Foreign,
            None => Ownership::Unclaimed,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::scripted::model;
    use crate::names::taints;

    /// Ownership does not depend on the taint; what follows from it for a node that is not initialised is for each controller.
    #[test]
    fn ownership_follows_the_provider_id_whether_or_not_the_node_is_initialised() {
        let provider = ProviderInfo { provider_id_prefixes: vec!["sim://".into(), "sim2://".into()], ..ProviderInfo::default() };
        // providerID, ownership, written to, deleted
        let cases = [
            (Some("sim://a"), Ownership::Ours, true, true),
            (Some("sim2://a"), Ownership::Ours, true, true),
            (Some("sim3://a"), Ownership::Foreign, false, false),
            (Some("a-sim://a"), Ownership::Foreign, false, false),
            (Some(""), Ownership::Unclaimed, true, false),
            (None, Ownership::Unclaimed, true, false),
        ];
        for (provider_id, expected, managed, deletable) in cases {
            for taints in [json!([]), json!([{ "key": taints::UNINITIALIZED, "effect": "NoSchedule" }])] {
                let node = model(&json!({
                    "metadata": { "name": "a", "uid": "u" },
                    "spec": { "providerID": provider_id, "taints": taints },
                }));
                let found = provider.ownership(&node);
                let answers = (found, found.is_managed(), found.is_deletable());
                assert_eq!(answers, (expected, managed, deletable), "{provider_id:?} with taints {taints}");
            }
        }
    }
}
