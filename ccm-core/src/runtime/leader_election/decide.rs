//! The election as a pure function: the last record of the lease, the time since when this process has seen it, and the time now
//! give the next action. It follows client-go's `leaderelection`, so that both can contend for one lease. Another holder's term ends
//! when this process has seen its record unchanged for its duration; wall-clock times are for people and never compared.
//!
//! Two differences from client-go are intended: a deleted lease is created again only after the last seen holder's duration is
//! over, and with its count of transitions, because the epoch grows from that count.
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// The content of the lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The holder; empty if there is none.
    pub holder: String,
    /// How long, in seconds, other replicas wait without seeing a change.
    pub seconds: u32,
    /// How often it changed hands.
    pub transitions: u32,
    /// When this holder acquired it, by the holder's wall clock.
    pub acquired: Option<Timestamp>,
    /// When it was last renewed, by the holder's wall clock.
    pub renewed: Option<Timestamp>,
}

/// A record, and since when this process has seen it unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// What was seen.
    pub record: Record,
    /// When this record was first seen; for this process's own writes, when the request was sent.
    pub since: Instant,
}

/// Who contends.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// This process's name in the lease, unlike any other's.
    pub identity: String,
    /// What it writes as the lease's duration; whole seconds.
    pub lease_duration: Duration,
}

/// What to do about the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// There is none: create it so.
    Create(Record),
    /// Take it, or renew it: write this over what was read.
    Write(Record),
    /// Another process holds it until then, or longer if it renews.
    Wait {
        /// Whose.
        holder: String,
        /// By this process's clock.
        until: Instant,
    },
}

impl Observation {
    /// When the holder's term ends unless the record changes.
    pub fn expires(&self) -> Instant {
        self.since + Duration::from_secs(self.record.seconds.into())
    }
}

/// The observation after reading `record` at `now`: its age starts at zero again only if it changed.
pub fn observe(known: Option<Observation>, record: Record, now: Instant) -> Observation {
    match known {
        Some(known) if known.record == record => known,
        _ => Observation { record, since: now },
    }
}

/// Whether the lease can be renewed without reading it first: this process held it, and still does by its own clock.
pub fn may_renew_unread(candidate: &Candidate, known: Option<&Observation>, now: Instant) -> bool {
    known.is_some_and(|known| known.record.holder == candidate.identity && now < known.expires())
}

/// What to do after reading the lease. `found` says whether there is one; `known` is what was last observed of it, including this
/// reading; `wall` is written as time of acquisition and renewal.
pub fn decide(candidate: &Candidate, known: Option<&Observation>, found: bool, now: Instant, wall: Timestamp) -> Action {
    if let Some(other) = known.filter(|known| is_anothers(candidate, known, now)) {
        return Action::Wait { holder: other.record.holder.clone(), until: other.expires() };
    }
    let record = claim(candidate, known.map(|known| &known.record), wall);
    if found { Action::Write(record) } else { Action::Create(record) }
}

/// The record that releases the lease: without a holder, and expired after a second for processes that wait for that.
pub fn released(held: &Record, wall: Timestamp) -> Record {
    Record { holder: String::new(), seconds: 1, transitions: held.transitions, acquired: Some(wall), renewed: Some(wall) }
}

fn is_anothers(candidate: &Candidate, known: &Observation, now: Instant) -> bool {
    !known.record.holder.is_empty() && known.record.holder != candidate.identity && now < known.expires()
}

/// The record of this process as the holder: a renewal keeps the count and the time of acquisition.
pub fn claim(candidate: &Candidate, known: Option<&Record>, wall: Timestamp) -> Record {
    let (transitions, acquired) = match known {
        None => (0, Some(wall)),
        Some(ours) if ours.holder == candidate.identity => (ours.transitions, ours.acquired),
        Some(other) => (other.transitions.saturating_add(1), Some(wall)),
    };
    let seconds = u32::try_from(candidate.lease_duration.as_secs()).unwrap_or(u32::MAX);
    Record { holder: candidate.identity.clone(), seconds, transitions, acquired, renewed: Some(wall) }
}

#[cfg(test)]
mod tests;
