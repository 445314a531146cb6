//! Takes in sightings: Pacemaker's alerts, its fencing history, and `node_fenced` in the CIB.

use std::cmp::Reverse;
use std::time::Duration;

use journal::{Done, KeptSighting, Taken};
use marks::host::HostName;
use marks::id::{MarkId, OperationId};
use marks::outage::{self, Connection, Connections, GRAIN, Outage};
use marks::register::{Entry, Key};
use marks::rule::Rule;
use marks::sighting::{Sighting, Witness};
use marks::time::{CLOCK_SKEW, Timestamp};
use pacemaker::cib::Cib;
use pacemaker::evidence::{self, EvidenceError, Found};
use tracing::error;

use super::credible::is_ahead;
use super::files;
use super::judge::{self, Judgement};
use super::ledger::{Left, Source};
use super::made::has_ended;
use super::pass::{Intake, before};
use crate::cluster::View;
use crate::lock::lock;

/// Older marks get their proof from the history, which is read every ten seconds.
const NEWS: Duration = Duration::from_secs(60);

impl Intake<'_> {
    /// All sightings of this poll.
    pub(super) fn take_in_sightings(&mut self, view: &View, cib: &Cib) -> Done {
        self.take_in_files()?;
        let Some(Ok(history)) = &view.history else {
            return self.ask_for_history(cib);
        };
        lock(self.accounts).ledger.begin(Source::Memory);
        // The last word about a host first: what came before it is no news beside that.
        for sighting in newest_first(history) {
            self.take_in_sighting(sighting)?;
        }
        self.base.seen().fenced_known = cib.fenced_nodes().into_iter().collect();
        for sighting in evidence::node_fenced(cib) {
            // It does not name who fenced; of a member it is a leftover or a confirmation by hand.
            let confirmed = self.is_by_hand(&sighting, history)?;
            match cib.membership(&sighting.node) {
                _ if confirmed => self.leave(&sighting, Left::Aside(Rule::ConfirmedByHand))?,
                Some(false) => self.take_in_sighting(&sighting)?,
                _ => self.leave(&sighting, Left::Aside(Rule::Member))?,
            };
        }
        lock(self.accounts).ledger.end(Source::Memory);
        Ok(())
    }

    /// Whether `node_fenced` may be a person's word: the last that is known of its host is a confirmation by hand, or one is near by
    /// clocks. Pacemaker may have forgotten it since.
    fn is_by_hand(&self, fenced: &Sighting, history: &[Sighting]) -> Done<bool> {
        let kept = self.journal.sightings_of_host(&fenced.node)?.sound;
        let kept: Vec<&Sighting> = kept
            .iter()
            .map(|kept| &kept.sighting)
            .filter(|seen| seen.witness != Witness::NodeFenced)
            .collect();
        let listed: Vec<&Sighting> = history.iter().filter(|seen| seen.node == fenced.node).collect();
        let last = if listed.is_empty() { &kept } else { &listed };
        let is_last = last.iter().max_by_key(|seen| seen.at).is_some_and(|seen| seen.by_human);
        Ok(is_last || kept.iter().chain(&listed).any(|seen| seen.by_human && is_same_event(seen, fenced)))
    }

    /// Pacemaker's history is not read at every poll: only when a new mark waits for its proof, and beside a new `node_fenced`, which may be
    /// the last thing that an alerter sees and shares.
    fn ask_for_history(&mut self, cib: &Cib) -> Done {
        let now = self.around.now;
        let open = self.journal.open_marks()?.sound;
        let mut waiting = open.iter().filter(|mark| mark.standing.doubt().is_some());
        let is_waited_for = waiting.any(|mark| now.since(mark.made_at) < NEWS);
        let mut seen = self.base.seen();
        let mut fenced = cib.fenced_nodes().into_iter();
        seen.history_wanted = is_waited_for || fenced.any(|of_host| !seen.fenced_known.contains(&of_host));
        Ok(())
    }

    /// The evidence directory, once in a pass; files that are known to be broken are not read each time.
    pub(super) fn read_evidence(&mut self) {
        let mut known = std::mem::take(&mut self.base.seen().known_files);
        let read = files::read(&self.base.evidence, &mut known);
        self.base.seen().known_files = known;
        match read {
            Ok((directory, reading)) => {
                self.base.seen().note_evidence(files::complaints(&reading));
                self.evidence = Some((directory, reading));
            }
            Err(EvidenceError::Missing { .. }) => {
                // The evidence is gone with the directory.
                lock(self.accounts).ledger.begin(Source::Files);
                lock(self.accounts).ledger.end(Source::Files);
            }
            Err(error) => self.base.seen().note_evidence(vec![error.to_string()]),
        }
    }

    /// Removes files that were taken in; those that wait are read again.
    fn take_in_files(&mut self) -> Done {
        let Some((directory, mut reading)) = self.evidence.take() else { return Ok(()) };
        // Joins were noted before anything of the directory was taken in.
        reading.joins.drain(..).for_each(|found| files::remove(&directory, &found.name));
        lock(self.accounts).ledger.begin(Source::Files);
        for found in std::mem::take(&mut reading.sound) {
            match self.take_in_file(&found)? {
                true => files::remove(&directory, &found.name),
                false => reading.sound.push(found),
            }
        }
        lock(self.accounts).ledger.end(Source::Files);
        self.evidence = Some((directory, reading));
        Ok(())
    }

    /// Says whether the file is not needed any more.
    fn take_in_file(&mut self, found: &Found) -> Done<bool> {
        match found.evidence.sighting() {
            Some(sighting) => self.take_in_sighting(&sighting),
            None => Ok(true),
        }
    }

    /// Says whether nothing more is to be expected of it.
    fn take_in_sighting(&mut self, sighting: &Sighting) -> Done<bool> {
        let key = sighting.key();
        if self.journal.has_sighting(sighting)? {
            self.base.seen().waiting.forget(&key);
            return Ok(true);
        }
        match self.judgement_of(sighting)? {
            Judgement::Join(mark, rule) => self.join(sighting, (mark, rule)).map(|()| true),
            Judgement::Mark(row, clash) => match self.find(row.id)? {
                None => self.make(&row, clash.as_ref(), Taken::Sighting(sighting)).map(|()| true),
                Some(Ok(known)) if known.node == row.node => {
                    self.join(sighting, (row.id, Rule::OwnMark)).map(|()| true)
                }
                Some(Err(_)) => self.leave(sighting, Left::Blocked(row.id)),
                Some(Ok(_)) => {
                    let reason = format!("{} is not marked: another host has a mark of this id", row.node);
                    error!(mark = %row.id, host = %row.node, "{reason}");
                    self.keep_aside(sighting, Rule::IdTaken, &reason)
                }
            },
            Judgement::SetAside => {
                let reason = format!("{} is not covered by [hosts] match and is not reported", sighting.node);
                self.keep_aside(sighting, Rule::NotCovered, &reason)
            }
            Judgement::Past => {
                self.past.insert(sighting.node.clone());
                self.keep_aside(sighting, Rule::Past, &before(&sighting.node, sighting.at))
            }
            Judgement::Wait(patience) => {
                let now = self.moment();
                if self.base.seen().waiting.wait(sighting, now.wall, (now.instant, patience)) {
                    self.compare_clocks(sighting);
                }
                self.leave(sighting, Left::Waits(patience))
            }
            Judgement::Ignore(rule) => self.leave(sighting, Left::Aside(rule)),
        }
    }

    /// A new sighting is of a moment ago or, if no daemon was there to see it, of an earlier time.
    fn compare_clocks(&self, sighting: &Sighting) {
        let (mut seen, now, node) = (self.base.seen(), self.moment(), &sighting.node);
        match sighting.witness {
            Witness::NodeFenced if seen.is_watching(now) => {
                seen.compare_clocks("the clock of Pacemaker's DC", sighting.at, now);
            }
            Witness::NodeFenced => seen.compare_ahead("the clock of Pacemaker's DC", sighting.at, now),
            Witness::Alert(_) | Witness::History => {
                seen.compare_ahead(&format!("Pacemaker's alert about {node} here"), sighting.at, now);
            }
        }
    }

    /// Nothing is written down of it, so the account gets the reason.
    fn leave(&self, sighting: &Sighting, left: Left) -> Done<bool> {
        let named = (sighting.key(), &sighting.node, sighting.at);
        lock(self.accounts).ledger.note(source_of(sighting), named, left, self.instant);
        Ok(false)
    }

    fn keep_aside(&mut self, sighting: &Sighting, rule: Rule, reason: &str) -> Done<bool> {
        self.journal.keep_sighting(sighting, (None, rule), reason, self.around.now).map(|_| true)
    }

    fn judgement_of(&self, sighting: &Sighting) -> Done<Judgement> {
        let operation = sighting.operation();
        if let Some(id) = operation
            && let Some(judged) = self.judged_elsewhere(&sighting.node, id)?
        {
            return Ok(judged);
        }
        let outages = self.outages(&sighting.node)?;
        let (key, now) = (sighting.key(), self.around.now);
        lock(self.accounts).ledger.meet(source_of(sighting), key.clone(), true);
        let is_fresh = self.saw_appear(sighting);
        let (waited, first, was_up) = {
            let waiting = &mut self.base.seen().waiting;
            if self.is_member(&sighting.node) {
                waiting.is_up(&key, self.instant);
            }
            let first = waiting.first_seen(&key).unwrap_or(now);
            (waiting.waited(&key, self.instant), first, !is_fresh && waiting.was_up(&key))
        };
        let mut connections = self.connections(&sighting.node, &outages, is_fresh)?;
        if was_up {
            connections.leave_the_current();
        }
        // What this daemon saw appear is no younger than that, whichever clock dates it. Else the time is kept: the bytes of its mark have
        // to be the same on every controller, and its id is so in any case.
        let at = if is_fresh && is_ahead(sighting.at, now) { first } else { sighting.at };
        let moved = &Sighting { at, ..sighting.clone() };
        let is_uncounted = operation.is_some_and(|id| self.is_uncounted(&outages, id));
        let seen = judge::Seen {
            sighting: moved,
            is_fresh,
            is_uncounted,
            connections: &connections,
            waited,
            was_up,
        };
        let mut judged = self.around.judgement_of_sighting(&seen, &outages);
        if let Judgement::Mark(row, _) = &mut judged {
            if let Some(alert) = self.alert_beside(sighting)?.filter(|_| !is_fresh) {
                let join = |mark| Judgement::Join(mark, Rule::SameOperation);
                return Ok(alert.mark.map_or(Judgement::Ignore(Rule::Past), join));
            }
            row.id = sighting.mark_id();
        }
        Ok(judged)
    }

    /// To which outage the alerter that was there when it came counted it, whatever this clock says of it.
    pub(super) fn judged_elsewhere(&self, node: &HostName, id: OperationId) -> Done<Option<Judgement>> {
        let Some((entries, Entry::Operation(joined))) = self.register.zip(self.counted(id)) else {
            return Ok(None);
        };
        Ok(match self.find_sound(joined.mark)? {
            Some(row) if row.node == *node => Some(Judgement::Join(row.id, Rule::SameOperation)),
            // By this clock it is so old that its mark was not taken in.
            None if has_ended(joined.mark, entries) => Some(Judgement::Past),
            _ => None,
        })
    }

    pub(super) fn counted(&self, id: OperationId) -> Option<&Entry> {
        self.register.and_then(|entries| entries.sound.get(&Key::Operation(id)))
    }

    /// Whether no alerter counted it to an outage, although the one that saw its host come back shared what it knew.
    pub(super) fn is_uncounted(&self, outages: &[Outage], id: OperationId) -> bool {
        let Some(entries) = self.register.filter(|entries| !entries.is_partial) else { return false };
        let is_shared = |outage: &Outage| entries.sound.contains_key(&Key::Returned(outage.mark));
        self.counted(id).is_none() && outages.iter().any(is_shared)
    }

    /// The alert of the same moment as a line of the history: this controller dates both, and the alert has an id that all share.
    fn alert_beside(&self, sighting: &Sighting) -> Done<Option<KeptSighting>> {
        if sighting.witness != Witness::History {
            return Ok(None);
        }
        let is_beside = |other: &KeptSighting| {
            let is_alert = matches!(other.sighting.witness, Witness::Alert(_));
            is_alert && other.sighting.at.distance(sighting.at) <= GRAIN
        };
        Ok(self.journal.sightings_of_host(&sighting.node)?.sound.into_iter().find(is_beside))
    }

    /// Whether it is of the time since this daemon's start: of an alert this controller's clock says so too. A controller that joins
    /// copies the history of others with their times.
    pub(super) fn saw_appear(&self, sighting: &Sighting) -> bool {
        let has_appeared = lock(self.accounts).ledger.saw_appear(source_of(sighting), sighting.key());
        match sighting.witness {
            Witness::Alert(_) => has_appeared || self.is_of_this_run(sighting.at),
            Witness::History => has_appeared && self.is_of_this_run(sighting.at),
            Witness::NodeFenced => has_appeared,
        }
    }

    /// Every connection of a host that is known here, each with the time when it appeared, and the cluster's state of the last. What
    /// lies ahead was made by another clock, and before what this daemon saw appear (`is_fresh`).
    fn connections(&self, node: &HostName, outages: &[Outage], is_fresh: bool) -> Done<Connections> {
        let mut known = self.journal.connections_of(node)?;
        known.extend(outages.iter().flat_map(|outage| outage.incarnations.iter().cloned()));
        let current = self.around.cib.and_then(|cib| cib.incarnation_of(node));
        known.extend(current.clone());
        let mut all: Vec<Connection> = Vec::new();
        let seen = self.base.seen();
        for incarnation in known {
            let made = incarnation.connected_at();
            let before = made.filter(|made| is_fresh && is_ahead(*made, self.around.now));
            let appeared = seen.appeared(node, &incarnation).or(before.map(|_| self.around.started));
            let Some(since) = appeared.or(made) else { continue };
            let connection = Connection { incarnation, since, was_seen: appeared.is_some() };
            if !all.contains(&connection) {
                all.push(connection);
            }
        }
        let is_back = self.around.cib.and_then(|cib| cib.fenced_before(node)) == Some(false);
        let joins = self.around.cib.is_some_and(|cib| cib.joins_itself(node));
        Ok(Connections { all, current, is_back, joins })
    }

    fn join(&mut self, sighting: &Sighting, (mark, rule): (MarkId, Rule)) -> Done {
        if self.base.seen().waiting.waited(&sighting.key(), self.instant).is_zero() {
            self.compare_clocks(sighting);
        }
        let why = format!("its outage has a mark ({})", rule.as_str());
        self.journal.keep_sighting(sighting, (Some(mark), rule), &why, self.around.now)?;
        self.prove_by(sighting, (mark, rule))
    }

    fn prove_by(&mut self, sighting: &Sighting, (mark, rule): (MarkId, Rule)) -> Done {
        let Some(row) = self.find_sound(mark)? else { return Ok(()) };
        let outages = self.outages(&sighting.node)?;
        let Some(outage) = outages.iter().find(|outage| outage.mark == mark) else { return Ok(()) };
        let connections = self.connections(&sighting.node, &outages, self.saw_appear(sighting))?;
        let joined = outage::Joined { outage, rule };
        // What was marked here had failed by then, whatever clock dates the failure.
        let is_own = row.made_by == self.base.controller;
        let claimed = if is_own { row.failure_time.min(row.made_at) } else { row.failure_time };
        match self.around.proof_by(sighting) {
            Some(proof) if outage::is_proof(joined, sighting, claimed, &connections) => {
                self.prove(mark, proof, self.saw_appear(sighting))
            }
            _ => Ok(()),
        }
    }

    /// Whether a sighting from before an unproven mark was made proves it, and is not surely of another outage.
    pub(super) fn prove_from_kept(&mut self, node: &HostName, mark: MarkId) -> Done {
        let outages = self.outages(node)?;
        let connections = self.connections(node, &outages, false)?;
        // An earlier `node_fenced` is not about the present connection.
        let former = Connections { current: None, ..connections.clone() };
        let fenced = self.around.cib.and_then(|cib| cib.node_fenced(node)).map(Timestamp::from_seconds);
        for kept in &self.journal.sightings_of_host(node)?.sound {
            let is_of_another =
                kept.mark.is_some_and(|of| of != mark) && kept.rule.is_some_and(Rule::is_sure);
            if is_of_another {
                continue;
            }
            let sighting = &kept.sighting;
            let known = if fenced == Some(sighting.at) { &connections } else { &former };
            let found = outage::of_sighting(sighting, known, &outages, self.around.reach());
            if let Some(found) = found.filter(|found| found.outage.mark == mark) {
                self.prove_by(sighting, (mark, found.rule))?;
            }
        }
        Ok(())
    }
}

fn newest_first(history: &[Sighting]) -> Vec<&Sighting> {
    let mut all: Vec<&Sighting> = history.iter().collect();
    all.sort_by_key(|sighting| Reverse(sighting.at));
    all
}

fn source_of(sighting: &Sighting) -> Source {
    match sighting.witness {
        Witness::Alert(_) => Source::Files,
        Witness::History | Witness::NodeFenced => Source::Memory,
    }
}

/// Two witnesses may date one event by two clocks. In doubt it is one event, and `node_fenced` proves nothing.
fn is_same_event(one: &Sighting, other: &Sighting) -> bool {
    one.node == other.node && one.at.distance(other.at) <= CLOCK_SKEW
}
