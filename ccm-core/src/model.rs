//! The plain types that controllers speak: no Kubernetes client, no gRPC, no clock.
pub mod instance;
pub mod load_balancer;
pub mod node;
pub mod ownership;
pub mod provider_info;
pub mod route;
pub mod service;
pub mod target;
pub mod term;
