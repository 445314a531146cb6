//! A service of Nova.

/// Since this version of the API a service is named by a UUID, and one call changes all that is said of it.
pub(super) const VERSION: &str = "compute 2.53";
/// What Nova has of a host that does anything.
pub(super) const BINARY: &str = "nova-compute";

/// What Nova has of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Service {
    /// Nova's name for it: a UUID.
    pub(super) id: String,
    /// Whether Nova takes it for down, whatever it sees of it.
    pub(super) forced_down: bool,
    /// Whether no new instances are put there.
    pub(super) is_disabled: bool,
    /// Why not.
    pub(super) disabled_reason: Option<String>,
}
