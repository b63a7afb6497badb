//! The node sets that the core has sent, the latest few by use. A set is opaque here: nothing checks that a hash fits it.
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;

use ccm_proto::v1::{ErrorReason, Node, NodeSetRef, node_set_ref};
use parking_lot::Mutex;
use tonic::Code;

use crate::error::ProviderError;
use crate::provider::Result;

/// How many sets are kept, as the contract says.
const KEPT: usize = 8;

/// Sets by hash, the one used last at the back.
#[derive(Default)]
pub(crate) struct NodeSets {
    sets: Mutex<VecDeque<(String, Arc<[Node]>)>>,
}

/// The nodes of a call. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    hash: Option<String>,
    nodes: Arc<[Node]>,
}

impl Deref for Nodes {
    type Target = [Node];

    fn deref(&self) -> &[Node] {
        &self.nodes
    }
}

impl PartialEq for Nodes {
    /// Two hashes are as good as what they stand for.
    fn eq(&self, other: &Self) -> bool {
        match (&self.hash, &other.hash) {
            (Some(one), Some(other)) => one == other,
            _ => self.nodes == other.nodes,
        }
    }
}

/// What a call says of its nodes: a matter of its shape, whichever sets are kept.
pub(crate) fn required_set(nodes: Option<NodeSetRef>) -> Result<node_set_ref::Set> {
    nodes.and_then(|nodes| nodes.set).ok_or_else(|| ProviderError::invalid_request("nodes.set", "required"))
}

impl NodeSets {
    /// Keeps a set, and forgets the one that was not used for longest if there are too many.
    pub(crate) fn put(&self, hash: String, nodes: Vec<Node>) {
        let mut sets = self.sets.lock();
        sets.retain(|(kept, _)| *kept != hash);
        sets.push_back((hash, nodes.into()));
        while sets.len() > KEPT {
            sets.pop_front();
        }
    }

    /// The nodes of a call, inline or by hash.
    pub(crate) fn resolve(&self, set: node_set_ref::Set) -> Result<Nodes> {
        match set {
            node_set_ref::Set::Hash(hash) => self.get(&hash).map(|nodes| Nodes { hash: Some(hash), nodes }),
            node_set_ref::Set::Inline(set) => Ok(Nodes { hash: None, nodes: set.nodes.into() }),
        }
    }

    fn get(&self, hash: &str) -> Result<Arc<[Node]>> {
        let mut sets = self.sets.lock();
        let at = sets.iter().position(|(kept, _)| kept == hash);
        let Some(entry) = at.and_then(|at| sets.remove(at)) else {
            let message = format!("no node set {hash:?} is kept here: send it by PutNodeSet");
            return Err(ProviderError::new(Code::FailedPrecondition, ErrorReason::NodeSetUnknown, message));
        };
        let nodes = Arc::clone(&entry.1);
        sets.push_back(entry);
        Ok(nodes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_set_that_was_not_used_for_longest_goes_first() {
        let sets = NodeSets::default();
        for number in 0..KEPT {
            sets.put(number.to_string(), Vec::new());
        }
        sets.get("0").unwrap();
        sets.put("one more".into(), Vec::new());

        assert!(sets.get("0").is_ok());
        assert_eq!(sets.get("1").unwrap_err().reason, ErrorReason::NodeSetUnknown);
    }

    #[test]
    fn a_set_that_is_sent_again_takes_no_second_place() {
        let sets = NodeSets::default();
        sets.put("a".into(), Vec::new());
        for _ in 0..KEPT {
            sets.put("b".into(), vec![Node::default()]);
        }

        assert_eq!(sets.get("b").unwrap().len(), 1);
        assert!(sets.get("a").is_ok());
    }
}
