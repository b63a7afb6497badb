//! Composition: what runs, in which order, and how it ends.
pub mod health;
pub mod leader_election;
pub mod logging;
pub mod metrics;
pub mod serving;
pub mod shutdown;
