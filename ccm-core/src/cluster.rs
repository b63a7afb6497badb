//! Kubernetes: what is watched, and the only code that writes to the API server.
mod answer;
pub mod convert;
pub mod events;
pub mod gate;
pub mod nodes;
mod pages;
pub mod patch;
pub mod presence;
#[cfg(test)]
pub mod scripted;
pub mod services;
pub mod state;
pub mod view;
mod wire;
