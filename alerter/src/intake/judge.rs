//! Decides what becomes of a fencing and of a sighting (design, section 6). Pure: no I/O, no clock.

use std::collections::BTreeMap;
use std::time::Duration;

use marks::fencing::{Fencing, Origin};
use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::{Doubt, MarkRow, Proof, Source, Standing};
use marks::outage::{self, Connections, Joined, Outage, Reach, Traces};
use marks::register::KEPT;
use marks::rule::Rule;
use marks::sighting::{Sighting, Witness};
use marks::time::{CLOCK_SKEW, Timestamp};
use pacemaker::cib::Cib;

use super::coverage::{self, Coverage};
use super::naming::{Clash, Names, Naming};
use super::storage::Storage;
use crate::cluster::EVIDENCE_GRACE;
use crate::config::{Group, HostRules, IntakeRules};

/// How long a fencing waits for Pacemaker's word that its host was fenced: that comes when the whole operation has ended.
const FENCED_GRACE: Duration = Duration::from_secs(20);

/// How long before its confirmation by hand a host must have been lost, by the clock of one controller. It is longer than another
/// controller needs to take a connection over, and than an alert takes.
const LOST_BEFORE: Duration = Duration::from_secs(30);

/// What must be known beside the record that is judged.
pub(super) struct Circumstances<'a> {
    pub(super) now: Timestamp,
    /// Since when this daemon has been there to see what happens, by its own clock.
    pub(super) started: Timestamp,
    /// What Pacemaker remembers from before is not reported.
    pub(super) watermark: Timestamp,
    /// What ended before this has left the register, with all its entries.
    pub(super) forgotten: Timestamp,
    pub(super) controller: &'a str,
    pub(super) hosts: &'a HostRules,
    pub(super) groups: &'a [Group],
    pub(super) rules: &'a IntakeRules,
    /// None where there is no cluster to ask.
    pub(super) cib: Option<&'a Cib>,
    pub(super) names: Names<'a>,
    /// Since when hosts have been lost, as far as this daemon has seen it without a gap.
    pub(super) lost: BTreeMap<HostName, Timestamp>,
}

/// A fencing, and where it is known from.
pub(super) struct Known<'a> {
    pub(super) fencing: &'a Fencing,
    /// It was read from the register, and no journal here vouches for it.
    pub(super) imported: bool,
    /// Root on the controller that recorded it vouches for it, by its seal.
    pub(super) is_vouched: bool,
    /// This daemon saw it appear, whatever clock dates it.
    pub(super) has_appeared: bool,
    /// How long it has waited here, by the monotonic clock.
    pub(super) waited: Duration,
    /// It was made while this daemon was there.
    pub(super) is_fresh: bool,
    /// No alerter counted it to an outage, although they share that.
    pub(super) is_uncounted: bool,
    pub(super) traces: Traces,
}

/// A sighting, and what is known around it.
pub(super) struct Seen<'a> {
    /// Of one that this daemon saw appear, no later than that.
    pub(super) sighting: &'a Sighting,
    /// This daemon saw it appear: no other alerter was there to notify of it.
    pub(super) is_fresh: bool,
    /// No alerter counted it to an outage, although they share that.
    pub(super) is_uncounted: bool,
    /// What is known of its host's connections.
    pub(super) connections: &'a Connections,
    /// How long it has been known here, by the monotonic clock: no clock that is set makes anything wait.
    pub(super) waited: Duration,
    /// Its host was a member long after this daemon found it.
    pub(super) was_up: bool,
}

/// What becomes of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// A new outage: this mark; and the clash, if its name is another node's too.
    Mark(Box<MarkRow>, Option<Clash>),
    /// A further record of an outage that has a mark, open or settled; and the rule that says so.
    Join(MarkId, Rule),
    /// The rules do not cover the host.
    SetAside,
    /// An earlier alerter had it, and the register has no entry of it any more: it was probably reported then.
    Past,
    /// A better record may still come, until it has been known for so long.
    Wait(Duration),
    /// Nothing, by this rule; the journal gets no row.
    Ignore(Rule),
}

impl Circumstances<'_> {
    /// Decides about one fencing, given its host's outages, oldest first.
    pub(super) fn judgement_of_fencing(&self, known: &Known<'_>, outages: &[Outage]) -> Judgement {
        let fencing = known.fencing;
        if coverage::of(&fencing.node, self.hosts, self.cib) == Coverage::Not {
            return Judgement::SetAside;
        }
        let appeared = known.has_appeared.then(|| self.now - known.waited);
        let reach = self.reach_of(&fencing.node, appeared, known.is_uncounted);
        match outage::of_fencing(fencing, outages, reach) {
            Some(same) if self.may_be_of_a_later(known, same) => Judgement::Wait(FENCED_GRACE),
            Some(same) if outage::is_over(same, fencing.asked_at, reach) => {
                self.mark_of_fencing(fencing, known.imported, Standing::Doubtful(Doubt::FencedAgain))
            }
            Some(same) => Judgement::Join(same.outage.mark, same.rule),
            None if self.cib.is_some() && known.traces.are_past(fencing.asked_at, self.forgotten) => {
                Judgement::Past
            }
            None if self.may_not_have_been_back(fencing, outages, reach) => {
                self.mark_of_fencing(fencing, known.imported, Standing::Doubtful(Doubt::FencedAgain))
            }
            None => self.mark_of_fencing(fencing, known.imported, self.standing_of(known)),
        }
    }

    /// Whether a fencing that has just appeared may be of a later outage than the one from which its host was back: the host is away
    /// again, and the CIB may say in a moment that it was fenced.
    fn may_be_of_a_later(&self, known: &Known<'_>, same: Joined<'_>) -> bool {
        let node = &known.fencing.node;
        let may_be_fenced =
            |cib: &Cib| cib.membership(node) == Some(false) && cib.fenced_before(node) == Some(false);
        let is_next = known.has_appeared && same.rule != Rule::OwnMark && same.outage.returned_at.is_some();
        is_next && known.waited < FENCED_GRACE && self.cib.is_some_and(may_be_fenced)
    }

    /// Whether a host that is fenced may not have been back since its last outage: a cluster node that has done nothing since, with no
    /// return seen, of which Pacemaker has no `node_fenced`; or one that was down already, with the connection of that outage, where nobody
    /// saw it fenced again and so only clocks say that it was back first.
    fn may_not_have_been_back(&self, fencing: &Fencing, outages: &[Outage], reach: Reach) -> bool {
        let is_node = self.cib.is_some_and(|cib| cib.joins_itself(&fencing.node));
        let is_away = |o: &Outage| o.is_proven && o.returned_at.is_none() && !o.incarnations.is_empty();
        let is_said = fencing.origin == Origin::Operator;
        let was_down = reach.appeared.is_none() && fencing.already_down == Some(true) && !is_said;
        let is_own = |o: &Outage| fencing.incarnation.as_ref().is_some_and(|c| o.incarnations.contains(c));
        was_down && outages.iter().any(|o| o.is_proven && is_own(o))
            || is_node && fencing.incarnation.is_none() && outages.iter().any(is_away)
    }

    /// The doubt about a mark that another alerter made of this fencing, and not as this one would: it may have been notified. Where that
    /// fencing is one more of an outage that has a mark, nothing but a person's word makes two outages of them.
    pub(super) fn doubt_of_another(&self, fencing: &Fencing, outages: &[Outage]) -> Doubt {
        let is_further = outage::of_fencing(fencing, outages, self.reach()).is_some();
        match is_further || self.may_not_have_been_back(fencing, outages, self.reach()) {
            true => Doubt::FencedAgain,
            false => Doubt::OutcomeUnknown,
        }
    }

    /// The rule of time, for outages where nothing better is known.
    pub(super) fn reach(&self) -> Reach {
        Reach { alone: self.cib.is_none(), ..Reach::found(self.rules.coalesce) }
    }

    /// The same for a record of a host that appeared then, if this daemon saw that.
    fn reach_of(&self, node: &HostName, appeared: Option<Timestamp>, is_uncounted: bool) -> Reach {
        let is_fenced = |cib: &Cib| cib.membership(node) == Some(false) && cib.node_fenced(node).is_some();
        let is_fenced = self.cib.is_some_and(is_fenced);
        Reach { appeared, is_uncounted, is_fenced, ..self.reach() }
    }

    /// Decides about one sighting.
    pub(super) fn judgement_of_sighting(&self, seen: &Seen<'_>, outages: &[Outage]) -> Judgement {
        let sighting = seen.sighting;
        let from_alert = matches!(sighting.witness, Witness::Alert(_));
        let is_forgotten = || self.is_forgotten(seen) || seen.waited > KEPT;
        match coverage::of(&sighting.node, self.hosts, self.cib) {
            Coverage::Covered => {}
            Coverage::Not if from_alert => return Judgement::SetAside,
            // A host that the cluster does not know may be configured again before its evidence is too old.
            Coverage::Unknown if from_alert && !is_forgotten() => return Judgement::Wait(KEPT),
            Coverage::Unknown if from_alert => return Judgement::Past,
            Coverage::Not => return Judgement::Ignore(Rule::NotCovered),
            Coverage::Unknown => return Judgement::Ignore(Rule::UnknownHost),
        }
        let appeared = seen.is_fresh.then(|| self.now - seen.waited);
        let reach = self.reach_of(&sighting.node, appeared, seen.is_uncounted);
        match outage::of_sighting(sighting, seen.connections, outages, reach) {
            Some(same) if !outage::is_over(same, sighting.at, reach) => {
                Judgement::Join(same.outage.mark, same.rule)
            }
            over => self.judgement_of_uncovered(seen, over, outages),
        }
    }

    /// No mark covers it, or only one of an outage that is `over`.
    fn judgement_of_uncovered(
        &self,
        seen: &Seen<'_>,
        over: Option<Joined<'_>>,
        outages: &[Outage],
    ) -> Judgement {
        let sighting = seen.sighting;
        let from_alert = matches!(sighting.witness, Witness::Alert(_));
        // `alert_mark` writes nothing before it is installed; Pacemaker's own memory reaches back further.
        let is_from_before = !from_alert && !seen.is_fresh && sighting.at < self.watermark;
        let asks = is_from_before && over.is_none() && self.is_still_down(seen, outages);
        if is_from_before && !asks {
            return Judgement::Ignore(Rule::BeforeInstallation);
        }
        if !asks && self.is_forgotten(seen) {
            return if from_alert { Judgement::Past } else { Judgement::Ignore(Rule::Past) };
        }
        // The history has no id that all controllers share: wait for a witness that has one.
        let patience = match sighting.witness {
            Witness::Alert(_) | Witness::NodeFenced => EVIDENCE_GRACE,
            Witness::History => EVIDENCE_GRACE * 2,
        };
        if seen.waited < patience {
            return Judgement::Wait(patience);
        }
        if asks {
            return self.mark_of_found(seen, Standing::Doubtful(Doubt::OutcomeUnknown));
        }
        if over.is_some() {
            return self.mark_of_sighting(seen, Some(Doubt::FencedAgain));
        }
        match outage::of_sighting_before_return(sighting, seen.connections, outages, self.reach()) {
            Some(before) if before.rule == Rule::BeforeReturn => {
                Judgement::Join(before.outage.mark, before.rule)
            }
            near => {
                // What was found fits no outage by the clocks, and may be of the one in which its host still is.
                let is_of_open = !seen.is_fresh && outages.iter().any(|o| o.returned_at.is_none());
                self.mark_of_sighting(seen, (near.is_some() || is_of_open).then_some(Doubt::FencedAgain))
            }
        }
    }

    /// Whether its host is down by the CIB and by it, and nothing of that is known: somebody has to say whether it was reported. Of
    /// Pacemaker's memory only the last word counts; that is `node_fenced`, but where the CIB has none or a person gave it.
    fn is_still_down(&self, seen: &Seen<'_>, outages: &[Outage]) -> bool {
        let Seen { sighting, connections, .. } = seen;
        let Some(cib) = self.cib.filter(|cib| cib.membership(&sighting.node) == Some(false)) else {
            return false;
        };
        let is_last = match (sighting.witness, cib.node_fenced(&sighting.node)) {
            (Witness::History, Some(fenced)) => {
                sighting.by_human && Timestamp::from_seconds(fenced).distance(sighting.at) <= CLOCK_SKEW
            }
            (Witness::History, None) => {
                cib.fenced_before(&sighting.node).is_none()
                    && connections.all.iter().all(|connection| connection.since <= sighting.at)
            }
            _ => true,
        };
        is_last && outages.iter().all(|outage| outage.newest < sighting.at)
    }

    /// Without a cluster no other alerter could have reported it.
    fn is_forgotten(&self, seen: &Seen<'_>) -> bool {
        self.cib.is_some() && !seen.is_fresh && seen.sighting.at < self.forgotten
    }

    fn is_old(&self, at: Timestamp) -> bool {
        self.now.since(at) > self.rules.horizon
    }

    pub(super) fn mark_of_fencing(&self, fencing: &Fencing, imported: bool, standing: Standing) -> Judgement {
        let row = MarkRow {
            on_shared_storage: self.storage().of(&fencing.node, fencing.given_shared_storage),
            failure_time: fencing.asked_at,
            generated_time: fencing.committed_at,
            incarnation: fencing.incarnation.clone(),
            ..self.mark(fencing.id.into(), &fencing.node, Source::Fencing, standing)
        };
        named(row, self.names.of_fencing(fencing, imported))
    }

    fn mark_of_sighting(&self, seen: &Seen<'_>, doubt: Option<Doubt>) -> Judgement {
        let sighting = seen.sighting;
        let late = seen.was_up || !seen.is_fresh && self.may_be_back(&sighting.node, sighting.at);
        let standing = match (doubt, self.proof_by(sighting)) {
            (_, None) => Standing::Doubtful(Doubt::Unconfirmed),
            (Some(doubt), Some(_)) => Standing::Doubtful(doubt),
            (None, Some(_)) if late => Standing::Doubtful(Doubt::OutcomeUnknown),
            (None, Some(proof)) => Standing::Proven(proof),
        };
        self.mark_of_found(seen, standing)
    }

    fn mark_of_found(&self, seen: &Seen<'_>, standing: Standing) -> Judgement {
        let sighting = seen.sighting;
        let row = MarkRow {
            on_shared_storage: self.storage().of(&sighting.node, None),
            failure_time: sighting.at,
            generated_time: sighting.at,
            incarnation: seen.connections.before(sighting),
            ..self.mark(sighting.mark_id(), &sighting.node, sighting.source(), standing)
        };
        named(row, self.names.of_node(&sighting.node))
    }

    pub(super) fn storage(&self) -> Storage<'_> {
        Storage { hosts: self.hosts, groups: self.groups, cib: self.cib }
    }

    fn mark(&self, id: MarkId, node: &HostName, source: Source, standing: Standing) -> MarkRow {
        MarkRow {
            id,
            node: node.clone(),
            fqdn: None,
            on_shared_storage: None,
            failure_time: self.now,
            generated_time: self.now,
            settled: None,
            source,
            incarnation: None,
            standing,
            made_by: self.controller.to_owned(),
            made_at: self.now,
            returned_at: None,
            return_known_at: None,
        }
    }

    fn standing_of(&self, known: &Known<'_>) -> Standing {
        let fencing = known.fencing;
        if self.cib.is_none() {
            return Standing::Proven(Proof::Alone);
        }
        let late = || self.is_late(known);
        match fencing.origin {
            _ if known.imported && late() => Standing::Doubtful(Doubt::OutcomeUnknown),
            _ if known.imported && !known.is_vouched => Standing::Doubtful(Doubt::Unproven),
            Origin::Operator => Standing::Proven(Proof::Operator),
            _ if self.is_old(fencing.committed_at) && late() => Standing::Doubtful(Doubt::OutcomeUnknown),
            Origin::Shell | Origin::Api => Standing::Doubtful(Doubt::Unconfirmed),
            Origin::Fencer if late() => Standing::Doubtful(Doubt::OutcomeUnknown),
            Origin::Fencer => Standing::Proven(Proof::Journal),
        }
    }

    /// Whether an earlier alerter may have reported it, or it is found long after, and nothing shows that the host is still down: to
    /// report it now could do harm. If it is `registered`, an earlier alerter would have left a trace.
    fn is_late(&self, known: &Known<'_>) -> bool {
        let (fencing, at) = (known.fencing, known.fencing.committed_at);
        let is_late = (!known.is_fresh && !known.traces.registered) || self.is_old(at);
        is_late && self.may_be_back(&fencing.node, at)
    }

    fn may_be_back(&self, node: &HostName, fenced: Timestamp) -> bool {
        self.cib.is_some_and(|cib| !is_surely_down(cib, node, fenced))
    }

    /// Whether the proof of a mark that is found so late may still release it.
    pub(super) fn may_go_late(&self, node: &HostName, failed: Timestamp) -> bool {
        !self.is_old(failed) || !self.may_be_back(node, failed)
    }

    /// What a sighting proves. A confirmation by hand proves something only if the host was lost before it and has been since: Pacemaker
    /// cuts the connection of a host that is confirmed as fenced, and may leave it cut for `reconnect_interval`.
    pub(super) fn proof_by(&self, sighting: &Sighting) -> Option<Proof> {
        let before = match sighting.witness {
            Witness::Alert(_) => LOST_BEFORE,
            Witness::History | Witness::NodeFenced => CLOCK_SKEW,
        };
        let was_lost = || self.lost.get(&sighting.node).is_some_and(|since| *since + before <= sighting.at);
        // A time that lies ahead comes after everything, and shows nothing.
        let is_dated = sighting.at <= self.now + CLOCK_SKEW;
        (!sighting.by_human || is_dated && was_lost()).then(|| sighting.proof())
    }
}

/// Whether the host is no member, and was fenced then or later by the CIB. A return erases that record, and so does the stop of all
/// controllers, after which no node is a member for a while.
pub(super) fn is_surely_down(cib: &Cib, node: &HostName, at: Timestamp) -> bool {
    let is_since = |fenced| Timestamp::from_seconds(fenced) + CLOCK_SKEW >= at;
    cib.membership(node) == Some(false) && cib.node_fenced(node).is_some_and(is_since)
}

fn named(mut row: MarkRow, naming: Naming) -> Judgement {
    let clash = match naming {
        Ok(name) => {
            row.fqdn = name;
            None
        }
        Err(clash) => Some(clash),
    };
    Judgement::Mark(Box::new(row), clash)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use marks::fencing::Incarnation;
    use marks::host::HostPatterns;
    use marks::id::{FencingId, OperationId};
    use marks::mark::Settlement;

    use super::*;
    use crate::config::Members;

    const STARTED: i64 = 10_000;
    const NOW: i64 = 10_100;
    const OPERATION: &str = "e19eab25-6556-4644-89e9-f9bf9b151b87";

    fn second(second: i64) -> Timestamp {
        Timestamp::from_seconds(second)
    }

    fn connection(made: i64) -> Incarnation {
        Incarnation::new("ctl1", 7, made)
    }

    fn connected(made: i64) -> outage::Connection {
        outage::Connection { incarnation: connection(made), since: second(made), was_seen: false }
    }

    fn hosts() -> HostRules {
        HostRules {
            domain: Some("my.cloud.com".into()),
            names: BTreeMap::new(),
            on_shared_storage: Some(true),
            ..HostRules::default()
        }
    }

    fn rules() -> IntakeRules {
        let seconds = Duration::from_secs;
        IntakeRules { coalesce: seconds(180), horizon: seconds(9000) }
    }

    /// A cluster with two controllers, a guest, and compute1 with its newest connection and fencing.
    fn cib(member: bool, connected: Option<i64>, fenced: i64) -> Cib {
        let history = connected.map_or_else(String::new, |made| {
            format!(
                r#"<lrm id="1"><lrm_resources><lrm_resource id="compute1"><lrm_rsc_op id="x" operation="start"
                   rc-code="0" call-id="7" last-rc-change="{made}"/></lrm_resource></lrm_resources></lrm>"#
            )
        });
        let xml = format!(
            r#"<cib><configuration><crm_config/>
              <nodes><node id="1" uname="ctl1"/><node id="2" uname="ctl2"/>
                <node id="compute1" uname="compute1" type="remote"><instance_attributes id="a">
                  <nvpair id="z" name="zone" value="east"/></instance_attributes></node></nodes>
              <resources>
                <primitive id="compute1" class="ocf" provider="pacemaker" type="remote"/>
                <primitive id="vm" class="ocf" provider="heartbeat" type="VirtualDomain">
                  <meta_attributes id="m"><nvpair id="n" name="remote-node" value="guest1"/></meta_attributes>
                </primitive>
              </resources><constraints/></configuration>
              <status><node_state id="1" uname="ctl1">{history}</node_state>
                <node_state remote_node="true" id="compute1" uname="compute1" in_ccm="{member}" node_fenced="{fenced}"/></status></cib>"#
        );
        Cib::parse(&xml).unwrap()
    }

    /// A fencing of this controller that was found.
    fn known_of(fencing: &Fencing) -> Known<'_> {
        let (imported, is_vouched, has_appeared, is_fresh) = (false, false, false, false);
        let (waited, traces) = (Duration::ZERO, Traces::default());
        Known { fencing, imported, is_vouched, has_appeared, waited, is_fresh, is_uncounted: false, traces }
    }

    /// One that this daemon saw appear.
    fn fresh<'a>(sighting: &'a Sighting, connections: &'a Connections, waited: Duration) -> Seen<'a> {
        Seen { sighting, is_fresh: true, is_uncounted: false, connections, waited, was_up: false }
    }

    struct Scene {
        hosts: HostRules,
        groups: Vec<Group>,
        cib: Option<Cib>,
        lost: BTreeMap<HostName, Timestamp>,
    }

    impl Scene {
        fn of_cib(cib: Option<Cib>) -> Self {
            Self { hosts: hosts(), groups: vec![Group::rest()], cib, lost: BTreeMap::new() }
        }

        fn gone() -> Self {
            Self::of_cib(Some(cib(false, Some(50), NOW)))
        }

        fn gone_since(since: i64) -> Self {
            Self { lost: [(HostName::parse("compute1").unwrap(), second(since))].into(), ..Self::gone() }
        }

        fn back() -> Self {
            Self::of_cib(Some(cib(true, Some(NOW - 20), 0)))
        }

        /// All controllers were stopped: nobody is connected yet, and the cluster remembers nothing.
        fn restarted() -> Self {
            Self::of_cib(Some(cib(false, None, 0)))
        }

        fn alone() -> Self {
            Self::of_cib(None)
        }

        fn at<T>(&self, now: i64, work: impl FnOnce(&Circumstances<'_>) -> T) -> T {
            work(&Circumstances {
                now: second(now),
                started: second(STARTED),
                watermark: second(5_000),
                forgotten: second(now - 9500),
                controller: "ctl1",
                hosts: &self.hosts,
                groups: &self.groups,
                rules: &rules(),
                cib: self.cib.as_ref(),
                names: Names::new(&self.hosts, self.cib.as_ref()),
                lost: self.lost.clone(),
            })
        }

        fn of(&self, fencing: &Fencing, imported: bool, registered: bool) -> Judgement {
            let (published, ended) = (registered, false);
            let traces = Traces { registered, published, ended };
            let is_fresh = fencing.committed_at >= second(STARTED);
            let known = Known { imported, has_appeared: is_fresh, is_fresh, traces, ..known_of(fencing) };
            self.at(NOW, |around| around.judgement_of_fencing(&known, &[]))
        }

        fn seen(&self, now: i64, sighting: &Sighting, outages: &[Outage]) -> Judgement {
            let connections = Connections { all: vec![connected(50)], ..Connections::default() };
            let waited = second(now).since(sighting.at);
            let is_fresh = sighting.at >= second(STARTED);
            let seen = Seen { is_fresh, ..fresh(sighting, &connections, waited) };
            self.at(now, |around| around.judgement_of_sighting(&seen, outages))
        }
    }

    fn fencing(node: &str, asked: i64, origin: Origin) -> Fencing {
        Fencing {
            committed_at: second(asked + 1),
            origin,
            incarnation: Some(connection(50)),
            ..samples::fencing(node, second(asked))
        }
    }

    fn sighting(node: &str, at: i64, witness: Witness) -> Sighting {
        Sighting { node: HostName::parse(node).unwrap(), witness, at: second(at), by_human: false }
    }

    fn alert() -> Witness {
        Witness::Alert(OperationId::parse(OPERATION).unwrap())
    }

    fn standing(judgement: Judgement) -> Option<&'static str> {
        match judgement {
            Judgement::Mark(row, _) => Some(row.standing.as_str()),
            _ => None,
        }
    }

    /// S1-38, S1-39: what the mark says comes from the fencing, and configuration goes before what the agent was given.
    #[test]
    fn a_mark_says_when_the_agent_was_asked() {
        let mut first = fencing("compute1", NOW - 5, Origin::Fencer);
        first.given_shared_storage = Some(false);
        let mut silent = Scene::alone();
        silent.hosts.on_shared_storage = None;
        let Judgement::Mark(mark, _) = silent.of(&first, false, false) else { panic!("no mark") };
        assert_eq!((mark.failure_time, mark.generated_time), (second(NOW - 5), second(NOW - 4)));
        assert_eq!(mark.fqdn.unwrap().as_str(), "compute1.my.cloud.com");
        assert_eq!(mark.id.to_string(), first.id.to_string());
        assert_eq!(mark.on_shared_storage, Some(false));
        let mut decided = Scene::alone();
        decided.hosts.on_shared_storage = Some(true);
        let Judgement::Mark(mark, _) = decided.of(&first, false, false) else { panic!("no mark") };
        assert_eq!(mark.on_shared_storage, Some(true));
    }

    /// S4-3: what holds of a group goes before what holds of all, whatever says that the host was fenced.
    #[test]
    fn a_groups_storage_goes_before_that_of_all_hosts() {
        let local = |name: &str, members: Members| Group {
            name: name.into(),
            members,
            on_shared_storage: Some(false),
            ..Group::rest()
        };
        let mut scene = Scene::gone();
        scene.hosts.on_shared_storage = Some(true);
        let hosts = HostPatterns::parse("compute1").unwrap();
        for (group, expected) in [
            (local("rack", Members::Hosts(hosts)), false),
            (local("east", Members::Attribute { name: "zone".into(), value: "east".into() }), false),
            (local("west", Members::Attribute { name: "zone".into(), value: "west".into() }), true),
        ] {
            scene.groups = vec![group, Group::rest()];
            let fencing = fencing("compute1", NOW - 30, Origin::Fencer);
            let of_alert = scene.seen(NOW, &sighting("compute1", NOW - 30, alert()), &[]);
            for judgement in [scene.of(&fencing, false, false), of_alert] {
                let Judgement::Mark(mark, _) = judgement else { panic!("no mark: {judgement:?}") };
                assert_eq!(mark.on_shared_storage, Some(expected), "{}", scene.groups[0].name);
            }
        }
    }

    /// S1-38: whatever says that the host was fenced, nobody guesses its storage. The broken variant takes "shared" for granted.
    #[test]
    fn what_nobody_says_of_the_storage_is_not_guessed() {
        let device = |parameter: &str| {
            let xml = format!(
                r#"<cib><configuration><crm_config/><nodes/><resources>
                <primitive id="compute1" class="ocf" provider="pacemaker" type="remote"/>
                <primitive id="power" class="stonith" type="fence_ipmilan"/>
                <primitive id="mark" class="stonith" type="fence_mark">{parameter}</primitive></resources><constraints/>
                <fencing-topology><fencing-level id="l" index="1" target="compute1" devices="power,mark"/></fencing-topology>
                </configuration><status/></cib>"#
            );
            Scene::of_cib(Some(Cib::parse(&xml).unwrap()))
        };
        let option = |value: &str| {
            format!(
                r#"<instance_attributes id="a"><nvpair id="b" name="no_shared_storage" value="{value}"/></instance_attributes>"#
            )
        };
        let fenced =
            |given| Fencing { given_shared_storage: given, ..fencing("compute1", NOW - 30, Origin::Fencer) };
        for (parameter, given, of_fencing, of_sighting) in [
            (String::new(), None, None, None),
            (String::new(), Some(false), Some(false), None),
            (option("1"), None, Some(false), Some(false)),
            (option("0"), Some(false), Some(false), Some(true)),
            (option("perhaps"), None, None, None),
        ] {
            let mut scene = device(&parameter);
            scene.hosts.on_shared_storage = None;
            let storage = |judgement| match judgement {
                Judgement::Mark(mark, _) => mark.on_shared_storage,
                other => panic!("no mark: {other:?}"),
            };
            assert_eq!(storage(scene.of(&fenced(given), false, false)), of_fencing, "{parameter} {given:?}");
            for witness in [alert(), Witness::History, Witness::NodeFenced] {
                let seen = scene.seen(NOW, &sighting("compute1", NOW - 30, witness), &[]);
                assert_eq!(storage(seen), of_sighting, "{parameter}");
            }
        }
    }

    #[test]
    fn who_vouches_for_a_fencing_decides_whether_it_may_go() {
        let of = |origin, imported| {
            standing(Scene::gone().of(&fencing("compute1", NOW, origin), imported, false)).unwrap()
        };
        assert_eq!(of(Origin::Fencer, false), "journal");
        assert_eq!(of(Origin::Fencer, true), "unproven");
        assert_eq!(of(Origin::Operator, true), "unproven", "any writer can say so");
        assert_eq!(of(Origin::Shell, false), "unconfirmed");
        assert_eq!(of(Origin::Api, false), "unconfirmed", "a client of the API proves nothing");
        assert_eq!(of(Origin::Operator, false), "operator");
        let alone = Scene::alone().of(&fencing("compute1", NOW, Origin::Shell), false, false);
        assert_eq!(standing(alone), Some("alone"));
    }

    #[test]
    fn an_old_fencing_goes_only_if_the_register_knows_it_or_the_host_is_surely_down() {
        let old = fencing("compute1", STARTED - 100, Origin::Fencer);
        assert_eq!(standing(Scene::back().of(&old, false, false)), Some("outcome-unknown"));
        assert_eq!(standing(Scene::back().of(&old, false, true)), Some("journal"));
        assert_eq!(standing(Scene::gone().of(&old, false, false)), Some("journal"), "still down");
        assert_eq!(standing(Scene::restarted().of(&old, false, false)), Some("outcome-unknown"));
        let seen = Scene::restarted().seen(NOW, &sighting("compute1", STARTED - 100, alert()), &[]);
        assert_eq!(standing(seen), Some("outcome-unknown"));
        let young = fencing("compute1", STARTED + 1, Origin::Fencer);
        assert_eq!(standing(Scene::back().of(&young, false, false)), Some("journal"), "it was there");
    }

    /// No age ends a fencing that nobody acknowledged. The old rule let each of these expire.
    #[test]
    fn what_is_found_after_the_horizon_goes_where_the_host_is_surely_down_and_is_held_else() {
        let old = fencing("compute1", NOW - 9002, Origin::Fencer);
        for registered in [false, true] {
            assert_eq!(standing(Scene::gone().of(&old, false, registered)), Some("journal"));
            assert_eq!(standing(Scene::back().of(&old, false, registered)), Some("outcome-unknown"));
            assert_eq!(standing(Scene::back().of(&old, true, registered)), Some("outcome-unknown"));
        }
        let by_shell = fencing("compute1", NOW - 9002, Origin::Shell);
        assert_eq!(standing(Scene::back().of(&by_shell, false, true)), Some("outcome-unknown"));
        assert_eq!(standing(Scene::alone().of(&old, false, false)), Some("alone"));
        let seen = |scene: Scene| standing(scene.seen(NOW, &sighting("compute1", NOW - 9001, alert()), &[]));
        assert_eq!((seen(Scene::gone()), seen(Scene::back())), (Some("alert"), Some("outcome-unknown")));
    }

    /// C10: what the register had and has no more is no news to a later alerter. What it never had is.
    #[test]
    fn what_the_alerter_of_its_time_had_is_past() {
        let old = fencing("compute1", NOW - 9501, Origin::Fencer);
        let judgement = |published, ended, fencing: &Fencing| {
            let traces = Traces { registered: false, published, ended };
            let known = Known { traces, ..known_of(fencing) };
            Scene::back().at(NOW, |around| around.judgement_of_fencing(&known, &[]))
        };
        assert_eq!(judgement(true, false, &old), Judgement::Past);
        assert_eq!(standing(judgement(false, false, &old)), Some("outcome-unknown"), "nobody ever had it");
        let young = fencing("compute1", NOW - 9499, Origin::Fencer);
        assert_eq!(standing(judgement(true, false, &young)), Some("outcome-unknown"), "it was lost");
        assert_eq!(judgement(true, true, &young), Judgement::Past, "it was seen that its mark had ended");
        let seen = |witness| Scene::gone().seen(NOW, &sighting("compute1", NOW - 9501, witness), &[]);
        assert_eq!(seen(alert()), Judgement::Past);
        assert_eq!(seen(Witness::History), Judgement::Ignore(Rule::BeforeInstallation));
    }

    /// W21: fencings that bypass the agent.
    #[test]
    fn a_sighting_without_a_mark_makes_one_after_the_grace() {
        let seen = |now, witness| Scene::gone().seen(now, &sighting("compute1", NOW, witness), &[]);
        for witness in [alert(), Witness::NodeFenced] {
            assert_eq!(seen(NOW + 9, witness), Judgement::Wait(EVIDENCE_GRACE));
            assert!(matches!(seen(NOW + 10, witness), Judgement::Mark(..)));
        }
        assert_eq!(seen(NOW + 19, Witness::History), Judgement::Wait(EVIDENCE_GRACE * 2));
        let Judgement::Mark(mark, _) = seen(NOW + 20, Witness::History) else { panic!("no mark") };
        assert_eq!((mark.standing.as_str(), mark.source), ("history", Source::History));
        assert_eq!(mark.incarnation, Some(connection(50)));
    }

    /// Nothing of it is sent; the last word about a host that is down by it asks. The broken variant passes over that one too.
    #[test]
    fn what_pacemaker_remembers_from_before_the_installation_asks_at_most() {
        let seen = |scene: Scene, witness| scene.seen(NOW, &sighting("compute1", 4_999, witness), &[]);
        let aside = Judgement::Ignore(Rule::BeforeInstallation);
        assert_eq!(standing(seen(Scene::gone(), Witness::NodeFenced)), Some("outcome-unknown"));
        assert_eq!(seen(Scene::gone(), Witness::History), aside, "node_fenced is the last word");
        for scene in [Scene::back(), Scene::restarted()] {
            assert_eq!(seen(scene, Witness::History), aside);
        }
        assert!(matches!(seen(Scene::gone(), alert()), Judgement::Mark(..)), "nobody kept alerts then");
    }

    /// The broken variant asks whether the host is lost now: Pacemaker cuts the connection of a host that lives because of the
    /// confirmation, and with `reconnect_interval` it stays cut for a while.
    #[test]
    fn a_confirmation_by_hand_counts_only_for_a_host_that_was_lost_before() {
        let by_hand = |scene: &Scene, at, witness| {
            let said = Sighting { by_human: true, ..sighting("compute1", at, witness) };
            standing(scene.seen(NOW, &said, &[])).unwrap()
        };
        assert_eq!(by_hand(&Scene::gone_since(NOW - 60), NOW - 20, alert()), "alert");
        assert_eq!(by_hand(&Scene::gone_since(NOW - 40), NOW - 20, alert()), "unconfirmed", "just before");
        assert_eq!(by_hand(&Scene::gone_since(NOW - 18), NOW - 20, alert()), "unconfirmed", "lost by it");
        assert_eq!(by_hand(&Scene::gone(), NOW - 20, alert()), "unconfirmed", "nobody knows since when");
        assert_eq!(by_hand(&Scene::back(), NOW - 20, alert()), "unconfirmed");
        let ahead = Sighting { by_human: true, ..sighting("compute1", NOW + 200, Witness::History) };
        assert_eq!(Scene::gone_since(NOW - 300).at(NOW, |around| around.proof_by(&ahead)), None);
        let long_ago = Scene::gone_since(NOW - 5_000);
        assert_eq!(by_hand(&long_ago, NOW - 4_000, alert()), "alert", "and since then");
        assert_eq!(by_hand(&long_ago, NOW - 90, Witness::History), "history");
        let ahead = by_hand(&Scene::gone_since(NOW - 150), NOW - 90, Witness::History);
        assert_eq!(ahead, "unconfirmed", "by another clock");
    }

    /// Killing a controller raises an alert too.
    #[test]
    fn controllers_and_guests_are_notified_only_if_they_are_named_literally() {
        let judgement = |scene: &Scene, node| scene.of(&fencing(node, NOW, Origin::Fencer), false, false);
        let seen = |scene: &Scene, node| scene.seen(NOW + 60, &sighting(node, NOW, alert()), &[]);
        let mut scene = Scene::gone();
        for node in ["ctl2", "guest1"] {
            assert_eq!(judgement(&scene, node), Judgement::SetAside, "{node}");
            assert_eq!(seen(&scene, node), Judgement::SetAside, "{node}");
        }
        assert_eq!(seen(&scene, "stranger"), Judgement::Wait(KEPT));
        assert!(matches!(judgement(&scene, "stranger"), Judgement::Mark(..)), "it had a level");
        scene.hosts.matching = Some(HostPatterns::parse("*").unwrap());
        assert_eq!(judgement(&scene, "ctl2"), Judgement::SetAside);
        scene.hosts.matching = Some(HostPatterns::parse("ctl2").unwrap());
        assert!(matches!(judgement(&scene, "ctl2"), Judgement::Mark(..)));
        assert_eq!(judgement(&scene, "compute1"), Judgement::SetAside);
    }

    /// B4: a time that lies ahead makes nothing wait for longer than what is known here for long enough. The broken variant is
    /// known since a moment ago.
    #[test]
    fn a_sighting_waits_by_the_monotonic_clock_alone() {
        let scene = Scene::gone();
        let connections = Connections { all: vec![connected(50)], ..Connections::default() };
        for at in [NOW - 3600, NOW] {
            let sighting = sighting("compute1", at, alert());
            let of = |waited| {
                let seen = fresh(&sighting, &connections, waited);
                scene.at(NOW, |around| around.judgement_of_sighting(&seen, &[]))
            };
            let grace = EVIDENCE_GRACE;
            assert_eq!(of(grace - Duration::from_millis(1)), Judgement::Wait(grace), "{at}");
            assert!(matches!(of(grace), Judgement::Mark(..)), "{at}");
        }
    }

    fn acknowledged(asked: i64) -> Outage {
        Outage {
            mark: FencingId::generate().into(),
            first: second(asked),
            newest: second(asked),
            incarnations: vec![connection(50)],
            fenced_at: None,
            returned_at: None,
            settled: Some((Settlement::Acknowledged, second(asked + 2))),
            made_at: second(asked),
            is_proven: true,
        }
    }

    /// By its clock it is of the outage before, from which its host was back; the host is away again. The broken variant joins it before
    /// Pacemaker has noted the fencing.
    #[test]
    fn a_fencing_that_may_be_of_a_later_outage_waits_for_pacemakers_word() {
        let before = [Outage { returned_at: Some(second(NOW + 50)), ..acknowledged(NOW - 10) }];
        let late = fencing("compute1", NOW, Origin::Fencer);
        let late = Fencing { incarnation: None, already_down: Some(false), ..late };
        let judged = |fenced, is_member, waited| {
            let scene = Scene::of_cib(Some(cib(is_member, None, fenced)));
            let known = Known { has_appeared: true, is_fresh: true, waited, ..known_of(&late) };
            scene.at(NOW, |around| around.judgement_of_fencing(&known, &before))
        };
        let is_joined = |judged: Judgement| matches!(judged, Judgement::Join(..));
        assert_eq!(judged(0, false, Duration::ZERO), Judgement::Wait(FENCED_GRACE));
        assert_eq!(standing(judged(NOW, false, Duration::from_secs(2))), Some("journal"));
        assert!(is_joined(judged(0, false, FENCED_GRACE)), "its host was not fenced since: it may live");
        assert!(is_joined(judged(0, true, Duration::ZERO)));
    }

    /// Another alerter's mark of a fencing is not as this one would make it. The broken variant of its doubt ends by a proof of the fencing,
    /// which is proven in any case.
    #[test]
    fn a_mark_of_one_more_fencing_that_differs_waits_for_a_person() {
        let doubt = |outages: &[Outage]| {
            let again = fencing("compute1", NOW, Origin::Fencer);
            let again = Fencing { already_down: Some(true), ..again };
            Scene::gone().at(NOW, |around| around.doubt_of_another(&again, outages))
        };
        assert_eq!(doubt(&[]), Doubt::OutcomeUnknown);
        assert_eq!(doubt(&[acknowledged(NOW - 1_000)]), Doubt::FencedAgain);
        let over = Outage { returned_at: Some(second(NOW - 500)), ..acknowledged(NOW - 1_000) };
        let over = Outage { incarnations: vec![connection(20)], ..over };
        assert_eq!(doubt(&[over]), Doubt::OutcomeUnknown, "its host had been back");
    }

    /// B7: whatever says so; the broken variants are near.
    #[test]
    fn a_host_that_is_fenced_again_long_after_its_mark_ended_is_held() {
        let scene = Scene::gone();
        let judgement = |outage: Outage, origin, imported| {
            let fencing = fencing("compute1", NOW, origin);
            let traces = Traces { registered: true, published: true, ended: false };
            let known = Known { imported, has_appeared: true, is_fresh: true, traces, ..known_of(&fencing) };
            scene.at(NOW, |around| around.judgement_of_fencing(&known, &[outage]))
        };
        for (origin, imported) in [(Origin::Fencer, false), (Origin::Fencer, true), (Origin::Operator, true)]
        {
            assert_eq!(standing(judgement(acknowledged(NOW - 4000), origin, imported)), Some("fenced-again"));
            assert!(matches!(judgement(acknowledged(NOW - 200), origin, imported), Judgement::Join(..)));
        }
        for witness in [alert(), Witness::History, Witness::NodeFenced] {
            let of = |now, outage| scene.seen(now, &sighting("compute1", NOW, witness), &[outage]);
            assert!(matches!(of(NOW + 9, acknowledged(NOW - 4000)), Judgement::Wait(_)), "it may come");
            assert_eq!(standing(of(NOW + 20, acknowledged(NOW - 4000))), Some("fenced-again"));
            assert!(matches!(of(NOW, acknowledged(NOW - 200)), Judgement::Join(..)));
        }
    }

    /// Pacemaker has no `node_fenced` of a cluster node, and nothing that it did since it was fenced. The broken variants: one that did
    /// something, one that was seen to be back, and a remote node.
    #[test]
    fn a_cluster_node_that_is_fenced_again_without_a_sign_of_life_is_held() {
        let judged = |node: &str, incarnation: Option<Incarnation>, returned_at: Option<Timestamp>| {
            let outage = Outage { returned_at, ..acknowledged(NOW - 4000) };
            let fencing = Fencing { incarnation, ..fencing(node, NOW, Origin::Fencer) };
            Scene::gone().at(NOW, |around| around.may_not_have_been_back(&fencing, &[outage], around.reach()))
        };
        assert!(judged("ctl2", None, None));
        assert!(!judged("ctl2", Some(Incarnation::new("ctl2", 5, NOW - 20)), None));
        assert!(!judged("ctl2", None, Some(second(NOW - 100))));
        assert!(!judged("compute1", None, None));
    }

    /// Only the clocks of two controllers say that it was back before. The broken variants: this daemon saw it fenced, Pacemaker does not
    /// say that it was down, and it had another connection.
    #[test]
    fn a_found_fencing_of_a_host_that_was_down_already_is_held_though_a_clock_says_it_was_back() {
        let judged = |has_appeared, already_down, made| {
            let outage = Outage { returned_at: Some(second(NOW - 900)), ..acknowledged(NOW - 4000) };
            let (incarnation, already_down) = (Some(connection(made)), Some(already_down));
            let again = Fencing { incarnation, already_down, ..fencing("compute1", NOW, Origin::Fencer) };
            let known = Known { has_appeared, is_fresh: true, ..known_of(&again) };
            standing(Scene::back().at(NOW, |around| around.judgement_of_fencing(&known, &[outage])))
        };
        assert_eq!(judged(false, true, 50), Some("fenced-again"));
        let others = [judged(true, true, 50), judged(false, false, 50), judged(false, true, NOW - 100)];
        assert_eq!(others, [Some("journal"); 3]);
    }

    /// A host that was back fails once more, soon after an outage of which Pacemaker has forgotten the connection: clocks that may
    /// differ do not swallow it. The broken variant's connection is known, and the sighting ended it.
    #[test]
    fn what_clocks_alone_count_to_an_outage_before_the_return_is_held() {
        let of = |ended: Vec<Incarnation>, by_human: bool| {
            let outage =
                Outage { incarnations: ended, returned_at: Some(second(NOW - 70)), ..acknowledged(NOW - 80) };
            let all = [9_000, NOW - 70, NOW - 5].map(connected).to_vec();
            let connections = Connections { all, is_back: true, ..Connections::default() };
            let sighting = Sighting { by_human, ..sighting("compute1", NOW - 20, alert()) };
            let waited = Duration::from_secs(20);
            let seen = fresh(&sighting, &connections, waited);
            Scene::back().at(NOW, |around| around.judgement_of_sighting(&seen, &[outage]))
        };
        assert_eq!(standing(of(Vec::new(), false)), Some("fenced-again"));
        assert_eq!(standing(of(Vec::new(), true)), Some("unconfirmed"));
        assert!(matches!(of(vec![connection(NOW - 70)], false), Judgement::Join(_, Rule::BeforeReturn)));
    }

    /// B8: the broken variant has a cluster to ask.
    #[test]
    fn without_a_cluster_a_fencing_after_its_mark_was_notified_makes_one() {
        let again = Fencing { incarnation: None, ..fencing("compute1", NOW, Origin::Fencer) };
        let known = Known { has_appeared: true, is_fresh: true, ..known_of(&again) };
        let outages = [Outage { incarnations: Vec::new(), ..acknowledged(NOW - 83) }];
        let judgement = |scene: Scene| scene.at(NOW, |around| around.judgement_of_fencing(&known, &outages));
        assert_eq!(standing(judgement(Scene::alone())), Some("alone"));
        assert!(matches!(judgement(Scene::gone()), Judgement::Join(..)));
    }
}
