//! nova-host-alerter.
fn main() {}
