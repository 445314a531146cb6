//! Takes in what other controllers wrote into the register: marks, fencings, ends and decisions.

use std::borrow::Cow;
use std::collections::BTreeMap;

use journal::{Done, Journal, Taken};
use marks::delivery::State;
use marks::fencing::{Fencing, Origin};
use marks::id::{MarkId, NoteId};
use marks::mark::{Doubt, MarkRow, Proof, Source, Standing};
use marks::register::{Acknowledgement, Decision, Entries, Entry, Key, MarkEntry, Settled, Watermark};
use marks::time::Timestamp;
use pacemaker::cib::{Cib, is_same_controller};
use tracing::{info, warn};

use super::credible::{Around, Behind, Known, Reason, What, credible, is_ahead};
use super::judge::{Judgement, is_surely_down};
use super::made::has_ended;
use super::naming::Clash;
use super::pass::Intake;
use crate::base::Base;

/// The entries of the register that are believed, and those that are not.
pub(super) struct Sifted<'e> {
    pub(super) entries: Cow<'e, Entries>,
    pub(super) refused: BTreeMap<Key, Reason>,
}

/// Leaves out entries that are wrong without regard to their marks. What a key vouches for and was believed before is not checked again.
pub(super) fn sift<'e>(
    journal: &Journal,
    base: &Base,
    (found, cib): (&'e Entries, &Cib),
    now: Timestamp,
) -> Done<Sifted<'e>> {
    let around = around(journal, base, Some(cib), now)?;
    let mut refused = BTreeMap::new();
    for (key, entry) in &found.sound {
        let behind = behind(found, key);
        let was_believed = |known: &Entries| known.sound.get(key) == Some(entry);
        if behind.unsealed.is_none() && base.seen().register.as_ref().is_some_and(was_believed) {
            continue;
        }
        let is_on_record = is_on_record(journal, entry)?;
        let known = Known { behind, is_on_record, ..Known::default() };
        if let Err(reason) = credible(entry, &around, &known) {
            refused.insert(key.clone(), reason);
        }
    }
    let mut entries = Cow::Borrowed(found);
    if !refused.is_empty() {
        entries.to_mut().sound.retain(|key, _| !refused.contains_key(key));
    }
    Ok(Sifted { entries, refused })
}

fn behind(found: &Entries, key: &Key) -> Behind {
    Behind { is_sealed: found.sealed.contains(key), unsealed: found.unsealed.get(key).copied() }
}

fn around<'a>(journal: &Journal, base: &'a Base, cib: Option<&'a Cib>, now: Timestamp) -> Done<Around<'a>> {
    let settings = base.settings();
    // What is older may have been removed with what it was about.
    let journal_since = journal.began_at()?.unwrap_or(now).max(now - settings.history.keep);
    Ok(Around { controller: &base.controller, cib, journal_since })
}

/// Whether the journal has the end of a mark, or a route's acknowledgement. A damaged row may hold one.
fn is_on_record(journal: &Journal, entry: &Entry) -> Done<bool> {
    let (mark, route) = match entry {
        Entry::Acknowledged(end) => (end.mark, Some(&end.route)),
        Entry::Settled(end) => (end.mark, None),
        _ => return Ok(true),
    };
    match journal.find_mark(mark)? {
        None => return Ok(false),
        Some(Ok(row)) if row.settled.is_none() => {}
        Some(_) => return Ok(true),
    }
    let Some(route) = route else { return Ok(false) };
    let deliveries = journal.deliveries_of(mark)?.sound;
    Ok(deliveries.iter().any(|it| it.route == *route && it.state == State::Acknowledged))
}

impl Intake<'_> {
    /// What another alerter, or `fence_mark` on another controller, wrote. Marks come before fencings, so that a fencing joins the mark
    /// that others sent.
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
        let fencings: Vec<Fencing> = entries.sound.values().filter_map(Entry::fencing).cloned().collect();
        self.journal.append_imported(&fencings, now)?;
        self.compare_writers(entries);
        self.prove_vouched(entries)?;
        self.note_again(entries)?;
        for entry in entries.sound.values() {
            if let Entry::Watermark(watermark) = entry {
                self.journal.note_watermark(watermark)?;
            }
        }
        let mut seen = self.base.seen();
        seen.note_apart(&entries.apart);
        seen.watermark = None;
        Ok(())
    }

    /// What another controller has sealed and lies ahead shows that one of the two clocks is wrong.
    fn compare_writers(&self, entries: &Entries) {
        let mut latest: BTreeMap<&str, Timestamp> = BTreeMap::new();
        for entry in entries.sealed.iter().filter_map(|key| entries.sound.get(key)) {
            let Some(by) = entry.by().filter(|by| !is_same_controller(by, &self.base.controller)) else {
                continue;
            };
            let newest = latest.entry(by).or_insert(entry.at());
            *newest = entry.at().max(*newest);
        }
        let mut seen = self.base.seen();
        for (by, at) in latest {
            seen.compare_ahead(&format!("the clock of {by}"), at, self.moment());
        }
    }

    /// Root on another controller now vouches for a fencing that only the register had.
    fn prove_vouched(&mut self, entries: &Entries) -> Done {
        let known = self.base.seen().register.as_ref().map(|known| known.sealed.clone()).unwrap_or_default();
        for key in entries.sealed.difference(&known) {
            let Some(Entry::Fencing(fencing)) = entries.sound.get(key) else { continue };
            if fencing.origin == Origin::Fencer {
                let fresh = self.is_fresh(fencing, true);
                self.prove(fencing.id.into(), Proof::Journal, fresh)?;
            }
        }
        Ok(())
    }

    /// Which fencings stood in a register before: alerters that read them from here have to know that too.
    fn note_again(&mut self, entries: &Entries) -> Done {
        let Some(cluster) = &self.base.cluster else { return Ok(()) };
        let again = entries.sound.keys().filter(|key| matches!(key, Key::Again(_)));
        self.journal.note_published(cluster.register(), &again.map(Key::to_string).collect::<Vec<_>>())
    }

    /// Returns that others saw. The cluster may have forgotten them: a connection is lost with the controller that held it.
    fn take_in_returns(&mut self, entries: &Entries) -> Done {
        for entry in entries.sound.values() {
            let Entry::Returned(returned) = entry else { continue };
            let is_sealed = entries.sealed.contains(&entry.key());
            let after =
                |row: &MarkRow| row.returned_at.is_none() && (is_sealed || returned.at >= row.failure_time);
            if let Some(row) = self.find_sound(returned.mark)?.filter(after)
                && (is_sealed || self.may_be_back(entry, &row)?)
            {
                self.journal.returned_elsewhere(returned, self.around.now)?;
            }
        }
        Ok(())
    }

    /// Whether a return can be true by the CIB.
    fn may_be_back(&mut self, entry: &Entry, row: &MarkRow) -> Done<bool> {
        let outages = self.journal.outages_of(&row.node)?;
        let outage = outages.iter().find(|outage| outage.mark == row.id).map(|outage| (&row.node, outage));
        self.believes(entry, &Known { outage, ..Known::default() })
    }

    /// Whether an entry is believed, given what is known of its mark.
    fn believes(&mut self, entry: &Entry, known: &Known<'_>) -> Done<bool> {
        let around = around(self.journal, self.base, self.around.cib, self.around.now)?;
        let known = Known { is_on_record: true, ..*known };
        let judged = credible(entry, &around, &known);
        Ok(judged.map_err(|reason| self.refused.insert(entry.key(), reason)).is_ok())
    }

    /// Logs once why an entry is not believed. A finding about a mark stays until the mark has ended.
    pub(super) fn say_refused(&mut self, found: &Entries) {
        let mut seen = self.base.seen();
        let sentences =
            self.refused.iter().map(|(key, reason)| (key.clone(), refusal(found.sound.get(key), reason)));
        let stays = |key: &Key| match key {
            Key::Mark(mark) => !found.sound.contains_key(&Key::Settled(*mark)),
            other => matches!(other, Key::Returned(_)),
        };
        let mut all: BTreeMap<Key, String> = seen
            .refused()
            .iter()
            .filter(|(key, _)| stays(key))
            .map(|(key, why)| (key.clone(), why.clone()))
            .collect();
        all.extend(sentences);
        all.retain(|key, _| found.sound.contains_key(key));
        seen.note_refused(all);
    }

    /// Whether the register has an end of a mark that is not believed: the mark may have been sent all the same.
    pub(super) fn is_spoken_for(&self, mark: MarkId) -> bool {
        self.refused.iter().any(|(key, reason)| key.mark() == Some(mark) && is_doubtful_end(key, reason))
    }

    /// A mark from before this daemon's start may have been sent by a controller that was taken out of the cluster since.
    fn doubt_spoken_for(&mut self) -> Done {
        let doubtful = self.refused.iter().filter(|(key, reason)| is_doubtful_end(key, reason));
        let marks: Vec<MarkId> = doubtful.filter_map(|(key, _)| key.mark()).collect();
        for mark in marks {
            let base = self.base;
            let may_go = |row: &MarkRow| row.settled.is_none() && row.standing.doubt().is_none();
            let is_meant = |row: &MarkRow| base.was_elsewhere(row) && may_go(row);
            let Some(row) = self.find_sound(mark)?.filter(is_meant) else { continue };
            let is_down = self.around.cib.is_some_and(|cib| is_surely_down(cib, &row.node, row.failure_time));
            if !is_down && row.standing != Standing::Proven(Proof::Operator) {
                self.journal.doubt(mark, Doubt::OutcomeUnknown, self.around.now)?;
            }
        }
        Ok(())
    }

    fn is_known(&self, entries: &Entries) -> bool {
        self.base.seen().register.as_ref() == Some(entries)
    }

    /// Acknowledgements and ends by others, after all marks that they may be about are made, and before any is due. Acknowledgements
    /// come before the ends of marks (the order of [`Key`]).
    pub(super) fn take_in_ends(&mut self, entries: &Entries) -> Done {
        self.doubt_spoken_for()?;
        if self.is_known(entries) && self.base.seen().touched.is_empty() {
            return Ok(());
        }
        self.take_in_ends_of(entries, |_| true)?;
        self.base.seen().register = Some(entries.clone());
        Ok(())
    }

    pub(super) fn take_in_ends_of(&mut self, entries: &Entries, is_meant: impl Fn(MarkId) -> bool) -> Done {
        for entry in entries.sound.values() {
            match entry {
                Entry::Acknowledged(end) if is_meant(end.mark) => {
                    self.acknowledge(end, entries.sound.contains_key(&Key::Settled(end.mark)))?;
                }
                Entry::Settled(end) if is_meant(end.mark) => self.settle(end)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn acknowledge(&mut self, end: &Acknowledgement, is_settled: bool) -> Done {
        if self.journal.acknowledged_elsewhere(end, is_settled, self.around.now)? {
            let (route, by) = (&end.route, &end.by);
            info!(mark = %end.mark, %route, "the register says that the alerter on {by} notified route {route}");
        }
        Ok(())
    }

    fn settle(&mut self, end: &Settled) -> Done {
        if self.journal.settled_elsewhere(end, self.around.now)? {
            let (how, by) = (end.how.as_str(), &end.by);
            info!(mark = %end.mark, "the register says that the mark was ended ({how}) by the alerter on {by}");
        }
        Ok(())
    }

    /// When an alerter first ran in this cluster; now, if there is no record of one.
    pub(super) fn set_watermark(&mut self) -> Done {
        if self.base.seen().watermark.is_some() {
            return Ok(());
        }
        let now = self.around.now;
        // A watermark that lies ahead does not count: it would hide all sightings until then.
        let (ahead, sound): (Vec<_>, Vec<_>) =
            self.journal.watermarks()?.into_iter().partition(|mark| is_ahead(mark.at, now));
        for mark in &ahead {
            let whose = format!("the register's entry w.{} by {}", mark.id, mark.by);
            self.base.seen().compare_ahead(&whose, mark.at, self.moment());
        }
        // If all lie ahead, this clock is behind, and no other controller is to go by it.
        if sound.is_empty() && ahead.is_empty() {
            let by = self.base.controller.clone();
            self.journal.note_watermark(&Watermark { id: NoteId::generate(), at: now, by })?;
        }
        let first = sound.into_iter().map(|mark| mark.at).min().unwrap_or(now);
        self.around.watermark = first;
        self.base.seen().watermark = Some(first);
        Ok(())
    }

    /// Decisions, after the marks that they are about, which may be new, and before any of these is sent.
    pub(super) fn take_in_decisions(&mut self, entries: &Entries) -> Done {
        if self.is_known(entries) && self.base.seen().touched.is_empty() {
            return Ok(());
        }
        let now = self.around.now;
        for entry in entries.sound.values() {
            match entry {
                Entry::Decision(decision) => {
                    let is_sealed = entries.sealed.contains(&entry.key());
                    if self.journal.adopt_decision(decision, is_sealed, now)? {
                        self.announce_decision(decision)?;
                    }
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
                    warn!(mark = %mark, "{actor} released the mark on another controller, which proves nothing here: if the host is off, run `nova-host-alerter release {mark} --reason TEXT` here too");
                }
            }
            (None, Some(scope)) => {
                info!(%id, "{actor} decided on another controller about {scope}: {kind} ({})", decision.reason);
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// A mark of another alerter: the same id, the same content, and so the same bytes. A mark whose row here is damaged counts as
    /// known.
    fn adopt(&mut self, entry: &MarkEntry, entries: &Entries) -> Done {
        match self.find(entry.mark.id)? {
            Some(Ok(_)) if self.is_ancient(entry) => return Ok(()),
            Some(Ok(known)) => return self.believe_again(&known, (entry, entries)),
            Some(Err(_)) => return Ok(()),
            None => {}
        }
        if self.is_forged(entry, entries)? {
            self.refused.insert(Key::Mark(entry.mark.id), Reason::AnotherHost);
            return Ok(());
        }
        let (is_ancient, has_ended) =
            (self.is_ancient(entry), entries.sound.contains_key(&Key::Settled(entry.mark.id)));
        if is_ancient && has_ended && entries.sound.contains_key(&Key::Returned(entry.mark.id)) {
            return Ok(());
        }
        let (ours, clash) = self.as_ours(entry, entries)?;
        if !has_ended
            && !self
                .believes(&Entry::Mark(entry.clone()), &Known { ours: Some(&ours), ..Known::default() })?
        {
            return self.make(&ours, clash.as_ref(), Taken::Register);
        }
        // The alerter that made it may have had the same mistake in its configuration.
        let clash = self.around.names.of_entry(&entry.mark.node, &entry.mark.fqdn).err();
        let mut row = entry.row();
        if clash.is_some() {
            row.fqdn = None;
        }
        // An old entry may have been put back by anybody, or with an old configuration.
        if entries.sealed.contains(&Key::Mark(row.id)) && self.around.may_go_late(&row.node, row.failure_time)
        {
            row.standing = Standing::Proven(Proof::Journal);
        }
        if is_ancient || self.may_have_ended(&row, entries) {
            row.standing = Standing::Doubtful(Doubt::OutcomeUnknown);
        }
        self.make(&row, clash.as_ref(), Taken::Register)
    }

    /// Whether a mark is so old that it may have been known here, and removed from the journal since. Then its outcome is not known, and
    /// an operator decides. Such an entry comes back with a controller that was away for as long.
    fn is_ancient(&self, entry: &MarkEntry) -> bool {
        let youngest = entry.made_at.max(entry.mark.failure_time);
        self.around.now.since(youngest) > self.base.settings().history.keep
    }

    /// Whether a mark may have been sent and have ended, and its host may be back: the register has an end that nobody vouches for, or
    /// this controller lacks pages that another one has and the mark is older than this daemon.
    fn may_have_ended(&self, row: &MarkRow, entries: &Entries) -> bool {
        let is_lacking = entries.is_partial && self.base.was_elsewhere(row);
        let is_down = || self.around.cib.is_some_and(|cib| is_surely_down(cib, &row.node, row.failure_time));
        (is_lacking || self.is_spoken_for(row.id)) && !is_down()
    }

    /// A mark was held because the register had lost it, and the register has it again: a controller that has just joined may read it
    /// before its peers have sent their part.
    fn believe_again(&mut self, known: &MarkRow, (entry, entries): (&MarkEntry, &Entries)) -> Done {
        if known.settled.is_some() || known.lacks().next().is_some() || self.may_have_ended(known, entries) {
            return Ok(());
        }
        let ours = Known { ours: Some(known), ..Known::default() };
        if self.believes(&Entry::Mark(entry.clone()), &ours)?
            && known.standing == Standing::Doubtful(Doubt::OutcomeUnknown)
            && !self.is_ancient(entry)
        {
            return self.prove(known.id, Proof::Journal, true);
        }
        Ok(())
    }

    /// The mark as this controller's rules make it, from its fencing or from the entry, and held: a different one may have been sent. Its
    /// name is one that no other node has, or none.
    fn as_ours(&mut self, entry: &MarkEntry, entries: &Entries) -> Done<(MarkRow, Option<Clash>)> {
        let id = entry.mark.id;
        let is_first = |fencing: &&Fencing| MarkId::from(fencing.id) == id && fencing.node == entry.mark.node;
        let unfolded = self.journal.unfolded_fencings()?.sound;
        let registered = || entries.sound.values().filter_map(Entry::fencing);
        let mut row = entry.row();
        let (mut clash, mut doubt) = (None, Doubt::OutcomeUnknown);
        if let Some(fencing) = unfolded.iter().find(is_first).or_else(|| registered().find(is_first)) {
            let imported = !unfolded.contains(fencing) || self.journal.is_imported(fencing.id)?;
            if let Judgement::Mark(ours, why) = self.around.mark_of_fencing(fencing, imported, row.standing) {
                (row, clash) = (*ours, why);
            }
            doubt = self.around.doubt_of_another(fencing, &self.outages(&fencing.node)?);
        } else {
            let naming = self.around.names.of_node(&entry.mark.node);
            clash = naming.as_ref().err().cloned();
            row.fqdn = naming.ok().flatten();
            row.on_shared_storage = self.around.storage().of(&entry.mark.node, None);
        }
        row.standing = Standing::Doubtful(doubt);
        (row.made_by, row.made_at) = (entry.made_by.clone(), entry.made_at);
        Ok((row, clash))
    }

    /// Whether another alerter's mark differs from its fencing, which was read after it: no proof releases it.
    pub(super) fn contradicts_its_fencing(&mut self, row: &MarkRow) -> Done<bool> {
        if row.source != Source::Fencing || row.made_by == self.base.controller {
            return Ok(false);
        }
        let (taken_in, new) = (self.journal.fencings_of(row.id)?, self.journal.unfolded_fencings()?);
        let own = taken_in.sound.iter().chain(&new.sound).find(|fencing| MarkId::from(fencing.id) == row.id);
        let said = |f: &Fencing| (f.asked_at, f.committed_at) == (row.failure_time, row.generated_time);
        let differs = own.is_some_and(|fencing| !said(fencing));
        if differs {
            self.refused.insert(Key::Mark(row.id), Reason::Differs(What::Times));
        }
        Ok(differs)
    }

    /// Whether no alerter can have made it: it has the id of another host's outage, or another host's name.
    fn is_forged(&self, entry: &MarkEntry, entries: &Entries) -> Done<bool> {
        let (id, node) = (entry.mark.id, &entry.mark.node);
        let unfolded = self.journal.unfolded_fencings()?.sound;
        let registered = entries.sound.values().filter_map(Entry::fencing).cloned();
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

/// Why an entry is not used; of a fencing, of which host it says something: somebody may have to see whether that is down.
fn refusal(entry: Option<&Entry>, reason: &Reason) -> String {
    match entry.and_then(Entry::fencing) {
        Some(fencing) => format!("it says that {} was fenced, and {reason}", fencing.node),
        None => reason.to_string(),
    }
}

/// Whether a refused entry is an end or an acknowledgement of a mark that may have been sent.
fn is_doubtful_end(key: &Key, reason: &Reason) -> bool {
    matches!(key, Key::Acknowledged(..) | Key::Settled(_)) && reason.leaves_a_doubt()
}

/// The marks in the order in which they are sent: a mark's event may depend on the host's earlier marks.
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
