//! What was seen of cluster nodes that are compute hosts too: whether they are members, and when they joined.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use marks::fencing::Incarnation;
use marks::host::HostName;
use marks::outage::Outage;
use marks::time::Timestamp;
use pacemaker::cib::{Cib, Membership};

/// So many times of joining are kept for a node, the newest.
const KEPT: usize = 16;

/// The memory; lost with the daemon. The marks keep what matters.
#[derive(Debug, Default)]
pub struct Members(HashMap<HostName, Member>);

#[derive(Debug, Default)]
struct Member {
    last: Option<Membership>,
    joins: BTreeSet<Timestamp>,
    /// The newest incarnations, and when each was seen first.
    lives: VecDeque<(Incarnation, Timestamp)>,
    /// It is back from every outage.
    is_back: bool,
}

impl Members {
    /// Takes note of a node, and says whether it has joined since the note before.
    pub fn note(&mut self, node: &HostName, seen: Membership, now: Timestamp) -> bool {
        let member = self.0.entry(node.clone()).or_default();
        let has_joined = member.last.as_ref().is_some_and(|before| seen.has_joined_since(before));
        // The first note does not know what was before; only the DC may.
        let join = if member.last.is_none() { seen.joined_at() } else { has_joined.then_some(now) };
        member.last = Some(seen);
        if let Some(at) = join {
            self.joined(node, at.min(now));
        }
        has_joined
    }

    /// Takes note of a time at which a node has joined.
    pub fn joined(&mut self, node: &HostName, at: Timestamp) {
        let joins = &mut self.0.entry(node.clone()).or_default().joins;
        joins.insert(at);
        while joins.len() > KEPT {
            joins.pop_first();
        }
    }

    /// Takes note of what the node did first since it joined.
    pub fn lives(&mut self, node: &HostName, own: Option<Incarnation>, now: Timestamp) {
        let lives = &mut self.0.entry(node.clone()).or_default().lives;
        if let Some(own) = own.filter(|own| lives.iter().all(|(known, _)| known != own)) {
            lives.push_back((own, now));
            lives.drain(..lives.len().saturating_sub(KEPT));
        }
    }

    /// The time of an outage, which another clock has dated: by this one it came after the incarnation was seen that it ended.
    pub fn time_of(&self, node: &HostName, outage: &Outage) -> Timestamp {
        let lives = self.0.get(node).into_iter().flat_map(|member| &member.lives);
        let own = lives.filter(|(life, _)| outage.incarnations.contains(life)).map(|(_, at)| *at);
        own.fold(outage.newest, Timestamp::max)
    }

    /// The first time after `outage` at which the node is known to have joined.
    pub fn joined_after(&self, node: &HostName, outage: Timestamp) -> Option<Timestamp> {
        let joins = &self.0.get(node)?.joins;
        joins.iter().find(|join| **join > outage).copied()
    }

    /// Whether the node is back from every outage that is known of it.
    pub fn is_back(&self, node: &HostName) -> bool {
        self.0.get(node).is_some_and(|member| member.is_back)
    }

    /// Takes note of that.
    pub fn note_back(&mut self, node: &HostName, is_back: bool) {
        self.0.entry(node.clone()).or_default().is_back = is_back;
    }
}

/// A host that boots, or that Pacemaker is about to fence, is back or fenced by then.
pub(crate) const AUDIT_AFTER: Duration = Duration::from_secs(300);

/// Which hosts are missed, and since when this daemon has seen it.
#[derive(Debug, Default)]
pub(super) struct Audit {
    missed: BTreeMap<HostName, Instant>,
}

impl Audit {
    /// Checks a CIB. A host is missed if it should be connected, is not, and was not fenced.
    pub(super) fn note(&mut self, cib: &Cib, now: Instant) {
        let is_away =
            |host: &HostName| cib.membership(host) != Some(true) && !cib.is_membership_unclear(host);
        let is_missed =
            |host: &HostName| cib.is_expected(host) && is_away(host) && cib.node_fenced(host).is_none();
        let missed: HashSet<&HostName> = cib.remote_nodes().iter().filter(|host| is_missed(host)).collect();
        self.missed.retain(|host, _| missed.contains(host));
        for host in missed {
            self.missed.entry(host.clone()).or_insert(now);
        }
    }

    /// Every host that is missed, and for how long.
    pub(super) fn missed(&self, now: Instant) -> impl Iterator<Item = (&HostName, Duration)> {
        self.missed.iter().map(move |(host, since)| (host, now.duration_since(*since)))
    }

    /// Those that have been for longer than [`AUDIT_AFTER`].
    pub(super) fn missed_for_long(&self, now: Instant) -> impl Iterator<Item = (&HostName, Duration)> {
        self.missed(now).filter(|(_, time)| *time > AUDIT_AFTER)
    }
}

/// The sentence about a host that has been missed for so long.
pub(crate) fn sentence(host: &HostName, time: Duration) -> String {
    format!(
        "{host} has not been connected for {} s and Pacemaker has not fenced it: nobody is notified",
        time.as_secs()
    )
}

#[cfg(test)]
mod tests {
    use pacemaker::cib::Cib;

    use super::*;

    fn node() -> HostName {
        HostName::parse("ctl3").unwrap()
    }

    fn seen(in_ccm: &str) -> Membership {
        let xml = format!(
            r#"<cib dc-uuid="1"><configuration/><status><node_state id="3" uname="ctl3" in_ccm="{in_ccm}"/></status></cib>"#
        );
        Cib::parse(&xml).unwrap().membership_since(&node()).unwrap()
    }

    fn second(second: i64) -> Timestamp {
        Timestamp::from_seconds(second)
    }

    #[test]
    fn a_node_has_joined_when_it_was_away_at_the_note_before() {
        let mut members = Members::default();
        let notes = ["true", "true", "false", "false", "true", "true"];
        let joined = notes.map(|in_ccm| members.note(&node(), seen(in_ccm), second(100)));
        assert_eq!(joined, [false, false, false, false, true, false]);
        assert_eq!(members.joined_after(&node(), second(99)), Some(second(100)));
        assert_eq!(members.joined_after(&node(), second(100)), None);
    }

    /// The first note after a start, where the DC says since when; never later than now.
    #[test]
    fn of_what_was_before_the_first_note_the_dc_knows() {
        for (in_ccm, known) in [("true", None), ("1000", Some(1000)), ("9000", Some(5000)), ("0", None)] {
            let mut members = Members::default();
            assert!(!members.note(&node(), seen(in_ccm), second(5000)));
            assert_eq!(members.joined_after(&node(), second(0)), known.map(second), "{in_ccm}");
        }
    }

    #[test]
    fn of_many_joins_the_newest_sixteen_are_kept() {
        let mut members = Members::default();
        (1..=20).rev().for_each(|at| members.joined(&node(), second(at)));
        let first = members.joined_after(&node(), second(0));
        assert_eq!((first, members.joined_after(&node(), second(19))), (Some(second(5)), Some(second(20))));
    }

    fn cib(state: &str) -> Cib {
        let xml = format!(
            r#"<cib><configuration><crm_config/><nodes/><resources>
                 <primitive id="compute1" class="ocf" provider="pacemaker" type="remote"/>
               </resources><constraints/></configuration><status>{state}</status></cib>"#
        );
        Cib::parse(&xml).unwrap()
    }

    fn state(in_ccm: &str, fenced: &str) -> Cib {
        cib(&format!(
            r#"<node_state remote_node="true" id="compute1" uname="compute1" in_ccm="{in_ccm}" node_fenced="{fenced}"/>"#
        ))
    }

    /// W1: the signature that Pacemaker leaves when it has forgotten a host.
    #[test]
    fn a_host_that_is_gone_and_not_fenced_is_warned_of_after_the_limit() {
        let (mut audit, start) = (Audit::default(), Instant::now());
        let later = |seconds| start + Duration::from_secs(seconds);
        audit.note(&state("false", "0"), start);
        audit.note(&state("false", "0"), later(300));
        assert_eq!(audit.missed_for_long(later(300)).count(), 0);
        let missed: Vec<_> = audit.missed_for_long(later(301)).collect();
        let [(host, time)] = missed[..] else { panic!("{missed:?}") };
        assert_eq!(time, Duration::from_secs(301));
        assert!(sentence(host, time).starts_with("compute1 has not been connected for 301 s"));
        audit.note(&state("true", "0"), later(302));
        assert_eq!(audit.missed_for_long(later(999)).count(), 0);
    }

    #[test]
    fn a_host_that_was_fenced_or_is_connected_is_not_missed() {
        let (mut audit, start) = (Audit::default(), Instant::now());
        for fine in [state("true", "0"), state("false", "1795191514")] {
            audit.note(&fine, start);
            assert_eq!(audit.missed_for_long(start + AUDIT_AFTER * 2).count(), 0);
        }
        audit.note(&cib(""), start);
        assert_eq!(audit.missed_for_long(start + AUDIT_AFTER * 2).count(), 1, "it never came");
    }
}
