//! What differs between the releases of Pacemaker, as far as it is read here: one table, and `docs/pacemaker-releases.md` has the
//! reasons.

use super::Cib;

/// 3.0.2 renamed these cluster properties; where both names are set the newer one counts.
pub const FENCING_ENABLED: [&str; 2] = ["fencing-enabled", "stonith-enabled"];
/// How long a fencing may take.
pub const FENCING_TIMEOUT: [&str; 2] = ["fencing-timeout", "stonith-timeout"];
/// Whether hosts fence themselves by their watchdog.
pub const WATCHDOG_TIMEOUT: [&str; 2] = ["fencing-watchdog-timeout", "stonith-watchdog-timeout"];

/// How `crm_node --quorum` ends up to 2.1.6 where there is none; later ones print 0 and end with 0.
pub const NO_QUORUM: i32 = 106;

/// The first release whose scheduler writes over the `in_ccm` of remote nodes.
const OVERWRITES_REMOTES: u32 = 3;
/// The feature set of the newest release that was run: 3.0.3.
const NEWEST_TRIED: [u32; 3] = [3, 20, 5];

impl Cib {
    /// Whether `in_ccm` says nothing of remote nodes.
    pub(super) fn overwrites_remotes(&self) -> bool {
        let major: Option<u32> = self.dc_version.split('.').next().and_then(|major| major.parse().ok());
        major.is_some_and(|major| major >= OVERWRITES_REMOTES)
    }

    /// The DC's release, where it is newer than each that this program was run with.
    pub fn untried_release(&self) -> Option<&str> {
        let parts: Option<Vec<u32>> = self.feature_set.split('.').map(|part| part.parse().ok()).collect();
        let is_newer = parts.is_some_and(|parts| parts.as_slice() > &NEWEST_TRIED[..]);
        is_newer.then(|| self.dc_version.split('-').next().unwrap_or_default())
    }
}
