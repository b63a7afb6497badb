//! Tells people: events, readiness, metrics and the log. Something that lasts is told once and stays in readiness. It decides
//! nothing.
use std::collections::{BTreeMap, BTreeSet};

use super::act::ActError;
use super::decide::Block;
use super::observe::Answered;
use crate::cluster::events::{Event, EventType, Events, Subject};
use crate::cluster::patch::WriteError;
use crate::cluster::state::{State, StateError, Trip};
use crate::controllers::NodeContext;
use crate::model::node::Node;
use crate::names;
use crate::telemetry::cloud_health::{self, CREDENTIALS, CloudHealth, LOOK_UPS};
use crate::telemetry::health::{Check, Health};
use crate::telemetry::metrics::NodeMetrics;

/// Breakers that are tripped.
const BREAKER: &str = "node-deletion-breaker";
/// Other reasons to delete nothing.
const DELETION: &str = "node-deletion";
/// The API takes no event whose note is longer than 1 KiB.
const NOTE_LENGTH: usize = 1000;
/// On how many of its nodes a trip is an event.
const NODES_TOLD: usize = 5;

pub(super) struct Status {
    health: Health,
    cloud: CloudHealth,
    events: Events,
    metrics: NodeMetrics,
    /// The state's ConfigMap.
    map: String,
    subject: Option<Subject>,
    /// What each check says now, so that only a change is an event and a log line.
    reported: BTreeMap<&'static str, String>,
    told: BTreeSet<String>,
    /// Nodes whose look-up failed in this tick, and in the one before.
    failing: BTreeSet<String>,
    failed: BTreeSet<String>,
}

impl Status {
    pub fn new(ctx: &NodeContext, map: &str) -> Self {
        Self {
            health: ctx.health.clone(),
            cloud: ctx.cloud.clone(),
            events: ctx.events.clone(),
            metrics: ctx.metrics.clone(),
            map: map.to_owned(),
            subject: None,
            reported: BTreeMap::new(),
            told: BTreeSet::new(),
            failing: BTreeSet::new(),
            failed: BTreeSet::new(),
        }
    }

    /// The state as it was read: a breaker that tripped before this term is an event as well.
    pub fn breakers(&mut self, state: &State) {
        self.subject = state.subject();
        for trip in &state.trips {
            if self.told.insert(trip.id.clone()) {
                self.tell_of(trip);
            }
        }
        self.told.retain(|id| state.trips.iter().any(|trip| trip.id == *id));
        self.metrics.breakers_tripped.set(i64::try_from(state.trips.len()).unwrap_or(i64::MAX));
        let messages: Vec<_> = state.trips.iter().map(|trip| self.message(trip)).collect();
        self.health.set(BREAKER, if messages.is_empty() { Check::Ok } else { Check::Warning(messages.join("; ")) });
    }

    /// Breakers that tripped or closed in this tick.
    pub fn changed(&mut self, state: &State, tripped: &[Trip], closed: &[Trip]) {
        self.breakers(state);
        let listed = tripped.iter().flat_map(|trip| trip.nodes.iter().take(NODES_TOLD).map(move |node| (trip, node)));
        for (trip, (name, uid)) in listed {
            let subject = Subject { kind: "Node", namespace: String::new(), name: name.clone(), uid: uid.clone() };
            self.note(subject, EventType::Warning, names::events::DELETION_BREAKER_TRIPPED, &self.message(trip));
        }
        for trip in closed {
            let message = format!("Breaker {} was reset: the reason for which it tripped is gone", trip.id);
            tracing::info!(breaker = trip.id, "{message}");
            self.note_on_map(EventType::Normal, names::events::DELETION_BREAKER_RESET, &message);
        }
    }

    /// An operator released a breaker.
    pub fn released(&mut self, state: &State, trip: &Trip) {
        self.subject = state.subject();
        let message = format!("Breaker {} was released: its {} nodes may be deleted", trip.id, trip.nodes.len());
        tracing::warn!(breaker = trip.id, "{message}");
        self.note_on_map(EventType::Normal, names::events::DELETION_BREAKER_RELEASED, &message);
    }

    /// Why nodes that look gone are kept, besides the breakers; an empty list clears the warning.
    pub fn outcome(&mut self, state: &State, blocks: &[Block], failure: Option<&ActError>) {
        self.subject = state.subject().or_else(|| self.subject.take());
        // Losing the lease or a race is part of life.
        let failure = failure.filter(|error| !matches!(error, ActError::Closed(_) | ActError::State(StateError::Conflict)));
        let reasons: Vec<_> = blocks.iter().map(ToString::to_string).chain(failure.map(ToString::to_string)).collect();
        self.set(DELETION, (!reasons.is_empty()).then(|| format!("no node is deleted: {}", reasons.join("; "))));
    }

    /// The state cannot be read, or not be begun.
    pub fn state_unreadable(&mut self, error: &StateError) {
        if matches!(error, StateError::Conflict) {
            tracing::debug!(%error, "the state is read again");
            return;
        }
        let map = &self.map;
        self.set(DELETION, Some(format!("no node is deleted: ConfigMap {}/{map}: {error}", names::NAMESPACE)));
    }

    /// How the look-ups of a tick went. None at all says nothing.
    pub fn look_ups(&mut self, answers: &[Answered]) {
        if answers.is_empty() {
            return;
        }
        for (node, answer) in answers {
            self.cloud.looked_up(&node.name, answer.as_ref().err());
            if answer.is_err() {
                self.failing.insert(node.name.clone());
            }
        }
        let errors = answers.iter().filter_map(|(_, answer)| answer.as_ref().err());
        let (refused, other): (Vec<_>, Vec<_>) = errors.partition(|error| cloud_health::is_about_credentials(error));
        let message = |error| {
            format!("no node is deleted: the cloud refuses the provider's credentials: {error}; give the provider valid ones")
        };
        self.tell(CREDENTIALS, refused.first().map(message));
        let message = other.first().map(|error| {
            let (failed, asked) = (refused.len() + other.len(), answers.len());
            format!("{failed} of {asked} look-ups failed, and their nodes are kept as they are: {error}")
        });
        self.tell(LOOK_UPS, message);
    }

    /// A tick has ended: nodes that failed in an earlier one and were not asked about again are gone, or well.
    pub fn ticked(&mut self) {
        let failing = std::mem::take(&mut self.failing);
        self.failed.difference(&failing).for_each(|node| self.cloud.forget(node));
        self.failed = failing;
    }

    fn set(&mut self, check: &'static str, message: Option<String>) {
        self.health.set(check, message.clone().map_or(Check::Ok, Check::Warning));
        self.tell(check, message);
    }

    /// Counts and times change from tick to tick: only a new warning is an event.
    fn tell(&mut self, check: &'static str, message: Option<String>) {
        let Some(message) = message else {
            if self.reported.remove(check).is_some() {
                tracing::info!(check, "well again");
            }
            return;
        };
        if self.reported.insert(check, message.clone()).is_none() {
            tracing::warn!(check, "{message}");
            let lookups = check == LOOK_UPS || check == CREDENTIALS;
            let reason = if lookups { names::events::NODE_LOOKUPS_FAILING } else { names::events::NODE_DELETION_PAUSED };
            self.note_on_map(EventType::Warning, reason, &message);
        }
    }

    fn tell_of(&self, trip: &Trip) {
        let message = self.message(trip);
        tracing::error!(breaker = trip.id, nodes = trip.count, "{message}");
        self.note_on_map(EventType::Warning, names::events::DELETION_BREAKER_TRIPPED, &message);
    }

    fn message(&self, trip: &Trip) -> String {
        format!(
            "Node deletion breaker {} is tripped: {}. If these machines are really gone, release it: kubectl -n {} annotate --overwrite \
             configmap {} {}={}",
            trip.id,
            trip.reason,
            names::NAMESPACE,
            self.map,
            names::annotations::RELEASE_BREAKER,
            trip.id
        )
    }

    fn note_on_map(&self, event_type: EventType, reason: &str, message: &str) {
        if let Some(subject) = self.subject.clone() {
            self.note(subject, event_type, reason, message);
        }
    }

    fn note(&self, subject: Subject, event_type: EventType, reason: &str, message: &str) {
        let message = message.chars().take(NOTE_LENGTH).collect();
        self.events.publish(Event { subject, event_type, reason: reason.to_owned(), message });
    }
}

/// Go's event before a DELETE.
pub(super) fn deleting(node: &Node, why: &str) -> Event {
    let message = format!("Deleting node {} because {why}", node.name);
    Event { subject: node.into(), event_type: EventType::Normal, reason: names::events::DELETING_NODE.to_owned(), message }
}

/// Go's event after one that failed.
pub(super) fn deleting_failed(node: &Node, error: &WriteError) -> Event {
    let message = format!("Failed deleting node {}: {error}", node.name);
    Event {
        subject: node.into(),
        event_type: EventType::Warning,
        reason: names::events::DELETING_NODE_FAILED.to_owned(),
        message,
    }
}
