//! Nodes and Services in the scripted API server: where they are, what they are in the model's terms, and what a watch shows of
//! them.
use serde_json::Value;

use super::{ApiServer, Call};
use crate::cluster::convert;
use crate::cluster::nodes::Nodes;
use crate::cluster::services::Services;
use crate::model::node::Node;
use crate::model::service::Service;

/// Where all nodes are listed.
pub(super) const ALL_NODES: &str = "/api/v1/nodes";
const NODES: &str = "/api/v1/nodes/";

impl ApiServer {
    /// A server with these nodes.
    pub fn with_nodes(nodes: impl IntoIterator<Item = Value>) -> Self {
        let server = Self::default();
        nodes.into_iter().for_each(|node| server.put_node(node));
        server
    }

    /// A server with these Services.
    pub fn with_services(services: impl IntoIterator<Item = Value>) -> Self {
        let server = Self::default();
        services.into_iter().for_each(|service| server.put_service(service));
        server
    }

    /// Adds or replaces a node.
    pub fn put_node(&self, node: Value) {
        self.put(&node_path(text(&node, "name")), node);
    }

    /// Adds or replaces a Service.
    pub fn put_service(&self, service: Value) {
        let key = format!("{}/{}", text(&service, "namespace"), text(&service, "name"));
        self.put(&service_path(&key), service);
    }

    /// The node as it is now.
    pub fn node(&self, name: &str) -> Node {
        model(&self.object(&node_path(name)).expect("the node is gone"))
    }

    /// The Service `NAMESPACE/NAME` as it is now, if it is there.
    pub fn service(&self, key: &str) -> Option<Service> {
        self.object(&service_path(key)).as_ref().map(service_model)
    }

    /// All nodes as they are now.
    pub fn nodes(&self) -> Vec<Node> {
        let state = self.state.lock();
        state.objects.iter().filter(|(path, _)| path.starts_with(NODES)).map(|(_, node)| model(node)).collect()
    }

    /// All Services as they are now.
    pub fn services(&self) -> Vec<Service> {
        let state = self.state.lock();
        state.objects.iter().filter(|(path, _)| service_key(path).is_some()).map(|(_, it)| service_model(it)).collect()
    }

    /// From now on, whatever changes is shown in this view, as a watch would.
    pub fn feed_nodes(&self, view: &Nodes) {
        let view = view.clone();
        self.listen(move |path, object| match (path.strip_prefix(NODES), object) {
            (Some(_), Some(object)) => view.show(model(object)),
            (Some(name), None) => view.hide(name),
            (None, _) => {}
        });
    }

    /// From now on, whatever changes is shown in this view, as a watch would.
    pub fn feed_services(&self, view: &Services) {
        let view = view.clone();
        self.listen(move |path, object| match (service_key(path), object) {
            (Some(_), Some(object)) => view.show(service_model(object)),
            (Some(key), None) => view.hide(&key),
            (None, _) => {}
        });
    }

    /// The writes to a node so far, each as `PATCH` or `PATCH status`.
    pub fn node_writes(&self, name: &str) -> Vec<&'static str> {
        self.patches(&node_path(name))
    }

    /// The writes to the Service `NAMESPACE/NAME` so far, each as `PATCH` or `PATCH status`.
    pub fn service_writes(&self, key: &str) -> Vec<&'static str> {
        self.patches(&service_path(key))
    }

    fn patches(&self, path: &str) -> Vec<&'static str> {
        let kind = |call: &Call| match call.path.strip_prefix(path) {
            Some("") if call.method == "PATCH" => Some("PATCH"),
            Some("/status") if call.method == "PATCH" => Some("PATCH status"),
            _ => None,
        };
        self.calls().iter().filter_map(kind).collect()
    }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().expect("tests name their objects")
}

fn node_path(name: &str) -> String {
    format!("{NODES}{name}")
}

fn service_path(key: &str) -> String {
    let (namespace, name) = key.split_once('/').expect("keys are NAMESPACE/NAME");
    format!("/api/v1/namespaces/{namespace}/services/{name}")
}

fn service_key(path: &str) -> Option<String> {
    path.strip_prefix("/api/v1/namespaces/")?.split_once("/services/").map(|(namespace, name)| format!("{namespace}/{name}"))
}

/// The node in the model's terms.
pub fn model(node: &Value) -> Node {
    convert::node(serde_json::from_value(node.clone()).expect("tests hold valid nodes"))
}

/// The Service in the model's terms.
pub fn service_model(service: &Value) -> Service {
    convert::service(serde_json::from_value(service.clone()).expect("tests hold valid Services"))
}
