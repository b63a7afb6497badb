//! When the driver has to look up: changes of nodes are gathered, calls are paced, checks are spread, a limited cloud is left
//! in peace. Pure: time is an argument.
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rand::seq::SliceRandom;

#[cfg(test)]
mod tests;

/// Nodes that change together are one change if no more than this lies between them,
const QUIET: Duration = Duration::from_millis(100);
/// and if they don't come to rest, after this.
const RESTLESS: Duration = Duration::from_secs(1);
/// The time between two calls that change a load balancer of which nobody knows whether it must be changed.
const PACE: Duration = Duration::from_millis(100);
/// The shortest time between two checks for drift.
const CHECK_PACE: Duration = Duration::from_millis(20);
/// For how long nothing but failures is an outage.
const OUTAGE: Duration = Duration::from_secs(5);
/// How long all is left in peace at least when the cloud limits the rate of calls, whatever it says,
const SHORTEST_CALM: Duration = Duration::from_millis(100);
/// how long where it doesn't say; this doubles each time,
const FIRST_CALM: Duration = Duration::from_secs(1);
/// up to this.
const LONGEST_CALM: Duration = Duration::from_mins(1);

/// The times.
#[derive(Debug)]
pub struct Timing {
    nodes: Option<Gathering>,
    doubt: Option<Instant>,
    paced: Option<Instant>,
    calm: Option<Instant>,
    refusals: u32,
    /// When a call was last answered as it should be.
    well: Instant,
    /// Whether one failed since.
    trouble: bool,
    drift_period: Duration,
    check: Option<Instant>,
    check_pace: Duration,
    round: VecDeque<String>,
    sync: Option<Instant>,
}

#[derive(Debug)]
struct Gathering {
    first: Instant,
    last: Instant,
}

impl Gathering {
    fn due(&self) -> Instant {
        (self.last + QUIET).min(self.first + RESTLESS)
    }
}

impl Timing {
    /// Nothing is due. The first check comes at a random time, so that restarts don't line up; without a period there is none.
    pub fn new(drift_period: Option<Duration>, now: Instant) -> Self {
        let check = drift_period.map(|period| now + period.mul_f64(rand::random_range(0.1..1.0)));
        Self {
            nodes: None,
            doubt: None,
            paced: None,
            calm: None,
            refusals: 0,
            well: now,
            trouble: false,
            drift_period: drift_period.unwrap_or_default(),
            check,
            check_pace: CHECK_PACE,
            round: VecDeque::new(),
            sync: None,
        }
    }

    /// When to look up next; `paced` says whether somebody waits for the pace.
    pub fn next(&self, paced: bool, now: Instant) -> Option<Instant> {
        let nodes = self.nodes.as_ref().map(Gathering::due);
        let paced = self.paced.filter(|at| paced && *at > now);
        let calm = self.calm.filter(|until| *until > now);
        [nodes, self.doubt, paced, calm, self.check].into_iter().flatten().min()
    }

    /// A node has changed.
    pub fn nodes_changed(&mut self, now: Instant) {
        self.nodes.get_or_insert(Gathering { first: now, last: now }).last = now;
    }

    /// Whether changes of nodes are gathered that are yet to be applied.
    pub fn nodes_are_waiting(&self) -> bool {
        self.nodes.is_some()
    }

    /// Whether changes of nodes are to be applied now.
    pub fn nodes_are_due(&mut self, now: Instant) -> bool {
        let due = self.nodes.as_ref().is_some_and(|nodes| nodes.due() <= now);
        if due {
            self.nodes = None;
        }
        due
    }

    /// Until when an empty set of targets is not believed.
    pub fn doubt(&mut self, until: Option<Instant>) {
        self.doubt = until;
    }

    /// Whether it is believed from now on.
    pub fn doubt_is_over(&mut self, now: Instant) -> bool {
        let over = self.doubt.is_some_and(|until| until <= now);
        if over {
            self.doubt = None;
        }
        over
    }

    /// A paced call was made.
    pub fn paced(&mut self, now: Instant) {
        self.paced = Some(now + PACE);
    }

    /// Whether the next paced call may be made.
    pub fn paced_is_due(&self, now: Instant) -> bool {
        self.paced.is_none_or(|at| at <= now)
    }

    /// The cloud limits the rate of calls: nothing is begun for so long, which this answers.
    pub fn calm(&mut self, after: Option<Duration>, now: Instant) -> Duration {
        // Many calls that are refused at once are one refusal.
        if self.calm.is_none_or(|until| until <= now) {
            self.refusals = self.refusals.saturating_add(1);
        }
        let doubled = FIRST_CALM.saturating_mul(2_u32.saturating_pow(self.refusals.saturating_sub(1)));
        let length = after.map_or(doubled.min(LONGEST_CALM), |after| after.max(SHORTEST_CALM));
        self.calm = self.calm.max(Some(now + length));
        length
    }

    /// Whether nothing may be begun.
    pub fn is_calm(&mut self, now: Instant) -> bool {
        self.calm = self.calm.filter(|until| *until > now);
        self.calm.is_some()
    }

    /// Another provider is another cloud's door.
    pub fn calm_is_over(&mut self) {
        self.calm = None;
    }

    /// A call failed that may succeed by itself.
    pub fn trouble(&mut self) {
        self.trouble = true;
    }

    /// A call was answered as it should be. True if that is the end of an outage: for some time there were failures and nothing
    /// else. Where some calls fail and others don't, each waits for itself.
    pub fn all_is_well(&mut self, now: Instant) -> bool {
        let outage = std::mem::take(&mut self.trouble) && now.saturating_duration_since(self.well) >= OUTAGE;
        self.well = now;
        self.refusals = 0;
        outage
    }

    /// The Service whose turn it is to be compared with the cloud. `all` is asked at the beginning of a round; a round takes the
    /// whole period, and its order is random.
    pub fn next_check(&mut self, now: Instant, all: impl FnOnce() -> Vec<String>) -> Option<String> {
        self.check.filter(|at| *at <= now)?;
        if self.round.is_empty() {
            let mut keys = all();
            keys.shuffle(&mut rand::rng());
            let share = self.drift_period / u32::try_from(keys.len()).unwrap_or(u32::MAX).max(1);
            self.check_pace = share.max(CHECK_PACE);
            self.round = keys.into();
        }
        self.check = Some(now + self.check_pace);
        self.round.pop_front()
    }

    /// Other targets are being given to load balancers.
    pub fn sync_began(&mut self, now: Instant) {
        self.sync.get_or_insert(now);
    }

    /// All have them: how long it took.
    pub fn sync_ended(&mut self, now: Instant) -> Option<Duration> {
        Some(now.saturating_duration_since(self.sync.take()?))
    }
}
