//! The outages in the register: which have a mark, what these take in, and what of it is past.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Outage, Reach, is_over, of_fencing};
use crate::fencing::{Fencing, Origin};
use crate::host::HostName;
use crate::id::{FencingId, MarkId};
use crate::mark::{MarkRow, Settlement};
use crate::register::{Entries, Entry, KEPT, Key, MarkEntry, SETTLED_MAX};
use crate::rule::Rule;
use crate::time::Timestamp;

/// The marks of the register, and the fencings that they have taken in.
#[derive(Debug)]
pub struct Registered<'e> {
    entries: &'e Entries,
    taken_in: BTreeMap<FencingId, (MarkId, Rule)>,
}

impl<'e> Registered<'e> {
    /// What an alerter with this register and these fencings makes of all fencings. A fencing that joins an outage counts
    /// as its record for the next one, as in the intake.
    pub fn of(
        entries: &'e Entries,
        fencings: impl IntoIterator<Item = &'e Fencing>,
        coalesce: Duration,
    ) -> Self {
        let mut registered = Self { entries, taken_in: BTreeMap::new() };
        let mut outages = registered.outages();
        let standing = entries.sound.values().filter_map(Entry::fencing);
        let mut all: Vec<&Fencing> = fencings.into_iter().chain(standing).collect();
        all.sort_by_key(|fencing| (fencing.asked_at, fencing.id));
        let reach = Reach::found(coalesce);
        for fencing in all {
            let Some(of_host) = outages.get_mut(&fencing.node) else { continue };
            if let Some((mark, rule)) = taken_in(fencing, of_host, reach) {
                registered.taken_in.insert(fencing.id, (mark, rule));
                of_host.iter_mut().filter(|outage| outage.mark == mark).for_each(|o| o.add(fencing));
            }
        }
        registered
    }

    /// Whether a mark has ended.
    pub fn has_ended(&self, mark: MarkId) -> bool {
        self.entries.sound.contains_key(&Key::Settled(mark))
    }

    /// Whether a fencing has a mark, or its own mark has ended.
    pub fn has_mark(&self, fencing: FencingId) -> bool {
        self.taken_in.contains_key(&fencing) || self.has_ended(fencing.into())
    }

    /// Whether a fencing's own mark has ended, or that of the outage that it surely belongs to.
    pub fn is_done(&self, fencing: FencingId) -> bool {
        let of = self.taken_in.get(&fencing).filter(|(_, rule)| rule.is_sure());
        self.has_ended(fencing.into()) || of.is_some_and(|(mark, _)| self.has_ended(*mark))
    }

    /// Oldest first, by host.
    fn outages(&self) -> BTreeMap<HostName, Vec<Outage>> {
        let mut outages: BTreeMap<HostName, Vec<Outage>> = BTreeMap::new();
        for entry in self.entries.sound.values() {
            if let Entry::Mark(entry) = entry {
                outages.entry(entry.mark.node.clone()).or_default().push(self.outage(entry));
            }
        }
        outages.values_mut().for_each(|of_host| of_host.sort_by_key(|outage| (outage.first, outage.mark)));
        outages
    }

    fn outage(&self, MarkEntry { mark, incarnation, made_at, .. }: &MarkEntry) -> Outage {
        let settled = match self.entries.sound.get(&Key::Settled(mark.id)) {
            Some(Entry::Settled(end)) => Some((end.how, end.at)),
            _ => None,
        };
        let returned_at = match self.entries.sound.get(&Key::Returned(mark.id)) {
            Some(Entry::Returned(back)) => Some(back.at),
            _ => None,
        };
        Outage {
            mark: mark.id,
            first: mark.failure_time,
            newest: mark.failure_time,
            incarnations: incarnation.iter().cloned().collect(),
            fenced_at: None,
            returned_at,
            settled,
            made_at: *made_at,
            // A doubtful mark is in no register; one that an operator has ended may have been made by an operator's word, unless a fencing by
            // the fencer is added.
            is_proven: !matches!(settled, Some((Settlement::Dismissed, _))),
        }
    }
}

impl Outage {
    /// Adds a further fencing.
    fn add(&mut self, fencing: &Fencing) {
        self.is_proven |= fencing.origin == Origin::Fencer;
        self.newest = self.newest.max(fencing.asked_at);
        let known = &mut self.incarnations;
        known.extend(
            fencing.incarnation.iter().filter(|one| !known.contains(one)).cloned().collect::<Vec<_>>(),
        );
    }
}

/// The mark that takes a fencing in, from its host's outages, oldest first; `None` if it makes one of its own.
pub fn taken_in(fencing: &Fencing, outages: &[Outage], reach: Reach) -> Option<(MarkId, Rule)> {
    let joined = of_fencing(fencing, outages, reach)?;
    (!is_over(joined, fencing.asked_at, reach)).then_some((joined.outage.mark, joined.rule))
}

/// Whether another alerter made a mark of the same outage, as far as clocks show: the same connection of the same host, at about the same
/// time. Far apart they are two outages, and the connection between was lost; so they are if one alerter made both.
pub fn is_twice(row: &MarkRow, other: &MarkRow, coalesce: Duration) -> bool {
    may_be_twice(row, other) && row.failure_time.distance(other.failure_time) <= coalesce
}

/// The same, whatever clocks show.
pub fn may_be_twice(row: &MarkRow, other: &MarkRow) -> bool {
    let same_connection = row.incarnation.is_some() && row.incarnation == other.incarnation;
    row.node == other.node && same_connection && row.made_by != other.made_by
}

/// What the register says of a fencing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traces {
    /// It is there now, and was not lost and restored: an alerter that sent it would have left a trace beside it.
    pub registered: bool,
    /// It was there.
    pub published: bool,
    /// The register says, or said, that its mark has ended.
    pub ended: bool,
}

impl Traces {
    /// Whether it is certain that an alerter had it. Age alone ends nothing: a fencing that was never in the register
    /// still has to be sent.
    pub fn are_past(self, asked_at: Timestamp, forgotten: Timestamp) -> bool {
        let is_cleared = asked_at < forgotten;
        let has_left = self.published && is_cleared && !self.registered;
        has_left || (self.ended && (is_cleared || !self.registered))
    }
}

/// Ends before this time have left the register, by age or because so many came since. Nobody can make an event within
/// the horizon seem to have left.
pub fn forgotten(found: &Entries, horizon: Duration, now: Timestamp) -> Timestamp {
    let ends = found.sound.values().filter_map(|entry| match entry {
        Entry::Settled(end) => Some(end.at),
        _ => None,
    });
    let mut ends: Vec<Timestamp> = ends.collect();
    ends.sort_unstable();
    let oldest = ends.iter().rev().nth(SETTLED_MAX - 1).map_or(now - KEPT, |oldest| *oldest);
    oldest.clamp(now - KEPT, now - horizon.min(KEPT))
}
