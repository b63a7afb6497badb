//! What the process reports of itself: readiness and liveness, metrics, and which events and log lines were sent already.
//! Every room above `provider` may use it; it starts nothing and decides nothing.
pub mod cloud_health;
pub mod event_dedup;
pub mod health;
pub mod liveness;
pub mod log_budget;
pub mod metrics;
pub mod term;
