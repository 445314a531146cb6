//! `status`, `monitor` and `validate-all`: checks without a mark.

use std::collections::BTreeSet;
use std::time::Duration;

use marks::fencing::Fencing;
use marks::host::HostName;
use marks::id::FencingId;
use marks::outage::Registered;
use marks::register::{Entries, Key, SETTLED_MAX};
use pacemaker::cib::{Cib, MarkDevice, MarkLevel};
use register::RegisterError;

use crate::call::{Call, is_cluster_host};
use crate::failure::Failure;
use crate::guard::Refusal;
use crate::settings::{self, Depth, Settings, Target};
use crate::store::{self, Answer, Request};
use crate::{cluster, publish};

/// The shortest time that the fencer must give `off`: the agent's own limit is 20 s, and it must be able to report why it
/// failed.
const OFF_FLOOR: Duration = Duration::from_secs(30);

/// Whether the host may be marked, by its name alone: no journal is opened and no program started.
///
/// # Errors
/// [`Failure`]: the device must not be asked for this host.
pub fn status(call: &Call, target: &Target) -> Result<(), Failure> {
    call.judge_name(target)
}

/// Whether the options can be used. Only the configuration is read.
///
/// # Errors
/// [`Failure`] with everything that an operator should correct.
pub fn validate(call: &Call) -> Result<(), Failure> {
    let settings = call.settings()?;
    failed_if(settings.complaints(&call.given, Depth::Everything))
}

/// Whether a mark could be written now, and whether the cluster's levels are right.
///
/// # Errors
/// [`Failure`] with everything that an operator should correct.
pub fn monitor(call: &Call) -> Result<(), Failure> {
    let (settings, site_complaints) = call.settings_and_site_complaints()?;
    let mut complaints = settings.complaints(&call.given, Depth::WhatIsUsed);
    complaints.extend(site_complaints);
    match store::ask(call, &settings, Request::Check, store::LIMIT) {
        Ok(known) => complaints.extend(register_complaint(call, &settings, known)),
        Err(e) => complaints.push(e.to_string()),
    }
    match cluster::cib(&call.paths, None) {
        Ok((cib, _not_live)) => complaints.extend(cluster_complaints(call, &settings, &cib)),
        Err(e) if call.from_fencer || is_cluster_host(&call.paths) => complaints.push(e.to_string()),
        Err(e) => call.report.warning(&e.to_string()),
    }
    failed_if(complaints)
}

/// Without quorum nothing is wrong here: the rest is published when the other controllers are back.
fn register_complaint(call: &Call, settings: &Settings, known: Answer) -> Option<String> {
    let e = publish::catch_up(call, settings, known).err()?;
    let word = settings.register().as_str();
    let text = format!("the register {word} may lack fencings of this controller: {e}");
    let no_quorum = matches!(e, Failure::Register(RegisterError::NoQuorum));
    if !no_quorum && (call.from_fencer || is_cluster_host(&call.paths)) {
        return Some(text);
    }
    call.report.warning(&text);
    None
}

fn cluster_complaints(call: &Call, settings: &Settings, cib: &Cib) -> Vec<String> {
    let levels = cib.mark_levels();
    if levels.is_empty() {
        call.report.warning("no fencing level has a fence_mark device, so no host is marked: put it behind the power device of each compute host");
    }
    let floor = OFF_FLOOR + settings.delay;
    let slow = cib.fence_mark_devices().into_iter().filter_map(|device| limit_complaint(&device, floor));
    let guests = guests(call, cib);
    levels.iter().filter_map(MarkLevel::complaint).chain(slow).chain(guests).collect()
}

/// A pattern covers many; a name is meant.
fn guests(call: &Call, cib: &Cib) -> Vec<String> {
    let hosts = settings::hosts(&call.given).ok();
    let is_named = |node: &&HostName| hosts.as_ref().is_some_and(|hosts| hosts.names_literally(node));
    let named = cib.guest_nodes().iter().filter(is_named);
    named.map(|node| format!("hosts names {node}: {}", Refusal::Guest)).collect()
}

fn limit_complaint(device: &MarkDevice, floor: Duration) -> Option<String> {
    let limit = device.off_limit.filter(|limit| *limit < floor)?;
    let (id, limit, floor) = (&device.id, limit.as_secs(), floor.as_secs());
    // Pacemaker would take the parameter's full name in a message for its own timeout.
    Some(format!(
        "{id} allows only {limit} s for off, it needs {floor} s: allow {} s in its pcmk_off_* parameter",
        floor + 10
    ))
}

fn failed_if(complaints: Vec<String>) -> Result<(), Failure> {
    if complaints.is_empty() { Ok(()) } else { Err(Failure::Complaints(complaints)) }
}

/// The result for fencings that have been in the register.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    /// Keys of ends that are there and were unknown here: they are not searched for again.
    pub(crate) ended: Vec<String>,
    /// The register has nothing of these: neither the fencing nor an entry about it.
    pub(crate) lost: Vec<Fencing>,
}

/// Compares the fencings with the register. If so many marks have ended that the oldest were removed, nothing is lost.
pub(crate) fn compare(fencings: Vec<Fencing>, found: &Entries, coalesce: Duration) -> Compared {
    let mut compared = Compared::default();
    let registered = Registered::of(found, &fencings, coalesce);
    let done: BTreeSet<FencingId> =
        fencings.iter().map(|f| f.id).filter(|id| registered.is_done(*id)).collect();
    let ends = found.sound.keys().filter(|key| matches!(key, Key::Settled(_))).count();
    for fencing in fencings {
        if done.contains(&fencing.id) {
            compared.ended.push(Key::Settled(fencing.id.into()).to_string());
        } else if ends < SETTLED_MAX && !stands(&fencing, found) {
            compared.lost.push(fencing);
        }
    }
    compared
}

fn stands(fencing: &Fencing, found: &Entries) -> bool {
    let mark = fencing.id.into();
    let keys = [Key::Fencing(fencing.id), Key::Again(fencing.id), Key::Mark(mark), Key::Settled(mark)];
    keys.iter().any(|key| found.sound.contains_key(key))
}

#[cfg(test)]
mod tests {
    use marks::fencing::Incarnation;
    use marks::mark::Settlement;
    use marks::outage::COALESCE;
    use marks::register::{Entry, Returned, Settled};
    use marks::time::Timestamp;

    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn fencing(asked_at: Timestamp) -> Fencing {
        Fencing {
            incarnation: Some(Incarnation::new("ctl1", 7, 5)),
            ..samples::fencing("compute1", asked_at)
        }
    }

    fn end(of: &Fencing, at: Timestamp) -> Entry {
        Entry::Settled(Settled { mark: of.id.into(), how: Settlement::Acknowledged, at, by: "ctl2".into() })
    }

    fn mark(of: &Fencing) -> Entry {
        Entry::Mark(samples::entry(of, "ctl2"))
    }

    fn found(entries: Vec<Entry>) -> Entries {
        let sound = entries.into_iter().map(|entry| (entry.key(), entry)).collect();
        Entries { sound, ..Entries::default() }
    }

    fn compared(fencing: &Fencing, entries: Vec<Entry>) -> (usize, usize) {
        let Compared { ended, lost } = compare(vec![fencing.clone()], &found(entries), COALESCE);
        (ended.len(), lost.len())
    }

    #[test]
    fn what_nothing_stands_of_is_lost() {
        let own = fencing(NOW);
        assert_eq!(compared(&own, vec![]), (0, 1));
        for standing in [Entry::Fencing(own.clone()), Entry::Again(own.clone()), mark(&own)] {
            assert_eq!(compared(&own, vec![standing]), (0, 0));
        }
        assert_eq!(compared(&own, vec![mark(&fencing(NOW)), end(&fencing(NOW), NOW)]), (0, 1), "another's");
    }

    #[test]
    fn what_has_ended_is_known_for_good() {
        let own = fencing(NOW);
        assert_eq!(compared(&own, vec![end(&own, NOW)]), (1, 0));
        let ahead = end(&own, NOW + Duration::from_secs(3600));
        assert_eq!(compared(&own, vec![ahead]), (1, 0), "this controller's clock is behind");
        let first = fencing(NOW - Duration::from_secs(30));
        assert_eq!(compared(&own, vec![mark(&first), end(&first, NOW)]), (1, 0), "it was fenced again");
        assert_eq!(compared(&own, vec![mark(&first)]), (0, 1));
        let other = Fencing { incarnation: Some(Incarnation::new("ctl1", 8, 9)), ..first };
        assert_eq!(compared(&own, vec![mark(&other), end(&other, NOW)]), (0, 1), "it was back in between");
    }

    /// A fencing of an ended mark makes no mark here. For these the intake makes one: the host was back in between, or
    /// that is unknown, so long after. The broken variants are a repetition before the return, and one moments after the
    /// end.
    #[test]
    fn what_comes_after_a_return_or_long_after_the_end_has_not_ended() {
        let second = |back: u64| NOW - Duration::from_secs(back);
        let compared = |asked: u64, returned: Option<u64>| {
            let (first, again) = (fencing(second(3000)), fencing(second(asked)));
            let back = |at| Returned { mark: first.id.into(), at: second(at), by: "ctl2".into() };
            let returned = returned.map(|at| Entry::Returned(back(at)));
            let entries = [mark(&first), end(&first, second(2999))].into_iter().chain(returned).collect();
            compared(&again, entries)
        };
        assert_eq!((compared(2900, Some(2950)), compared(2950, Some(2900))), ((0, 1), (1, 0)));
        assert_eq!((compared(2699, None), compared(2700, None)), ((0, 1), (1, 0)));
    }

    /// The oldest of very many were removed: writing them again would let the register grow forever.
    #[test]
    fn where_the_register_is_full_of_ends_nothing_is_lost() {
        let own = fencing(NOW);
        let ends = |count| (0..count).map(|_| end(&fencing(NOW), NOW)).collect();
        assert_eq!(compared(&own, ends(SETTLED_MAX - 1)), (0, 1));
        assert_eq!(compared(&own, ends(SETTLED_MAX)), (0, 0));
    }
}
