//! ccm-core: the controllers of a Kubernetes cloud-controller-manager, without a cloud.
//!
//! The map, in the direction in which data flows:
//! - [`config`]: flags, validated once.
//! - [`runtime`]: composition, leader election, the HTTP endpoints, shutdown.
//! - [`cluster`]: what is watched in Kubernetes, and the only code that writes to it.
//! - [`provider`]: the port to the cloud provider, and the only code that knows gRPC.
//! - [`model`]: the plain types that the other modules use.
//! - [`telemetry`]: health, metrics, and which events were sent.
//! - [`controllers`]: watch, observe, decide, act.
//!
//! Besides, [`causes`] puts an error and its causes into one line.
pub mod causes;
pub mod cluster;
pub mod config;
pub mod controllers;
pub mod model;
pub mod names;
pub mod provider;
pub mod runtime;
pub mod telemetry;
