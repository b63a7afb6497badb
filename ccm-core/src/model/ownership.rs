//! Whose node a node is. Every controller decides by this one answer, and the writer of nodes asks for it again.
use super::node::Node;
use super::provider_info::ProviderInfo;
use crate::names::annotations;

/// What a node is to a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// Its providerID has one of the provider's prefixes.
    Ours,
    /// It has no providerID. It may be initialised and tainted, and is never deleted.
    Unclaimed,
    /// Its providerID has none of the provider's prefixes.
    Foreign,
    /// An operator has left it unmanaged by the annotation [`annotations::UNMANAGED`], whatever its providerID.
    Unmanaged,
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

    /// Whether load balancers may send traffic to the node. Machines that the provider does not know are its matter.
    pub fn is_target(self) -> bool {
        self != Self::Unmanaged
    }

    /// For people: what is true of a node of this ownership.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Ours => "has a providerID of this provider",
            Self::Unclaimed => "has no providerID",
            Self::Foreign => "has a providerID with none of this provider's prefixes",
            Self::Unmanaged => "has the annotation that leaves it unmanaged",
        }
    }
}

impl Node {
    /// Whether an operator has left the node unmanaged. No other value than `true` does.
    pub fn is_unmanaged(&self) -> bool {
        self.annotations.get(annotations::UNMANAGED).is_some_and(|value| value == "true")
    }
}

impl ProviderInfo {
    /// What a node is to this provider.
    pub fn ownership(&self, node: &Node) -> Ownership {
        match &node.provider_id {
            _ if node.is_unmanaged() => Ownership::Unmanaged,
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
    fn ownership_follows_the_provider_id_and_the_annotation_whether_or_not_the_node_is_initialised() {
        let provider = ProviderInfo { provider_id_prefixes: vec!["sim://".into(), "sim2://".into()], ..ProviderInfo::default() };
        // providerID, annotation, ownership, written to, deleted, a target
        let cases = [
            (Some("sim://a"), None, Ownership::Ours, true, true, true),
            (Some("sim2://a"), None, Ownership::Ours, true, true, true),
            (Some("sim3://a"), None, Ownership::Foreign, false, false, true),
            (Some("a-sim://a"), None, Ownership::Foreign, false, false, true),
            (Some(""), None, Ownership::Unclaimed, true, false, true),
            (None, None, Ownership::Unclaimed, true, false, true),
            (Some("sim://a"), Some("true"), Ownership::Unmanaged, false, false, false),
            (Some("sim3://a"), Some("true"), Ownership::Unmanaged, false, false, false),
            (None, Some("true"), Ownership::Unmanaged, false, false, false),
            (Some("sim://a"), Some("True"), Ownership::Ours, true, true, true),
            (None, Some(""), Ownership::Unclaimed, true, false, true),
        ];
        for (provider_id, annotation, expected, managed, deletable, target) in cases {
            for taints in [json!([]), json!([{ "key": taints::UNINITIALIZED, "effect": "NoSchedule" }])] {
                let mut node = model(&json!({
                    "metadata": { "name": "a", "uid": "u" },
                    "spec": { "providerID": provider_id, "taints": taints },
                }));
                node.annotations.extend(annotation.map(|value| (annotations::UNMANAGED.to_owned(), value.to_owned())));
                let found = provider.ownership(&node);
                let answers = (found, found.is_managed(), found.is_deletable(), found.is_target());
                assert_eq!(
                    answers,
                    (expected, managed, deletable, target),
                    "{provider_id:?} with {annotation:?} and taints {taints}"
                );
            }
        }
    }
}
