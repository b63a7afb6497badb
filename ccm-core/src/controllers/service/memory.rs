//! What the driver remembers of one Service between two looks at it.
use std::sync::Arc;

use super::decide::Lane;
use super::observe::{Failed, Known};
use super::work::Next;
use crate::controllers::queue::Pause;

/// What is remembered of one Service.
#[derive(Default)]
pub struct Memory {
    /// Which Service it is.
    pub uid: String,
    /// What it was like when it was last worked at, or first seen.
    pub seen: u64,
    /// What the nodes were like when it was first seen.
    pub trigger: Option<Arc<str>>,
    /// What is known of its load balancer.
    pub known: Known,
    /// Whether its turn has come to be compared with the cloud.
    pub check_due: bool,
}

impl Memory {
    /// Work in a lane has ended.
    pub fn learn(&mut self, known: Known, next: Next, lane: Lane) {
        self.known = if lane == Lane::Paced { paced(known, next) } else { known };
        self.check_due = false;
    }

    /// Whether the cloud has something for it, as far as this process has seen.
    pub fn has_load_balancer(&self) -> bool {
        matches!(&self.known, Known::Applied(_) | Known::Failed(Failed { applied: Some(_), .. }))
    }
}

/// What is known after a call that was made just to be sure: where the cloud could not say, the next one is no more urgent.
fn paced(known: Known, next: Next) -> Known {
    match (&known, next) {
        (Known::Failed(failed), _) if failed.refused => known,
        (_, Next::Again(Pause::BackOff { .. }) | Next::Calm(_)) => Known::InTurn,
        _ => known,
    }
}
