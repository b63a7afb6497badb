//! The nodes of the cluster. Keys are their names.
use k8s_openapi::api::core::v1 as core;

use super::convert;
use super::view::{View, Viewed};
use crate::model::node::Node;

/// A view of all nodes. Clones share it.
pub type Nodes = View<Node>;

impl Viewed for Node {
    type Object = core::Node;
    const PLURAL: &'static str = "nodes";

    fn from_object(object: core::Node) -> Self {
        convert::node(object)
    }

    fn key(&self) -> String {
        self.name.clone()
    }
}
