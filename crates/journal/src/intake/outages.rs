//! Outages: a mark with the times and connections of its records.

use crate::{Done, Journal};
use marks::fencing::{Fencing, Incarnation, Origin};
use marks::host::HostName;
use marks::mark::{MarkRow, Proof, Settlement, Standing};
use marks::outage::Outage;
use marks::sighting::{Sighting, Witness};
use marks::time::Timestamp;

impl Journal {
    /// The outages of one host, oldest first.
    ///
    /// # Errors
    /// As any read; damaged fencings and sightings are left out.
    pub fn outages_of(&self, node: &HostName) -> Done<Vec<Outage>> {
        let marks = self.marks_of(node)?.sound;
        marks.into_iter().map(|mark| self.outage(mark)).collect()
    }

    fn outage(&self, mark: MarkRow) -> Done<Outage> {
        let fencings = self.fencings_of(mark.id)?.sound;
        let sightings = self.sightings_of(mark.id)?.sound;
        let times = fencings.iter().map(|f| f.asked_at).chain(sightings.iter().map(|s| s.at));
        let newest = times.fold(mark.failure_time, Timestamp::max);
        let is_fenced = |seen: &&Sighting| seen.witness == Witness::NodeFenced;
        let fenced_at = sightings.iter().filter(is_fenced).map(|seen| seen.at).max();
        let is_proven = self.is_proven(&mark, &fencings, &sightings)?;
        let mut incarnations: Vec<Incarnation> = mark.incarnation.into_iter().collect();
        for seen in fencings.into_iter().filter_map(|f| f.incarnation) {
            if !incarnations.contains(&seen) {
                incarnations.push(seen);
            }
        }
        Ok(Outage {
            mark: mark.id,
            first: mark.failure_time,
            newest,
            incarnations,
            fenced_at,
            returned_at: mark.returned_at,
            settled: mark.settled,
            made_at: mark.made_at,
            is_proven,
        })
    }

    /// An open mark's standing says so; for one that has ended or was made by another controller, its records do.
    /// `node_fenced` may be left from a confirmation by hand.
    fn is_proven(&self, mark: &MarkRow, fencings: &[Fencing], sightings: &[Sighting]) -> Done<bool> {
        let is_proof = |seen: &Sighting| {
            !seen.by_human && seen.witness != Witness::NodeFenced && seen.at >= mark.failure_time
        };
        let is_dismissed = matches!(mark.settled, Some((Settlement::Dismissed, _)));
        let is_taken_back = is_dismissed && self.is_of_a_word(mark, sightings)?;
        if (mark.standing.doubt().is_none() && !is_taken_back) || sightings.iter().any(is_proof) {
            return Ok(true);
        }
        let is_meant = |f: &&Fencing| f.origin == Origin::Fencer || (f.origin.is_proof() && !is_dismissed);
        for fencing in fencings.iter().filter(is_meant) {
            if !self.is_imported(fencing.id)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a person's word alone made the mark or let it go: a word by hand, a report, a confirmation, a release. What says so may have
    /// been read, and not taken in yet.
    fn is_of_a_word(&self, mark: &MarkRow, sightings: &[Sighting]) -> Done<bool> {
        let was_said = self.first_fencing(mark.id)?.is_some_and(|first| first.origin != Origin::Fencer);
        let was_confirmed = sightings.iter().any(|seen| seen.mark_id() == mark.id && seen.by_human);
        Ok(was_said || was_confirmed || mark.standing == Standing::Proven(Proof::Operator))
    }
}
