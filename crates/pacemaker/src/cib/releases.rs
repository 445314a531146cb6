//! The differences between Pacemaker's releases that matter here: one table. `docs/pacemaker-releases.md` has the
//! reasons.

use super::Cib;

/// 3.0.2 renamed these cluster properties; if both names are set the newer one counts.
pub const FENCING_ENABLED: [&str; 2] = ["fencing-enabled", "stonith-enabled"];
/// How long a fencing may take.
pub const FENCING_TIMEOUT: [&str; 2] = ["fencing-timeout", "stonith-timeout"];
/// Whether hosts fence themselves by their watchdog.
pub const WATCHDOG_TIMEOUT: [&str; 2] = ["fencing-watchdog-timeout", "stonith-watchdog-timeout"];

/// The exit code of `crm_node --quorum` up to 2.1.6 without quorum; later ones print 0 and exit with 0.
pub const NO_QUORUM: i32 = 106;

/// The exit code of `cibadmin --query` where nothing is found.
pub const NOTHING_FOUND: i32 = 105;

/// The exit code of a tool that reaches no daemon of Pacemaker.
pub const NOT_CONNECTED: i32 = 102;

/// The exit code of a tool for an unknown option: `attrd_updater` up to 2.1.2 for XML output.
pub const NO_SUCH_OPTION: i32 = 64;

/// Major, minor and patch number; a missing part is 0.
pub type Release = [u32; 3];

/// The first release whose scheduler overwrites the `in_ccm` of remote nodes.
const OVERWRITES_REMOTES: Release = [3, 0, 0];
/// From this release on fencings run in parallel by default.
pub const CONCURRENT_BY_ITSELF: Release = [3, 0, 0];
/// Their controllers read a first alert only with the next change of a cluster property.
pub const MISSES_A_FIRST_ALERT: [Release; 2] = [[2, 1, 7], [2, 1, 8]];

/// The feature set of the newest tested release: 3.0.3.
const NEWEST_TRIED: [u32; 3] = [3, 20, 5];

impl Cib {
    /// Whether `in_ccm` says nothing of remote nodes.
    pub(super) fn overwrites_remotes(&self) -> bool {
        self.release().is_some_and(|release| release >= OVERWRITES_REMOTES)
    }

    /// The DC's release, from a text such as `2.1.5-a3f44794f94`.
    pub fn release(&self) -> Option<Release> {
        let mut numbers = self.dc_version.split(['.', '-', '~', '+']).map(|number| number.parse().ok());
        let mut next = || numbers.next().flatten();
        Some([next()?, next().unwrap_or_default(), next().unwrap_or_default()])
    }

    /// The DC's release, if it is newer than each that this program was tested with.
    pub fn untried_release(&self) -> Option<&str> {
        let parts: Option<Vec<u32>> = self.feature_set.split('.').map(|part| part.parse().ok()).collect();
        let is_newer = parts.is_some_and(|parts| parts.as_slice() > &NEWEST_TRIED[..]);
        is_newer.then(|| self.dc_version.split('-').next().unwrap_or_default())
    }
}
