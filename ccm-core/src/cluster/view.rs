//! All objects of one kind, as the watch last told of them. One watch serves every controller.
//!
//! kube's own store would keep the whole objects; this one keeps the model's, which are a tenth of their size, and of those
//! only the ones that are of use here.
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use parking_lot::RwLock;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};

use super::presence::{Presence, is_unanswered};
use crate::provider::backoff::Backoff;

/// How long the API server lets a watch last. One that is silent for longer is dead, and is begun anew.
const WATCH_SECONDS: u32 = 60;
/// The first pause and the longest before a watch that failed is begun again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// A model type that can be watched.
pub trait Viewed: Clone + PartialEq + Send + Sync + 'static {
    /// Kubernetes' type of it.
    type Object: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static;
    /// The plural, for the log.
    const PLURAL: &'static str;

    /// From what the API server sent.
    fn from_object(object: Self::Object) -> Self;

    /// What it is found by.
    fn key(&self) -> String;

    /// Whether somebody here may have to act on it. One that was of use stays in the view when it is not any more, so that
    /// what it has become can be seen.
    fn is_of_use(&self) -> bool {
        true
    }
}

/// A view of all objects of one kind. Clones share it.
pub struct View<T> {
    shared: Arc<RwLock<Shared<T>>>,
    synced: watch::Receiver<bool>,
}

struct Shared<T> {
    objects: HashMap<String, Arc<T>>,
    /// What the watch's initial list has brought so far; it replaces `objects` at once when complete.
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

/// Waits before a watch that failed is begun again: while the API server is away for its return, otherwise for a pause.
async fn resume<T: Viewed>(error: &watcher::Error, presence: &Presence, pause: Duration) {
    if unanswered(error) {
        tracing::debug!(%error, "the watch of {} ended without an answer; resuming it", T::PLURAL);
    } else {
        tracing::warn!(%error, "the watch of {} failed; it is being resumed", T::PLURAL);
    }
    tokio::select! {
        () = tokio::time::sleep(pause) => {}
        () = presence.returned() => {}
    }
    presence.present().await;
}

fn unanswered(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => is_unanswered(error),
        _ => false,
    }
}

impl<T: Viewed> View<T> {
    /// An empty view and the task that fills it; the task ends when the future is dropped.
    pub fn watch(client: Client, presence: Presence) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (view, synced) = Self::empty();
        let shared = Arc::clone(&view.shared);
        let task = async move {
            let config = watcher::Config::default().any_semantic().timeout(WATCH_SECONDS);
            let mut events = watcher(Api::<T::Object>::all(client), config).boxed();
            let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => {
                        backoff.reset();
                        shared.write().apply(event, &synced);
                    }
                    Err(error) => resume::<T>(&error, &presence, backoff.delay()).await,
                }
            }
        };
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
    fn apply(&mut self, event: watcher::Event<T::Object>, synced: &watch::Sender<bool>) {
        match event {
            watcher::Event::Init => self.arriving.clear(),
            watcher::Event::InitApply(object) => {
                let object = T::from_object(object);
                let key = object.key();
                if self.keeps(&key, &object) {
                    self.arriving.insert(key, Arc::new(object));
                }
            }
            watcher::Event::InitDone => {
                self.replace();
                synced.send_replace(true);
            }
            watcher::Event::Apply(object) => self.show(T::from_object(object)),
            watcher::Event::Delete(object) => self.hide(&T::from_object(object).key()),
        }
    }

    fn keeps(&self, key: &str, object: &T) -> bool {
        object.is_of_use() || self.objects.contains_key(key)
    }

    /// The list is complete. Only what it changes is told.
    fn replace(&mut self) {
        self.arriving.shrink_to_fit();
        let before = std::mem::replace(&mut self.objects, std::mem::take(&mut self.arriving));
        let changed = self.objects.iter().filter(|(key, object)| before.get(*key) != Some(object)).map(|(key, _)| key);
        let gone = before.keys().filter(|key| !self.objects.contains_key(*key));
        let keys: Vec<_> = changed.chain(gone).cloned().collect();
        for key in &keys {
            self.tell(key);
        }
    }

    fn show(&mut self, object: T) {
        let key = object.key();
        if self.keeps(&key, &object) {
            self.objects.insert(key.clone(), Arc::new(object));
            self.tell(&key);
        }
    }

    fn hide(&mut self, key: &str) {
        if self.objects.remove(key).is_some() {
            self.tell(key);
        }
    }

    fn tell(&mut self, key: &str) {
        self.subscribers.retain(|subscriber| subscriber.send(key.to_owned()).is_ok());
    }
}
