//! Which nodes somebody means to remove: cordoned, or tainted by cluster-autoscaler, while they were Ready. Pure: the time is an
//! argument. A mark on a node that was not Ready says nothing, since automation cordons what it finds broken.
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;

use crate::model::node::{Node, Ready};
use crate::names;

/// Whether a node bears a mark at all.
pub(super) fn is_marked(node: &Node) -> bool {
    node.unschedulable || node.has_taint(names::taints::TO_BE_DELETED)
}

/// The marks that this leadership term saw on Ready nodes, by the node's name.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks(HashMap<String, Mark>);

#[derive(Clone, Debug)]
struct Mark {
    uid: String,
    seen_at: Timestamp,
}

impl Marks {
    /// Takes in how a node is now. To be called for every change that the watch shows.
    pub fn see(&mut self, node: &Node, now: Timestamp) {
        if self.0.is_empty() && !is_marked(node) {
            return;
        }
        let known = self.0.get(&node.name).is_some_and(|mark| mark.uid == node.uid);
        if !is_marked(node) || (!known && node.ready != Ready::True) {
            self.0.remove(&node.name);
        } else if !known {
            self.0.insert(node.name.clone(), Mark { uid: node.uid.clone(), seen_at: now });
        }
    }

    /// Takes in all nodes at once, and forgets those that are gone.
    pub fn see_all(&mut self, nodes: &[Arc<Node>], now: Timestamp) {
        if !self.0.is_empty() {
            let present: HashSet<_> = nodes.iter().map(|node| node.name.as_str()).collect();
            self.0.retain(|name, _| present.contains(name.as_str()));
        }
        nodes.iter().for_each(|node| self.see(node, now));
    }

    /// When the node's present mark was first seen while the node was Ready.
    pub fn seen_at(&self, node: &Node) -> Option<Timestamp> {
        self.0.get(&node.name).filter(|mark| mark.uid == node.uid).map(|mark| mark.seen_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::node_lifecycle::fixtures::{at, cordoned, node, ready};

    /// What the watch shows, one after another, and whether the mark counts in the end.
    #[test]
    fn a_mark_counts_only_if_it_was_seen_while_the_node_was_ready() {
        let plain = || node("n", "a");
        let other = || Node { uid: "other".to_owned(), ..plain() };
        let cases = [
            ("cordoned while Ready", vec![ready(plain()), cordoned(ready(plain())), cordoned(plain())], true),
            ("cordoned while not Ready", vec![ready(plain()), plain(), cordoned(plain())], false),
            ("Ready again with the mark", vec![cordoned(plain()), cordoned(ready(plain())), cordoned(plain())], true),
            ("uncordoned", vec![cordoned(ready(plain())), ready(plain()), plain()], false),
            ("uncordoned, and cordoned when not Ready", vec![cordoned(ready(plain())), plain(), cordoned(plain())], false),
            ("another object of that name", vec![cordoned(ready(other())), cordoned(plain())], false),
        ];
        for (name, shown, counts) in cases {
            let mut marks = Marks::default();
            shown.iter().for_each(|node| marks.see(node, at(0)));
            assert_eq!(marks.seen_at(&plain()).is_some(), counts, "{name}");
        }
    }

    #[test]
    fn a_mark_is_as_old_as_its_first_sight_and_goes_with_the_node() {
        let (mut marks, marked) = (Marks::default(), Arc::new(cordoned(ready(node("n", "a")))));
        marks.see_all(&[Arc::clone(&marked)], at(0));
        marks.see_all(&[Arc::clone(&marked)], at(60));
        assert_eq!(marks.seen_at(&marked), Some(at(0)));
        marks.see_all(&[], at(70));
        marks.see_all(&[Arc::new(cordoned(node("n", "a")))], at(80));
        assert_eq!(marks.seen_at(&marked), None);
    }
}
