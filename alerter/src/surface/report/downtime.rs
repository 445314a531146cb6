//! How long instances were down, for each host and month: from the loss of the host until its last instance was up again.
//! Pure.

use std::collections::BTreeMap;

use marks::id::MarkId;
use marks::mark::MarkRow;
use marks::recovery::Recovery;
use marks::time::Timestamp;
use serde::Serialize;

use crate::words::written;

/// The downtimes of a host in one month.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Downtime {
    /// The month in which the host failed, as `2027-01`.
    pub month: String,
    /// The host.
    pub host: String,
    /// Outages of which Nova said where the instances are.
    pub outages: usize,
    /// Instances that were found up: on another host, or on their own one after its return.
    pub up: usize,
    /// Instances that were not, or that ran on their own host again for too short a time to be sure.
    pub left: usize,
    /// The downtimes of outages without an instance that is left, together, in milliseconds.
    pub total_ms: u64,
    /// The longest one.
    pub longest_ms: u64,
}

/// For each host and month, in their order. `lost`: when the cluster lost the host of a mark, where that was seen.
pub(super) fn downtimes(
    outages: &[(MarkRow, Recovery)],
    lost: &BTreeMap<MarkId, Timestamp>,
) -> Vec<Downtime> {
    let mut found: BTreeMap<(String, String), Downtime> = BTreeMap::new();
    for (row, recovery) in outages.iter().filter(|(_, recovery)| recovery.began_at.is_some()) {
        let (month, host) = (written(row.failure_time, "%Y-%m"), row.node.as_str());
        let key = (month.clone(), host.to_ascii_lowercase());
        let one = found.entry(key).or_insert_with(|| Downtime {
            month,
            host: host.to_owned(),
            ..Downtime::default()
        });
        let left = recovery.unproven().len();
        one.outages += 1;
        one.up += recovery.tally().all - left;
        one.left += left;
        let lost = lost.get(&row.id).copied();
        if let Some(took) = recovery.downtime(lost.unwrap_or(row.failure_time)) {
            let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            one.total_ms = one.total_ms.saturating_add(took);
            one.longest_ms = one.longest_ms.max(took);
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use marks::recovery::{End, Host};

    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn moved(at: Timestamp) -> Recovery {
        let seen = |host: &str| samples::instance("a", host);
        let mut recovery = Recovery::default();
        recovery.note_host(vec![seen("c7")], Host::Away, at);
        recovery.note_host(Vec::new(), Host::Away, at);
        recovery.note_one("a", "c7", Some(&seen("c8")), at);
        recovery
    }

    /// What Nova shows as running on its own host is not known to run, unless it stayed so. The broken variant counts it as up. A clock
    /// that was set back gives no downtime.
    #[test]
    fn what_is_not_known_to_run_is_left() {
        let mut recovery = Recovery::default();
        recovery.note_host(vec![samples::instance("a", "c7")], Host::Away, NOW);
        let runs = |recovery: &mut Recovery, at| {
            recovery.note_host(vec![samples::instance("a", "c7")], Host::Back { is_up: true }, at);
        };
        runs(&mut recovery, NOW);
        let of = |recovery: &Recovery, lost| {
            let row = samples::mark_of("compute7", NOW);
            let lost = BTreeMap::from([(row.id, lost)]);
            let one = downtimes(&[(row, recovery.clone())], &lost).remove(0);
            (one.up, one.left, one.total_ms)
        };
        recovery.ended = Some((End::GaveUp, NOW));
        assert_eq!(of(&recovery, NOW), (0, 1, 0));
        runs(&mut recovery, NOW + Duration::from_secs(660));
        recovery.ended = Some((End::Recovered, NOW));
        let second = Duration::from_secs(1);
        assert_eq!(of(&recovery, NOW - second), (1, 0, 1000));
        assert_eq!(of(&recovery, NOW + second), (1, 0, 0));
        assert_eq!(recovery.downtime(NOW + second), None);
    }

    /// The broken variant counts from the fencing alone: a host that hung for a minute before was down for that minute too.
    #[test]
    fn a_host_has_its_downtimes_of_each_month() {
        let minute = Duration::from_secs(60);
        let row = |node: &str, at| samples::mark_of(node, at);
        let first = row("compute7", NOW);
        let lost = BTreeMap::from([(first.id, NOW - minute)]);
        let outages = [
            (first, moved(NOW + minute)),
            (row("Compute7", NOW + minute * 10), moved(NOW + minute * 11)),
            (row("compute7", NOW + minute * 60 * 24 * 31), moved(NOW + minute * 60 * 24 * 31)),
            (row("compute8", NOW), Recovery::default()),
        ];
        let found = downtimes(&outages, &lost);
        let short: Vec<_> = found.iter().map(|one| (one.month.as_str(), one.outages, one.total_ms)).collect();
        assert_eq!(short, [("2027-01", 2, 180_000), ("2027-02", 1, 0)]);
        assert_eq!((found[0].longest_ms, found[0].up, found[0].left), (120_000, 2, 0));
    }
}
