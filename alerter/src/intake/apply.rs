//! Writes down what the intake decides: records become marks, marks get their deliveries.

use std::collections::BTreeSet;

use marks::cib::Cib;
use marks::evidence::{self, EvidenceError, Found, Sighting};
use marks::fencing::{Fencing, Incarnation, Origin};
use marks::host::HostName;
use marks::id::{MarkId, NoteId};
use marks::journal::{Journal, JournalError, MarkRow, NewDelivery, Outage, Resolved, Taken};
use marks::mark::{Doubt, Mark, Proof, Standing};
use marks::register::{Entries, Entry, Key, MarkEntry, Watermark};
use marks::time::Timestamp;
use tracing::{error, info, warn};

use super::files;
use super::fold::{Circumstances, Fate, Known, told_name};
use super::outage;
use crate::cluster::View;
use crate::config::Route;
use crate::shared::Shared;

type Done<T = ()> = Result<T, JournalError>;

/// Takes in everything that is new: the journal's fencings, and with a cluster also what its register, its alerts, its
/// history and its CIB say. Without quorum nothing is.
///
/// # Errors
/// As any write.
pub fn take_in(journal: &mut Journal, shared: &Shared, view: Option<&View>) -> Done {
    take_in_at(journal, shared, view, Timestamp::now())
}

/// The same at a given time.
///
/// # Errors
/// As any write.
pub fn take_in_at(journal: &mut Journal, shared: &Shared, view: Option<&View>, now: Timestamp) -> Done {
    if shared.cluster.is_none() {
        return Intake::new(journal, shared, now, None).fold_fencings(None);
    }
    let (Some(view), Some(cib)) = (view, shared.cib()) else { return Ok(()) };
    let Ok(entries) = view.permits() else { return Ok(()) };
    let mut intake = Intake::new(journal, shared, now, Some(&cib));
    intake.take_in_register(entries)?;
    intake.set_watermark()?;
    intake.note_connections(&cib)?;
    intake.fold_fencings(Some(entries))?;
    intake.take_in_decisions(entries)?;
    intake.take_in_sightings(view, &cib)?;
    intake.take_in_ends(entries)?;
    intake.note_returns(&cib)
}

/// One pass over what is new.
struct Intake<'a> {
    journal: &'a mut Journal,
    shared: &'a Shared,
    around: Circumstances<'a>,
    /// Hosts about which something is new.
    touched: BTreeSet<HostName>,
}

impl<'a> Intake<'a> {
    fn new(journal: &'a mut Journal, shared: &'a Shared, now: Timestamp, cib: Option<&'a Cib>) -> Self {
        let around = Circumstances {
            now,
            started: shared.started,
            watermark: shared.seen().watermark.unwrap_or(now),
            controller: &shared.controller,
            hosts: &shared.settings.hosts,
            rules: &shared.settings.intake,
            cib,
        };
        Self { journal, shared, around, touched: BTreeSet::new() }
    }

    /// What another alerter, or `fence_mark` on another controller, wrote. Marks come before fencings, so that a fencing
    /// joins the mark that others told.
    fn take_in_register(&mut self, entries: &Entries) -> Done {
        if self.is_known(entries) {
            return Ok(());
        }
        let now = self.around.now;
        for entry in entries.sound.values() {
            if let Entry::Mark(entry) = entry {
                self.adopt(entry)?;
            }
        }
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

    fn is_known(&self, entries: &Entries) -> bool {
        self.shared.seen().register.as_ref() == Some(entries)
    }

    /// What others told or ended, after all marks that it may be about are made, and before any is due.
    fn take_in_ends(&mut self, entries: &Entries) -> Done {
        if self.is_known(entries) && self.touched.is_empty() {
            return Ok(());
        }
        let now = self.around.now;
        for entry in entries.sound.values() {
            match entry {
                Entry::Acknowledged(end) => drop(self.journal.acknowledged_elsewhere(end, now)?),
                Entry::Settled(end) => drop(self.journal.settled_elsewhere(end, now)?),
                _ => {}
            }
        }
        self.shared.seen().register = Some(entries.clone());
        Ok(())
    }

    /// When an alerter first ran in this cluster; here and now, if there is no word of one.
    fn set_watermark(&mut self) -> Done {
        if self.shared.seen().watermark.is_some() {
            return Ok(());
        }
        let mut known: Vec<Timestamp> = self.journal.watermarks()?.into_iter().map(|mark| mark.at).collect();
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

    /// After the marks that they are about, which may have been made a moment ago.
    fn take_in_decisions(&mut self, entries: &Entries) -> Done {
        for entry in entries.sound.values() {
            if let Entry::Decision(decision) = entry
                && self.journal.adopt_decision(decision, self.around.now)?
            {
                self.shared.seen().news = true;
            }
        }
        Ok(())
    }

    /// A mark of another alerter: the same id, the same content, and so the same bytes.
    fn adopt(&mut self, entry: &MarkEntry) -> Done {
        if self.journal.mark(entry.mark.id)?.is_some() {
            return Ok(());
        }
        let mark = &entry.mark;
        let row = MarkRow {
            id: mark.id,
            node: mark.node.clone(),
            fqdn: Some(mark.fqdn.clone()),
            on_shared_storage: mark.on_shared_storage,
            failure_time: mark.failure_time,
            generated_time: mark.generated_time,
            settled: None,
            source: entry.source,
            incarnation: entry.incarnation.clone(),
            standing: Standing::Doubtful(Doubt::Unproven),
            made_by: entry.made_by.clone(),
            made_at: entry.made_at,
            returned_at: None,
        };
        self.make(&row, Taken::Register)
    }

    fn make(&mut self, row: &MarkRow, of: Taken<'_>) -> Done {
        let deliveries = row.told().map(|mark| deliveries(self.shared, &mark)).unwrap_or_default();
        self.journal.make_mark(row, of, &deliveries, self.around.now)?;
        self.touched.insert(row.node.clone());
        self.shared.seen().news = true;
        announce(row);
        Ok(())
    }

    /// Every connection that a host ever had, so that an outage is known again when the cluster has forgotten it.
    fn note_connections(&mut self, cib: &Cib) -> Done {
        for node in cib.remote_nodes() {
            if let Some(current) = cib.incarnation_of(&node)
                && self.shared.seen().is_new_connection(&node, &current)
            {
                self.journal.note_connection(&node, &current)?;
                self.return_of(&node, cib)?;
            }
        }
        Ok(())
    }

    fn note_returns(&mut self, cib: &Cib) -> Done {
        for node in std::mem::take(&mut self.touched) {
            self.return_of(&node, cib)?;
        }
        Ok(())
    }

    /// Notes for each outage of a host whether the host has come back from it.
    fn return_of(&mut self, node: &HostName, cib: &Cib) -> Done {
        let current = cib.incarnation_of(node);
        let (is_member, now) = (cib.membership(node) == Some(true), self.around.now);
        for outage in self.journal.outages_of(node)?.into_iter().filter(|o| o.returned_at.is_none()) {
            let coalesce = self.around.rules.coalesce;
            let back = outage::return_from(&outage, current.as_ref(), is_member, now, coalesce);
            if let Some(at) = back
                && self.journal.note_return(outage.mark, at, now)?
            {
                info!(mark = %outage.mark, "{node} has come back");
            }
        }
        Ok(())
    }

    /// Folds every new fencing into a mark.
    fn fold_fencings(&mut self, entries: Option<&Entries>) -> Done {
        let fencings = self.journal.unfolded_fencings()?;
        self.shared.report_damage(&fencings.damaged);
        for fencing in &fencings.sound {
            let stands = |key: Key| entries.is_some_and(|entries| entries.sound.contains_key(&key));
            let registered = stands(Key::Fencing(fencing.id)) || stands(Key::Mark(fencing.id.into()));
            let imported = self.journal.is_imported(fencing.id)?;
            self.fold_fencing(&Known { fencing, imported, registered })?;
        }
        Ok(())
    }

    fn fold_fencing(&mut self, known: &Known<'_>) -> Done {
        let (fencing, now) = (known.fencing, self.around.now);
        let outages = self.journal.outages_of(&fencing.node)?;
        match self.around.fate_of_fencing(known, &outages) {
            Fate::Mark(row) => self.make(&row, Taken::Fencing(fencing)),
            Fate::Join(mark) => {
                self.journal.add_to_mark(fencing, mark, now)?;
                info!(mark = %mark, "{} was fenced again in the same outage", fencing.node);
                match (known.imported, fencing.origin) {
                    (false, Origin::Fencer) => self.prove(mark, Proof::Journal),
                    (_, Origin::Operator) => self.prove(mark, Proof::Operator),
                    _ => Ok(()),
                }
            }
            Fate::SetAside => {
                let reason = format!("{} is not covered by [hosts] match and is not told", fencing.node);
                warn!("{reason}");
                self.journal.set_aside(fencing, &reason, now)
            }
            Fate::Expire => {
                let reason = too_old(&fencing.node, fencing.asked_at);
                error!("{reason}");
                self.journal.expire_fencing(fencing, &reason, now)
            }
            Fate::Wait | Fate::Ignore => Ok(()),
        }
    }

    /// What Pacemaker says of fencings.
    fn take_in_sightings(&mut self, view: &View, cib: &Cib) -> Done {
        self.take_in_files()?;
        let Some(Ok(history)) = &view.history else {
            return self.ask_for_history(cib);
        };
        for sighting in history {
            self.take_in_sighting(sighting)?;
        }
        let by_hand: Vec<&Sighting> = history.iter().filter(|sighting| sighting.by_human).collect();
        for sighting in evidence::node_fenced(cib) {
            // It does not say who fenced; and of a host that is a member it is a leftover or a confirmation by hand.
            let confirmed = by_hand.iter().any(|hand| is_same_event(hand, &sighting));
            if !confirmed && cib.membership(&sighting.node) == Some(false) {
                self.take_in_sighting(&sighting)?;
            }
        }
        Ok(())
    }

    /// Pacemaker's history is not read at every look: only when something waits for it.
    fn ask_for_history(&mut self, cib: &Cib) -> Done {
        let mut wanted = self.journal.open_marks()?.sound.iter().any(|mark| mark.standing.doubt().is_some());
        for sighting in evidence::node_fenced(cib) {
            wanted |= !self.journal.has_sighting(&sighting)? && self.around.now.since(sighting.at) < NEWS;
        }
        self.shared.seen().history_wanted = wanted;
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
            Fate::Mark(row) if self.journal.mark(row.id)?.is_some() => {
                self.join(sighting, row.id).map(|()| true)
            }
            Fate::Mark(row) => self.make(&row, Taken::Sighting(sighting)).map(|()| true),
            Fate::SetAside => {
                let reason = format!("{} is not covered by [hosts] match and is not told", sighting.node);
                self.journal.keep_sighting(sighting, None, &reason, now).map(|_| true)
            }
            Fate::Expire => {
                let reason = too_old(&sighting.node, sighting.at);
                warn!("{reason}");
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
        match self.around.proof_by(sighting) {
            Some(proof) => self.prove(mark, proof),
            None => Ok(()),
        }
    }

    /// Evidence shows that a host was fenced, not whether it was told: only an operator ends that doubt.
    fn prove(&mut self, mark: MarkId, proof: Proof) -> Done {
        let doubt = self.journal.mark(mark)?.filter(|row| row.settled.is_none());
        let doubt = doubt.and_then(|row| row.standing.doubt());
        if matches!(doubt, None | Some(Doubt::OutcomeUnknown)) && proof != Proof::Operator {
            return Ok(());
        }
        if self.journal.prove(mark, proof, self.around.now)? {
            self.shared.seen().news = true;
            info!(mark = %mark, "Pacemaker or an operator has confirmed the mark: it may go");
        }
        Ok(())
    }
}

/// Something in the CIB that is older is no reason to ask for the history at once.
const NEWS: std::time::Duration = std::time::Duration::from_secs(60);

fn fencing(entry: &Entry) -> Option<Fencing> {
    match entry {
        Entry::Fencing(fencing) => Some(fencing.clone()),
        _ => None,
    }
}

/// Two witnesses stamp the same event with whole seconds of two clocks.
fn is_same_event(one: &Sighting, other: &Sighting) -> bool {
    one.node == other.node && one.at.distance(other.at) <= std::time::Duration::from_secs(5)
}

fn complaints(reading: &evidence::Reading) -> Vec<String> {
    let broken = reading.broken.iter().map(|broken| {
        format!("the evidence file {} is not used: {}; look at it and remove it", broken.name, broken.flaw)
    });
    let more =
        reading.more.then(|| "the evidence directory holds more files than are read at once".to_owned());
    broken.chain(more).collect()
}

fn too_old(node: &HostName, at: Timestamp) -> String {
    format!(
        "a fencing of {node} from {at} (epoch seconds) was found too late and is not told: see [intake] horizon; if its machines are still down, run `nova-host-alerter mark {node}`"
    )
}

fn announce(row: &MarkRow) {
    let (id, node) = (row.id, &row.node);
    match (&row.fqdn, row.standing) {
        (_, Standing::Doubtful(doubt)) => {
            let word = Standing::Doubtful(doubt).as_str();
            error!(mark = %id, "a fencing of {node} is held ({word}) until Pacemaker confirms it: if it is true, run `nova-host-alerter release {id}`");
        }
        (Some(fqdn), _) => info!(mark = %id, "{node} was fenced and will be told as {fqdn}"),
        (None, _) => {
            error!(mark = %id, "{node} was fenced and is held (no-fqdn): set [hosts] domain or a name in [hosts.names]");
        }
    }
}

fn deliveries(shared: &Shared, mark: &Mark) -> Vec<NewDelivery> {
    let new =
        |route: &Route| NewDelivery { route: route.name.as_str().to_owned(), body: route.driver.body(mark) };
    shared.settings.routes.iter().map(new).collect()
}

/// After a start: marks that were held for want of a name, and open marks made before a route was configured.
///
/// # Errors
/// As any write.
pub fn catch_up(journal: &mut Journal, shared: &Shared) -> Done {
    let now = Timestamp::now();
    let open = journal.open_marks()?;
    shared.report_damage(&open.damaged);
    for row in open.sound {
        match row.told() {
            Some(mark) => add_missing_routes(journal, shared, &mark, now)?,
            None => name(journal, shared, row, now)?,
        }
    }
    Ok(())
}

/// After a start, once the register is known: a mark that an older daemon left open here, of which the register knows
/// nothing, may have been told by others meanwhile. An old one is ended, with a notice.
///
/// # Errors
/// As any write.
pub fn expire_strangers(journal: &mut Journal, shared: &Shared, entries: &Entries) -> Done {
    let now = Timestamp::now();
    for row in journal.open_marks()?.sound {
        let known = entries.sound.contains_key(&Key::Mark(row.id));
        let old = now.since(row.failure_time) > shared.settings.intake.horizon;
        if !known && old && row.made_at < shared.started {
            let reason = too_old(&row.node, row.failure_time);
            error!(mark = %row.id, "{reason}");
            journal.expire(row.id, &reason, now)?;
        }
    }
    Ok(())
}

fn add_missing_routes(journal: &mut Journal, shared: &Shared, mark: &Mark, now: Timestamp) -> Done {
    let existing = journal.deliveries_of(mark.id)?;
    // A damaged row has no believable route: adding one beside it could tell the same mark twice.
    if !existing.damaged.is_empty() {
        return Ok(());
    }
    let mut missing = deliveries(shared, mark);
    missing.retain(|new| existing.sound.iter().all(|old| old.route != new.route));
    for old in existing.sound.iter().filter(|old| !old.state.is_final() && shared.route(&old.route).is_none())
    {
        warn!(mark = %mark.id, "{} still waits for route {}, which is not configured any more: configure it again, or end the mark with `unmark`", mark.node, old.route);
    }
    if missing.is_empty() { Ok(()) } else { journal.add_deliveries(mark.id, &missing, now) }
}

fn name(journal: &mut Journal, shared: &Shared, mut row: MarkRow, now: Timestamp) -> Done {
    let hosts = &shared.settings.hosts;
    let first = journal.fencings_of(row.id)?.sound.into_iter().next();
    row.fqdn = match first {
        Some(first) => told_name(&first, hosts),
        None => marks::host::resolve_fqdn(&row.node, None, &hosts.names, hosts.domain.as_deref()),
    };
    let Some(mark) = row.told() else {
        announce(&row);
        return Ok(());
    };
    let deliveries = deliveries(shared, &mark);
    journal.name_mark(&Resolved { mark, deliveries }, now)?;
    announce(&row);
    Ok(())
}
