//! Cluster nodes that are compute hosts too: what shows that one has come back (design, section 6).

use std::time::Duration;

use journal::Done;
use marks::fencing::Incarnation;
use marks::host::HostName;
use marks::outage::Outage;
use marks::time::Timestamp;
use pacemaker::cib::Cib;
use pacemaker::evidence::FoundJoin;

use super::coverage;
use super::pass::Intake;

/// What is known of a node that had an outage.
struct Life {
    /// Pacemaker sees it as a member.
    is_member: bool,
    /// It was no member at the poll before, or has left and joined since.
    has_joined: bool,
    /// When it was first seen to join after the outage.
    joined: Option<Timestamp>,
    /// The first thing that it did since it joined.
    own: Option<Incarnation>,
}

/// When the node came back from an outage. If it joins between two polls and the mark was there before, no clock matters. Times of
/// incarnations are by the node's own clock; only times by other clocks are compared with the outage.
fn return_from(outage: &Outage, life: &Life, now: Timestamp, coalesce: Duration) -> Option<Timestamp> {
    if life.has_joined {
        return Some(now);
    }
    let since = |one: &Incarnation| one.connected_at();
    let known = outage.incarnations.iter().filter_map(since).max();
    let is_another = known.is_some_and(|known| life.own.as_ref().and_then(since) > Some(known));
    // A member so long after its fencing must have been back, even if nobody saw that.
    let is_long_ago = now.since(outage.newest) > coalesce;
    life.joined.or_else(|| (life.is_member && (is_another || is_long_ago)).then_some(now))
}

impl Intake<'_> {
    /// Whether this is a covered cluster node.
    pub(super) fn is_member_host(&self, node: &HostName, cib: &Cib) -> bool {
        coverage::is_own_host(node, self.around.hosts, cib)
    }

    /// The covered cluster nodes.
    pub(super) fn member_hosts(&self, cib: &Cib) -> Vec<HostName> {
        coverage::own_hosts(self.around.hosts, cib)
    }

    /// Notes which of the cluster nodes have come back, by this poll and the alerts on this controller. This comes before new records
    /// are taken in: a record after the return belongs to another outage.
    pub(super) fn note_members(&mut self, cib: &Cib) -> Done {
        let nodes = self.member_hosts(cib);
        if nodes.is_empty() {
            return Ok(());
        }
        if let Some((_, reading)) = &self.evidence {
            self.note_joins(&reading.joins, cib);
        }
        for node in nodes {
            let Some(membership) = cib.membership_since(&node) else { continue };
            let has_joined = self.base.seen().members.note(&node, membership, self.around.now);
            self.base.seen().members.lives(&node, cib.incarnation_of(&node), self.around.now);
            if has_joined || !self.base.seen().members.is_back(&node) {
                self.return_of_member(&node, has_joined, cib)?;
            }
        }
        Ok(())
    }

    /// Alerts that a node has joined. A time that lies ahead counts as now.
    fn note_joins(&self, joins: &[FoundJoin], cib: &Cib) {
        for found in joins.iter().filter(|found| self.is_member_host(&found.join.node, cib)) {
            let at = found.join.at.timestamp().min(self.around.now);
            self.base.seen().members.joined(&found.join.node, at);
        }
    }

    /// Notes for each outage of a cluster node whether the node has come back from it.
    pub(super) fn return_of_member(&mut self, node: &HostName, has_joined: bool, cib: &Cib) -> Done {
        let (now, coalesce) = (self.around.now, self.around.rules.coalesce);
        let mut is_back = true;
        for outage in self.outages(node)?.into_iter().filter(|o| o.returned_at.is_none()) {
            let seen = self.base.seen();
            let joined = seen.members.joined_after(node, seen.members.time_of(node, &outage));
            drop(seen);
            let life = Life {
                is_member: cib.membership(node) == Some(true),
                has_joined,
                joined,
                own: cib.incarnation_of(node),
            };
            let Some(at) = return_from(&outage, &life, now, coalesce) else {
                is_back = false;
                continue;
            };
            self.returned(&outage, node, at)?;
        }
        self.base.seen().members.note_back(node, is_back);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use marks::id::FencingId;

    use super::*;

    const COALESCE: Duration = Duration::from_secs(180);

    fn second(second: i64) -> Timestamp {
        Timestamp::from_seconds(second)
    }

    fn own(first: i64) -> Incarnation {
        Incarnation::new("ctl3", 5, first)
    }

    /// At 100, of a node that did its first work at 10, or of which nobody knows that.
    fn outage(known: bool) -> Outage {
        Outage {
            mark: FencingId::generate().into(),
            first: second(100),
            newest: second(100),
            incarnations: known.then(|| own(10)).into_iter().collect(),
            fenced_at: None,
            returned_at: None,
            settled: None,
            made_at: second(100),
            is_proven: true,
        }
    }

    fn dead() -> Life {
        Life { is_member: false, has_joined: false, joined: None, own: Some(own(10)) }
    }

    fn back(outage: &Outage, life: &Life, now: i64) -> Option<i64> {
        return_from(outage, life, second(now), COALESCE).map(Timestamp::seconds)
    }

    #[test]
    fn a_node_that_joins_between_two_polls_is_back_whatever_the_clocks_say() {
        for now in [50, 101, 100_000] {
            assert_eq!(back(&outage(true), &Life { has_joined: true, ..dead() }, now), Some(now));
        }
    }

    /// Also where it is gone again by now: as with a newer connection of a remote node.
    #[test]
    fn a_node_that_was_seen_to_join_is_back_since_then() {
        assert_eq!(back(&outage(true), &Life { joined: Some(second(103)), ..dead() }, 110), Some(103));
    }

    /// The broken variants: it is no member, it has done nothing yet, and its outage's own work is not known: then its clock
    /// would be compared with another one.
    #[test]
    fn a_member_that_works_again_is_back() {
        let alive = || Life { is_member: true, own: Some(own(103)), ..dead() };
        assert_eq!(back(&outage(true), &alive(), 110), Some(110));
        assert_eq!(back(&outage(true), &Life { is_member: false, ..alive() }, 110), None);
        assert_eq!(back(&outage(true), &Life { own: Some(own(10)), ..alive() }, 110), None);
        assert_eq!(back(&outage(true), &Life { own: None, ..alive() }, 110), None);
        assert_eq!(back(&outage(false), &alive(), 110), None);
    }

    #[test]
    fn a_member_long_after_its_outage_is_back() {
        let alive = Life { is_member: true, ..dead() };
        for known in [true, false] {
            assert_eq!(back(&outage(known), &alive, 280), None, "Pacemaker may not have missed it yet");
            assert_eq!(back(&outage(known), &alive, 281), Some(281));
            assert_eq!(back(&outage(known), &dead(), 100_000), None);
        }
    }
}
