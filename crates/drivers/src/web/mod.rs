//! How an endpoint is spoken with over HTTP: the client, its certificates, what its answers and errors mean, and the keys that say
//! all of it.

mod answer;
mod client;
/// Exchanges without an answer.
pub mod fault;
mod identity;
mod keys;
mod plain;
mod status;
mod url;

pub(crate) use answer::{is_too_large, wish};
pub use client::Options;
pub(crate) use client::{LONGEST, careful};
pub use fault::Fault;
pub use identity::{IdentityFiles, authorities};
pub(crate) use keys::both_or_neither;
pub use keys::{identity, tls_min, without_tls};
pub(crate) use plain::plain;
#[cfg(test)]
pub(crate) use status::tests::expected;
pub(crate) use status::{Meaning, Pause, meaning};
pub use url::{address, host, shown};
