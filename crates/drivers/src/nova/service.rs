//! A service of Nova.

/// From this version of the API on a service has a UUID, and one call changes all of it.
pub(super) const VERSION: &str = "compute 2.53";
/// The binary of a service that runs instances.
pub(super) const BINARY: &str = "nova-compute";

/// A service as Nova has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Service {
    /// Its id in Nova: a UUID.
    pub(super) id: String,
    /// Whether it is forced down: Nova counts it as down, whatever it sees.
    pub(super) forced_down: bool,
    /// Whether no new instances are put there.
    pub(super) is_disabled: bool,
    /// The reason for that.
    pub(super) disabled_reason: Option<String>,
}
