//! Whether the ConfigMap is still what the leader of a term knows, and what it has to be made of if not. Pure: it reads and
//! writes nothing.
//!
//! During a term identity, epoch and history are the leader's: whatever differs was removed, set back or edited by somebody
//! else. Two things are not the leader's: the annotation that releases a breaker, and a history that cannot be read, which a
//! person has to look at. A later epoch is another leader's, and nothing of that is written over.
use std::fmt;

use super::codec::{BREAKERS, DELETIONS, EPOCH, IDENTITY, RELEASES, SPENT_UNTIL};
use super::{State, Stored};

#[cfg(test)]
mod tests;

/// What the leader of a term knows.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// The cloud identity of the term.
    pub identity: String,
    /// The epoch of the term.
    pub epoch: u64,
    /// As it was last loaded or saved; none: the history could not be read yet.
    pub state: Option<State>,
    /// A save that failed, and that may have been carried out all the same.
    pub attempted: Option<State>,
}

/// How the ConfigMap is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// As known.
    Whole,
    /// Otherwise.
    Damaged(Damage),
    /// Another leader's, of this epoch.
    Superseded(u64),
}

/// What is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// It is not there.
    Deleted,
    /// These keys have other values than the leader gave them, or none.
    Keys(Vec<&'static str>),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deleted => f.write_str("was deleted"),
            Self::Keys(keys) => write!(f, "was changed or emptied ({})", keys.join(", ")),
        }
    }
}

/// What is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    /// All of it.
    Whole(State),
    /// Identity and epoch alone.
    Standing(State),
}

/// Compares what is stored with what is known.
pub(super) fn inspect(known: &Known, stored: Option<&Stored>) -> Finding {
    let Some(stored) = stored else { return Finding::Damaged(Damage::Deleted) };
    match stored.epoch {
        Ok(epoch) if epoch > known.epoch => return Finding::Superseded(epoch),
        _ => {}
    }
    let mut keys = Vec::new();
    if stored.accepted_identity.as_ref() != Some(&known.identity) {
        keys.push(IDENTITY);
    }
    if stored.epoch != Ok(known.epoch) {
        keys.push(EPOCH);
    }
    keys.extend(changed_history(known, stored));
    if keys.is_empty() { Finding::Whole } else { Finding::Damaged(Damage::Keys(keys)) }
}

/// The keys of the history that are as nobody here left them. One that cannot be read is for a person to look at.
fn changed_history(known: &Known, stored: &Stored) -> Vec<&'static str> {
    let (Ok(now), Some(last)) = (&stored.history, &known.state) else { return Vec::new() };
    let differences = |state: &State| {
        [
            (DELETIONS, now.deletions != state.deletions),
            (SPENT_UNTIL, now.budget_spent_until != state.budget_spent_until),
            (BREAKERS, now.trips != state.trips),
            (RELEASES, now.releases != state.releases),
        ]
        .into_iter()
        .filter_map(|(key, differs)| differs.then_some(key))
        .collect::<Vec<_>>()
    };
    if known.attempted.as_ref().is_some_and(|attempted| differences(attempted).is_empty()) {
        return Vec::new();
    }
    differences(last)
}

/// What makes it whole. What people ask for by an annotation stays asked for.
pub(super) fn repair(known: &Known, stored: Option<Stored>) -> Repair {
    let release_request = match &stored {
        Some(stored) => stored.release_request.clone(),
        None => known.state.as_ref().and_then(|state| state.release_request.clone()),
    };
    let object = stored.as_ref().map(|stored| stored.object.clone());
    let standing = |history: State| State {
        accepted_identity: Some(known.identity.clone()),
        epoch: known.epoch,
        release_request: release_request.clone(),
        object: object.clone(),
        ..history
    };
    match (stored.map(|stored| stored.history), &known.state) {
        (Some(Err(_)), _) => Repair::Standing(standing(State::default())),
        (_, Some(last)) => Repair::Whole(standing(last.clone())),
        (None, None) => Repair::Whole(standing(State::default())),
        (Some(Ok(history)), None) => Repair::Whole(standing(history.into())),
    }
}
