//! The cloud's state and the rules by which it changes. Pure: time is an argument, and nothing here waits or writes.
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::derive::{self, Layout};
use super::model::{Action, Change, Failure, FailureCode, Instance, Outcome, PROVIDER_ID_PREFIX, Query, Spec, State, Volume};
use super::validate;

/// What the cloud keeps of one name: the machines that had it, back to what the slowest reader may still see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// How many machines had this name before the present one.
    generation: u32,
    /// Oldest first.
    versions: Vec<Version>,
}

/// What was true from a time on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Version {
    at: Timestamp,
    instance: Option<Instance>,
}

/// Everything the cloud knows.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// Where machines can be.
    pub layout: Layout,
    /// Whether a name that nobody changed has a machine.
    pub auto: bool,
    /// How long changes take until providers see them.
    pub lag: Duration,
    /// What was ever changed, by name.
    pub slots: BTreeMap<String, Slot>,
    /// The disks, by id.
    pub volumes: BTreeMap<String, Volume>,
}

impl World {
    /// The machine as it truly is, hidden or not.
    pub fn truth(&self, name: &str) -> Option<Instance> {
        match self.slots.get(name) {
            Some(slot) => slot.versions.last().and_then(|version| version.instance.clone()),
            None => self.auto(name),
        }
    }

    /// All machines that are stored, as they truly are. Auto-instances are stored once they were changed.
    pub fn stored(&self) -> Vec<Instance> {
        self.slots.values().filter_map(|slot| slot.versions.last()?.instance.clone()).collect()
    }

    /// What a provider that asks at `now` is told.
    pub fn answer(&self, queries: &[Query], now: Timestamp) -> Vec<Outcome> {
        let seen = earlier(now, self.lag);
        let names_by_id = OnceCell::new();
        let by_id = |id: &str| {
            let index: &HashMap<String, &String> = names_by_id.get_or_init(|| self.names_by_id(seen));
            self.seen_at(index.get(id)?, seen)
        };
        queries.iter().map(|query| self.answer_one(query, seen, by_id)).collect()
    }

    fn answer_one(&self, query: &Query, seen: Timestamp, by_id: impl Fn(&str) -> Option<Instance>) -> Outcome {
        let by_name = self.seen_at(&query.name, seen);
        let found = match query.provider_id.as_deref() {
            None => by_name,
            Some(id) if !id.starts_with(PROVIDER_ID_PREFIX) => {
                return Outcome::NotMine(format!("providerID {id:?} does not begin with {PROVIDER_ID_PREFIX}"));
            }
            Some(id) => by_name.filter(|machine| machine.provider_id == id).or_else(|| by_id(id)),
        };
        found.filter(|machine| !machine.hidden).map_or(Outcome::NotFound, Outcome::Found)
    }

    fn seen_at(&self, name: &str, time: Timestamp) -> Option<Instance> {
        let seen = self.slots.get(name).and_then(|slot| slot.seen_at(time));
        seen.map_or_else(|| self.auto(name), |version| version.instance.clone())
    }

    fn auto(&self, name: &str) -> Option<Instance> {
        (self.auto && !name.is_empty()).then(|| derive::auto(&self.layout, name))
    }

    fn names_by_id(&self, time: Timestamp) -> HashMap<String, &String> {
        let machine = |slot: &Slot| Some(slot.seen_at(time)?.instance.as_ref()?.provider_id.clone());
        self.slots.iter().filter_map(|(name, slot)| Some((machine(slot)?, name))).collect()
    }

    /// The world after the change was made to every machine of it; or why it can be made to none.
    pub fn apply(&self, change: &Change, now: Timestamp) -> Result<Self, Failure> {
        let mut next = self.clone();
        let mut unknown = Vec::new();
        for (index, spec) in change.instances.iter().enumerate() {
            validate::spec(&self.layout, &format!("instances[{index}]"), spec)?;
            match next.apply_one(change.action, spec, now) {
                Ok(()) => {}
                Err(failure) if failure.code == FailureCode::Unknown => unknown.push(spec.name.as_str()),
                Err(failure) => return Err(failure),
            }
        }
        if unknown.is_empty() { Ok(next) } else { Err(unknown_instances(&unknown)) }
    }

    fn apply_one(&mut self, action: Action, spec: &Spec, now: Timestamp) -> Result<(), Failure> {
        let name = spec.name.as_str();
        let next = match (action, self.truth(name)) {
            (Action::Add, present) => Some(self.add(present.as_ref(), spec)?),
            // Any name is fine where every name has a machine, one that was forgotten before included.
            (Action::Forget, None) if self.auto => None,
            (_, None) => return Err(unknown_instances(&[name])),
            (action, Some(present)) => transition(action, present)?,
        };
        let horizon = earlier(now, self.lag);
        self.slots.entry(name.to_owned()).or_default().push(next, now, horizon);
        Ok(())
    }

    fn add(&mut self, present: Option<&Instance>, spec: &Spec) -> Result<Instance, Failure> {
        // Nobody has changed an auto-instance: what is said of it now is what it always was.
        let Some(slot) = self.slots.get_mut(&spec.name) else { return Ok(derive::instance(&self.layout, 0, spec)) };
        if let Some(present) = present.filter(|machine| machine.state != State::Deleted) {
            let remedy = if present.hidden { "it is hidden: `unhide` it" } else { "`forget` or `terminate` it first" };
            let message = format!("instance {:?} is there already, {}; {remedy}", spec.name, present.state);
            return Err(Failure::new(FailureCode::Conflict, message));
        }
        slot.generation += 1;
        Ok(derive::instance(&self.layout, slot.generation, spec))
    }

    /// Puts a machine there as if it had always been.
    pub fn seed(&mut self, spec: &Spec) {
        let machine = derive::instance(&self.layout, 0, spec);
        let version = Version { at: Timestamp::UNIX_EPOCH, instance: Some(machine) };
        self.slots.insert(spec.name.clone(), Slot { generation: 0, versions: vec![version] });
    }
}

impl Slot {
    /// `None` where nothing had been changed yet at that time.
    fn seen_at(&self, time: Timestamp) -> Option<&Version> {
        self.versions.iter().rev().find(|version| version.at <= time)
    }

    fn push(&mut self, instance: Option<Instance>, now: Timestamp, horizon: Timestamp) {
        let oldest_seen = self.versions.iter().rposition(|version| version.at <= horizon).unwrap_or(0);
        self.versions.drain(..oldest_seen);
        self.versions.push(Version { at: now, instance });
    }
}

/// What a machine is after an action; `None` is no record at all.
fn transition(action: Action, mut machine: Instance) -> Result<Option<Instance>, Failure> {
    match action {
        Action::Stop | Action::Start if machine.state == State::Deleted => {
            let message = format!("instance {:?} was terminated and can never run again; `add` makes a new one", machine.name);
            return Err(Failure::new(FailureCode::Conflict, message));
        }
        Action::Stop => machine.state = State::Stopped,
        Action::Start => machine.state = State::Running,
        Action::Terminate => machine.state = State::Deleted,
        Action::Hide => machine.hidden = true,
        Action::Unhide => machine.hidden = false,
        Action::Forget => return Ok(None),
        Action::Add => {}
    }
    Ok(Some(machine))
}

fn unknown_instances(names: &[&str]) -> Failure {
    let plural = if names.len() == 1 { "instance" } else { "instances" };
    Failure::new(FailureCode::Unknown, format!("no {plural} {}; `add` makes one, and nothing was changed", names.join(", ")))
}

/// A time so long before another, or the earliest there is.
fn earlier(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_sub(by).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests;
