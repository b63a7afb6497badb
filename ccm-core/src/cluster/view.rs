//! All objects of one kind, as the watch last told of them. One watch serves every controller.
//!
//! It keeps the model's objects, not the API server's, and of those only the ones that are of use here.
#[cfg(test)]
mod tests;
mod watch;

use std::collections::HashMap;
use std::sync::Arc;

use kube::Client;
use parking_lot::RwLock;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch as signal};

use super::presence::Presence;

/// A model type that can be watched.
pub trait Viewed: Clone + PartialEq + Send + Sync + 'static {
    /// What the API server sends of it.
    type Object: DeserializeOwned + Send + 'static;
    /// Where all of them are listed and watched.
    const PATH: &'static str;
    /// The plural, for the log.
    const PLURAL: &'static str;

    /// From what the API server sent.
    fn from_object(object: Self::Object) -> Self;

    /// What it is found by: `NAME`, or `NAMESPACE/NAME`.
    fn key(&self) -> String;

    /// Its resourceVersion.
    fn version(&self) -> &str;

    /// Whether a controller may have to act on it. One that was of use stays in the view when it is not any more, so that
    /// what it has become can be seen.
    fn is_of_use(&self) -> bool {
        true
    }
}

/// A view of all objects of one kind. Clones share it.
pub struct View<T> {
    shared: Arc<RwLock<Shared<T>>>,
    synced: signal::Receiver<bool>,
}

struct Shared<T> {
    objects: HashMap<String, Arc<T>>,
    /// What a list has brought so far; it replaces `objects` at once when it is complete. The two share what did not change.
    arriving: HashMap<String, Arc<T>>,
    subscribers: Vec<mpsc::UnboundedSender<String>>,
}

impl<T> Clone for View<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), synced: self.synced.clone() }
    }
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self { objects: HashMap::new(), arriving: HashMap::new(), subscribers: Vec::new() }
    }
}

impl<T: Viewed> View<T> {
    /// An empty view and the task that fills it; the task ends when the future is dropped.
    pub fn watch(client: Client, presence: Presence) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (view, synced) = Self::empty();
        let task = watch::Watch::new(client, presence, Arc::clone(&view.shared), synced).run();
        (view, task)
    }

    /// A view of just these objects, for tests of stages.
    pub fn fixed(list: impl IntoIterator<Item = T>) -> Self {
        let (view, synced) = Self::empty();
        view.shared.write().objects = list.into_iter().map(|object| (object.key(), Arc::new(object))).collect();
        synced.send_replace(true);
        view
    }

    /// Shows an object as the watch would, for tests of drivers.
    #[cfg(test)]
    pub fn show(&self, object: T) {
        self.shared.write().show(object);
    }

    /// Shows that an object is gone, for tests of drivers.
    #[cfg(test)]
    pub fn hide(&self, key: &str) {
        self.shared.write().hide(key);
    }

    fn empty() -> (Self, signal::Sender<bool>) {
        let (sender, synced) = signal::channel(false);
        (Self { shared: Arc::default(), synced }, sender)
    }

    /// Waits until the first list is complete. Before that the view is not to be believed.
    pub async fn synced(&self) {
        let mut synced = self.synced.clone();
        // An error means that the watch has ended with the process.
        drop(synced.wait_for(|done| *done).await);
    }

    /// The object of this key, if there is one.
    pub fn get(&self, key: &str) -> Option<Arc<T>> {
        self.shared.read().objects.get(key).cloned()
    }

    /// All objects, in no order.
    pub fn list(&self) -> Vec<Arc<T>> {
        self.shared.read().objects.values().cloned().collect()
    }

    /// The keys of objects that are there now, then of each that appears, changes or goes.
    pub fn subscribe(&self) -> mpsc::UnboundedReceiver<String> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut shared = self.shared.write();
        for key in shared.objects.keys() {
            drop(sender.send(key.clone()));
        }
        shared.subscribers.push(sender);
        receiver
    }
}

impl<T: Viewed> Shared<T> {
    /// A list begins. What an unfinished one has brought is dropped.
    fn begin(&mut self) {
        self.arriving.clear();
    }

    /// The list has this object.
    fn arrive(&mut self, object: T) {
        let key = object.key();
        if self.keeps(&key, &object) {
            let known = self.objects.get(&key).filter(|known| ***known == object);
            let object = known.map_or_else(|| Arc::new(object), Arc::clone);
            self.arriving.insert(key, object);
        }
    }

    /// The list has an object of this key that cannot be read: it stays as it was.
    fn stay(&mut self, key: String) {
        if let Some(known) = self.objects.get(&key) {
            self.arriving.insert(key, Arc::clone(known));
        }
    }

    /// The list is complete. Only what it changes is told.
    fn replace(&mut self) {
        self.arriving.shrink_to_fit();
        let before = std::mem::replace(&mut self.objects, std::mem::take(&mut self.arriving));
        let changed = self.objects.iter().filter(|(key, object)| before.get(*key) != Some(object)).map(|(key, _)| key);
        let gone = before.keys().filter(|key| !self.objects.contains_key(*key));
        changed.chain(gone).for_each(|key| tell(&mut self.subscribers, key));
    }

    fn keeps(&self, key: &str, object: &T) -> bool {
        object.is_of_use() || self.objects.contains_key(key)
    }

    fn show(&mut self, object: T) {
        let key = object.key();
        if self.keeps(&key, &object) {
            tell(&mut self.subscribers, &key);
            self.objects.insert(key, Arc::new(object));
        }
    }

    fn hide(&mut self, key: &str) {
        if self.objects.remove(key).is_some() {
            tell(&mut self.subscribers, key);
        }
    }
}

fn tell(subscribers: &mut Vec<mpsc::UnboundedSender<String>>, key: &str) {
    subscribers.retain(|subscriber| subscriber.send(key.to_owned()).is_ok());
}
