//! Takes in what Pacemaker says of fencings: its alerts, its history, and `node_fenced` in the CIB.

use std::time::Duration;

use marks::cib::Cib;
use marks::evidence::{self, EvidenceError, Found, Sighting};
use marks::fencing::Incarnation;
use marks::host::HostName;
use marks::id::MarkId;
use marks::journal::{Outage, Taken};
use tracing::warn;

use super::apply::{Done, Intake, too_old};
use super::files;
use super::fold::Fate;
use super::outage;
use crate::cluster::View;

/// An older mark gets its proof from the history that is read every ten seconds.
const NEWS: Duration = Duration::from_secs(60);

impl Intake<'_> {
    /// What Pacemaker says of fencings.
    pub(super) fn take_in_sightings(&mut self, view: &View, cib: &Cib) -> Done {
        self.take_in_files()?;
        let Some(Ok(history)) = &view.history else {
            return self.ask_for_history();
        };
        for sighting in history {
            self.take_in_sighting(sighting)?;
        }
        let by_hand: Vec<&Sighting> = history.iter().filter(|sighting| sighting.by_human).collect();
        for sighting in evidence::node_fenced(cib) {
            // It does not say who fenced; and of a host that is a member it is a leftover or a confirmation by hand.
            let confirmed =
                by_hand.iter().any(|hand| is_same_event(hand, &sighting)) || self.was_confirmed(&sighting)?;
            if !confirmed && cib.membership(&sighting.node) == Some(false) {
                self.take_in_sighting(&sighting)?;
            }
        }
        Ok(())
    }

    /// Whether a witness said earlier that it was a confirmation by hand: Pacemaker may have forgotten that since.
    fn was_confirmed(&self, sighting: &Sighting) -> Done<bool> {
        for mark in self.journal.marks_of(&sighting.node)?.sound {
            let kept = self.journal.sightings_of(mark.id)?.sound;
            if kept.iter().any(|hand| hand.by_human && is_same_event(hand, sighting)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Pacemaker's history is not read at every look: only when a new mark waits for its word.
    fn ask_for_history(&mut self) -> Done {
        let now = self.around.now;
        let open = self.journal.open_marks()?.sound;
        let mut waiting = open.iter().filter(|mark| mark.standing.doubt().is_some());
        self.shared.seen().history_wanted = waiting.any(|mark| now.since(mark.made_at) < NEWS);
        Ok(())
    }

    fn take_in_files(&mut self) -> Done {
        let (directory, reading) = match files::read(&self.shared.evidence) {
            Ok(read) => read,
            Err(EvidenceError::Missing { .. }) => return Ok(()),
            Err(error) => {
                self.shared.seen().note_evidence(vec![error.to_string()]);
                return Ok(());
            }
        };
        self.shared.seen().note_evidence(complaints(&reading));
        for found in &reading.sound {
            if self.take_in_file(found)? {
                files::remove(&directory, &found.name);
            }
        }
        Ok(())
    }

    /// Says whether the file has done its service.
    fn take_in_file(&mut self, found: &Found) -> Done<bool> {
        match Sighting::of_alert(&found.evidence) {
            Some(sighting) => self.take_in_sighting(&sighting),
            None => Ok(true),
        }
    }

    /// Says whether nothing more is to be expected of it.
    fn take_in_sighting(&mut self, sighting: &Sighting) -> Done<bool> {
        if self.journal.has_sighting(sighting)? {
            return Ok(true);
        }
        let outages = self.journal.outages_of(&sighting.node)?;
        let connections = self.connections(&sighting.node, &outages)?;
        let now = self.around.now;
        match self.around.fate_of_sighting(sighting, &connections, &outages) {
            Fate::Join(mark) => self.join(sighting, mark).map(|()| true),
            Fate::Mark(row, clash) => match self.find(row.id)? {
                None => self.make(&row, clash.as_ref(), Taken::Sighting(sighting)).map(|()| true),
                Some(Ok(known)) if known.node == row.node => self.join(sighting, row.id).map(|()| true),
                Some(_) => Ok(false),
            },
            Fate::SetAside => {
                let reason = format!("{} is not covered by [hosts] match and is not told", sighting.node);
                self.journal.keep_sighting(sighting, None, &reason, now).map(|_| true)
            }
            Fate::Expire => {
                let reason = too_old(&sighting.node, sighting.at);
                warn!(host = %sighting.node, "{reason}");
                self.journal.keep_sighting(sighting, None, &reason, now).map(|_| true)
            }
            Fate::Wait | Fate::Ignore => Ok(false),
        }
    }

    fn connections(&self, node: &HostName, outages: &[Outage]) -> Done<Vec<Incarnation>> {
        let mut all = self.journal.connections_of(node)?;
        all.extend(outages.iter().flat_map(|outage| outage.incarnations.iter().cloned()));
        Ok(all)
    }

    fn join(&mut self, sighting: &Sighting, mark: MarkId) -> Done {
        self.journal.keep_sighting(sighting, Some(mark), "its outage has a mark", self.around.now)?;
        // An operation ends after its agent was asked: what is older proves nothing of it.
        let claimed = self.find_sound(mark)?.map(|row| row.failure_time);
        let is_older = claimed.is_some_and(|at| at > sighting.at + outage::SKEW);
        match self.around.proof_by(sighting) {
            Some(proof) if !is_older => self.prove(mark, proof, self.is_fresh(sighting.at)),
            _ => Ok(()),
        }
    }
}

/// Two witnesses stamp the same event with whole seconds of two clocks.
fn is_same_event(one: &Sighting, other: &Sighting) -> bool {
    one.node == other.node && one.at.distance(other.at) <= Duration::from_secs(5)
}

fn complaints(reading: &evidence::Reading) -> Vec<String> {
    let broken = reading.broken.iter().map(|broken| {
        format!("the evidence file {} is not used: {}; look at it and remove it", broken.name, broken.flaw)
    });
    let more =
        reading.more.then(|| "the evidence directory holds more files than are read at once".to_owned());
    broken.chain(more).collect()
}
