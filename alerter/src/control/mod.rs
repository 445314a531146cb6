//! The control socket: everything that changes something goes through it, as root.

pub mod api;
pub mod client;
pub mod server;
