//! sim.
fn main() {}
