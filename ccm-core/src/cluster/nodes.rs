//! The nodes of the cluster. Keys are their names.
use kube::{Client, Error};

use super::answer::Item;
use super::pages::{self, Pages};
use super::view::{View, Viewed};
use super::{convert, wire};
use crate::model::node::Node;

/// A view of all nodes. Clones share it.
pub type Nodes = View<Node>;

impl Viewed for Node {
    type Object = wire::node::Node;
    const PATH: &'static str = "/api/v1/nodes";
    const PLURAL: &'static str = "nodes";

    fn from_object(object: wire::node::Node) -> Self {
        convert::node(object)
    }

    fn key(&self) -> String {
        self.name.clone()
    }

    fn version(&self) -> &str {
        &self.resource_version
    }
}

/// All nodes of the cluster, past every cache.
pub async fn all(client: &Client) -> Result<Vec<Node>, Error> {
    pages::all(client, Node::PATH, convert::node).await
}

/// Whether the API server has a node with this annotation, past every cache. One that cannot be read has none.
pub async fn any_is_annotated(client: &Client, annotation: &str) -> Result<bool, Error> {
    let mut pages = Pages::of_metadata(client, Node::PATH);
    while let Some(page) = pages.next::<wire::Annotated>().await? {
        let is_annotated = |item: &Item<wire::Annotated>| match item {
            Item::Readable(node) => node.metadata.annotations.as_ref().is_some_and(|it| it.contains_key(annotation)),
            Item::Unreadable(..) => false,
        };
        if page.items.iter().flatten().any(is_annotated) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The name and the Pod CIDRs of every node, past every cache. A node that cannot be read is an error: it may have Pod CIDRs.
pub async fn all_pod_cidrs(client: &Client) -> Result<Vec<(String, Vec<String>)>, Error> {
    let claims = |node: wire::node::Claims| (node.metadata.name, node.spec.and_then(|spec| spec.pod_cidrs).unwrap_or_default());
    pages::all(client, Node::PATH, claims).await
}
