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

/// How a tool ends that does not know one of its options: `attrd_updater` up to 2.1.2 when it is to print XML.
pub const NO_SUCH_OPTION: i32 = 64;

/// Major, minor and patch number; what is not there is 0.
pub type Release = [u32; 3];

/// The first release whose scheduler writes over the `in_ccm` of remote nodes.
const OVERWRITES_REMOTES: Release = [3, 0, 0];
/// From this release on fencings run beside each other by themselves.
pub const CONCURRENT_BY_ITSELF: Release = [3, 0, 0];
/// Their controllers read a first alert only with the next change of a cluster property.
pub const MISSES_A_FIRST_ALERT: [Release; 2] = [[2, 1, 7], [2, 1, 8]];

/// The feature set of the newest release that was run: 3.0.3.
const NEWEST_TRIED: [u32; 3] = [3, 20, 5];

impl Cib {
    /// Whether `in_ccm` says nothing of remote nodes.
    pub(super) fn overwrites_remotes(&self) -> bool {
        self.release().is_some_and(|release| release >= OVERWRITES_REMOTES)
    }

    /// The release of the DC, of `2.1.5-a3f44794f94`.
    pub fn release(&self) -> Option<Release> {
        let mut numbers = self.dc_version.split(['.', '-', '~', '+']).map(|number| number.parse().ok());
        let mut next = || numbers.next().flatten();
        Some([next()?, next().unwrap_or_default(), next().unwrap_or_default()])
    }

    /// The DC's release, where it is newer than each that this program was run with.
    pub fn untried_release(&self) -> Option<&str> {
        let parts: Option<Vec<u32>> = self.feature_set.split('.').map(|part| part.parse().ok()).collect();
        let is_newer = parts.is_some_and(|parts| parts.as_slice() > &NEWEST_TRIED[..]);
        is_newer.then(|| self.dc_version.split('-').next().unwrap_or_default())
    }
}
