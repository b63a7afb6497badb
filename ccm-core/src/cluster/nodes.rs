//! The nodes of the cluster, as the watch last told of them. One watch serves every controller.
//!
//! kube's own store would keep the whole objects; this one keeps the model's, which are a tenth of their size.
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1 as core;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use parking_lot::RwLock;
use tokio::sync::{mpsc, watch};

use super::convert;
use crate::model::node::Node;

/// A view of all nodes. Clones share it.
#[derive(Clone)]
pub struct Nodes {
    shared: Arc<RwLock<Shared>>,
    synced: watch::Receiver<bool>,
}

#[derive(Default)]
struct Shared {
    nodes: HashMap<String, Arc<Node>>,
    /// What the watch's initial list has brought so far; it replaces `nodes` at once when complete.
    arriving: HashMap<String, Arc<Node>>,
    subscribers: Vec<mpsc::UnboundedSender<String>>,
}

impl Nodes {
    /// An empty view and the task that fills it; the task ends when the view and its clones are dropped or the future is.
    pub fn watch(client: Client) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (nodes, synced) = Self::empty();
        let shared = Arc::clone(&nodes.shared);
        let task = async move {
            let config = watcher::Config::default().any_semantic();
            let mut events = watcher(Api::<core::Node>::all(client), config).default_backoff().boxed();
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => shared.write().apply(event, &synced),
                    Err(error) => tracing::warn!(%error, "the watch of nodes failed; it is being resumed"),
                }
            }
        };
        (nodes, task)
    }

    /// A view of just these nodes, for tests of stages.
    pub fn fixed(list: impl IntoIterator<Item = Node>) -> Self {
        let (nodes, synced) = Self::empty();
        nodes.shared.write().nodes = list.into_iter().map(|node| (node.name.clone(), Arc::new(node))).collect();
        synced.send_replace(true);
        nodes
    }

    /// Shows a node as the watch would, for tests of drivers.
    #[cfg(test)]
    pub fn show(&self, node: Node) {
        self.shared.write().show(node);
    }

    /// Shows that a node is gone, for tests of drivers.
    #[cfg(test)]
    pub fn hide(&self, name: &str) {
        self.shared.write().hide(name);
    }

    fn empty() -> (Self, watch::Sender<bool>) {
        let (sender, synced) = watch::channel(false);
        (Self { shared: Arc::default(), synced }, sender)
    }

    /// Waits until the first list is complete. Before that the view is not to be believed.
    pub async fn synced(&self) {
        let mut synced = self.synced.clone();
        // An error means that the watch has ended with the process.
        drop(synced.wait_for(|done| *done).await);
    }

    /// The node of this name, if there is one.
    pub fn get(&self, name: &str) -> Option<Arc<Node>> {
        self.shared.read().nodes.get(name).cloned()
    }

    /// All nodes, in no order.
    pub fn list(&self) -> Vec<Arc<Node>> {
        self.shared.read().nodes.values().cloned().collect()
    }

    /// The names of nodes that are there now, then of each that appears, changes or goes.
    pub fn subscribe(&self) -> mpsc::UnboundedReceiver<String> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut shared = self.shared.write();
        for name in shared.nodes.keys() {
            drop(sender.send(name.clone()));
        }
        shared.subscribers.push(sender);
        receiver
    }
}

impl Shared {
    fn apply(&mut self, event: watcher::Event<core::Node>, synced: &watch::Sender<bool>) {
        match event {
            watcher::Event::Init => self.arriving.clear(),
            watcher::Event::InitApply(node) => {
                let node = convert::node(node);
                self.arriving.insert(node.name.clone(), Arc::new(node));
            }
            watcher::Event::InitDone => {
                self.replace();
                synced.send_replace(true);
            }
            watcher::Event::Apply(node) => self.show(convert::node(node)),
            watcher::Event::Delete(node) => self.hide(&node.metadata.name.unwrap_or_default()),
        }
    }

    /// The list is complete. Only what it changes is told.
    fn replace(&mut self) {
        let before = std::mem::replace(&mut self.nodes, std::mem::take(&mut self.arriving));
        let changed = self.nodes.iter().filter(|(name, node)| before.get(*name) != Some(node)).map(|(name, _)| name);
        let gone = before.keys().filter(|name| !self.nodes.contains_key(*name));
        let names: Vec<_> = changed.chain(gone).cloned().collect();
        for name in &names {
            self.tell(name);
        }
    }

    fn show(&mut self, node: Node) {
        let name = node.name.clone();
        self.nodes.insert(name.clone(), Arc::new(node));
        self.tell(&name);
    }

    fn hide(&mut self, name: &str) {
        self.nodes.remove(name);
        self.tell(name);
    }

    fn tell(&mut self, name: &str) {
        self.subscribers.retain(|subscriber| subscriber.send(name.to_owned()).is_ok());
    }
}
