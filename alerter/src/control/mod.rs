//! The control socket: everything that changes something goes through it, as root. And the API, which is served there and, as
//! configured, at a TCP address.

mod answer;
pub mod api;
mod callbacks;
mod caller;
pub mod client;
pub mod decisions;
pub(crate) mod hosts;
mod left;
mod marks;
mod objection;
mod reload;
pub mod remote;
mod retry;
pub mod server;
pub(crate) mod status;
mod test;
