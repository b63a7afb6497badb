//! Black-box tests of a ccm-core provider, over its socket: whether it does what the contract asks for, sentence by sentence.
//!
//! [`run()`] runs the chosen cases and returns a [`Report`]; [`sabotage`] breaks one sentence at a time, to test the cases.
//! The crate uses the generated bindings and no code of a provider SDK.

mod case;
mod cases;
mod cleanup;
mod cli;
mod config;
mod connection;
mod context;
mod contract;
mod coverage;
mod exchange;
mod foreign;
mod hooks;
mod journal;
mod lead;
mod process;
mod recover;
mod report;
mod rpc;
mod run;
pub mod sabotage;
mod safety;
mod selection;
mod suite;
mod tidy;

pub use cli::Cli;
pub use recover::clean_up;
pub use report::{CaseReport, Counts, Failure, Outcome, Profile, Provider, Report, Verdict};
pub use run::{Options, RunError, run};
pub use selection::Selection;
