//! What failed, about a destination or a node, and when it is tried again. Pure but for the jitter of pauses.
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::time::{Duration, Instant};

use crate::controllers::scheduler::retry::{Pause, Pauses, Retry};
use crate::model::route::RouteOutcome;
use crate::provider::{Outcome, ProviderError};

/// The pauses after failures.
pub const PAUSES: Pauses = Pauses {
    first: Duration::from_secs(1),
    longest: Duration::from_mins(5),
    first_terminal: Duration::from_secs(15),
    longest_terminal: Duration::from_mins(5),
};
/// So many failures in a row that may pass by themselves count as one that does not.
const LASTING: u32 = 3;
/// The route was changed by someone else meanwhile.
const CONFLICT: &str = "CONFLICT";

/// What a call did not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The cloud has not finished; the same call again after this.
    InProgress(Duration),
    /// The cloud does not know the machine.
    TargetNotFound,
    /// Only a person can fix it.
    Terminal,
    /// It may pass by itself.
    Retry(Option<Duration>),
    /// The table is not as believed.
    Conflict(Option<Duration>),
    /// The cloud limits the rate of all calls: nothing is wrong with this one.
    RateLimited(Option<Duration>),
    /// The provider does not serve the call.
    Unsupported,
    /// It is unknown what became of the call.
    Unknown,
    /// There was no provider to answer.
    Absent,
}

impl Failure {
    /// What a result leaves to do; `None`: it is done.
    pub fn of(result: &Result<RouteOutcome, ProviderError>) -> Option<Self> {
        match result {
            Ok(RouteOutcome::Done) => None,
            Ok(RouteOutcome::InProgress(after)) => Some(Self::InProgress(*after)),
            Ok(RouteOutcome::TargetNotFound) => Some(Self::TargetNotFound),
            Err(error) => Some(Self::from(error)),
        }
    }

    /// Whether the table has to be listed before it is known what is there.
    pub fn needs_list(self) -> bool {
        matches!(self, Self::Conflict(_) | Self::Unknown | Self::Absent)
    }

    /// Whether it says that the route cannot be made for now.
    fn is_definite(self) -> bool {
        matches!(self, Self::TargetNotFound | Self::Terminal)
    }

    fn may_last(self) -> bool {
        matches!(self, Self::Retry(_) | Self::Conflict(_) | Self::Unknown)
    }

    /// When to try again.
    pub fn pause(self) -> Pause {
        match self {
            Self::InProgress(after) => Pause::Exactly(after),
            Self::RateLimited(_) => Pause::Exactly(Duration::ZERO),
            Self::Terminal | Self::Unsupported => Pause::Terminal,
            Self::Retry(after) | Self::Conflict(after) => Pause::BackOff { at_least: after },
            Self::TargetNotFound | Self::Unknown | Self::Absent => Pause::BackOff { at_least: None },
        }
    }
}

impl From<&ProviderError> for Failure {
    fn from(error: &ProviderError) -> Self {
        match error.outcome {
            _ if error.is_absence() => Self::Absent,
            Outcome::Terminal => Self::Terminal,
            Outcome::Retry { after } if error.is_rate_limit() => Self::RateLimited(after),
            Outcome::Retry { after } if error.reason == CONFLICT => Self::Conflict(after),
            Outcome::Retry { after } => Self::Retry(after),
            Outcome::Unsupported => Self::Unsupported,
            Outcome::Unknown => Self::Unknown,
        }
    }
}

#[derive(Debug, Default)]
struct Trouble {
    retry: Retry,
    with: u64,
    failures: u32,
    has_failed: bool,
    /// When it is looked at again.
    due: Option<Instant>,
}

/// What failed last: destinations whose route was not made or removed, and nodes whose condition was not written.
#[derive(Debug)]
pub struct Troubles<K> {
    by_key: HashMap<K, Trouble>,
    due: BTreeSet<(Instant, K)>,
}

impl<K> Default for Troubles<K> {
    fn default() -> Self {
        Self { by_key: HashMap::new(), due: BTreeSet::new() }
    }
}

impl<K: Clone + Ord + Hash> Troubles<K> {
    /// A call that was made with `with` failed.
    pub fn failed(&mut self, key: K, failure: Failure, with: u64, now: Instant) {
        let trouble = self.by_key.entry(key.clone()).or_default();
        if trouble.with != with {
            trouble.failures = 0;
            trouble.has_failed = false;
        }
        trouble.with = with;
        trouble.failures += u32::from(failure.may_last());
        trouble.has_failed |= failure.is_definite() || trouble.failures >= LASTING;
        trouble.retry.again(failure.pause(), with, &PAUSES, now);
        let due = trouble.retry.not_before(with, now);
        let before = std::mem::replace(&mut trouble.due, due);
        if let Some(at) = before {
            self.due.remove(&(at, key.clone()));
        }
        self.due.extend(due.map(|at| (at, key)));
    }

    /// All is well, or nothing is to be done.
    pub fn forget(&mut self, key: &K) {
        if let Some(due) = self.by_key.remove(key).and_then(|trouble| trouble.due) {
            self.due.remove(&(due, key.clone()));
        }
    }

    /// Until when a call with `with` waits.
    pub fn not_before(&self, key: &K, with: u64, now: Instant) -> Option<Instant> {
        self.by_key.get(key)?.retry.not_before(with, now)
    }

    /// Whether the route could not be made, made with `with`.
    pub fn has_failed(&self, key: &K, with: u64) -> bool {
        self.by_key.get(key).is_some_and(|trouble| trouble.with == with && trouble.has_failed)
    }

    /// The cloud is back: what may succeed now is not left to its pause. Answers about what.
    pub fn retry_now(&mut self) -> Vec<K> {
        let waiting = self.by_key.iter_mut().filter_map(|(key, it)| it.retry.retry_now().then(|| key.clone()));
        waiting.collect()
    }

    /// Every pause is over: there is another provider.
    pub fn end_pauses(&mut self) {
        self.by_key.values_mut().for_each(|trouble| trouble.retry.end_pause());
    }

    /// Those whose pause is over.
    pub fn take_due(&mut self, now: Instant) -> Vec<K> {
        let mut over = Vec::new();
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            over.extend(self.due.pop_first().map(|(_, key)| key));
        }
        over
    }

    /// When the next pause is over.
    pub fn due_at(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }
}
