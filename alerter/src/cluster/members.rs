//! What was seen of cluster nodes that are compute hosts too: whether they are members, and when they joined.

use std::collections::{BTreeSet, HashMap};

use marks::host::HostName;
use marks::time::Timestamp;
use pacemaker::cib::Membership;

/// So many times of joining are kept for a node, the newest.
const KEPT: usize = 16;

/// The memory; lost with the daemon. The marks keep what matters.
#[derive(Debug, Default)]
pub struct Members(HashMap<HostName, Member>);

#[derive(Debug, Default)]
struct Member {
    last: Option<Membership>,
    joins: BTreeSet<Timestamp>,
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
}
