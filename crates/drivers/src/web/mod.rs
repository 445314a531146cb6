//! HTTP with an endpoint: the client, its certificates, the meaning of answers and errors, and the keys for all of it.

pub(crate) mod answer;
mod certificate;
mod client;
mod endpoint;
/// Exchanges without an answer.
pub mod fault;
mod identity;
mod keys;
pub(crate) mod page;
mod plain;
/// Files that hold one secret each.
pub(crate) mod secret;
mod status;
mod url;
pub(crate) mod wire;

pub(crate) use answer::Answer;
pub use certificate::Unfit;
pub use client::ClientOptions;
pub(crate) use client::careful;
pub(crate) use endpoint::authority;
pub use endpoint::{Endpoint, Said};
pub use fault::{Fault, Why};
pub use identity::{IdentityFiles, authorities};
pub(crate) use identity::{certificates_of, identity_of, unpaired};
pub(crate) use keys::server_name;
pub use keys::{identity, read as read_options, tls_min, without_tls};
pub(crate) use plain::plain;
#[cfg(test)]
pub(crate) use status::tests::expected;
pub(crate) use status::{Meaning, Pause, meaning};
pub use url::{address, host, shown};
pub(crate) use url::{peer, target};
pub(crate) use wire::Ask;
