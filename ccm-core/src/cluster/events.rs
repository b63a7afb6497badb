//! Events for people. They are written in the background, never hold up the work that they tell of, and are dropped
//! (and counted in the log) rather than pile up.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use tokio::sync::mpsc;

use crate::model::node::Node;

/// How many events may wait to be written.
const QUEUE: usize = 16_384;

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// `Node`, `ConfigMap`, ….
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

/// How grave an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grade {
    /// For the record.
    Normal,
    /// Somebody should look.
    Warning,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What it is about.
    pub subject: Subject,
    /// How grave it is.
    pub grade: Grade,
    /// One of [`crate::names::events`], or a provider's word.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// Where controllers put events. Clones share the queue.
#[derive(Clone)]
pub struct Events {
    queue: mpsc::Sender<Note>,
    dropped: Arc<AtomicU64>,
}

impl Events {
    /// A queue, and the task that writes it out under a controller's name. The same event repeated becomes a count.
    pub fn start(client: Client, controller: &str, instance: &str) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (events, mut queue) = Self::queue(QUEUE);
        let reporter = Reporter { controller: controller.to_owned(), instance: Some(instance.to_owned()) };
        let recorder = Recorder::new(client, reporter);
        let task = async move {
            while let Some(note) = queue.recv().await {
                if let Err(error) = recorder.publish(&event(&note), &reference(&note.subject)).await {
                    tracing::warn!(%error, reason = note.reason, object = note.subject.name, "an event was not written");
                }
            }
        };
        (events, task)
    }

    /// A queue to be read by the caller: for tests.
    pub fn queue(capacity: usize) -> (Self, mpsc::Receiver<Note>) {
        let (queue, receiver) = mpsc::channel(capacity);
        (Self { queue, dropped: Arc::default() }, receiver)
    }

    /// Queues an event; at once, whatever the API server does.
    pub fn publish(&self, note: Note) {
        if self.queue.try_send(note).is_err() {
            let dropped = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::warn!(dropped, "too many events are waiting; one was dropped");
        }
    }
}

fn event(note: &Note) -> Event {
    Event {
        type_: match note.grade {
            Grade::Normal => EventType::Normal,
            Grade::Warning => EventType::Warning,
        },
        reason: note.reason.clone(),
        note: Some(note.message.clone()),
        action: note.reason.clone(),
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
