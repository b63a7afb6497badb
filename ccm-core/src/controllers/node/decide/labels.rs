//! Which labels a node shall have. Which of them this controller wrote, and with which values, is kept in an annotation of
//! the node: only those are ever changed again, and none is removed. Pure.
use std::collections::BTreeMap;

use super::NodeWarning;
use crate::cluster::patch::NodePatch;
use crate::model::instance::Instance;
use crate::model::node::Node;
use crate::names::annotations::APPLIED_LABELS;
use crate::names::{events, labels};

/// GA labels, each with its deprecated twin.
const TWINS: [(&str, &str); 3] = [
    (labels::INSTANCE_TYPE, labels::INSTANCE_TYPE_BETA),
    (labels::ZONE, labels::ZONE_BETA),
    (labels::REGION, labels::REGION_BETA),
];

type Labels = BTreeMap<String, String>;

/// A label from the provider that was not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discarded {
    /// The label's key.
    pub key: String,
    /// Why.
    pub why: &'static str,
}

/// The labels of a node that is being initialised.
pub struct Initial {
    /// Labels and the annotation about them.
    pub patch: NodePatch,
    /// Those that were left out.
    pub discarded: Vec<Discarded>,
}

/// Labels at initialisation: instance type, zone and region are set whatever was there; others only where nothing was.
pub fn initial(node: &Node, instance: &Instance) -> Initial {
    let mut applied = applied(node).unwrap_or_default();
    applied.retain(|key, value| node.labels.get(key) == Some(value));
    let mut discarded = Vec::new();
    let mut written = well_known(instance);
    for (key, value) in &instance.additional_labels {
        match reason_to_discard(node, &applied, key, value) {
            Some(why) => discarded.push(Discarded { key: key.clone(), why }),
            None if node.labels.get(key) == Some(value) => {}
            None => drop(written.insert(key.clone(), value.clone())),
        }
    }
    applied.extend(written.clone());
    Initial { patch: patch(node, written, &applied), discarded }
}

fn well_known(instance: &Instance) -> Labels {
    let values = [&instance.instance_type, &instance.zone, &instance.region];
    let pairs =
        TWINS.into_iter().zip(values).filter_map(|(keys, value)| Some((keys, value.clone().filter(|value| !value.is_empty())?)));
    pairs.flat_map(|((ga, beta), value)| [(ga.to_owned(), value.clone()), (beta.to_owned(), value)]).collect()
}

fn reason_to_discard(node: &Node, applied: &Labels, key: &str, value: &str) -> Option<&'static str> {
    match node.labels.get(key) {
        _ if is_kubernetes_namespace(key) => Some("its namespace is reserved for Kubernetes"),
        Some(present) if present != value && !applied.contains_key(key) => Some("the node has another value for it"),
        _ => None,
    }
}

/// Whether the key's prefix is `kubernetes.io`, `k8s.io` or a domain below one of them.
fn is_kubernetes_namespace(key: &str) -> bool {
    let below =
        |prefix: &str, domain: &str| prefix.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    key.match_indices('/').any(|(slash, _)| ["kubernetes.io", "k8s.io"].iter().any(|domain| below(&key[..slash], domain)))
}

/// Afterwards: what this controller wrote follows the provider, zone and region excepted, and the deprecated twins follow
/// the GA labels. A node that this controller did not initialise is left alone.
pub fn reconciled(node: &Node, instance: Option<&Instance>) -> NodePatch {
    let Some(mut applied) = applied(node) else { return NodePatch::default() };
    let mut wanted = node.labels.clone();
    for (key, value) in instance.map(changeable).unwrap_or_default() {
        let ours = applied.get(&key).is_some_and(|written| node.labels.get(&key) == Some(written));
        if ours {
            wanted.insert(key, value);
        }
    }
    for (ga, beta) in TWINS {
        match (wanted.get(ga).cloned(), wanted.get(beta).cloned()) {
            (Some(value), Some(_)) => drop(wanted.insert(beta.to_owned(), value)),
            (None, Some(value)) => drop(wanted.insert(ga.to_owned(), value)),
            (_, None) => {}
        }
    }
    wanted.retain(|key, value| node.labels.get(key) != Some(value));
    if wanted.is_empty() {
        return NodePatch::default();
    }
    applied.extend(wanted.clone());
    patch(node, wanted, &applied)
}

/// What the provider may change after initialisation. A machine may be resized; it does not move.
fn changeable(instance: &Instance) -> Labels {
    let additional = instance.additional_labels.iter().filter(|(key, _)| !is_kubernetes_namespace(key));
    let mut labels: Labels = additional.map(|(key, value)| (key.clone(), value.clone())).collect();
    let placed = Instance { zone: None, region: None, ..instance.clone() };
    labels.extend(well_known(&placed));
    labels
}

/// Where the provider places the machine elsewhere than the node's labels do.
pub fn drift(node: &Node, instance: &Instance) -> Vec<NodeWarning> {
    let [_, zone, region] = TWINS;
    let drifts = [(zone, &instance.zone), (region, &instance.region)];
    drifts.into_iter().filter_map(|((ga, beta), value)| drifted(node, ga, beta, value.as_deref()?)).collect()
}

fn drifted(node: &Node, ga: &str, beta: &str, value: &str) -> Option<NodeWarning> {
    let present = node.labels.get(ga).or_else(|| node.labels.get(beta))?;
    (!value.is_empty() && present != value).then(|| {
        let message = format!(
            "label {ga} is {present:?} but the provider says {value:?}; the label stays, since volumes and Pods were \
             placed by it: if the machine moved, delete the node and let it join again"
        );
        NodeWarning::new(events::TOPOLOGY_DRIFT, message)
    })
}

/// What this controller wrote; `None` if it never did, or the annotation is not its own.
fn applied(node: &Node) -> Option<Labels> {
    serde_json::from_str(node.annotations.get(APPLIED_LABELS)?).ok()
}

/// Only what differs from the node.
fn patch(node: &Node, mut labels: Labels, applied: &Labels) -> NodePatch {
    labels.retain(|key, value| node.labels.get(key) != Some(value));
    let record = serde_json::json!(applied).to_string();
    let known = node.annotations.get(APPLIED_LABELS) == Some(&record);
    let annotations = if known { BTreeMap::new() } else { [(APPLIED_LABELS.to_owned(), record)].into() };
    NodePatch { labels, annotations, ..NodePatch::default() }
}
