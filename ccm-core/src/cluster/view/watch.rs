//! The watch that fills a view: a list, then what changes from there. After trouble it goes on from where it was, or lists
//! again where that is not possible; until a list is complete, the view stays as it is.
//!
//! It is our own because kube's has no way back from a streamed list that a server refuses, and forgets an object that it
//! cannot parse, which would then look deleted.
mod error;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::api::WatchParams;
use kube::core::{Request, WatchEvent};
use parking_lot::RwLock;
use tokio::sync::watch as signal;
use tokio::time::{Instant, sleep};

use self::error::WatchError;
use super::{Shared, Viewed};
use crate::cluster::answer::{self, Item, Lines};
use crate::cluster::pages::Pages;
use crate::cluster::presence::Presence;
use crate::cluster::wire::Bare;
use crate::provider::backoff::Backoff;

/// How long the API server lets a watch last. One that is silent for longer is dead, and is begun anew.
const WATCH_SECONDS: u32 = 60;
/// How long it may take to stream a list, which is not silent meanwhile.
const LIST_SECONDS: u32 = 300;
/// A watch that ends sooner, and without an event, has failed.
const SHORTEST: Duration = Duration::from_secs(1);
/// The first pause and the longest before a watch that failed is begun again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// The bookmark with this annotation ends a streamed list.
const LIST_END: &str = "k8s.io/initial-events-end";

/// The watch of one kind.
pub(super) struct Watch<T> {
    client: Client,
    presence: Presence,
    shared: Arc<RwLock<Shared<T>>>,
    synced: signal::Sender<bool>,
    /// The resourceVersion to go on from; none before a list.
    version: Option<String>,
    /// How to list next.
    way: Way,
    backoff: Backoff,
    /// The keys of objects that cannot be read, which the log has named.
    unreadable: HashSet<String>,
}

/// How a list is got. Where one way fails the other is tried next, so that neither is a dead end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// As the events of a watch.
    Streamed,
    /// By pages.
    Paged,
}

impl<T: Viewed> Watch<T> {
    pub(super) fn new(client: Client, presence: Presence, shared: Arc<RwLock<Shared<T>>>, synced: signal::Sender<bool>) -> Self {
        let backoff = Backoff::new(PAUSES.0, PAUSES.1);
        Self { client, presence, shared, synced, version: None, way: Way::Streamed, backoff, unreadable: HashSet::new() }
    }

    /// Fills the view for ever.
    pub(super) async fn run(mut self) {
        loop {
            let outcome = match self.version.clone() {
                None => self.list().await,
                Some(version) => self.follow(&version).await,
            };
            if let Err(error) = outcome {
                self.recover(error).await;
            }
        }
    }

    async fn list(&mut self) -> Result<(), WatchError> {
        self.shared.write().begin();
        let (listed, other) = match self.way {
            Way::Streamed => (self.stream().await, Way::Paged),
            Way::Paged => (self.pages().await, Way::Streamed),
        };
        self.way = if listed.is_ok() { Way::Streamed } else { other };
        self.version = Some(listed?);
        self.backoff.reset();
        self.shared.write().replace();
        self.synced.send_replace(true);
        Ok(())
    }

    /// Without a resourceVersion, so that a list is never older than the one before.
    async fn stream(&mut self) -> Result<String, WatchError> {
        let params = WatchParams::default().timeout(LIST_SECONDS).initial_events();
        let mut lines = self.open(&params, "").await.map_err(WatchError::unless_streamed)?;
        while let Some(event) = lines.next::<T::Object>().await? {
            match event {
                WatchEvent::Added(item) | WatchEvent::Modified(item) => self.arrive(item),
                WatchEvent::Bookmark(mark) if mark.metadata.annotations.contains_key(LIST_END) => {
                    return Ok(mark.metadata.resource_version);
                }
                WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
                WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => {}
            }
        }
        Err(WatchError::Unfinished)
    }

    async fn pages(&mut self) -> Result<String, WatchError> {
        let mut pages = Pages::new(&self.client, T::PATH);
        let mut version = None;
        while let Some(page) = pages.next::<T::Object>().await? {
            page.items.into_iter().flatten().for_each(|item| self.arrive(item));
            version = page.metadata.resource_version;
        }
        known(version)
    }

    async fn follow(&mut self, version: &str) -> Result<(), WatchError> {
        let began = Instant::now();
        let mut lines = self.open(&WatchParams::default().timeout(WATCH_SECONDS), version).await?;
        let mut silent = true;
        while let Some(event) = lines.next::<T::Object>().await? {
            self.version = Some(self.apply(event)?);
            self.backoff.reset();
            silent = false;
        }
        if silent && began.elapsed() < SHORTEST { Err(WatchError::Short) } else { Ok(()) }
    }

    async fn open(&self, params: &WatchParams, version: &str) -> Result<Lines, kube::Error> {
        answer::lines(&self.client, Request::new(T::PATH).watch(params, version)).await
    }

    /// The list has an object.
    fn arrive(&mut self, item: Item<T::Object>) {
        match item {
            Item::Readable(object) => {
                let object = self.read(object);
                self.shared.write().arrive(object);
            }
            Item::Unreadable(bare, reason) => {
                let key = self.refuse(&bare, &reason);
                self.shared.write().stay(key);
            }
        }
    }

    /// Something has changed; the resourceVersion from there on.
    fn apply(&mut self, event: WatchEvent<Item<T::Object>>) -> Result<String, WatchError> {
        match event {
            WatchEvent::Added(Item::Readable(object)) | WatchEvent::Modified(Item::Readable(object)) => {
                let object = self.read(object);
                let version = known(Some(object.version().to_owned()));
                self.shared.write().show(object);
                version
            }
            WatchEvent::Added(Item::Unreadable(bare, reason)) | WatchEvent::Modified(Item::Unreadable(bare, reason)) => {
                self.refuse(&bare, &reason);
                known(bare.metadata.resource_version)
            }
            WatchEvent::Deleted(item) => self.delete(item),
            WatchEvent::Bookmark(mark) => Ok(mark.metadata.resource_version),
            WatchEvent::Error(status) => Err(kube::Error::Api(status).into()),
        }
    }

    fn delete(&mut self, item: Item<T::Object>) -> Result<String, WatchError> {
        let (key, version) = match item {
            Item::Readable(object) => {
                let object = T::from_object(object);
                (object.key(), Some(object.version().to_owned()))
            }
            Item::Unreadable(bare, _) => (bare.key(), bare.metadata.resource_version),
        };
        self.unreadable.remove(&key);
        self.shared.write().hide(&key);
        known(version)
    }

    fn read(&mut self, object: T::Object) -> T {
        let object = T::from_object(object);
        if !self.unreadable.is_empty() {
            self.unreadable.remove(&object.key());
        }
        object
    }

    /// An object that cannot be read stays in the view as it was, for one that is absent would look deleted.
    fn refuse(&mut self, bare: &Bare, reason: &str) -> String {
        let key = bare.key();
        if self.unreadable.insert(key.clone()) {
            tracing::warn!(object = key, error = reason, "one of the {} cannot be read; it stays as it was known", T::PLURAL);
        }
        key
    }

    /// Waits before the next attempt: while the API server is away for its return, otherwise for a pause.
    async fn recover(&mut self, error: WatchError) {
        if error.needs_list() {
            self.version = None;
        }
        if let WatchError::NotStreamed(_) = error {
            tracing::info!(%error, "the API server does not stream the list of {}; reading it by pages", T::PLURAL);
            return;
        }
        let pause = self.backoff.delay();
        error.log(T::PLURAL, pause);
        tokio::select! {
            () = sleep(pause) => {}
            () = self.presence.returned() => {}
        }
        self.presence.present().await;
    }
}

fn known(version: Option<String>) -> Result<String, WatchError> {
    version.filter(|version| !version.is_empty()).ok_or(WatchError::NoVersion)
}
