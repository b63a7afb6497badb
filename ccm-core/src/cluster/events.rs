//! Events for people. A background task writes them, so that they never delay the work that they report, and drops and counts
//! events rather than queue them without a bound. Warnings go first; Normal events are rate-limited, so that the events of
//! thousands of nodes leave the API server to the nodes themselves.
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{self as api, Recorder, Reporter};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::{MissedTickBehavior, interval};

use super::presence::{Presence, is_unanswered};
use crate::model::node::Node;
use crate::model::service::Service;

/// How many events may wait to be written.
const QUEUE: usize = 16_384;
/// The time between two Normal events.
const PACE: Duration = Duration::from_millis(20);
/// How long after a write without an answer the event is written once more.
const AGAIN: Duration = Duration::from_secs(1);
/// Of how many events it is remembered that they were written, so that a repeat becomes a count.
const REMEMBERED: usize = 8_192;
/// The longest message that the API server takes, in bytes.
const LONGEST_MESSAGE: usize = 1_024;
/// The longest reason that the API server takes, in bytes.
const LONGEST_REASON: usize = 128;

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subject {
    /// `Node`, `Service`, `ConfigMap`, ….
    pub kind: &'static str,
    /// Empty for cluster-wide objects.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// The object's UID; kubectl finds events by it.
    pub uid: String,
}

impl From<&Node> for Subject {
    fn from(node: &Node) -> Self {
        Self { kind: "Node", namespace: String::new(), name: node.name.clone(), uid: node.uid.clone() }
    }
}

impl From<&Service> for Subject {
    fn from(service: &Service) -> Self {
        Self { kind: "Service", namespace: service.namespace.clone(), name: service.name.clone(), uid: service.uid.clone() }
    }
}

/// How grave an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// For the record.
    Normal,
    /// A person should look.
    Warning,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What it is about.
    pub subject: Subject,
    /// How grave it is.
    pub event_type: EventType,
    /// One of [`crate::names::events`], or a provider's word.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// The queue of events. Clones share it.
#[derive(Clone)]
pub struct Events {
    queue: mpsc::Sender<Event>,
    dropped: Arc<AtomicU64>,
}

impl Events {
    /// A queue, and the task that writes it out under a controller's name. The same event repeated becomes a count.
    pub fn start(
        client: Client,
        presence: Presence,
        controller: &str,
        instance: &str,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (events, queue) = Self::queue(QUEUE);
        let dropped = Arc::clone(&events.dropped);
        let reporter = Reporter { controller: controller.to_owned(), instance: Some(cut(instance, LONGEST_REASON)) };
        let mut scribe = Scribe { client, presence, reporter, written: HashMap::new() };
        let mut waiting = Waiting { queue, plain: VecDeque::new(), dropped };
        let task = async move {
            let mut pace = interval(PACE);
            pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while let Some(note) = waiting.next(&mut pace).await {
                if let Err(error) = scribe.write(&note).await {
                    tracing::warn!(%error, reason = note.reason, object = note.subject.name, "an event was not written");
                }
                waiting.report_dropped();
            }
        };
        (events, task)
    }

    /// A queue to be read by the caller: for tests.
    pub fn queue(capacity: usize) -> (Self, mpsc::Receiver<Event>) {
        let (queue, receiver) = mpsc::channel(capacity);
        (Self { queue, dropped: Arc::default() }, receiver)
    }

    /// Queues an event; at once, whatever the API server does.
    pub fn publish(&self, note: Event) {
        match self.queue.try_send(note) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => drop(self.dropped.fetch_add(1, Ordering::Relaxed)),
            Err(TrySendError::Closed(note)) => {
                tracing::warn!(
                    reason = note.reason,
                    object = note.subject.name,
                    "an event was not written: the writer of events has ended"
                );
            }
        }
    }
}

/// Events that are to be written.
struct Waiting {
    queue: mpsc::Receiver<Event>,
    plain: VecDeque<Event>,
    /// How many events were dropped since the last log line about that.
    dropped: Arc<AtomicU64>,
}

impl Waiting {
    /// A warning as soon as there is one, another event at its pace; at the end of the queue what is left, at once.
    async fn next(&mut self, pace: &mut tokio::time::Interval) -> Option<Event> {
        loop {
            tokio::select! {
                biased;
                note = self.queue.recv() => match note {
                    None => return self.plain.pop_front(),
                    Some(note) if note.event_type == EventType::Warning => return Some(note),
                    Some(_) if self.plain.len() >= QUEUE => drop(self.dropped.fetch_add(1, Ordering::Relaxed)),
                    Some(note) => self.plain.push_back(note),
                },
                _ = pace.tick(), if !self.plain.is_empty() => return self.plain.pop_front(),
            }
        }
    }

    /// Logs how many events were dropped, once for all of them, when there is room again.
    fn report_dropped(&self) {
        if self.plain.len() < QUEUE / 2 && self.dropped.load(Ordering::Relaxed) > 0 {
            let dropped = self.dropped.swap(0, Ordering::Relaxed);
            tracing::warn!(dropped, "the queue of events was full; events were dropped");
        }
    }
}

/// Writes events. kube's recorder takes two events for the same if just their messages differ, and would count the second
/// under the first one's words: each message gets a recorder of its own.
struct Scribe {
    client: Client,
    presence: Presence,
    reporter: Reporter,
    written: HashMap<(Subject, String), (String, Recorder)>,
}

impl Scribe {
    /// Waits while the API server is away; a write that was not answered is made once more.
    async fn write(&mut self, note: &Event) -> Result<(), kube::Error> {
        self.presence.present().await;
        match self.recorder(note).publish(&event(note), &reference(&note.subject)).await {
            Err(error) if is_unanswered(&error) => {
                tracing::debug!(%error, reason = note.reason, "an event was not written, writing it once more");
                tokio::time::sleep(AGAIN).await;
                self.presence.present().await;
                self.recorder(note).publish(&event(note), &reference(&note.subject)).await
            }
            written => written,
        }
    }

    fn recorder(&mut self, note: &Event) -> Recorder {
        if self.written.len() >= REMEMBERED {
            self.written.clear();
        }
        let fresh = || (note.message.clone(), Recorder::new(self.client.clone(), self.reporter.clone()));
        let (message, recorder) = self.written.entry((note.subject.clone(), note.reason.clone())).or_insert_with(fresh);
        if *message != note.message {
            (*message, *recorder) = fresh();
        }
        recorder.clone()
    }
}

/// The text, at most so many bytes of it.
fn cut(text: &str, longest: usize) -> String {
    let mut end = longest.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

fn event(note: &Event) -> api::Event {
    api::Event {
        type_: match note.event_type {
            EventType::Normal => api::EventType::Normal,
            EventType::Warning => api::EventType::Warning,
        },
        reason: cut(&note.reason, LONGEST_REASON),
        note: Some(cut(&note.message, LONGEST_MESSAGE)),
        action: cut(&note.reason, LONGEST_REASON),
        secondary: None,
    }
}

fn reference(subject: &Subject) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some(subject.kind.to_owned()),
        namespace: Some(subject.namespace.clone()).filter(|namespace| !namespace.is_empty()),
        name: Some(subject.name.clone()),
        uid: Some(subject.uid.clone()),
        ..ObjectReference::default()
    }
}
