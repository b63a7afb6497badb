//! ccm-core.
fn main() {}
