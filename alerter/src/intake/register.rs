//! Takes in what other controllers wrote into the register: their marks, fencings, ends and decisions.

use marks::fencing::Fencing;
use marks::id::{MarkId, NoteId};
use marks::journal::{MarkRow, Taken};
use marks::mark::{Doubt, Proof, Source, Standing};
use marks::register::{Decision, Entries, Entry, Key, MarkEntry, Watermark};
use marks::time::{CLOCK_SKEW, Timestamp};
use tracing::{info, warn};

use super::apply::{Done, Intake};

impl Intake<'_> {
    /// What another alerter, or `fence_mark` on another controller, wrote. Marks come before fencings, so that a fencing
    /// joins the mark that others told.
    pub(super) fn take_in_register(&mut self, entries: &Entries) -> Done {
        if self.is_known(entries) {
            return Ok(());
        }
        let now = self.around.now;
        for entry in in_order(entries) {
            self.adopt(entry, entries)?;
        }
        self.take_in_ends_of(entries, |mark| has_ended(mark, entries))?;
        self.take_in_returns(entries)?;
        let fencings: Vec<Fencing> = entries.sound.values().filter_map(fencing).collect();
        self.journal.append_imported(&fencings, now)?;
        for entry in entries.sound.values() {
            if let Entry::Watermark(watermark) = entry {
                self.journal.note_watermark(watermark)?;
            }
        }
        let mut seen = self.shared.seen();
        seen.note_apart(&entries.apart);
        seen.watermark = None;
        Ok(())
    }

    /// What others saw, whose cluster may have forgotten it since: the connection is lost with the controller that held it.
    fn take_in_returns(&mut self, entries: &Entries) -> Done {
        for entry in entries.sound.values() {
            let Entry::Returned(returned) = entry else { continue };
            let after = |row: &MarkRow| returned.at >= row.failure_time && row.returned_at.is_none();
            if self.find_sound(returned.mark)?.is_some_and(|row| after(&row)) {
                self.journal.note_return(returned.mark, returned.at, self.around.now)?;
            }
        }
        Ok(())
    }

    fn is_known(&self, entries: &Entries) -> bool {
        self.shared.seen().register.as_ref() == Some(entries)
    }

    /// What others told or ended, after all marks that it may be about are made, and before any is due. What the routes took
    /// stands before how a mark ended (the order of [`Key`]).
    pub(super) fn take_in_ends(&mut self, entries: &Entries) -> Done {
        if self.is_known(entries) && self.shared.seen().touched.is_empty() {
            return Ok(());
        }
        self.take_in_ends_of(entries, |_| true)?;
        self.take_over_confirmations(entries)?;
        self.shared.seen().register = Some(entries.clone());
        Ok(())
    }

    pub(super) fn take_in_ends_of(&mut self, entries: &Entries, is_meant: impl Fn(MarkId) -> bool) -> Done {
        let now = self.around.now;
        for entry in entries.sound.values() {
            match entry {
                Entry::Acknowledged(end) if is_meant(end.mark) => {
                    let is_settled = entries.sound.contains_key(&Key::Settled(end.mark));
                    self.journal.acknowledged_elsewhere(end, is_settled, now)?;
                }
                Entry::Settled(end) if is_meant(end.mark) => drop(self.journal.settled_elsewhere(end, now)?),
                _ => {}
            }
        }
        Ok(())
    }

    /// When an alerter first ran in this cluster; here and now, if there is no word of one.
    pub(super) fn set_watermark(&mut self) -> Done {
        if self.shared.seen().watermark.is_some() {
            return Ok(());
        }
        // One that lies ahead counts for nothing: it would silence what Pacemaker says until then.
        let latest = self.around.now + CLOCK_SKEW;
        let (sound, ahead): (Vec<_>, Vec<_>) =
            self.journal.watermarks()?.into_iter().partition(|mark| mark.at <= latest);
        for mark in ahead {
            let whose = format!("the register's entry w.{} by {}", mark.id, mark.by);
            self.shared.seen().compare_ahead(&whose, mark.at, self.moment());
        }
        let mut known: Vec<Timestamp> = sound.into_iter().map(|mark| mark.at).collect();
        if known.is_empty() {
            let (at, by) = (self.around.now, self.shared.controller.clone());
            self.journal.note_watermark(&Watermark { id: NoteId::generate(), at, by })?;
            known.push(at);
        }
        let first = known.into_iter().min().unwrap_or(self.around.now);
        self.around.watermark = first;
        self.shared.seen().watermark = Some(first);
        Ok(())
    }

    /// After the marks that they are about, which may have been made a moment ago, and before any of these is told.
    pub(super) fn take_in_decisions(&mut self, entries: &Entries) -> Done {
        if self.is_known(entries) && self.shared.seen().touched.is_empty() {
            return Ok(());
        }
        let now = self.around.now;
        for entry in entries.sound.values() {
            match entry {
                Entry::Decision(decision) if self.journal.adopt_decision(decision, now)? => {
                    self.announce_decision(decision)?;
                }
                Entry::Ending(ending) if self.journal.adopt_ending(ending, now)? => {
                    info!("{} ended the decision {} on another controller", ending.actor, ending.id);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn announce_decision(&self, decision: &Decision) -> Done {
        let (id, actor, kind) = (decision.id, &decision.actor, decision.about.kind());
        match (decision.about.mark(), decision.about.scope()) {
            (Some(mark), _) => {
                let row = self.find_sound(mark)?;
                if row.is_some_and(|row| row.settled.is_none() && row.standing.doubt().is_some()) {
                    warn!(mark = %mark, "{actor} released it on another controller, which proves nothing here: if the host is off, run `nova-host-alerter release {mark} --reason TEXT` again");
                }
            }
            (None, Some(scope)) => {
                info!(%id, "{actor} decided on another controller about {scope}: {kind} ({})", decision.reason);
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// A mark of another alerter: the same id, the same content, and so the same bytes. One whose row here is damaged is
    /// known all the same.
    fn adopt(&mut self, entry: &MarkEntry, entries: &Entries) -> Done {
        match self.find(entry.mark.id)? {
            Some(Ok(_)) if self.is_ancient(entry) => return Ok(()),
            Some(Ok(known)) => return self.believe_again(&known),
            Some(Err(_)) => return Ok(()),
            None => {}
        }
        if self.is_forged(entry, entries)? {
            warn!(mark = %entry.mark.id, host = %entry.mark.node, "the register's mark of {} is not used: no alerter made it", entry.mark.node);
            return Ok(());
        }
        let is_ancient = self.is_ancient(entry);
        if is_ancient && entries.sound.contains_key(&Key::Settled(entry.mark.id)) {
            return Ok(());
        }
        // The alerter that made it had the same fault in its configuration, and did not know it.
        let clash = self.around.names.of_entry(&entry.mark.node, &entry.mark.fqdn).err();
        let mut row = MarkRow::of_entry(entry);
        if clash.is_some() {
            row.fqdn = None;
        }
        if is_ancient {
            row.standing = Standing::Doubtful(Doubt::OutcomeUnknown);
        }
        self.make(&row, clash.as_ref(), Taken::Register)
    }

    /// Whether a mark is so old that it may have been known here, and removed from the journal since: then what became of it is
    /// not known any more, and an operator decides. Such an entry comes back with a controller that was away for as long.
    fn is_ancient(&self, entry: &MarkEntry) -> bool {
        let youngest = entry.made_at.max(entry.mark.failure_time);
        self.around.now.since(youngest) > self.shared.settings().history.keep
    }

    /// A mark that was held because the register had lost it stands there, so nobody has lost anything: a controller that
    /// has just joined may look before its peers have told it what they know.
    fn believe_again(&mut self, known: &MarkRow) -> Done {
        if known.standing == Standing::Doubtful(Doubt::OutcomeUnknown) && known.settled.is_none() {
            return self.prove(known.id, Proof::Journal, true);
        }
        Ok(())
    }

    /// Whether no alerter can have made it: it stands under the id of another host's outage, or tells another host.
    fn is_forged(&self, entry: &MarkEntry, entries: &Entries) -> Done<bool> {
        let (id, node) = (entry.mark.id, &entry.mark.node);
        let unfolded = self.journal.unfolded_fencings()?.sound;
        let registered = entries.sound.values().filter_map(fencing);
        let taken =
            unfolded.into_iter().chain(registered).any(|f| MarkId::from(f.id) == id && f.node != *node);
        let second = entry.mark.failure_time.seconds();
        let fits = match entry.source {
            Source::Fencing => !id.is_worked_out(),
            Source::Alert => id.is_worked_out(),
            Source::History | Source::NodeFenced => id == MarkId::of_node_fenced(node, second),
        };
        Ok(taken || !fits || self.around.names.is_anothers(node, &entry.mark.fqdn))
    }
}

/// Such a mark ends before a fencing is folded: whether that belongs to it depends on how and when it ended.
pub(super) fn has_ended(mark: MarkId, entries: &Entries) -> bool {
    entries.sound.contains_key(&Key::Settled(mark))
}

/// The marks as they are told: what is told of a host may depend on its earlier marks.
fn in_order(entries: &Entries) -> Vec<&MarkEntry> {
    let mut marks = Vec::new();
    for entry in entries.sound.values() {
        if let Entry::Mark(entry) = entry {
            marks.push(entry);
        }
    }
    marks.sort_by_key(|entry| (entry.mark.failure_time, entry.mark.id));
    marks
}

fn fencing(entry: &Entry) -> Option<Fencing> {
    match entry {
        Entry::Fencing(fencing) => Some(fencing.clone()),
        _ => None,
    }
}
