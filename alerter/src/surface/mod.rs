//! What shows the daemon's state. Nothing here decides anything.

/// The first sentence of every overview.
pub mod headline;
/// HTML as it is sent.
pub mod markup;
/// `/metrics`.
pub mod metrics;
/// The status page.
pub mod page;
