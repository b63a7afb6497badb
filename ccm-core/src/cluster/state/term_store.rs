//! The state during one term: one place remembers what the leader has loaded and saved. From that it restores a ConfigMap that is
//! deleted, emptied or set back before any caller sees it.
//!
//! It does not decide what may be deleted, and it never overwrites what a later leader wrote.
use std::sync::Arc;

use tokio::sync::Mutex;

use super::accepted::Accepted;
use super::restore::{Damage, Finding, Known, Repair, inspect, repair};
use super::{State, StateError, StateStore, Stored};
use crate::cluster::events::{Event, EventType, Events, Subject};
use crate::cluster::gate::Gate;
use crate::names;

#[cfg(test)]
mod tests;

/// How often a ConfigMap that changed meanwhile is read again before the conflict is reported.
const ATTEMPTS: usize = 5;

/// The ConfigMap of a term. Clones share what is known.
#[derive(Clone)]
pub struct TermStore {
    store: StateStore,
    gate: Gate,
    events: Events,
    worked_before: bool,
    /// Locked during each request, so that this process does not change what it compares.
    known: Arc<Mutex<Known>>,
}

/// What is written before a term begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// The accepted cloud identity.
    pub identity: String,
    /// The epoch.
    pub epoch: u64,
    /// ccm-core has led in this cluster before: a history that is missing was lost.
    pub worked_before: bool,
    /// The ConfigMap is older than the last term: its history is lost, and its breakers stay.
    pub set_back: bool,
}

impl TermStore {
    /// Begins a term from the content that was read, by writing the term's identity and epoch. After [`StateError::Conflict`] the
    /// caller has to read again. A history that cannot be read stays as it is. `gate` is asked before each restoration.
    pub async fn begin(
        store: StateStore,
        stored: Option<Stored>,
        beginning: Beginning,
        gate: Gate,
        events: Events,
    ) -> Result<Self, StateError> {
        let Beginning { identity, epoch, worked_before, set_back } = beginning;
        let stored = if set_back { stored.map(Stored::without_history) } else { stored };
        let mut known = Known { identity, epoch, state: None, attempted: None };
        known.state = write(&store, repair(&known, stored)).await?;
        Ok(Self { store, gate, events, worked_before, known: Arc::new(Mutex::new(known)) })
    }

    /// A term over a ConfigMap that has its identity and epoch already: for tests.
    #[cfg(test)]
    pub fn begun(store: StateStore, beginning: Beginning, gate: Gate, events: Events) -> Self {
        let Beginning { identity, epoch, worked_before, .. } = beginning;
        let known = Known { identity, epoch, state: None, attempted: None };
        Self { store, gate, events, worked_before, known: Arc::new(Mutex::new(known)) }
    }

    /// Whether ccm-core has led in this cluster before this term.
    pub fn worked_before(&self) -> bool {
        self.worked_before
    }

    /// The ConfigMap's name.
    pub fn name(&self) -> &str {
        self.store.name()
    }

    /// What events about it refer to, as far as it could be read.
    pub async fn subject(&self) -> Option<Subject> {
        self.known.lock().await.state.as_ref().and_then(State::subject)
    }

    /// The state as it is now, restored if that was necessary.
    pub async fn load(&self) -> Result<State, StateError> {
        let mut known = self.known.lock().await;
        for _ in 0..ATTEMPTS {
            let stored = self.store.load().await?;
            let state = match inspect(&known, stored.as_ref()) {
                Finding::Superseded(stored) => return Err(StateError::Superseded { stored, epoch: known.epoch }),
                Finding::Whole => stored.map(Stored::into_state).transpose()?,
                Finding::Damaged(damage) => match self.restore(&known, stored, &damage).await {
                    Err(StateError::Conflict) => continue,
                    restored => restored?,
                },
            };
            // Without one, the history cannot be read: the next iteration returns that error.
            let Some(state) = state else { continue };
            known.state = Some(state.clone());
            known.attempted = None;
            return Ok(state);
        }
        Err(StateError::Conflict)
    }

    /// Writes a state that came from [`Self::load`], under the identity and the epoch of the term. On [`StateError::Conflict`]
    /// nothing was written, and it has to be loaded again.
    pub async fn save(&self, state: &mut State) -> Result<(), StateError> {
        let mut known = self.known.lock().await;
        (state.accepted_identity, state.epoch) = (Some(known.identity.clone()), known.epoch);
        known.attempted = Some(state.clone());
        self.store.save(state).await?;
        known.state = Some(state.clone());
        known.attempted = None;
        Ok(())
    }

    /// The state that was written; none if just identity and epoch were.
    async fn restore(&self, known: &Known, stored: Option<Stored>, damage: &Damage) -> Result<Option<State>, StateError> {
        if self.gate.check_lease() != Ok(known.epoch) {
            return Err(StateError::NotLeading);
        }
        let subject = stored.as_ref().map(Stored::subject);
        let state = write(&self.store, repair(known, stored)).await?;
        self.tell(known, damage, state.as_ref().and_then(State::subject).or(subject));
        Ok(state)
    }

    fn tell(&self, known: &Known, damage: &Damage, subject: Option<Subject>) {
        let message = format!(
            "ConfigMap {}/{} {damage} while ccm-core leads: restored, with cloud identity {:?} and epoch {}",
            names::NAMESPACE,
            self.name(),
            known.identity,
            known.epoch
        );
        tracing::warn!("{message}");
        if let Some(subject) = subject {
            let reason = names::events::STATE_RESTORED.to_owned();
            self.events.publish(Event { subject, event_type: EventType::Warning, reason, message });
        }
    }
}

/// The state that was written; none if just identity and epoch were.
async fn write(store: &StateStore, repair: Repair) -> Result<Option<State>, StateError> {
    match repair {
        Repair::Whole(mut state) => {
            store.save(&mut state).await?;
            Ok(Some(state))
        }
        Repair::Standing(state) => {
            let object = state.object.as_ref().ok_or(StateError::Conflict)?;
            store.save_standing(&state, object).await?;
            Ok(None)
        }
    }
}

impl Beginning {
    /// Of the next term in a cloud that is accepted. `seen`: the highest epoch that its provider is known to have seen.
    pub fn after(accepted: &Accepted, identity: &str, seen: u64, transitions: u64) -> Self {
        Self {
            identity: identity.to_owned(),
            epoch: accepted.next_epoch(seen, transitions),
            worked_before: accepted.worked_before(),
            set_back: accepted.set_back,
        }
    }
}
