//! Which release of Pacemaker a lab's nodes run: this machine's own, or one whose root `tests/roots.sh` has made.

use std::path::PathBuf;

use super::room::target_directory;

/// The root of the release that `NHA_RELEASE` names; `None` is this machine's own.
#[must_use]
pub fn chosen() -> Option<PathBuf> {
    let suite = std::env::var("NHA_RELEASE").ok().filter(|suite| !suite.is_empty())?;
    Some(root(&suite))
}

/// Where the root of a Debian suite is.
#[must_use]
pub fn root(suite: &str) -> PathBuf {
    target_directory().unwrap_or_default().join("roots").join(suite)
}
