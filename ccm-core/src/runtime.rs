//! Composition: what runs, in which order, and how it ends.
pub mod health;
pub mod metrics;
