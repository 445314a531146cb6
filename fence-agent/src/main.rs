//! fence_mark.
fn main() {}
