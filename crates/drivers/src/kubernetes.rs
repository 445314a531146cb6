//! The `kubernetes` driver: the node of a failed host, or its machine.

#[cfg_attr(not(test), expect(dead_code, reason = "the driver that uses it comes with the next changes"))]
mod access;

pub use access::Source;
