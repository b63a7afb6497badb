//! Which objects are worked on now, which wait for a place, and which wait for a time. One pure state machine for every controller
//! that works object by object; [`drive`] is the loop around it.
//!
//! It knows keys, priorities and times, and nothing about what is done with an object. Time is an argument.
//!
//! The life of a key: it is [`name`](Scheduler::name)d, since something about the object may have changed. The controller looks at it
//! ([`take_named`](Scheduler::take_named)) and says what is due: nothing, something at a priority, or nothing before a time. What is
//! due waits in its priority queue until [`next`](Scheduler::next) gives it a place. A key has at most one place. A key that is named
//! while it has one is looked at again afterwards.
pub mod drive;
pub mod outage;
pub mod rate_limit;
pub mod retry;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::rate_limit::RateLimit;

/// What an object is found by.
pub type Key = Arc<str>;

/// How many times in a row a higher priority goes before a lower one that waits, where both have room.
const STREAK: u32 = 8;

/// How urgent work is. The order of the type is the order of the queues, the smallest first.
pub trait Priority: Copy + Ord + Debug + Send + 'static {
    /// Every priority.
    const ALL: &'static [Self];

    /// The priority whose reserved places work at this one uses.
    #[must_use]
    fn pool(self) -> Self {
        self
    }

    /// How many of `limit` places the other pools leave to this one; `waits` says whether work of this pool waits now.
    fn reserved(self, _limit: usize, _waits: bool) -> usize {
        0
    }

    /// The time between two beginnings of work at this priority, which is then also done one at a time.
    fn pace(self) -> Option<Duration> {
        None
    }
}

/// What the end of work says about the calls that all objects share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// No call was answered.
    No,
    /// A call was answered, and the account's limit was not the answer.
    Yes,
    /// The cloud limits the rate of calls of the whole account: no work begins for so long, if it said so.
    RateLimited(Option<Duration>),
}

/// The scheduler.
#[derive(Debug)]
pub struct Scheduler<P> {
    entries: HashMap<Key, Entry<P>>,
    named: VecDeque<Key>,
    queues: BTreeMap<P, BTreeMap<u64, Key>>,
    running: BTreeMap<P, usize>,
    timers: BTreeSet<(Instant, Key)>,
    /// When work of a paced priority may begin again.
    paced: BTreeMap<P, Instant>,
    rate_limit: RateLimit,
    /// The key whose call probes the rate limit.
    probe: Option<Key>,
    /// The number of the last place in a queue.
    last: u64,
    /// How many times in a row lower priorities were passed over.
    streak: u32,
}

#[derive(Debug)]
struct Entry<P> {
    named: bool,
    queued: Option<(P, u64)>,
    running: Option<(P, Instant)>,
    not_before: Option<Instant>,
}

impl<P> Default for Entry<P> {
    fn default() -> Self {
        Self { named: false, queued: None, running: None, not_before: None }
    }
}

impl<P> Entry<P> {
    fn is_idle(&self) -> bool {
        !self.named && self.queued.is_none() && self.running.is_none() && self.not_before.is_none()
    }
}

impl<P: Priority> Default for Scheduler<P> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            named: VecDeque::new(),
            queues: BTreeMap::new(),
            running: BTreeMap::new(),
            timers: BTreeSet::new(),
            paced: BTreeMap::new(),
            rate_limit: RateLimit::default(),
            probe: None,
            last: 0,
            streak: 0,
        }
    }
}

impl<P: Priority> Scheduler<P> {
    /// Something about the object may have changed: it is to be looked at.
    pub fn name(&mut self, key: impl Into<Key>) {
        let key = key.into();
        let entry = self.entries.entry(Arc::clone(&key)).or_default();
        if !std::mem::replace(&mut entry.named, true) && entry.running.is_none() {
            self.named.push_back(key);
        }
    }

    /// The next key to look at. The caller answers with [`queue`](Self::queue), [`rest`](Self::rest) or [`idle`](Self::idle).
    pub fn take_named(&mut self) -> Option<Key> {
        loop {
            let key = self.named.pop_front()?;
            match self.entries.get_mut(&key) {
                // It began meanwhile, and is named again when that ends.
                Some(entry) if entry.running.is_some() => {}
                Some(entry) => {
                    entry.named = false;
                    return Some(key);
                }
                None => return Some(key),
            }
        }
    }

    /// Whether a key is yet to be looked at.
    pub fn has_named(&self) -> bool {
        !self.named.is_empty()
    }

    /// Work is due for a key. Where it waits at this priority already, it keeps its place.
    pub fn queue(&mut self, key: &Key, priority: P) {
        self.stop_timer(key);
        let entry = self.entries.entry(Arc::clone(key)).or_default();
        if entry.running.is_some() || entry.queued.is_some_and(|(at, _)| at == priority) {
            return;
        }
        self.leave_queue(key);
        self.last += 1;
        let (place, entry) = ((priority, self.last), self.entries.entry(Arc::clone(key)).or_default());
        entry.queued = Some(place);
        self.queues.entry(priority).or_default().insert(place.1, Arc::clone(key));
    }

    /// Nothing is due for a key before `at`; it is looked at again then.
    pub fn rest(&mut self, key: &Key, at: Instant) {
        self.leave_queue(key);
        self.stop_timer(key);
        self.entries.entry(Arc::clone(key)).or_default().not_before = Some(at);
        self.timers.insert((at, Arc::clone(key)));
    }

    /// Nothing is due for a key until it is named.
    pub fn idle(&mut self, key: &Key) {
        self.leave_queue(key);
        self.stop_timer(key);
        if self.entries.get(key).is_some_and(Entry::is_idle) {
            self.entries.remove(key);
        }
    }

    /// The key whose work is to begin now, while at most `limit` are worked on; it has left its queue. The caller answers with
    /// [`begin`](Self::begin), or as to a named key.
    pub fn next(&mut self, limit: usize, now: Instant) -> Option<(Key, P)> {
        if self.counted() >= self.rate_limit.places(limit.max(1), now) {
            return None;
        }
        let priority = self.choose(limit.max(1), now)?;
        let (_, key) = self.queues.get_mut(&priority)?.pop_first()?;
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.queued = None;
        }
        Some((key, priority))
    }

    /// Work at a key has begun.
    pub fn begin(&mut self, key: &Key, priority: P, now: Instant) {
        self.leave_queue(key);
        self.stop_timer(key);
        self.entries.entry(Arc::clone(key)).or_default().running = Some((priority, now));
        *self.running.entry(priority).or_default() += 1;
        self.probe = self.rate_limit.is_probed().then(|| Arc::clone(key));
        if let Some(pace) = priority.pace() {
            self.paced.insert(priority, now + pace);
        }
    }

    /// Work at a key has ended; the key is looked at again.
    pub fn finish(&mut self, key: &Key, answered: Answered, now: Instant) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Some((priority, began)) = entry.running.take() else { return };
        entry.named = true;
        self.named.push_back(Arc::clone(key));
        if let Some(running) = self.running.get_mut(&priority) {
            *running = running.saturating_sub(1);
        }
        self.probe.take_if(|probe| probe == key);
        match answered {
            Answered::No => {}
            Answered::Yes => self.rate_limit.answered(began),
            Answered::RateLimited(after) => self.rate_limit.limited(after, now),
        }
    }

    /// Names every key whose time has come.
    pub fn wake(&mut self, now: Instant) {
        while self.timers.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, key)) = self.timers.pop_first() else { return };
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.not_before = None;
            }
            self.name(key);
        }
    }

    /// When something may be due that is not now.
    pub fn wake_at(&self, now: Instant) -> Option<Instant> {
        let timer = self.timers.first().map(|(at, _)| *at);
        let paced = self.paced.iter().filter(|(priority, at)| **at > now && self.waits(**priority)).map(|(_, at)| *at);
        paced.chain(timer).chain(self.rate_limit.paused_until(now)).min()
    }

    /// Until when the cloud's rate limit lets no work begin; `None` where it does not.
    pub fn paused_until(&self, now: Instant) -> Option<Instant> {
        self.rate_limit.paused_until(now)
    }

    /// Another provider was connected: what the last one said of its limits is forgotten.
    pub fn forget_rate_limit(&mut self) {
        (self.rate_limit, self.probe) = (RateLimit::default(), None);
    }

    /// Whether work of a priority waits or runs.
    pub fn is_busy(&self, priority: P) -> bool {
        self.waits(priority) || self.running_at(priority) > 0
    }

    /// How many keys are worked on.
    pub fn running_total(&self) -> usize {
        self.running.values().sum()
    }

    /// How many of what runs count where places are few: once the cloud has refused, the call that probes and none of before.
    fn counted(&self) -> usize {
        if self.rate_limit.is_probed() { usize::from(self.probe.is_some()) } else { self.running_total() }
    }

    /// The highest priority that waits and has room, but now and then the lower one that has waited longest.
    fn choose(&mut self, limit: usize, now: Instant) -> Option<P> {
        let ready: Vec<P> = P::ALL.iter().copied().filter(|it| self.waits(*it) && self.has_room(*it, limit, now)).collect();
        let (top, lower) = ready.split_first()?;
        let first = |priority: &P| self.queues.get(priority).and_then(|queue| queue.keys().next().copied());
        let oldest = lower.iter().copied().min_by_key(first);
        match oldest {
            Some(priority) if self.streak >= STREAK => {
                self.streak = 0;
                Some(priority)
            }
            passed_over => {
                self.streak = if passed_over.is_some() { self.streak + 1 } else { 0 };
                Some(*top)
            }
        }
    }

    fn has_room(&self, priority: P, limit: usize, now: Instant) -> bool {
        let others = P::ALL.iter().copied().filter(|other| other.pool() == *other && *other != priority.pool());
        let reserved: usize = others.map(|pool| self.kept_free(pool, limit)).sum();
        let in_pace = priority.pace().is_none()
            || (self.running_at(priority) == 0 && self.paced.get(&priority).is_none_or(|at| *at <= now));
        in_pace && self.running_total() + reserved < limit
    }

    fn kept_free(&self, pool: P, limit: usize) -> usize {
        let users = || P::ALL.iter().copied().filter(|priority| priority.pool() == pool);
        let running: usize = users().map(|priority| self.running_at(priority)).sum();
        pool.reserved(limit, users().any(|priority| self.waits(priority))).saturating_sub(running)
    }

    fn running_at(&self, priority: P) -> usize {
        self.running.get(&priority).copied().unwrap_or_default()
    }

    fn waits(&self, priority: P) -> bool {
        self.queues.get(&priority).is_some_and(|queue| !queue.is_empty())
    }

    fn leave_queue(&mut self, key: &Key) {
        let Some((priority, number)) = self.entries.get_mut(key).and_then(|entry| entry.queued.take()) else { return };
        if let Some(queue) = self.queues.get_mut(&priority) {
            queue.remove(&number);
        }
    }

    fn stop_timer(&mut self, key: &Key) {
        if let Some(at) = self.entries.get_mut(key).and_then(|entry| entry.not_before.take()) {
            self.timers.remove(&(at, Arc::clone(key)));
        }
    }
}
