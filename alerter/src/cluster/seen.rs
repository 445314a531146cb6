//! What the daemon remembers of its polls of the cluster, and what it logs about them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use marks::fencing::Incarnation;
use marks::host::HostName;
use marks::register::{Apart, Entries, Key, Why};
use marks::time::Timestamp;
use pacemaker::cib::Cib;
use pacemaker::evidence::Known;
use tracing::{error, info, warn};

use super::clocks::Clocks;
use super::matter::{Fault, Matter};
use super::members::{self, Audit, Members};
use super::view::View;
use super::waiting::Waiting;
use crate::moment::Moment;

/// Polls are 1.5 s apart.
const WATCHING: Duration = Duration::from_secs(10);
/// A connection is dated when it began to be made, and Pacemaker waits for it for so long.
const MAKING: Duration = Duration::from_secs(60);
/// So many appearances of a host's connections are kept.
const APPEARANCES: usize = 16;

/// The memory; lost with the daemon, which costs nothing but work.
#[derive(Debug, Default)]
pub struct Seen {
    /// The last poll.
    pub view: Option<Arc<View>>,
    /// The newest CIB that could be read.
    pub cib: Option<Arc<Cib>>,
    /// The register as it was taken in last.
    pub register: Option<Entries>,
    /// What Pacemaker remembers from before is not reported; unset until the register was read.
    pub watermark: Option<Timestamp>,
    /// How long after the daemon's start, which moves with a clock that is set, a part of the register began to be missing.
    pub partial_after: Option<Duration>,
    /// The marks that an older daemon held for what they lack were checked.
    pub named: bool,
    /// Something waits for Pacemaker's fencing history.
    pub history_wanted: bool,
    /// A mark was made or may be sent: the register is behind.
    pub news: bool,
    /// Hosts with a new mark that were not checked for a return yet. After a failed write they stay here.
    pub touched: BTreeSet<HostName>,
    /// Hosts that were no members at the last pass.
    pub were_away: BTreeSet<HostName>,
    /// Hosts with a health check that fails, as the journal has it; unset until that was read.
    pub unhealthy: Option<BTreeSet<HostName>>,
    /// Hosts with `node_fenced` at the last pass.
    pub fenced: BTreeSet<HostName>,
    /// Each `node_fenced` that was looked at beside the fencing history: host, epoch seconds.
    pub fenced_known: BTreeSet<(HostName, i64)>,
    /// Sightings that wait for a better witness.
    pub waiting: Waiting,
    /// The cluster nodes that are compute hosts too.
    pub members: Members,
    /// What the last polls could not read; empty where they could read all.
    faults: Vec<Fault>,
    /// The same of the fencing history, which only some polls read.
    history_fault: Option<Fault>,
    /// Why the register cannot be written.
    write_fault: Option<String>,
    /// What is wrong with the evidence directory.
    evidence: Vec<String>,
    /// The files there that are known to be broken.
    pub known_files: Known,
    /// Entries of the register that are not believed, with the reason.
    refused: BTreeMap<Key, String>,
    audit: Audit,
    /// Missed hosts that were logged.
    warned: HashSet<HostName>,
    connections: HashMap<HostName, Incarnation>,
    /// Connections that this daemon saw appear, and when, by this controller's clock; of each host the newest few.
    appeared: HashMap<HostName, VecDeque<(Incarnation, Timestamp)>>,
    /// Hosts that are lost, and since when, by this controller's clock.
    lost: BTreeMap<HostName, Timestamp>,
    /// When everything was last taken in.
    passed: Option<Moment>,
    /// When the cluster was last asked, and had nothing new.
    asked: Option<Instant>,
    clocks: Clocks,
}

impl Seen {
    /// Takes note of a poll, and logs what is new about it.
    pub fn note(&mut self, view: &Arc<View>) {
        let before = self.view.replace(Arc::clone(view));
        // Most polls do not read it: the result of the last one that did still counts.
        if let Some(history) = &view.history {
            let fault =
                |why| (Matter::HistoryUnreadable, format!("the fencing history cannot be read: {why}"));
            self.history_fault = history.as_ref().err().map(fault);
        }
        let faults: Vec<Fault> = view.faults().into_iter().chain(self.history_fault.clone()).collect();
        for (_, fault) in faults.iter().filter(|fault| !self.faults.contains(fault)) {
            warn!("{fault}");
        }
        if faults.is_empty() && !self.faults.is_empty() {
            info!("the cluster can be read again, and this partition may act");
        }
        self.faults = faults;
        let known = before.as_ref().map_or(&[][..], |before| &before.kept.faults);
        for (_, fault) in view.kept.faults.iter().filter(|fault| !known.contains(fault)) {
            warn!("{fault}");
        }
        if let Ok(cib) = &view.cib {
            self.audit.note(cib, view.taken);
            // An equal CIB stays the same object, so that its users need not work through it again.
            if self.cib.as_ref() != Some(cib) {
                self.cib = Some(Arc::clone(cib));
            }
        }
        self.say_audit();
    }

    fn say_audit(&mut self) {
        let missed = owned(self.audit.missed_for_long(Instant::now()));
        for (host, time) in missed.iter().filter(|(host, _)| !self.warned.contains(host)) {
            let missed = members::sentence(host, *time);
            warn!("{missed}: check the host; if it is dead, run `stonith_admin --reboot {host}`");
        }
        self.warned = missed.into_iter().map(|(host, _)| host).collect();
    }

    /// Takes note of the result of writing the register.
    pub fn note_writing(&mut self, fault: Option<String>) {
        if let Some(fault) = &fault
            && self.write_fault.as_ref() != Some(fault)
        {
            error!("the register cannot be written: {fault}; the write is retried");
        }
        self.write_fault = fault;
    }

    /// Takes note of what is wrong with the evidence directory.
    pub fn note_evidence(&mut self, complaints: Vec<String>) {
        for complaint in complaints.iter().filter(|complaint| !self.evidence.contains(complaint)) {
            error!("{complaint}");
        }
        self.evidence = complaints;
    }

    /// Takes note whether a part of the register is missing, so long after the daemon's start.
    pub fn note_partial(&mut self, is_partial: bool, after: Duration) {
        self.partial_after = is_partial.then(|| self.partial_after.unwrap_or(after));
    }

    /// Logs new strange entries of the register: they are not used.
    pub fn note_apart(&self, apart: &[Apart]) {
        let known = self.register.iter().flat_map(|entries| &entries.apart);
        let known: BTreeSet<(&str, Why)> = known.map(|entry| (&*entry.key, entry.why)).collect();
        for entry in apart.iter().filter(|entry| !known.contains(&(&*entry.key, entry.why))) {
            warn!("the register's entry {} is not used: {}", entry.key, entry.why);
        }
    }

    /// Entries of the register that are not believed, with the reason.
    pub fn refused(&self) -> &BTreeMap<Key, String> {
        &self.refused
    }

    /// Takes note of entries that are not believed, and logs the new ones.
    pub fn note_refused(&mut self, refused: BTreeMap<Key, String>) {
        for (key, why) in refused.iter().filter(|(key, why)| self.refused.get(*key) != Some(*why)) {
            warn!("{}", not_believed(key, why));
        }
        self.refused = refused;
    }

    /// Whether a connection differs from the one that was noted last.
    pub fn is_new_connection(&self, node: &HostName, connection: &Incarnation) -> bool {
        self.connections.get(node) != Some(connection)
    }

    /// Takes note of a connection that the journal has.
    pub fn note_connection(&mut self, node: HostName, connection: Incarnation, now: Moment) {
        if self.is_watching(now) {
            self.note_appearance(&node, &connection, now);
        }
        self.connections.insert(node, connection);
    }

    /// It was not there a few seconds ago.
    fn note_appearance(&mut self, node: &HostName, connection: &Incarnation, now: Moment) {
        let seen = self.appeared.entry(node.clone()).or_default();
        if seen.iter().all(|(known, _)| known != connection) {
            seen.push_back((connection.clone(), now.wall));
            seen.drain(..seen.len().saturating_sub(APPEARANCES));
        }
        if let (Some(made), Some(controller)) = (connection.connected_at(), connection.controller()) {
            let span = (now.wall - MAKING, now.wall);
            self.clocks.compare(&format!("the clock of {controller}"), made, span, now.instant);
        }
    }

    /// When a connection appeared, by this controller's clock; none if it was there before.
    pub fn appeared(&self, node: &HostName, connection: &Incarnation) -> Option<Timestamp> {
        let seen = self.appeared.get(node)?;
        seen.iter().find(|(known, _)| known == connection).map(|(_, at)| *at)
    }

    /// Takes note of which hosts are lost. After a gap the count starts again: a host may have been back in between.
    pub fn note_lost(
        &mut self,
        lost: impl Iterator<Item = HostName>,
        now: Moment,
    ) -> &BTreeMap<HostName, Timestamp> {
        let known = if self.is_watching(now) { std::mem::take(&mut self.lost) } else { BTreeMap::new() };
        let since = |node: &HostName| known.get(node).copied().unwrap_or(now.wall);
        self.lost = lost.map(|node| (node.clone(), since(&node))).collect();
        &self.lost
    }

    /// Hosts that are lost, and since when, by this controller's clock.
    pub fn lost(&self) -> &BTreeMap<HostName, Timestamp> {
        &self.lost
    }

    /// Whether the last poll is so recent that what is new now has appeared since.
    pub fn is_watching(&self, now: Moment) -> bool {
        self.passed.is_some_and(|last| now.since(last) <= WATCHING)
    }

    /// Everything was taken in.
    pub fn note_pass(&mut self, now: Moment) {
        self.passed = Some(now);
    }

    /// The cluster was asked, and has nothing new. If that was of the CIB too, an unchanged cluster was watched.
    pub fn note_no_news(&mut self, of_cib: bool, now: Moment) {
        self.asked = Some(now.instant);
        if of_cib {
            self.note_pass(now);
        }
    }

    /// How long ago the cluster was last asked; none if it never was.
    pub fn age(&self) -> Option<Duration> {
        let polled = self.view.as_ref().map(|view| view.taken)?;
        Some(self.asked.map_or(polled, |at| at.max(polled)).elapsed())
    }

    /// Whether something waits for a witness, for Pacemaker's history or for the register.
    pub fn is_waiting(&self) -> bool {
        self.history_wanted || self.news || !self.touched.is_empty() || self.waiting.all().next().is_some()
    }

    /// Whether everything was taken in since the start.
    pub fn has_passed(&self) -> bool {
        self.passed.is_some()
    }

    /// Compares the time of something that happened a moment ago with this controller's clock.
    pub fn compare_clocks(&mut self, whose: &str, time: Timestamp, now: Moment) {
        self.clocks.compare(whose, time, (now.wall - WATCHING, now.wall), now.instant);
    }

    /// The same of something that may have happened long ago: only a time ahead of this clock shows a difference.
    pub fn compare_ahead(&mut self, whose: &str, time: Timestamp, now: Moment) {
        if time > now.wall {
            self.clocks.compare(whose, time, (time.min(now.wall), now.wall), now.instant);
        }
    }

    /// Everything that somebody should check.
    pub fn faults(&self) -> Vec<Fault> {
        let write = self.write_fault.iter().map(|fault| (Matter::RegisterUnwritable, writing(fault)));
        let evidence = self.evidence.iter().map(|complaint| (Matter::Evidence, complaint.clone()));
        let clocks =
            self.clocks.sentences(Instant::now()).into_iter().map(|sentence| (Matter::ClockSkew, sentence));
        let refused = self
            .refused
            .iter()
            .take(REFUSED)
            .map(|(key, why)| (Matter::RegisterEntry, not_believed(key, why)));
        let more = self.refused.len().saturating_sub(REFUSED);
        let more = (more > 0)
            .then(|| (Matter::RegisterEntry, format!("{more} more entries of the register are not used")));
        self.faults
            .iter()
            .chain(self.view.iter().flat_map(|view| &view.kept.faults))
            .cloned()
            .chain(write)
            .chain(evidence)
            .chain(clocks)
            .chain(refused)
            .chain(more)
            .collect()
    }

    /// Every host that is gone without having been fenced, and for how long.
    pub fn missed(&self) -> Vec<(HostName, Duration)> {
        owned(self.audit.missed(Instant::now()))
    }
}

fn owned<'a>(hosts: impl Iterator<Item = (&'a HostName, Duration)>) -> Vec<(HostName, Duration)> {
    hosts.map(|(host, time)| (host.clone(), time)).collect()
}

/// So many entries that are not believed are named; the others are counted.
const REFUSED: usize = 8;

fn not_believed(key: &Key, why: &str) -> String {
    format!("the register's entry {key} is not used: {why}")
}

fn writing(fault: &str) -> String {
    format!("the register cannot be written: {fault}")
}

#[cfg(test)]
mod tests {
    use super::Matter::{CibUnreadable, HistoryUnreadable};
    use crate::cluster::Kept;

    use super::*;

    fn poll(history: Option<Result<(), &str>>) -> Arc<View> {
        let history = history.map(|read| read.map(|()| Vec::new()).map_err(str::to_owned));
        let (quorum, entries) = (Ok(true), Ok(Entries::default()));
        let (cib, kept) = (Err("x".into()), Kept::default());
        Arc::new(View { taken: Instant::now(), quorum, entries, known: None, kept, cib, history })
    }

    /// A fault of the history that was forgotten at each poll that does not read it would be raised and cleared every few
    /// seconds.
    #[test]
    fn what_a_poll_did_not_read_is_as_it_was() {
        let mut seen = Seen::default();
        let mut words = |history| -> Vec<Matter> {
            seen.note(&poll(history));
            seen.faults().into_iter().map(|(word, _)| word).collect()
        };
        assert_eq!(words(None), [CibUnreadable]);
        assert_eq!(words(Some(Err("timed out"))), [CibUnreadable, HistoryUnreadable]);
        assert_eq!(words(None), [CibUnreadable, HistoryUnreadable]);
        assert_eq!(words(Some(Ok(()))), [CibUnreadable]);
        assert_eq!(words(None), [CibUnreadable]);
    }
}
