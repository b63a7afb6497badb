//! A cloud that behaves like a real one, and its provider for ccm-core. Three layers, each knowing only the one before it:
//! [`cloud`] (machines, zones, disks, load balancers, faults), [`http`] (its API for other processes) and [`provider`] (its
//! words in the provider protocol). [`cli`] puts them together as the command line asks.

pub mod cli;
pub mod cloud;
pub mod http;
pub mod provider;
