//! d.
fn main() {}
