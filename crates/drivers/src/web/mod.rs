//! How an endpoint is spoken with over HTTP: the client, its certificates, what its answers and errors mean, and the keys that say
//! all of it.

mod answer;
mod client;
/// Exchanges without an answer.
pub mod fault;
mod identity;
mod keys;
mod url;

pub(crate) use answer::{SHORTEST_THROTTLE, is_too_large, wish};
pub use client::Options;
pub(crate) use client::{LONGEST, careful};
pub use fault::Fault;
pub use identity::{IdentityFiles, authorities};
pub(crate) use keys::both_or_neither;
pub use keys::{identity, tls_min, without_tls};
pub use url::{address, host, shown};
