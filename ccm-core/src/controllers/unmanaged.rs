//! Reports which nodes an operator has left unmanaged by the annotation `ccm-core.dev/unmanaged`: an event at each change, and a
//! gauge. It decides nothing: each controller leaves such a node alone because of its ownership.
use std::collections::HashMap;
use std::sync::Arc;

use crate::cluster::events::{Event, EventType, Events};
use crate::cluster::nodes::Nodes;
use crate::model::node::Node;
use crate::names::{annotations, events};
use crate::telemetry::metrics::NodeMetrics;

/// Follows the nodes until it is dropped. Nodes that are unmanaged at the beginning are counted, and are no event.
pub async fn run(nodes: Nodes, events: Events, metrics: NodeMetrics) {
    nodes.synced().await;
    let mut changes = nodes.subscribe();
    let mut unmanaged = Unmanaged::of(&nodes.list());
    if !unmanaged.0.is_empty() {
        tracing::info!(nodes = unmanaged.0.len(), "nodes are left unmanaged by their annotation {}", annotations::UNMANAGED);
    }
    loop {
        metrics.unmanaged.set(i64::try_from(unmanaged.0.len()).unwrap_or(i64::MAX));
        let Some(name) = changes.recv().await else { return };
        if let Some(note) = unmanaged.see(&name, nodes.get(&name).as_deref()) {
            tracing::info!(node = name, reason = note.reason, "{}", note.message);
            events.publish(note);
        }
    }
}

/// The nodes that are unmanaged: UIDs by name.
struct Unmanaged(HashMap<String, String>);

impl Unmanaged {
    fn of(nodes: &[Arc<Node>]) -> Self {
        Self(nodes.iter().filter(|node| node.is_unmanaged()).map(|node| (node.name.clone(), node.uid.clone())).collect())
    }

    /// Takes a node as it is now, or that it is gone; answers the event of a change.
    fn see(&mut self, name: &str, node: Option<&Node>) -> Option<Event> {
        let before = self.0.remove(name);
        let node = node?;
        let was_unmanaged = before.is_some_and(|uid| uid == node.uid);
        if node.is_unmanaged() {
            self.0.insert(name.to_owned(), node.uid.clone());
        }
        (was_unmanaged != node.is_unmanaged()).then(|| note(node))
    }
}

fn note(node: &Node) -> Event {
    let (reason, message) = if node.is_unmanaged() {
        let effect = "ccm-core does not look up, change, count or delete this node, and takes it out of load balancers";
        (events::NODE_UNMANAGED, format!("The annotation {}=true is set: {effect}", annotations::UNMANAGED))
    } else {
        (
            events::NODE_MANAGED,
            format!("The annotation {}=true is gone: ccm-core manages this node again", annotations::UNMANAGED),
        )
    };
    Event { subject: node.into(), event_type: EventType::Normal, reason: reason.to_owned(), message }
}

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;
    use serde_json::json;
    use tokio::sync::mpsc;

    use super::*;
    use crate::cluster::scripted::model;

    fn node(name: &str, uid: &str, annotation: &str) -> Node {
        model(&json!({ "metadata": { "name": name, "uid": uid, "annotations": { annotations::UNMANAGED: annotation } } }))
    }

    fn unmanaged(name: &str) -> Node {
        node(name, "1", "true")
    }

    async fn is_next(notes: &mut mpsc::Receiver<Event>, name: &str, reason: &str) {
        let found = notes.recv().await.map(|note| (note.subject.name, note.reason));
        assert_eq!(found, Some((name.to_owned(), reason.to_owned())));
    }

    async fn counts(metrics: &NodeMetrics, expected: i64) {
        while metrics.unmanaged.get() != expected {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn each_change_of_the_annotation_is_one_event_and_the_gauge_counts_the_nodes_that_have_it() {
        let nodes = Nodes::fixed([unmanaged("old"), node("n", "1", "no")]);
        let (metrics, (events, mut notes)) = (NodeMetrics::new(&mut Registry::default()), Events::queue(10));
        let task = tokio::spawn(run(nodes.clone(), events, metrics.clone()));
        counts(&metrics, 1).await;
        nodes.show(unmanaged("n"));
        is_next(&mut notes, "n", events::NODE_UNMANAGED).await;
        nodes.show(Node { unschedulable: true, ..unmanaged("n") });
        nodes.show(unmanaged("joins"));
        is_next(&mut notes, "joins", events::NODE_UNMANAGED).await;
        counts(&metrics, 3).await;
        nodes.show(node("n", "1", "no"));
        is_next(&mut notes, "n", events::NODE_MANAGED).await;
        nodes.hide("joins");
        nodes.show(node("old", "another object", "no"));
        nodes.show(unmanaged("last"));
        is_next(&mut notes, "last", events::NODE_UNMANAGED).await;
        counts(&metrics, 1).await;
        task.abort();
    }
}
