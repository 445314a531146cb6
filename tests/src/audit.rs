//! What must hold after whatever happened to a cluster: every outage sent, once, in order, and nothing else sent.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A fence agent is asked a moment after the power went, and seconds are cut off.
const SLACK: i64 = 2;

/// A time in which a compute host was really without power, from its first to its last `off` until it was back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The Pacemaker node.
    pub node: String,
    /// The first `off`, epoch milliseconds.
    pub since: i64,
}

/// One request that a recovery controller got.
#[derive(Clone, PartialEq, Eq)]
pub struct Notified {
    /// Which route it came by.
    pub route: String,
    /// The Pacemaker node that its host name stands for.
    pub node: String,
    /// The event's id.
    pub id: String,
    /// Epoch seconds, as sent.
    pub failure_time: i64,
    /// Byte for byte.
    pub body: Vec<u8>,
    /// Whether it was answered with a 2xx.
    pub acknowledged: bool,
}

impl fmt::Debug for Notified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answer = if self.acknowledged { "acknowledged" } else { "not acknowledged" };
        write!(f, "{}, {answer}: {}", self.route, shown(&self.body))
    }
}

/// A mark as the active alerter lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// Its node.
    pub node: String,
    /// `open`, `held`, or how it was settled.
    pub state: String,
}

/// Everything that is compared.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// In the order in which they began.
    pub outages: Vec<Outage>,
    /// In the order in which they came.
    pub notified: Vec<Notified>,
    /// Those made since the scenario began.
    pub marks: Vec<Listed>,
    /// Every route must get every outage.
    pub routes: Vec<String>,
    /// Fencings for which the active alerter can show no end.
    pub unaccounted: Vec<String>,
}

/// What a scenario declares beforehand; nothing else is excused.
#[derive(Clone, Debug, Default)]
pub struct Excused {
    /// Nodes whose mark was in flight when its alerter was lost or doubled: its bytes may have been acknowledged twice.
    pub again: BTreeSet<String>,
    /// Nodes whose mark must have ended (or stand) in this state, not sent, instead of `acknowledged`.
    pub not_notified: BTreeMap<String, String>,
}

/// What a power device or the cluster did, and a host's return, in the order of time: what outages are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The node lost its power, at epoch milliseconds.
    Off(String, i64),
    /// The cluster had the node again.
    Back(String, i64),
}

/// Groups facts into outages: two `off` are one outage unless the host was back in between.
#[must_use]
pub fn outages(mut facts: Vec<Fact>) -> Vec<Outage> {
    facts.sort_by_key(|fact| match fact {
        Fact::Off(_, at) | Fact::Back(_, at) => *at,
    });
    let mut outages = Vec::new();
    let mut down = BTreeSet::new();
    for fact in facts {
        match fact {
            Fact::Back(node, _) => drop(down.remove(&node)),
            Fact::Off(node, since) if down.insert(node.clone()) => outages.push(Outage { node, since }),
            Fact::Off(..) => {}
        }
    }
    outages
}

/// Compares what was sent with what happened. Each finding is one sentence; none means that the promise was kept.
#[must_use]
pub fn audit(story: &Story, excused: &Excused) -> Vec<String> {
    let mut findings = Vec::new();
    one_body_an_id(story, &mut findings);
    nothing_but_outages(story, &mut findings);
    for route in &story.routes {
        for node in nodes(story) {
            one_outage_after_the_other(story, excused, (route, node), &mut findings);
        }
    }
    all_settled(story, excused, &mut findings);
    let gaps = story.unaccounted.iter();
    findings.extend(gaps.map(|one| format!("a record has no end that can be shown: {one}")));
    findings
}

fn nodes(story: &Story) -> BTreeSet<&str> {
    story.outages.iter().map(|outage| outage.node.as_str()).collect()
}

/// The same id, the same bytes, on every route and from every controller.
fn one_body_an_id(story: &Story, findings: &mut Vec<String>) {
    let mut bodies: BTreeMap<&str, &[u8]> = BTreeMap::new();
    for notified in &story.notified {
        let first = *bodies.entry(&notified.id).or_insert(&notified.body);
        if first != notified.body {
            findings.push(format!("{} was sent in other bytes: {}", notified.id, shown(&notified.body)));
        }
    }
}

fn nothing_but_outages(story: &Story, findings: &mut Vec<String>) {
    let happened = nodes(story);
    for notified in &story.notified {
        if !happened.contains(notified.node.as_str()) {
            let body = shown(&notified.body);
            findings.push(format!("{} was reported, and was not fenced: {body}", notified.node));
        }
        if !story.routes.contains(&notified.route) {
            findings.push(format!("{} was reported by {}, which is no route", notified.node, notified.route));
        }
    }
}

/// One route and one node: its marks are its outages, in order, each acknowledged before the next one begins.
fn one_outage_after_the_other(
    story: &Story,
    excused: &Excused,
    (route, node): (&str, &str),
    findings: &mut Vec<String>,
) {
    let outages: Vec<&Outage> = story.outages.iter().filter(|outage| outage.node == node).collect();
    let notified: Vec<&Notified> =
        story.notified.iter().filter(|notified| notified.route == route && notified.node == node).collect();
    let ids = in_order(&notified);
    if ids.len() != outages.len() {
        let (all, real) = (ids.len(), outages.len());
        findings.push(format!("{route} was notified of {all} failures of {node}, which had {real}: {ids:?}"));
        return;
    }
    for (place, (id, outage)) in ids.iter().zip(&outages).enumerate() {
        let of_mark: Vec<&&Notified> = notified.iter().filter(|notified| notified.id == *id).collect();
        let next = outages.get(place + 1).map(|outage| outage.since);
        within(&of_mark, outage.since, next, findings);
        acknowledged(&of_mark, excused.again.contains(node), findings);
    }
    in_turn(&notified, &ids, findings);
}

/// The ids in the order in which each came first.
fn in_order<'a>(notified: &[&'a Notified]) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    notified.iter().map(|notified| notified.id.as_str()).filter(|id| seen.insert(*id)).collect()
}

/// The time that is sent lies in the outage that it stands for.
fn within(of_mark: &[&&Notified], since: i64, next: Option<i64>, findings: &mut Vec<String>) {
    for notified in of_mark {
        let early = notified.failure_time < since / 1000 - SLACK;
        let late = next.is_some_and(|next| notified.failure_time > next / 1000 + SLACK);
        if early || late {
            let (node, at) = (&notified.node, notified.failure_time);
            findings
                .push(format!("{node} was reported as failed at {at}, outside of its outage: wrong order"));
        }
    }
}

fn acknowledged(of_mark: &[&&Notified], again: bool, findings: &mut Vec<String>) {
    let count = of_mark.iter().filter(|notified| notified.acknowledged).count();
    let Some(first) = of_mark.first() else { return };
    if count == 0 || (count > 1 && !again) || count > 2 {
        let (node, route, id) = (&first.node, &first.route, &first.id);
        findings.push(format!("{node} was acknowledged {count} times by {route} as {id}"));
    }
}

/// A mark is not sent before the one before it was acknowledged.
fn in_turn(notified: &[&Notified], ids: &[&str], findings: &mut Vec<String>) {
    for pair in ids.windows(2) {
        let done = notified.iter().position(|notified| notified.id == pair[0] && notified.acknowledged);
        let begun = notified.iter().position(|notified| notified.id == pair[1]);
        if done > begun || done.is_none() {
            findings.push(format!("{} was sent before {} was acknowledged", pair[1], pair[0]));
        }
    }
}

fn all_settled(story: &Story, excused: &Excused, findings: &mut Vec<String>) {
    let notified: BTreeSet<&str> = story.notified.iter().map(|notified| notified.id.as_str()).collect();
    for mark in &story.marks {
        let not_notified =
            excused.not_notified.get(&mark.node).filter(|_| !notified.contains(mark.id.as_str()));
        let wanted = not_notified.map_or("acknowledged", String::as_str);
        if mark.state != wanted {
            let Listed { id, node, state } = mark;
            findings.push(format!("the mark {id} of {node} is {state}, not {wanted}"));
        }
    }
    for (node, state) in &excused.not_notified {
        if !story.marks.iter().any(|mark| mark.node == *node && mark.state == *state) {
            findings.push(format!("no mark of {node} is {state}: this scenario shows nothing"));
        }
    }
}

fn shown(body: &[u8]) -> String {
    String::from_utf8_lossy(body).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notified(route: &str, node: &str, id: &str, failure_time: i64) -> Notified {
        let body = format!("{id} {node} {failure_time}").into_bytes();
        let (route, node, id) = (route.to_owned(), node.to_owned(), id.to_owned());
        Notified { route, node, id, failure_time, body, acknowledged: true }
    }

    fn outage(node: &str, since: i64) -> Outage {
        Outage { node: node.to_owned(), since }
    }

    fn listed(id: &str, node: &str, state: &str) -> Listed {
        Listed { id: id.to_owned(), node: node.to_owned(), state: state.to_owned() }
    }

    /// Two routes; `a` failed twice, `b` once, and the first attempt for `b` was refused.
    fn good() -> Story {
        let mut notified: Vec<Notified> = ["r", "s"]
            .into_iter()
            .flat_map(|r| {
                [notified(r, "a", "1", 100), notified(r, "b", "2", 101), notified(r, "a", "3", 200)]
            })
            .collect();
        let refused = Notified { acknowledged: false, ..notified[1].clone() };
        notified.insert(1, refused);
        Story {
            outages: vec![outage("a", 100_500), outage("b", 101_500), outage("a", 200_000)],
            notified,
            marks: vec![listed("1", "a", "acknowledged"), listed("2", "b", "acknowledged")],
            routes: vec!["r".to_owned(), "s".to_owned()],
            unaccounted: Vec::new(),
        }
    }

    fn again(node: &str) -> Excused {
        Excused { again: BTreeSet::from([node.to_owned()]), ..Excused::default() }
    }

    fn only(findings: &[String], word: &str) {
        assert!(!findings.is_empty() && findings.iter().all(|one| one.contains(word)), "{findings:?}");
    }

    #[test]
    fn a_kept_promise_has_no_findings() {
        assert_eq!(audit(&good(), &Excused::default()), Vec::<String>::new());
        assert_eq!(audit(&Story::default(), &Excused::default()), Vec::<String>::new());
    }

    /// Also where everything was sent and acknowledged.
    #[test]
    fn what_does_not_add_up_is_found() {
        let story = Story { unaccounted: vec!["f.1 of a: mark-gone".to_owned()], ..good() };
        only(&audit(&story, &Excused::default()), "no end that can be shown: f.1 of a");
    }

    #[test]
    fn a_reported_host_that_was_not_fenced_is_found() {
        let mut story = good();
        story.notified.push(notified("r", "ctl1", "9", 150));
        only(&audit(&story, &Excused::default()), "ctl1 was reported, and");
        let mut story = good();
        story.notified.push(notified("r", "b", "9", 150));
        only(&audit(&story, &Excused::default()), "notified of 2 failures of b, which had 1");
    }

    #[test]
    fn a_lost_outage_is_found_on_either_route() {
        for lost in 0..good().notified.len() {
            let mut story = good();
            let gone = story.notified.remove(lost);
            let found = audit(&story, &Excused::default());
            assert_eq!(found.is_empty(), !gone.acknowledged, "{gone:?}: {found:?}");
        }
    }

    #[test]
    fn a_mark_sent_twice_is_found_unless_it_was_in_flight() {
        let mut story = good();
        story.notified.push(notified("r", "b", "2", 101));
        only(&audit(&story, &Excused::default()), "acknowledged 2 times");
        only(&audit(&story, &again("a")), "acknowledged 2 times");
        assert!(audit(&story, &again("b")).is_empty());
        story.notified.push(notified("r", "b", "2", 101));
        only(&audit(&story, &again("b")), "acknowledged 3 times");
    }

    #[test]
    fn an_outage_sent_under_two_ids_is_found_though_it_was_in_flight() {
        let mut story = good();
        story.notified.push(notified("r", "b", "9", 101));
        only(&audit(&story, &again("b")), "notified of 2 failures of b");
    }

    #[test]
    fn other_bytes_are_found_even_where_a_repetition_is_excused() {
        let mut story = good();
        story.notified.push(Notified { body: b"2 b 101 ".to_vec(), ..notified("r", "b", "2", 101) });
        only(&audit(&story, &again("b")), "other bytes");
        // On the other route too.
        let mut story = good();
        story.notified.last_mut().unwrap().body.push(b' ');
        only(&audit(&story, &Excused::default()), "other bytes");
    }

    #[test]
    fn a_wrong_order_is_found() {
        let mut story = good();
        let (first, last) = (0, 3);
        assert_eq!((story.notified[first].id.as_str(), story.notified[last].id.as_str()), ("1", "3"));
        story.notified.swap(first, last);
        only(&audit(&story, &Excused::default()), "wrong order");
        // The right one comes first, but was not acknowledged before the next.
        let mut story = good();
        let refused = Notified { acknowledged: false, ..story.notified[0].clone() };
        let acknowledged = std::mem::replace(&mut story.notified[0], refused);
        story.notified.push(acknowledged);
        only(&audit(&story, &Excused::default()), "before 1 was acknowledged");
    }

    #[test]
    fn a_mark_that_is_not_settled_is_found() {
        for state in ["open", "held", "dismissed"] {
            let mut story = good();
            story.marks.push(listed("3", "a", state));
            only(&audit(&story, &Excused::default()), "not acknowledged");
        }
    }

    /// What is held must be held, and must not have been sent all the same.
    #[test]
    fn an_excused_hold_must_be_there_and_not_sent() {
        let not_notified = BTreeMap::from([("c".to_owned(), "held".to_owned())]);
        let excused = Excused { not_notified, ..Excused::default() };
        only(&audit(&good(), &excused), "shows nothing");
        let mut story = good();
        story.marks.push(listed("4", "c", "held"));
        assert!(audit(&story, &excused).is_empty());
        story.notified.push(notified("r", "c", "4", 150));
        assert!(audit(&story, &excused).iter().any(|one| one.contains("not fenced")));
    }

    #[test]
    fn a_return_ends_an_outage_and_a_second_off_does_not_begin_one() {
        let off = |node: &str, at| Fact::Off(node.to_owned(), at);
        let back = |node: &str, at| Fact::Back(node.to_owned(), at);
        let facts = vec![back("a", 20), off("a", 1), off("a", 2), off("b", 3), off("a", 30), back("a", 0)];
        assert_eq!(outages(facts), [outage("a", 1), outage("b", 3), outage("a", 30)]);
    }
}
