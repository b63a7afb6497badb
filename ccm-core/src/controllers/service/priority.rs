//! How urgent work at a Service is, and which places are kept for it, so that no work waits behind a storm of other calls that take
//! their time.
use std::time::Duration;

use crate::controllers::scheduler;

#[cfg(test)]
mod tests;

/// The time between two Ensure calls for load balancers that may be in the desired state already.
const PACE: Duration = Duration::from_millis(100);

/// How urgent work is, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// A user deleted a Service, or it is of another type or class now.
    Deletion,
    /// A user made or changed a Service.
    Change,
    /// Nodes came or went, for all Services at once.
    Targets,
    /// A call that the cloud is at work on, or that failed, is repeated.
    Again,
    /// Nothing is known to be wrong; the provider is asked for a plan.
    Check,
    /// Nothing is known to be wrong, and only Ensure can tell: one at a time, with a pause after each.
    Paced,
}

impl scheduler::Priority for Priority {
    const ALL: &'static [Self] = &[Self::Deletion, Self::Change, Self::Targets, Self::Again, Self::Check, Self::Paced];

    fn pool(self) -> Self {
        if self == Self::Deletion { Self::Change } else { self }
    }

    /// A quarter of the places is kept for what users do and one for other targets. While work of these kinds waits, a quarter is also
    /// kept for other targets and for what is repeated, and one place for checks.
    fn reserved(self, limit: usize, waits: bool) -> usize {
        let quarter = |enough: usize| if limit >= enough { (limit / 4).max(1) } else { 0 };
        match self {
            Self::Change => quarter(2),
            Self::Targets if waits => quarter(3),
            // What runs may take long, and nodes that are gone cannot wait for that.
            Self::Targets if limit >= 3 => 1,
            Self::Again if waits => quarter(4),
            Self::Check | Self::Paced if limit >= 5 && waits => 1,
            _ => 0,
        }
    }

    fn pace(self) -> Option<Duration> {
        (self == Self::Paced).then_some(PACE)
    }
}
