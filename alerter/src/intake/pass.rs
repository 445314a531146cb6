//! One pass over everything new: records become marks, and confirmations, returns and decisions are written down.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::time::Instant;

use journal::{Damage, Done, Journal, NewHistory, Taken, key_of};
use marks::fencing::{Fencing, Origin};
use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::{Doubt, MarkRow, Proof, Standing};
use marks::outage::{self, Outage, Traces};
use marks::register::{Entries, Key};
use marks::rule::Rule;
use marks::time::{CLOCK_SKEW, Timestamp};
use pacemaker::cib::Cib;
use pacemaker::evidence::{Directory, Reading};
use tracing::{error, info, warn};

use super::account::Accounts;
use super::credible::{Reason, is_ahead};
use super::judge::{Circumstances, Judgement, Known};
use super::ledger::{Left, Source};
use super::made::{announce, deliveries, has_ended};
use super::naming::{Clash, Names};
use super::roll;
use super::start::{self, Serving};
use crate::base::Base;
use crate::cluster;
use crate::config::Settings;
use crate::lock::lock;
use crate::moment::Moment;

/// One pass over what is new.
pub(super) struct Intake<'a> {
    pub(super) journal: &'a mut Journal,
    pub(super) base: &'a Base,
    pub(super) accounts: &'a Accounts,
    pub(super) around: Circumstances<'a>,
    /// What others wrote; none where there is no cluster.
    pub(super) register: Option<&'a Entries>,
    /// Now, by the monotonic clock.
    pub(super) instant: Instant,
    /// The hosts of fencings that are past: one line of the log names them together.
    pub(super) past: BTreeSet<HostName>,
    /// Entries of the register that are not believed.
    pub(super) refused: BTreeMap<Key, Reason>,
    /// The evidence directory and the files that are not taken in yet; none where it cannot be read.
    pub(super) evidence: Option<(Directory, Reading)>,
}

impl<'a> Intake<'a> {
    pub(super) fn new(
        journal: &'a mut Journal,
        (base, accounts, settings): (&'a Base, &'a Accounts, &'a Settings),
        Moment { instant, wall: now }: Moment,
        cib: Option<&'a Cib>,
    ) -> Self {
        let around = Circumstances {
            now,
            started: *base.started(),
            watermark: base.seen().watermark.unwrap_or(now),
            forgotten: now - cluster::KEPT,
            controller: &base.controller,
            hosts: &settings.hosts,
            groups: &settings.groups,
            rules: &settings.intake,
            cib,
            names: Names::new(&settings.hosts, cib).with_routes(&settings.routes),
            lost: BTreeMap::new(),
        };
        Self {
            journal,
            base,
            accounts,
            around,
            register: None,
            instant,
            past: BTreeSet::new(),
            refused: BTreeMap::new(),
            evidence: None,
        }
    }

    pub(super) fn moment(&self) -> Moment {
        Moment { instant: self.instant, wall: self.around.now }
    }

    pub(super) fn make(&mut self, row: &MarkRow, clash: Option<&Clash>, of: Taken<'_>) -> Done {
        let deliveries = match row.to_mark() {
            Some(mark) => deliveries(self.base, self.journal, &mark)?,
            None => Vec::new(),
        };
        // A host that was fenced while it was a member is lost by that.
        let lost = self.around.lost.get(&row.node).copied().filter(|at| *at <= row.failure_time);
        self.journal.make_mark(row, of, &deliveries, lost, self.around.now)?;
        let mut seen = self.base.seen();
        seen.touched.insert(row.node.clone());
        seen.news = true;
        drop(seen);
        announce(row, clash);
        if row.standing == Standing::Doubtful(Doubt::Unproven) {
            self.prove_from_kept(&row.node, row.id)?;
        }
        if self.is_back_from(row, of) {
            self.journal.note_return(row.id, self.around.now, self.around.now)?;
        }
        if let Some(cib) = self.around.cib.filter(|cib| self.is_member_host(&row.node, cib)) {
            // The next record may belong to its next outage.
            self.return_of_member(&row.node, false, cib)?;
        }
        match self.register {
            Some(entries) if has_ended(row.id, entries) => {
                self.take_in_ends_of(entries, |mark| mark == row.id)
            }
            _ => Ok(()),
        }
    }

    /// Whether a mark is of what was found, and its host is a member after the wait for that: it is back, whatever clock dates it.
    fn is_back_from(&self, row: &MarkRow, of: Taken<'_>) -> bool {
        let is_found = matches!(of, Taken::Sighting(first) if !self.saw_appear(first));
        is_found && self.is_member(&row.node)
    }

    pub(super) fn is_member(&self, node: &HostName) -> bool {
        self.around.cib.is_some_and(|cib| cib.membership(node) == Some(true))
    }

    /// Once after a start: what had to wait until the cluster's other nodes and their attributes are known. Marks get what
    /// they lack, and older marks the deliveries of new routes.
    pub(super) fn catch_up_once(&mut self, cib: &Cib) -> Done {
        if self.base.seen().named {
            return Ok(());
        }
        // Only now it is known which host is in which group; the engine serves the pages after the first one.
        start::serve_page(self.journal, self.base, Serving::default(), self.around.now)?;
        let known = (&self.around.names, self.around.storage());
        start::complete_held(self.journal, self.base, known, self.around.now)?;
        self.report_groups(cib);
        self.base.seen().named = true;
        Ok(())
    }

    /// Logs what only the cluster knows of the groups: how many hosts each has, and which host is in two.
    fn report_groups(&self, cib: &Cib) {
        let (grouped, attribute) = (roll::grouped(&self.base.settings(), cib), self.base.attributes());
        grouped.warnings.iter().for_each(|warning| warn!("{warning}"));
        for node in grouped.twice.iter().filter_map(|finding| finding.host.as_ref()) {
            self.base.report_groups(node, &attribute);
        }
    }

    /// A confirmation by hand proves something only if its host was lost before.
    pub(super) fn note_lost(&mut self, cib: &Cib) {
        let members = self.member_hosts(cib);
        let all = cib.remote_nodes().iter().chain(&members);
        let lost = all.filter(|node| cib.membership(node) == Some(false)).cloned();
        self.around.lost = self.base.seen().note_lost(lost, self.moment()).clone();
    }

    /// Every connection that a host ever had, so that an outage is recognised when the cluster has forgotten it.
    pub(super) fn note_connections(&mut self, cib: &Cib) -> Done {
        let members = self.member_hosts(cib);
        let hosts = || cib.remote_nodes().iter().chain(&members);
        let is_away = |node: &&HostName| cib.membership(node) != Some(true);
        let were_away = self.base.seen().were_away.clone();
        for node in hosts() {
            let Some(current) = cib.incarnation_of(node) else { continue };
            let is_new = self.base.seen().is_new_connection(node, &current);
            if is_new {
                self.journal.note_connection(node, &current)?;
            }
            // Its connection may be there some polls before it is a member.
            if is_new || were_away.contains(node) && !is_away(&node) {
                self.return_of(node, cib)?;
            }
            if is_new {
                // After the write: if that fails, the next pass does it again.
                self.base.seen().note_connection(node.clone(), current, self.moment());
            }
        }
        self.base.seen().were_away = hosts().filter(is_away).cloned().collect();
        Ok(())
    }

    /// Only a connection erases `node_fenced`: a host that had it at the pass before was back, also where its connection is forgotten.
    pub(super) fn note_erased(&mut self, cib: &Cib) -> Done {
        let fenced: BTreeSet<HostName> = cib.fenced_nodes().into_iter().map(|(node, _)| node).collect();
        let before = self.base.seen().fenced.clone();
        for node in before.difference(&fenced).filter(|node| cib.fenced_before(node) == Some(false)) {
            for outage in self.outages(node)? {
                self.returned(&outage, node, self.around.now)?;
            }
        }
        self.base.seen().fenced = fenced;
        Ok(())
    }

    /// A line where a health check of a host begins to fail, and one where it is a member and none fails any more.
    pub(super) fn note_health(&mut self, cib: &Cib) -> Done {
        let (now, unhealthy) = (self.around.now, cib.unhealthy());
        let known = self.base.seen().unhealthy.take();
        let mut known = known.map_or_else(|| self.journal.unhealthy(), Ok)?;
        let is_over = |host: &HostName| !unhealthy.contains_key(host) && cib.membership(host) == Some(true);
        let over = known.iter().filter(|host| is_over(host));
        let over = over.map(|host| (host, "healthy", "no health check of it fails any more"));
        let begun = unhealthy.iter().filter(|(host, _)| !known.contains(host));
        let begun = begun.map(|(host, reason)| (host, "unhealthy", reason.as_str()));
        let rows = over.chain(begun).map(|(host, event, detail)| NewHistory {
            node: Some(host),
            ..NewHistory::new(now, event, detail, "nova-host-alerter")
        });
        let rows: Vec<NewHistory<'_>> = rows.collect();
        if !rows.is_empty() {
            self.journal.note_health(&rows)?;
        }
        known.retain(|host| !is_over(host));
        known.extend(unhealthy.into_keys());
        self.base.seen().unhealthy = Some(known);
        Ok(())
    }

    pub(super) fn note_returns(&mut self, cib: &Cib) -> Done {
        let touched = self.base.seen().touched.clone();
        for node in touched {
            self.return_of(&node, cib)?;
            self.base.seen().touched.remove(&node);
        }
        Ok(())
    }

    /// Notes for each outage of a host whether the host has come back from it.
    fn return_of(&mut self, node: &HostName, cib: &Cib) -> Done {
        if self.is_member_host(node, cib) {
            return self.return_of_member(node, false, cib);
        }
        let current = cib.incarnation_of(node);
        let (is_member, now) = (cib.membership(node) == Some(true), self.around.now);
        let is_up = is_member && cib.fenced_before(node) == Some(false);
        for outage in self.outages(node)?.into_iter().filter(|o| o.returned_at.is_none()) {
            let coalesce = self.around.rules.coalesce;
            let back = outage::return_from(&outage, current.as_ref(), (is_member, is_up), now, coalesce);
            if let Some(at) = back {
                self.returned(&outage, node, at)?;
            }
        }
        Ok(())
    }

    pub(super) fn returned(&mut self, outage: &Outage, node: &HostName, at: Timestamp) -> Done {
        if self.journal.note_return(outage.mark, at, self.around.now)? {
            info!(mark = %outage.mark, host = %node, "{node} has come back");
        }
        Ok(())
    }

    /// The outages of a host. A last record that lies ahead does not show when an outage ended: later ones are not near to it.
    pub(super) fn outages(&self, node: &HostName) -> Done<Vec<Outage>> {
        let mut outages = self.journal.outages_of(node)?;
        let latest = self.around.now + CLOCK_SKEW;
        for outage in outages.iter_mut().filter(|outage| outage.newest > latest) {
            outage.newest = outage.first;
        }
        Ok(outages)
    }

    /// Folds every new fencing into a mark.
    pub(super) fn fold_fencings(&mut self, entries: Option<&Entries>) -> Done {
        let fencings = self.journal.unfolded_fencings()?;
        self.base.damages.report(&fencings.damaged);
        lock(self.accounts).ledger.begin(Source::Fencings);
        for fencing in &fencings.sound {
            let stands = |key: Key| entries.is_some_and(|entries| entries.sound.contains_key(&key));
            let mark = MarkId::from(fencing.id);
            let is_there = stands(Key::Fencing(fencing.id)) || stands(Key::Mark(mark));
            // If pages are missing, its end may be on one of these; or another alerter counted it to a mark that it held.
            let is_partial = entries.is_some_and(|entries| entries.is_partial);
            let is_left =
                !is_partial && !self.is_spoken_for(mark) && self.counted(fencing.id.into()).is_none();
            let registered = is_there && is_left;
            let is_vouched =
                entries.is_some_and(|entries| entries.sealed.contains(&Key::Fencing(fencing.id)));
            let imported = self.journal.is_imported(fencing.id)?;
            if imported {
                let whose = format!("the clock of {}", fencing.seen_by);
                self.base.seen().compare_ahead(&whose, fencing.committed_at, self.moment());
            }
            let published = self.was_seen(&Key::Fencing(fencing.id))?;
            // An end that the agent has noted and that is not believed is no end.
            let is_refused = self.refused.contains_key(&Key::Settled(mark));
            let ended = stands(Key::Settled(mark)) || (!is_refused && self.was_seen(&Key::Settled(mark))?);
            let is_fresh = self.is_fresh(fencing, imported);
            let has_appeared = is_fresh || self.has_appeared(fencing, imported);
            let waited =
                lock(self.accounts).ledger.waited(Source::Fencings, key_of(fencing.id), self.instant);
            let traces = Traces { registered, published, ended };
            let outages = self.outages(&fencing.node)?;
            let is_uncounted = self.is_uncounted(&outages, fencing.id.into());
            let known =
                Known { fencing, imported, is_vouched, has_appeared, waited, is_fresh, is_uncounted, traces };
            self.fold_fencing(&known, &outages)?;
        }
        lock(self.accounts).ledger.end(Source::Fencings);
        Ok(())
    }

    /// Whether an entry is known to have stood in the register.
    fn was_seen(&self, key: &Key) -> Done<bool> {
        let Some(cluster) = &self.base.cluster else { return Ok(false) };
        self.journal.is_published(cluster.register(), &key.to_string())
    }

    /// One line for all: there is nothing to do, and no host is to be marked for it.
    pub(super) fn say_past(&self) {
        if !self.past.is_empty() {
            warn!("{}", past(&self.past, self.around.forgotten));
        }
    }

    fn fold_fencing(&mut self, known: &Known<'_>, outages: &[Outage]) -> Done {
        let (fencing, now) = (known.fencing, self.around.now);
        let judged = match self.judged_elsewhere(&fencing.node, fencing.id.into())? {
            Some(judged) if self.find_sound(fencing.id.into())?.is_none() => judged,
            _ => self.around.judgement_of_fencing(known, outages),
        };
        match judged {
            Judgement::Mark(row, clash) => self.mark(fencing, &row, clash.as_ref()),
            Judgement::Join(mark, rule) => {
                self.journal.add_to_mark(fencing, (mark, rule), now)?;
                self.complete(mark)?;
                info!(mark = %mark, host = %fencing.node, "{} was fenced again in the same outage", fencing.node);
                let fresh = known.is_fresh;
                match (known.imported && !known.is_vouched, fencing.origin) {
                    (false, Origin::Fencer) => self.prove(mark, Proof::Journal, fresh),
                    (false, Origin::Operator) => self.prove(mark, Proof::Operator, fresh),
                    _ => Ok(()),
                }
            }
            Judgement::SetAside => {
                let reason = format!("{} is not covered by [hosts] match and is not reported", fencing.node);
                warn!(mark = %fencing.id, host = %fencing.node, "{reason}");
                self.journal.set_aside(fencing, (Rule::NotCovered, &reason), now)
            }
            Judgement::Past => {
                self.past.insert(fencing.node.clone());
                self.journal.pass_over(fencing, &before(&fencing.node, fencing.asked_at), now)
            }
            Judgement::Wait(patience) => self.leave_fencing(fencing, Left::Waits(patience)),
            Judgement::Ignore(rule) => self.leave_fencing(fencing, Left::Aside(rule)),
        }
    }

    /// A mark that was made of a sighting may lack what `fence_mark` says.
    fn complete(&mut self, mark: MarkId) -> Done {
        let lacking = |row: &MarkRow| row.settled.is_none() && row.lacks().next().is_some();
        let Some(row) = self.find_sound(mark)?.filter(lacking) else { return Ok(()) };
        let known = (&self.around.names, self.around.storage());
        start::complete(self.journal, self.base, row, known, self.around.now)
    }

    /// A damaged row may be this fencing's own mark: the fencing waits until somebody has repaired or removed that row.
    fn mark(&mut self, fencing: &Fencing, row: &MarkRow, clash: Option<&Clash>) -> Done {
        match self.find(row.id)? {
            None => self.make(row, clash, Taken::Fencing(fencing)),
            Some(Err(_)) => self.leave_fencing(fencing, Left::Blocked(row.id)),
            Some(Ok(_)) => {
                let reason = format!("{} is not marked: another host has a mark of this id", fencing.node);
                error!(mark = %fencing.id, host = %fencing.node, "{reason}");
                self.journal.set_aside(fencing, (Rule::IdTaken, &reason), self.around.now)
            }
        }
    }

    /// Nothing is written down of it, so the account gets the reason.
    fn leave_fencing(&self, fencing: &Fencing, left: Left) -> Done {
        let named = (key_of(fencing.id), &fencing.node, fencing.asked_at);
        lock(self.accounts).ledger.note(Source::Fencings, named, left, self.instant);
        Ok(())
    }

    /// The mark with an id. A damaged row is reported and blocks nothing.
    pub(super) fn find(&self, id: MarkId) -> Done<Option<Result<MarkRow, Damage>>> {
        let found = self.journal.find_mark(id)?;
        if let Some(Err(damage)) = &found {
            self.base.damages.report(slice::from_ref(damage));
        }
        Ok(found)
    }

    /// The same, where a damaged row counts as none.
    pub(super) fn find_sound(&self, id: MarkId) -> Done<Option<MarkRow>> {
        Ok(self.find(id)?.and_then(Result::ok))
    }

    /// Whether a fencing was made while this daemon was there. One of another controller must have appeared in the register since,
    /// and not be back there.
    pub(super) fn is_fresh(&self, fencing: &Fencing, imported: bool) -> bool {
        let has_appeared = self.has_appeared(fencing, imported);
        self.is_of_this_run(fencing.committed_at) && (!imported || has_appeared)
    }

    /// Whether this daemon saw a fencing appear that was not there before. What comes back with a part of the register was there.
    fn has_appeared(&self, fencing: &Fencing, imported: bool) -> bool {
        let is_new = !imported || !self.was_partial();
        let appeared = lock(self.accounts).ledger.meet(Source::Fencings, key_of(fencing.id), is_new);
        let is_again = self.register.is_some_and(|it| it.sound.contains_key(&Key::Again(fencing.id)));
        appeared && !is_again
    }

    fn was_partial(&self) -> bool {
        self.base.seen().register.as_ref().is_some_and(|before| before.is_partial)
    }

    /// Whether a time by this controller's clock is since the start of this daemon, and not so long ago that what it knew of it may
    /// have been removed.
    pub(super) fn is_of_this_run(&self, at: Timestamp) -> bool {
        let now = self.around.now;
        at >= self.around.started && !is_ahead(at, now) && now.since(at) <= self.around.rules.horizon
    }

    /// A proof of the fencing does not show whether the mark was sent before: that doubt ends only when the host is found down again.
    /// A late proof releases a mark only if the host is surely down.
    pub(super) fn prove(&mut self, mark: MarkId, proof: Proof, fresh: bool) -> Done {
        let Some(row) = self.find_sound(mark)?.filter(MarkRow::wants_proof) else { return Ok(()) };
        match row.standing.doubt() {
            Some(Doubt::OutcomeUnknown) if !fresh => return Ok(()),
            // The fencing is proven, but not that the host had been back.
            Some(Doubt::FencedAgain) if proof != Proof::Operator => return Ok(()),
            Some(_) if !fresh && !self.around.may_go_late(&row.node, row.failure_time) => return Ok(()),
            _ => {}
        }
        if proof != Proof::Operator && self.contradicts_its_fencing(&row)? {
            return Ok(());
        }
        if self.journal.prove(mark, proof, self.around.now)? {
            self.base.seen().news = true;
            info!(mark = %mark, "Pacemaker or an operator has confirmed the mark: it may be sent");
        }
        Ok(())
    }
}

/// The row of the history for each fencing that is past.
pub(super) fn before(node: &HostName, at: Timestamp) -> String {
    format!(
        "a fencing of {node} from {at} (epoch seconds) gets no mark: an earlier alerter probably reported it, and the register has no record of it any more"
    )
}

/// So many hosts are named; the others are counted.
const NAMED: usize = 3;

fn past(hosts: &BTreeSet<HostName>, forgotten: Timestamp) -> String {
    let named: Vec<&str> = hosts.iter().take(NAMED).map(HostName::as_str).collect();
    let more = match hosts.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "old fencings of {}{more} get no mark: an earlier alerter probably reported them; the register has no records from before {forgotten} (epoch seconds); `nova-host-alerter history` lists them",
        named.join(", ")
    )
}
