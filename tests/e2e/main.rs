//! The whole system: a real API server, `ccm-core` under its own `ServiceAccount`, `provider-simulated`, and nodes as kubelet
//! makes them. Each test has a world of its own; none knows how the processes work inside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod api_server;
mod churn;
mod herd;
mod initialisation;
mod leadership;
mod lies;
mod lies_in_pieces;
mod node_patches;
mod ownership;
mod panics;
mod routes;
mod service_patches;
mod services;
mod start_up;
mod state;
mod strange_providers;
mod strict;
mod truths;
