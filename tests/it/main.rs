//! Integration tests in one binary: what the sources and documents promise about themselves, and the seams between processes.
mod build_progress;
mod conformance;
mod contract_doc;
mod docs;
mod operator_doc;
mod protos;
mod rooms;
mod tidy;
mod tree;
