//! The SDK over real Unix sockets, rule by rule of the contract. What needs no socket is tested beside its code.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod batches;
mod calls;
mod checks;
mod fixture;
mod handshake;
mod leadership;
mod load_balancers;
mod machines;
mod mutations;
mod raw;
mod readme;
mod routes;
mod shutdown;
mod socket;
