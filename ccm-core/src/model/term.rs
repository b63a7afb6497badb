//! A term of leadership.
use std::sync::Arc;
use std::time::Instant;

/// Proof that this process holds the lease, until it expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Grows with every change of leader; constant through renewals.
    pub epoch: u64,
    /// This process's name in the lease.
    pub holder: Arc<str>,
    /// By this process's monotonic clock: nothing may be written from then on unless the lease was renewed.
    pub valid_until: Instant,
}
