//! The program as its users have it: real processes, real sockets, the generated client, and kill -9.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cloud;
mod ctl;
mod faults;
mod leading;
mod load_balancers;
mod processes;
mod provider;
mod routes;
