//! Outages: a mark with the times and connections of its records.

use crate::{Journal, JournalError};
use marks::fencing::{Fencing, Incarnation};
use marks::host::HostName;
use marks::mark::MarkRow;
use marks::outage::Outage;
use marks::sighting::{Sighting, Witness};
use marks::time::Timestamp;

impl Journal {
    /// The outages of one host, oldest first.
    ///
    /// # Errors
    /// As any read; damaged fencings and sightings are left out.
    pub fn outages_of(&self, node: &HostName) -> Result<Vec<Outage>, JournalError> {
        let marks = self.marks_of(node)?.sound;
        marks.into_iter().map(|mark| self.outage(mark)).collect()
    }

    fn outage(&self, mark: MarkRow) -> Result<Outage, JournalError> {
        let fencings = self.fencings_of(mark.id)?.sound;
        let sightings = self.sightings_of(mark.id)?.sound;
        let times = fencings.iter().map(|f| f.asked_at).chain(sightings.iter().map(|s| s.at));
        let newest = times.fold(mark.failure_time, Timestamp::max);
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
            returned_at: mark.returned_at,
            settled: mark.settled,
            is_proven,
        })
    }

    /// An open mark's standing says so; for one that has ended or was made by another controller, its records do.
    /// `node_fenced` may be left from a confirmation by hand.
    fn is_proven(
        &self,
        mark: &MarkRow,
        fencings: &[Fencing],
        sightings: &[Sighting],
    ) -> Result<bool, JournalError> {
        let is_proof = |seen: &Sighting| {
            !seen.by_human && seen.witness != Witness::NodeFenced && seen.at >= mark.failure_time
        };
        if mark.standing.doubt().is_none() || sightings.iter().any(is_proof) {
            return Ok(true);
        }
        for fencing in fencings.iter().filter(|fencing| fencing.origin.is_proof()) {
            if !self.is_imported(fencing.id)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
