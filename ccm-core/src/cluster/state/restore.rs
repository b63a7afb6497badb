//! Whether the ConfigMap still has the content that the leader of a term knows, and how to restore it if not. Pure: it reads and
//! writes nothing.
//!
//! During a term identity, epoch and history belong to the leader: any difference was made by another writer, who removed, reset or
//! edited them. Two things do not belong to the leader: the annotation that overrides a breaker, and a history that cannot be read,
//! which a person has to check. A later epoch belongs to another leader, and is never overwritten.
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
    /// A save that failed, but may have been carried out.
    pub attempted: Option<State>,
}

/// How the ConfigMap is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// As known.
    Whole,
    /// Otherwise.
    Damaged(Damage),
    /// Of another leader, with this epoch.
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

/// What to write.
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

/// The keys of the history whose values this leader did not write. A key that cannot be read is left to a person.
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

/// The write that restores it. A manual override that a person requested by the annotation is kept.
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
