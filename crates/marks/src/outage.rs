//! One outage or two (design, section 6): the one set of rules, for the daemon, the commands and the agent.

mod registered;

use std::cmp::Ordering;
use std::time::Duration;

use crate::fencing::{Fencing, Incarnation, Origin};
use crate::id::MarkId;
use crate::mark::Settlement;
use crate::rule::Rule;
use crate::sighting::{Sighting, Witness};
use crate::time::{CLOCK_SKEW, Timestamp};

/// Two readings of one clock for one moment differ by less than this: the clock has whole seconds and is read a moment
/// later.
pub const GRAIN: Duration = Duration::from_secs(5);
/// Pacemaker notes whole seconds.
const SECOND: Duration = Duration::from_secs(1);

pub use registered::{Registered, Traces, forgotten, is_twice, may_be_twice, taken_in};

/// Records of a host within this are one outage if nothing better is known: the default of `[intake] coalesce`.
pub const COALESCE: Duration = Duration::from_secs(180);
/// What is found later than this may already have been sent: the default of `[intake] horizon`.
pub const HORIZON: Duration = Duration::from_secs(86_400);

/// What decides whether the next fencing or sighting of a host belongs to a marked outage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The mark.
    pub mark: MarkId,
    /// When it began: the mark's `failure_time`.
    pub first: Timestamp,
    /// The newest time of its fencings and sightings.
    pub newest: Timestamp,
    /// The connections that ended with it, if known.
    pub incarnations: Vec<Incarnation>,
    /// The newest `node_fenced` that was seen of it.
    pub fenced_at: Option<Timestamp>,
    /// When its host was seen to be back.
    pub returned_at: Option<Timestamp>,
    /// How and when the mark ended.
    pub settled: Option<(Settlement, Timestamp)>,
    /// When its mark was made, by the clock of its maker.
    pub made_at: Timestamp,
    /// Whether this controller has a proof that its host was down. An operator's word proves nothing once an operator has ended the mark.
    pub is_proven: bool,
}

/// The outage that a record belongs to, and the rule for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined<'a> {
    /// The outage.
    pub outage: &'a Outage,
    /// The rule.
    pub rule: Rule,
}

/// What decides if nothing better is known.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// Records nearer than this are one outage, as far as clocks show.
    pub coalesce: Duration,
    /// There is no cluster: only clocks decide.
    pub alone: bool,
    /// When this controller saw the record appear, by its own clock; none where it only found it. Another clock dates the record itself.
    pub appeared: Option<Timestamp>,
    /// No alerter counted it to an outage, although they share of which each record is, and that its host was back.
    pub is_uncounted: bool,
    /// Its host is no member now, and was fenced since its last connection.
    pub is_fenced: bool,
}

impl Reach {
    /// In a cluster, for records that nobody saw appear.
    pub const fn found(coalesce: Duration) -> Self {
        Self { coalesce, alone: false, appeared: None, is_uncounted: false, is_fenced: false }
    }

    /// When what it says happened, for the question whether that was after something which is known here: another clock may date it.
    fn since(self, at: Timestamp) -> Timestamp {
        self.appeared.map_or(at, |seen| at.max(seen))
    }

    /// The same for comparing the clocks of two controllers.
    fn widest(self) -> Duration {
        self.coalesce + CLOCK_SKEW
    }
}

/// A connection that a host had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Its text.
    pub incarnation: Incarnation,
    /// Since when, by this controller's clock if it saw the connection appear or knows that it had, else by the clock of
    /// the controller that made it.
    pub since: Timestamp,
    /// Whether that is by this controller's clock.
    pub was_seen: bool,
}

impl Connection {
    /// Whether it stood at that time. Its maker notes whole seconds; this controller saw it appear afterwards, by the clock
    /// that stamps the sightings here.
    fn stood_at(&self, at: Timestamp) -> bool {
        self.since + if self.was_seen { Duration::ZERO } else { SECOND } <= at
    }

    /// Its place among the others: of several since one moment, the one that was made last.
    fn place(&self) -> (Timestamp, Option<Timestamp>) {
        (self.since, self.incarnation.connected_at())
    }
}

/// What is known of a host's connections.
#[derive(Clone, Debug, Default)]
pub struct Connections {
    /// All known ones, in any order.
    pub all: Vec<Connection>,
    /// The newest one in the CIB.
    pub current: Option<Incarnation>,
    /// Pacemaker has not fenced the host since its last connection.
    pub is_back: bool,
    /// It is a cluster node: its joins are seen, and its first operation comes after them.
    pub joins: bool,
}

impl Connections {
    /// When the host was surely back from an outage, if possible by this controller's clock: what ends from then on ended no connection
    /// of that outage.
    fn return_from(&self, outage: &Outage) -> Option<Timestamp> {
        let back = outage.returned_at?;
        if self.joins {
            return Some(back + SECOND);
        }
        let own = self.all.iter().filter(|connection| outage.incarnations.contains(&connection.incarnation));
        let last = own.map(|connection| connection.since).max();
        let is_next = |c: &Connection| match last {
            Some(last) => c.since > last,
            None => c.incarnation.connected_at() == Some(back),
        };
        let next = self.all.iter().filter(|c| c.was_seen && is_next(c));
        Some(next.map(|connection| connection.since).min().unwrap_or(back + SECOND))
    }

    fn newest(&self) -> Option<&Connection> {
        self.all.iter().max_by_key(|connection| connection.place())
    }

    /// The connections that a sighting may have ended, and whether that is more than a guess. Each connection erases
    /// `node_fenced`, so `node_fenced` ended the newest one, whatever the clocks are; if the CIB has lost that one, it
    /// shows an older one.
    fn ended_by(&self, sighting: &Sighting) -> (Vec<&Incarnation>, bool) {
        let newest = self.newest().map(|connection| &connection.incarnation);
        match (sighting.witness, &self.current) {
            (Witness::NodeFenced, Some(current)) if newest.is_none_or(|newest| newest == current) => {
                (vec![current], true)
            }
            (Witness::NodeFenced, Some(current)) => (newest.into_iter().chain([current]).collect(), false),
            _ => (in_force(&self.all, sighting.at), self.is_clear(sighting.at)),
        }
    }

    /// Whether the order of the connections and of that time is certain although clocks differ.
    fn is_clear(&self, at: Timestamp) -> bool {
        self.all.iter().all(|connection| connection.was_seen || connection.since.distance(at) > CLOCK_SKEW)
    }

    /// Whether the host was connected after it was seen down, and before an outage that did not end that connection. The
    /// CIB may show the outage's own connection as unfenced: this controller may read an old CIB.
    fn show_return(&self, outage: &Outage, seen: Timestamp, claimed: Timestamp) -> bool {
        let others = self.all.iter().filter(|c| !outage.incarnations.contains(&c.incarnation));
        others.map(|connection| connection.since).any(|since| seen + GRAIN < since && since < claimed)
    }

    /// Keeps all but the current one.
    pub fn leave_the_current(&mut self) {
        let current = self.current.take();
        self.all.retain(|connection| Some(&connection.incarnation) != current.as_ref());
    }

    /// Those made before the last one. The first monitor of a connection comes moments after its start.
    fn before_the_last(&self) -> Self {
        let latest = self.newest().map(|connection| connection.since);
        let before = self.all.iter().filter(|c| latest.is_none_or(|latest| c.since + GRAIN * 2 < latest));
        Self { all: before.cloned().collect(), current: None, ..*self }
    }

    /// The connection that a sighting ended, for the mark that it makes.
    pub fn before(&self, sighting: &Sighting) -> Option<Incarnation> {
        if sighting.witness == Witness::NodeFenced && self.current.is_some() {
            return self
                .newest()
                .map(|connection| &connection.incarnation)
                .or(self.current.as_ref())
                .cloned();
        }
        let before = self.all.iter().filter(|connection| connection.since <= sighting.at);
        before.max_by_key(|connection| connection.place()).map(|connection| connection.incarnation.clone())
    }
}

/// The outage that a fencing belongs to, if any; outages come oldest first. A sure match goes before a near one: an
/// outage with an unknown connection must not take in what belongs to another one beside it. Pacemaker's own word goes
/// first: that the host was down already.
pub fn of_fencing<'a>(fencing: &Fencing, outages: &'a [Outage], reach: Reach) -> Option<Joined<'a>> {
    // Its own mark may exist already, without the row that it was taken in.
    let own = outages.iter().find(|outage| outage.mark == fencing.id.into());
    let asked = fencing.asked_at;
    let has_room = |o: &&Outage| {
        o.returned_at.is_none_or(|back| back >= asked) && !was_back(fencing, o) && takes_in(o, asked, reach)
    };
    let open = || outages.iter().rev().filter(has_room).filter(|o| !takes_back(fencing, o, reach));
    let by = |rule| move |outage| Joined { outage, rule };
    own.map(by(Rule::OwnMark))
        .or_else(|| of_host_already_down(fencing, outages, reach).map(by(Rule::AlreadyDown)))
        .or_else(|| open().find(|o| is_same(fencing, o, reach)).map(by(Rule::SameConnection)))
        .or_else(|| open().find(|o| may_have(fencing, o, reach)).map(by(Rule::NearByClock)))
}

/// Only a connection erases `node_fenced`: a host that has it no more at its next fencing was back in between, even if nobody saw
/// that and its connection is forgotten.
fn was_back(fencing: &Fencing, outage: &Outage) -> bool {
    let is_erased = fencing.already_down == Some(false);
    is_erased && outage.fenced_at.is_some_and(|fenced| fenced + GRAIN < fencing.asked_at)
}

/// Whether an outage takes in events of that time. An unproven outage may be none: what comes much later is a failure of
/// its own. Without a cluster, so is everything after its mark was sent.
fn takes_in(outage: &Outage, at: Timestamp, reach: Reach) -> bool {
    let is_settled = || outage.settled.is_some_and(|(_, ended)| ended + GRAIN < at);
    !is_void(outage, reach.since(at))
        && (is_believed(outage) || is_within(at, outage, reach.widest()))
        && !(reach.alone && is_settled())
}

/// Whether the host was seen to be back from an outage and was fenced again, and the record has just appeared, or no alerter knew it: it is
/// of a later outage, whatever clocks say.
fn is_left(outage: &Outage, reach: Reach) -> bool {
    (reach.appeared.is_some() || reach.is_uncounted) && reach.is_fenced && outage.returned_at.is_some()
}

/// Whether a record appeared here so near to the making of the outage's mark.
fn appeared_beside(outage: &Outage, reach: Reach, limit: Duration) -> bool {
    reach.appeared.is_some_and(|at| at.distance(outage.made_at) <= limit)
}

/// A proof is known here that the host was down, or another alerter sent the mark and so had one.
fn is_believed(outage: &Outage) -> bool {
    outage.is_proven || outage.settled.is_some_and(|(how, _)| how == Settlement::Acknowledged)
}

/// Who calls a host failed after its mark was ended takes that end back.
fn takes_back(fencing: &Fencing, outage: &Outage, reach: Reach) -> bool {
    let is_before = |ended| ended < reach.since(fencing.asked_at);
    let is_dismissed =
        outage.settled.is_some_and(|(how, ended)| how == Settlement::Dismissed && is_before(ended));
    fencing.origin == Origin::Operator && is_dismissed
}

/// An operator has ended this mark, or it gave way to another alerter's, and nothing proved that its host was ever down: it takes in nothing that
/// happened later, which is the host's first failure.
fn is_void(outage: &Outage, at: Timestamp) -> bool {
    let ended = outage.settled.filter(|(how, _)| matches!(how, Settlement::Dismissed | Settlement::Expired));
    !outage.is_proven && ended.is_some_and(|(_, ended)| ended <= at)
}

/// Whether a record comes so long after the last one of a settled outage that it is not expected any more: the host may
/// have been back and be down again without a sign.
///
/// Nor is one expected that nobody saw appear, if a person's word alone made the mark and took it back: only clocks say which came first.
pub fn is_over(Joined { outage, rule }: Joined<'_>, at: Timestamp, reach: Reach) -> bool {
    let is_dismissed = matches!(outage.settled, Some((Settlement::Dismissed, _)));
    let is_taken_back = is_dismissed && !outage.is_proven && rule != Rule::OwnMark;
    let is_long_ago =
        at.since(outage.newest) > reach.widest() && !appeared_beside(outage, reach, reach.widest());
    outage.settled.is_some() && (is_long_ago || is_taken_back && reach.appeared.is_none() && !reach.alone)
}

/// A host that was fenced and has not been back since is still in its newest outage, however late, and whatever
/// connection the CIB has. There is no answer if that outage has ended or was none, or if the fencing's connection is
/// newer: the host was back after it and was fenced again by something unknown here.
fn of_host_already_down<'a>(fencing: &Fencing, outages: &'a [Outage], reach: Reach) -> Option<&'a Outage> {
    if fencing.already_down != Some(true) {
        return None;
    }
    let asked = fencing.asked_at;
    // A late record of an earlier outage must not count for the next one: its connection decides where clocks cannot.
    let has_begun = |o: &&Outage| match &fencing.incarnation {
        Some(seen) if o.incarnations.contains(seen) => o.first <= asked + CLOCK_SKEW,
        Some(_) if !o.incarnations.is_empty() => o.first + CLOCK_SKEW <= asked,
        _ => o.first <= asked + GRAIN,
    };
    let is_in = |o: &&Outage| reach.appeared.is_some() && is_still_in(o, fencing.incarnation.as_ref());
    let newest = outages.iter().rev().find(is_in).or_else(|| outages.iter().rev().find(has_begun))?;
    let returned = newest.returned_at.is_some_and(|back| back < asked) || is_left(newest, reach);
    let was_back = is_newer(fencing, newest) || returned;
    (!was_back && !takes_back(fencing, newest, reach) && takes_in(newest, asked, reach)).then_some(newest)
}

/// The outage that an unproven report concerns: an open one, or one that ended so recently that a late report could seem
/// the proof of another one.
pub fn spoken_of(outages: &[Outage], now: Timestamp, coalesce: Duration) -> Option<&Outage> {
    let is_open = |o: &Outage| o.settled.is_none() && o.returned_at.is_none();
    let end = |o: &Outage| o.returned_at.map_or(o.newest, |back| back.max(o.newest));
    let is_recent = |o: &Outage| !is_void(o, now) && now.since(end(o)) <= coalesce;
    outages.iter().rev().find(|outage| is_open(outage) || is_recent(outage))
}

/// Which of two connections was made first, if certain: each controller orders its own, and two clocks may differ.
fn order(one: &Incarnation, other: &Incarnation) -> Option<Ordering> {
    let (first, second) = (one.connected_at()?, other.connected_at()?);
    let is_clear = first.distance(second) > CLOCK_SKEW || one.controller() == other.controller();
    is_clear.then(|| first.cmp(&second))
}

/// In doubt it counts as newer: the host was back.
fn is_newer(fencing: &Fencing, outage: &Outage) -> bool {
    let Some(seen) = &fencing.incarnation else { return false };
    match newest(&outage.incarnations) {
        _ if outage.incarnations.contains(seen) => false,
        Some(known) => order(seen, known).is_none_or(Ordering::is_gt),
        None => seen.connected_at().is_some_and(|made| made > outage.newest),
    }
}

/// The same connection is the same outage, however late: Pacemaker repeats `off` without end. But for a host that was not
/// fenced since its last connection, it may be an older connection, because the CIB lost the last one with its
/// controller; or Pacemaker has not noted the end of its first fencing yet. Then clocks decide, or that it appeared here so soon.
fn is_same(fencing: &Fencing, outage: &Outage, reach: Reach) -> bool {
    let same = fencing.incarnation.as_ref().is_some_and(|c| outage.incarnations.contains(c));
    let is_soon = || {
        is_within(fencing.asked_at, outage, reach.coalesce) || appeared_beside(outage, reach, reach.coalesce)
    };
    same && (fencing.already_down != Some(false) || !is_left(outage, reach) && is_soon())
}

/// A newer connection means that the host was back in between, even seconds later; the same one was handled above. A
/// surely older one decides nothing (Pacemaker forgets the connections of a lost controller), nor does an unknown one:
/// only then clocks are compared. Nor is it a late record of an earlier outage if the outage's connection was made long
/// before.
fn may_have(fencing: &Fencing, outage: &Outage, reach: Reach) -> bool {
    let asked = fencing.asked_at;
    let says_nothing = match (&fencing.incarnation, newest(&outage.incarnations)) {
        (Some(seen), Some(known)) => {
            known.connected_at().is_some_and(|made| made + CLOCK_SKEW <= asked)
                && order(seen, known) == Some(Ordering::Less)
        }
        _ => true,
    };
    says_nothing && is_near(asked, outage, reach)
}

fn newest(connections: &[Incarnation]) -> Option<&Incarnation> {
    let dated = connections.iter().filter(|connection| connection.connected_at().is_some());
    dated.max_by_key(|connection| connection.connected_at())
}

/// The outage that a sighting belongs to.
pub fn of_sighting<'a>(
    sighting: &Sighting,
    connections: &Connections,
    outages: &'a [Outage],
    reach: Reach,
) -> Option<Joined<'a>> {
    // The mark of the same operation, made by another controller.
    let own = outages.iter().find(|outage| outage.mark == sighting.mark_id());
    let rule = Rule::OwnMark;
    let by_clock = || at(sighting, connections, outages, (reach, Duration::ZERO));
    own.map(|outage| Joined { outage, rule }).or_else(by_clock)
}

/// The same again before a sighting makes a mark of its own. If the host is connected and was not fenced since, no
/// sighting ended that connection, although differing clocks may suggest it. A match `near-by-clock` with such a wide
/// margin may as well be a failure of its own.
pub fn of_sighting_before_return<'a>(
    sighting: &Sighting,
    connections: &Connections,
    outages: &'a [Outage],
    reach: Reach,
) -> Option<Joined<'a>> {
    let before = connections.is_back.then(|| connections.before_the_last())?;
    let found = at(sighting, &before, outages, (reach, CLOCK_SKEW))?;
    let rule = if found.rule == Rule::NearByClock { found.rule } else { Rule::BeforeReturn };
    Some(Joined { rule, ..found })
}

fn at<'a>(
    sighting: &Sighting,
    connections: &Connections,
    outages: &'a [Outage],
    (reach, margin): (Reach, Duration),
) -> Option<Joined<'a>> {
    let at = sighting.at;
    let (ended, is_sure) = connections.ended_by(sighting);
    let has_room = |o: &&Outage| {
        connections.return_from(o).is_none_or(|back| back + margin > at) && takes_in(o, at, reach)
    };
    let open = || outages.iter().rev().filter(has_room);
    let same = |outage: &&Outage| {
        let is_one = ended.iter().any(|connection| outage.incarnations.contains(connection));
        is_one && (is_sure || !is_left(outage, reach))
    };
    let near = |o: &&Outage| may_be(&ended, o) && is_near(at, o, reach);
    let is_present = |o: &&Outage| is_present(o, connections, reach) && !is_void(o, reach.since(at));
    let present = || outages.iter().rev().find(is_present);
    let by = |rule| move |outage| Joined { outage, rule };
    // Of several outages with one connection: the newest that had begun. A sure match goes first, but not one that is over: a connection
    // that nobody saw may have followed it.
    let begun = |margin| open().filter(same).find(|outage| outage.first <= at + margin);
    let rule = if is_sure { Rule::SameConnection } else { Rule::LikelyConnection };
    let begun = match sighting.witness {
        Witness::NodeFenced => begun(CLOCK_SKEW),
        Witness::Alert(_) | Witness::History => begun(GRAIN).or_else(|| begun(CLOCK_SKEW)),
    };
    let sure = begun.or_else(|| open().rfind(same)).map(by(rule));
    sure.filter(|found| !is_over(*found, at, reach))
        .or_else(|| open().find(near).map(by(Rule::NearByClock)))
        .or(sure)
        .or_else(|| present().map(by(Rule::NearByClock)))
}

/// Whether the host is in that outage now, and the record appeared here when its mark was made: whatever other clocks say.
fn is_present(outage: &Outage, connections: &Connections, reach: Reach) -> bool {
    appeared_beside(outage, reach, reach.widest()) && is_still_in(outage, connections.current.as_ref())
}

/// Whether nothing shows that a host with that connection has been back from an outage.
fn is_still_in(outage: &Outage, current: Option<&Incarnation>) -> bool {
    let known = &outage.incarnations;
    let is_own = current.is_none_or(|current| known.is_empty() || known.contains(current));
    outage.returned_at.is_none() && is_own
}

/// Whether a sighting that belongs to an outage by a rule proves its mark. An operation ends after its agent was asked:
/// if only clocks join the two, an older sighting proves nothing, nor does one older than a return.
pub fn is_proof(
    joined: Joined<'_>,
    sighting: &Sighting,
    claimed: Timestamp,
    connections: &Connections,
) -> bool {
    let is_near = claimed <= sighting.at + CLOCK_SKEW;
    joined.rule.is_sure() || is_near && !connections.show_return(joined.outage, sighting.at, claimed)
}

/// If a connection is unknown, clocks decide. They also decide if the outage began after the present connection, but its
/// fencing read an older one because the CIB had lost the newer one.
fn may_be(ended: &[&Incarnation], outage: &Outage) -> bool {
    let last = ended.iter().copied().max_by_key(|connection| connection.connected_at());
    match (last, newest(&outage.incarnations)) {
        (Some(last), Some(known)) => {
            order(known, last) == Some(Ordering::Less)
                && last.connected_at().is_some_and(|made| made <= outage.first)
        }
        _ => ended.is_empty() || outage.incarnations.is_empty(),
    }
}

/// The connections that may have been the last good one at that time: the newest that stood then, and those that are so little
/// younger that clocks cannot order them.
fn in_force(connections: &[Connection], at: Timestamp) -> Vec<&Incarnation> {
    let stood = connections.iter().filter(|connection| connection.stood_at(at));
    let newest = stood.max_by_key(|connection| connection.place());
    let perhaps = connections.iter().filter(|c| !c.stood_at(at) && c.since <= at + GRAIN);
    newest.into_iter().chain(perhaps).map(|connection| &connection.incarnation).collect()
}

/// Whether clocks alone make it one outage.
fn is_near(at: Timestamp, outage: &Outage, reach: Reach) -> bool {
    is_within(at, outage, reach.coalesce) && !is_left(outage, reach)
}

/// Whether a time is no further away from an outage than this.
fn is_within(at: Timestamp, outage: &Outage, limit: Duration) -> bool {
    at.since(outage.newest) <= limit && outage.first.since(at) <= limit
}

/// When the host came back from an outage: when a newer connection than the outage's own was made, but not before the
/// outage, whatever the clock of its controller is. That of a member which is not fenced is newer (`is_up`), unless the
/// CIB was read before the outage: a controller's operations on a connection vanish together. If the CIB has lost all connections, a
/// member that was fenced long enough ago is back too.
pub fn return_from(
    outage: &Outage,
    current: Option<&Incarnation>,
    (is_member, is_up): (bool, bool),
    now: Timestamp,
    coalesce: Duration,
) -> Option<Timestamp> {
    let Some(current) = current else {
        return (is_member && now.since(outage.newest) > coalesce).then_some(now);
    };
    let made = current.connected_at()?;
    let is_newer = match newest(&outage.incarnations) {
        _ if outage.incarnations.contains(current) => return None,
        Some(known) => order(current, known).map_or(is_member, Ordering::is_gt),
        // Pacemaker notes whole seconds.
        None => made.seconds() >= outage.newest.seconds(),
    };
    let is_from_before = outage.incarnations.iter().any(|known| current.is_before(known));
    let at = if is_newer { made } else { now };
    let is_another = is_up && !outage.incarnations.is_empty() && !is_from_before;
    (is_newer || is_another).then(|| at.max(outage.first))
}

#[cfg(test)]
mod stories;

#[cfg(test)]
mod tests {
    use crate::fencing::Origin;
    use crate::host::HostName;
    use crate::id::FencingId;

    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_seconds(second)
    }

    fn connection(made: i64) -> Incarnation {
        Incarnation::new("ctl1", 7, made)
    }

    fn fencing(asked: i64, made: Option<i64>) -> Fencing {
        Fencing {
            id: FencingId::generate(),
            node: HostName::parse("compute1").unwrap(),
            plug: None,
            asked_at: second(asked),
            committed_at: second(asked + 1),
            seen_by: "ctl1".into(),
            origin: Origin::Fencer,
            incarnation: made.map(connection),
            already_down: None,
            given_domain: None,
            given_shared_storage: None,
            cause: None,
        }
    }

    /// An outage of one fencing.
    fn outage(asked: i64, made: Option<i64>) -> Outage {
        let incarnations = made.map(connection).into_iter().collect();
        let (first, newest) = (second(asked), second(asked));
        let mark = FencingId::generate().into();
        let (fenced_at, returned_at, settled) = (None, None, None);
        let (made_at, is_proven) = (first, true);
        Outage { mark, first, newest, incarnations, fenced_at, returned_at, settled, made_at, is_proven }
    }

    /// An outage from a confirmation by hand or from a shell, which an operator ended.
    fn ended(how: Settlement, at: i64, is_proven: bool, outage: Outage) -> Outage {
        Outage { settled: Some((how, second(at))), is_proven, ..outage }
    }

    fn returned(at: i64, outage: Outage) -> Outage {
        Outage { returned_at: Some(second(at)), ..outage }
    }

    const REACH: Reach = Reach::found(COALESCE);

    fn of<'a>(fencing: &Fencing, outages: &'a [Outage]) -> Option<&'a Outage> {
        of_fencing(fencing, outages, REACH).map(|joined| joined.outage)
    }

    fn joins(fencing: &Fencing, outage: &Outage) -> bool {
        of(fencing, std::slice::from_ref(outage)).is_some()
    }

    #[test]
    fn the_same_connection_is_the_same_outage_however_late() {
        assert!(joins(&fencing(50_000, Some(10)), &outage(100, Some(10))));
        assert!(joins(&already_down(fencing(50_000, Some(10))), &outage(100, Some(10))));
    }

    /// An unproven report makes no mark beside one whose evidence may still come: that would prove it.
    #[test]
    fn a_word_from_outside_speaks_of_an_open_outage_or_of_one_that_is_just_over() {
        let of =
            |outage: &Outage, now| spoken_of(std::slice::from_ref(outage), second(now), COALESCE).is_some();
        let acknowledged = |outage| ended(Settlement::Acknowledged, 150, true, outage);
        assert!(of(&outage(100, None), 50_000), "it is open");
        assert!(of(&acknowledged(outage(100, None)), 280) && !of(&acknowledged(outage(100, None)), 281));
        let back = returned(200, outage(100, None));
        assert!(of(&back, 380) && !of(&back, 381));
        let never = ended(Settlement::Dismissed, 150, false, outage(100, None));
        assert!(!of(&never, 151), "it was withdrawn");
        assert!(of(&ended(Settlement::Dismissed, 150, true, outage(100, None)), 151));
    }

    /// `node_fenced` stays set where the host was never disconnected.
    #[test]
    fn a_mark_that_ended_without_proof_takes_in_nothing_that_happens_later() {
        for how in [Settlement::Dismissed, Settlement::Expired] {
            for made in [Some(10), None] {
                let never = ended(how, 150, false, outage(100, made));
                for later in [151, 50_000] {
                    assert!(!joins(&already_down(fencing(later, Some(10))), &never), "{made:?} {later}");
                    assert!(!joins(&already_down(fencing(later, None)), &never), "{made:?} {later}");
                    assert!(!joins(&fencing(later, Some(10)), &never), "{made:?} {later}");
                    assert_eq!(seen(later, &[10], std::slice::from_ref(&never)), None, "{made:?} {later}");
                }
                assert!(joins(&already_down(fencing(149, Some(10))), &never), "asked for before its end");
                assert!(seen(149, &[10], std::slice::from_ref(&never)).is_some());
            }
        }
    }

    #[test]
    fn a_proven_mark_that_ended_takes_in_what_its_outage_still_brings() {
        let known = ended(Settlement::Dismissed, 150, true, outage(100, Some(10)));
        assert!(joins(&already_down(fencing(50_000, Some(10))), &known));
        assert!(seen(50_000, &[10], std::slice::from_ref(&known)).is_some());
        let settled = ended(Settlement::Acknowledged, 150, false, outage(100, Some(10)));
        assert!(joins(&already_down(fencing(50_000, Some(10))), &settled), "another alerter had a proof");
    }

    /// The CIB's "fenced" then concerns that mark, and not the outage before it.
    #[test]
    fn behind_a_mark_that_ended_without_proof_no_older_outage_is_meant() {
        let outages = [outage(100, Some(3)), ended(Settlement::Dismissed, 450, false, outage(400, Some(10)))];
        assert_eq!(of(&already_down(fencing(50_000, Some(10))), &outages), None);
        assert_eq!(of(&already_down(fencing(50_000, None)), &outages), None);
    }

    fn already_down(fencing: Fencing) -> Fencing {
        Fencing { already_down: Some(true), ..fencing }
    }

    fn was_up(fencing: Fencing) -> Fencing {
        Fencing { already_down: Some(false), ..fencing }
    }

    /// The host came back through a controller that was then lost together with it. Without the CIB's word, the row above
    /// swallows that.
    #[test]
    fn the_same_connection_of_a_host_that_was_not_fenced_since_is_another_outage_when_it_is_late() {
        let known = outage(100, Some(10));
        assert!(!joins(&was_up(fencing(281, Some(10))), &known));
        assert!(joins(&fencing(281, Some(10)), &known), "nothing says that it was up");
        assert!(!joins(&was_up(fencing(100, Some(10))), &outage(281, Some(10))), "its record comes late");
    }

    /// Its connection was lost with the controller that held it. The broken variants: `node_fenced` is still there, nobody
    /// read it, or it was set only after the agent was asked.
    #[test]
    fn a_host_whose_node_fenced_was_erased_has_been_back_although_its_connection_is_forgotten() {
        let known = Outage { fenced_at: Some(second(305)), ..outage(300, Some(10)) };
        for made in [Some(10), Some(3), None] {
            assert!(!joins(&was_up(fencing(360, made)), &known), "{made:?}");
            assert!(joins(&already_down(fencing(360, made)), &known), "{made:?}");
            assert!(joins(&fencing(360, made), &known), "{made:?}");
            assert!(joins(&was_up(fencing(304, made)), &known), "{made:?}");
        }
    }

    /// Pacemaker runs `off` again before it has noted the first one as a success.
    #[test]
    fn a_repeated_off_before_the_fencing_is_noted_is_one_outage() {
        assert!(joins(&was_up(fencing(280, Some(10))), &outage(100, Some(10))));
        let storm = Outage { newest: second(400), ..outage(100, Some(10)) };
        assert!(joins(&was_up(fencing(580, Some(10))), &storm), "each is near to the one before it");
    }

    /// The next `off` of that second outage belongs to it, and not to the first.
    #[test]
    fn of_two_outages_with_one_connection_the_newest_that_had_begun_is_meant() {
        let outages = [outage(100, Some(10)), outage(400, Some(10))];
        for (asked, wanted) in [(405, 1), (50_000, 1), (396, 1), (150, 0)] {
            let found = of(&already_down(fencing(asked, Some(10))), &outages);
            assert_eq!(found, Some(&outages[wanted]), "{asked}");
        }
        assert_eq!(of(&was_up(fencing(405, Some(10))), &outages), Some(&outages[1]));
        assert_eq!(of(&was_up(fencing(105, Some(10))), &outages), Some(&outages[0]));
        assert_eq!(of(&was_up(fencing(700, Some(10))), &outages), None);
    }

    /// Whatever the CIB has lost: a host that was not back is in no other outage.
    #[test]
    fn a_host_that_is_down_already_is_in_its_newest_outage() {
        for made in [Some(10), Some(3), None] {
            assert!(joins(&already_down(fencing(50_000, made)), &outage(100, Some(10))), "{made:?}");
            assert!(joins(&already_down(fencing(50_000, made)), &outage(100, None)), "{made:?}");
        }
        let outages = [outage(100, Some(10)), outage(400, None)];
        let found = of(&already_down(fencing(50_000, Some(10))), &outages);
        assert_eq!(found, Some(&outages[1]), "the connection of the second is unknown");
    }

    /// A host that boots in a second is back in the second in which its fencing is reported. Seen in the lab.
    #[test]
    fn a_sighting_of_a_fencing_in_the_second_of_the_return_belongs_to_it() {
        let at = Timestamp(471_871);
        let known = returned(472, Outage { first: at, newest: at, ..outage(471, None) });
        let found = |moment| seen_at(Timestamp(moment), &[381], std::slice::from_ref(&known));
        assert_eq!(found(472_080), Some(&known));
        assert_eq!(found(478_000), None, "that is another one");
    }

    /// Something unknown here fenced it after its return.
    #[test]
    fn a_host_that_is_down_again_is_in_no_outage_that_has_ended() {
        let down = |asked, made| already_down(fencing(asked, made));
        assert!(!joins(&down(150, Some(140)), &outage(100, Some(10))), "a newer connection");
        assert!(!joins(&down(50_000, Some(140)), &outage(100, None)), "a connection after it");
        for made in [Some(10), Some(3), None] {
            assert!(!joins(&down(150, made), &returned(140, outage(100, Some(10)))), "{made:?}");
        }
        let outages = [outage(100, Some(10)), returned(500, outage(400, None))];
        assert_eq!(of(&down(600, None), &outages), None, "nor in the one before");
    }

    /// Then the rules of the connections and of the clocks hold.
    #[test]
    fn a_host_that_is_down_already_by_an_outage_that_has_no_mark_yet() {
        assert!(joins(&already_down(fencing(100, Some(10))), &outage(300, Some(10))));
        assert!(!joins(&already_down(fencing(100, Some(10))), &outage(120, Some(110))));
        assert!(joins(&already_down(fencing(100, None)), &outage(280, Some(10))));
    }

    /// As without that word: clocks alone decide if no connection is known.
    #[test]
    fn of_a_host_that_was_up_and_an_unknown_connection_clocks_decide() {
        for (known, other) in [(None, None), (None, Some(10)), (Some(3), Some(10)), (Some(10), None)] {
            assert!(joins(&was_up(fencing(280, known)), &outage(100, other)), "{known:?} {other:?}");
            assert!(!joins(&was_up(fencing(281, known)), &outage(100, other)), "{known:?} {other:?}");
        }
    }

    #[test]
    fn a_newer_connection_is_another_outage_even_seconds_later() {
        assert!(!joins(&fencing(104, Some(102)), &outage(100, Some(10))));
    }

    /// A controller is lost with its connection of the host: the next `off` of the same outage reads an older one.
    #[test]
    fn an_older_connection_says_nothing_and_clocks_decide() {
        assert!(joins(&fencing(172, Some(3)), &outage(100, Some(10))));
        assert!(!joins(&fencing(281, Some(3)), &outage(100, Some(10))));
    }

    /// The record of the first of two outages arrives after that of the second.
    #[test]
    fn a_late_record_of_an_earlier_outage_does_not_join_the_next() {
        assert!(!joins(&fencing(100, Some(10)), &outage(120, Some(110))));
    }

    /// A compute host and the controller with its connection are lost together: the CIB then has the connection of the
    /// outage before.
    #[test]
    fn after_a_return_nothing_joins_whatever_the_connection() {
        for made in [Some(10), Some(3), None] {
            assert!(!joins(&fencing(150, made), &returned(140, outage(100, Some(10)))), "{made:?}");
            assert!(joins(&fencing(130, made), &returned(140, outage(100, Some(10)))), "{made:?}");
        }
    }

    #[test]
    fn where_a_connection_is_unknown_only_clocks_decide_and_both_ways() {
        for (known, other) in [(None, None), (None, Some(10))] {
            assert!(joins(&fencing(280, known), &outage(100, other)));
            assert!(!joins(&fencing(281, known), &outage(100, other)));
        }
        assert!(joins(&fencing(100, None), &outage(280, None)), "a clock was set back");
        assert!(joins(&fencing(100, Some(10)), &outage(100, None)));
    }

    #[test]
    fn a_fencing_makes_its_mark_once() {
        let first = fencing(100, Some(10));
        let own = Outage { mark: first.id.into(), ..outage(9_999, None) };
        assert!(joins(&first, &own));
    }

    #[test]
    fn an_older_outage_is_found_behind_a_newer_one() {
        let outages = [outage(100, Some(10)), outage(400, Some(300))];
        let found = of(&fencing(250, Some(10)), &outages);
        assert_eq!(found, Some(&outages[0]));
    }

    /// Two outages beside each other, the connection of the second unknown, read on another controller.
    #[test]
    fn what_surely_fits_goes_before_what_is_only_near() {
        let outages = [outage(100, Some(10)), outage(120, None)];
        assert_eq!(of(&fencing(100, Some(10)), &outages), Some(&outages[0]));
        assert_eq!(of(&fencing(121, Some(110)), &outages), Some(&outages[1]));
        assert_eq!(seen(101, &[10, 110], &outages), Some(&outages[0]));
        assert_eq!(seen(121, &[10, 110], &outages), Some(&outages[1]));
        let first = fencing(100, None);
        let own = Outage { mark: first.id.into(), ..outage(100, None) };
        let outages = [own, outage(120, None)];
        assert_eq!(of(&first, &outages), Some(&outages[0]), "its own mark");
    }

    fn seen<'a>(when: i64, connections: &[i64], outages: &'a [Outage]) -> Option<&'a Outage> {
        seen_at(second(when), connections, outages)
    }

    fn seen_at<'a>(at: Timestamp, connections: &[i64], outages: &'a [Outage]) -> Option<&'a Outage> {
        of_sighting(&sighting(at), &known(connections), outages, REACH).map(|joined| joined.outage)
    }

    fn sighting(at: Timestamp) -> Sighting {
        let (node, witness) = (HostName::parse("compute1").unwrap(), Witness::History);
        Sighting { node, witness, at, by_human: false }
    }

    /// Connections that no controller here saw appear.
    fn known(connections: &[i64]) -> Connections {
        let connected =
            |made: &i64| Connection { incarnation: connection(*made), since: second(*made), was_seen: false };
        Connections { all: connections.iter().map(connected).collect(), ..Connections::default() }
    }

    /// Alerts come when the whole operation has ended: after the first of two outages, before the host is back.
    #[test]
    fn a_sighting_belongs_to_the_connection_that_was_in_force() {
        let outages = [outage(100, Some(10)), outage(130, Some(115))];
        assert_eq!(seen(104, &[10, 115], &outages), Some(&outages[0]));
        assert_eq!(seen(131, &[10, 115], &outages), Some(&outages[1]));
        assert_eq!(seen(5_000, &[10, 115], &outages), Some(&outages[1]), "however late");
    }

    #[test]
    fn a_sighting_of_an_outage_that_nothing_else_saw_belongs_to_none() {
        assert_eq!(seen(131, &[10, 115], &[outage(100, Some(10))]), None);
        // Even seconds after the return, whether it was noted or not.
        for outage in [outage(100, Some(10)), returned(115, outage(100, Some(10)))] {
            assert_eq!(seen_at(Timestamp(117_500), &[10, 115], std::slice::from_ref(&outage)), None);
            assert!(seen_at(Timestamp(115_900), &[10, 115], &[outage]).is_some(), "in whole seconds");
        }
        assert_eq!(seen(131, &[10], &[returned(115, outage(100, Some(10)))]), None);
    }

    /// The alerter noted the connection at 110; the fencing read an older one, since the CIB had lost the newer one.
    #[test]
    fn a_sighting_finds_the_outage_whose_fencing_read_an_older_connection() {
        let second = [returned(110, outage(100, Some(10))), outage(150, Some(10))];
        assert_eq!(seen(155, &[10, 110], &second), Some(&second[1]));
        assert_eq!(seen(331, &[10, 110], &second), None, "clocks decide");
        let before = [outage(100, Some(10))];
        assert_eq!(seen(116, &[10, 110], &before), None, "it began before that connection");
        let newer = [outage(150, Some(140))];
        assert_eq!(seen(130, &[10, 110, 140], &newer), None);
    }

    /// A skew of clocks must not make an outage of a host that is alive.
    #[test]
    fn a_skew_of_clocks_makes_no_second_outage() {
        for skew in -4..=4 {
            // The host was back five seconds after the operation had ended.
            let first = [returned(109, outage(100, Some(10)))];
            assert!(seen(104 + skew, &[10, 109], &first).is_some(), "{skew}");
            // It failed right after it had connected.
            let quick = [outage(111, Some(110))];
            assert!(seen(112 + skew, &[10, 110], &quick).is_some(), "{skew}");
        }
    }

    #[test]
    fn where_no_connection_is_known_sightings_are_compared_by_clocks() {
        let one = [outage(100, None)];
        assert!(seen(280, &[10], &one).is_some() && seen(281, &[10], &one).is_none());
        let other = [outage(100, Some(10))];
        assert!(seen(280, &[], &other).is_some() && seen(281, &[], &other).is_none());
    }

    #[test]
    fn a_return_is_a_newer_connection() {
        let back = |outage: &Outage, made: Option<i64>, member, now| {
            let current = made.map(connection);
            return_from(outage, current.as_ref(), (member, false), second(now), COALESCE)
        };
        let known = outage(100, Some(10));
        assert_eq!(back(&known, Some(120), false, 130), Some(second(120)), "also when it is gone again");
        assert_eq!(back(&known, Some(10), true, 130), None, "the cluster has not noticed yet");
        assert_eq!(back(&known, Some(3), true, 130), None, "the cluster has forgotten");
        assert_eq!(back(&known, None, true, 130), None);
        assert_eq!(back(&known, None, true, 281), Some(second(281)));
        assert_eq!(back(&known, None, false, 281), None);
        let unknown = outage(100, None);
        assert_eq!(back(&unknown, Some(90), true, 130), None);
        assert_eq!(back(&unknown, Some(120), true, 130), Some(second(120)));
    }

    /// B5: somebody confirmed by hand a host that was alive. The broken variant is one that Pacemaker confirms.
    #[test]
    fn an_outage_that_nothing_proves_takes_in_nothing_that_comes_later() {
        let unproven = Outage { is_proven: false, ..outage(100, Some(10)) };
        let day = 100 + 22 * 3600;
        for late in
            [fencing(day, Some(10)), already_down(fencing(day, Some(10))), already_down(fencing(day, None))]
        {
            assert!(!joins(&late, &unproven) && joins(&late, &outage(100, Some(10))));
        }
        assert_eq!(seen(day, &[10], std::slice::from_ref(&unproven)), None);
        assert!(joins(&fencing(280, Some(10)), &unproven), "Pacemaker repeats it");
        assert!(seen(400, &[10], std::slice::from_ref(&unproven)).is_some(), "coalesce and the skew");
        let settled = ended(Settlement::Acknowledged, 150, false, outage(100, Some(10)));
        assert!(joins(&fencing(day, Some(10)), &settled), "another alerter had a proof");
    }

    /// B7: the broken variants are open, or had a report a moment ago.
    #[test]
    fn what_joins_an_outage_whose_mark_ended_long_ago_is_not_expected() {
        let settled = ended(Settlement::Acknowledged, 150, true, outage(100, Some(10)));
        let over_by = |rule, outage: &Outage, at| is_over(Joined { outage, rule }, second(at), REACH);
        let is_over = |outage: &Outage, at| over_by(Rule::SameConnection, outage, at);
        assert!(!is_over(&settled, 400) && is_over(&settled, 401));
        let near = Outage { newest: second(300), ..settled.clone() };
        assert!(!is_over(&near, 600), "each is near to the one before it");
        assert!(!is_over(&outage(100, Some(10)), 50_000), "it is not settled yet");
        assert!(!is_over(&settled, 10), "a late record");
        let taken_back = ended(Settlement::Dismissed, 150, false, outage(100, Some(10)));
        assert!(is_over(&taken_back, 149), "only clocks say which came first");
        assert!(!over_by(Rule::OwnMark, &taken_back, 149), "it made the mark");
    }

    /// B8: only clocks decide there. The broken variant has a cluster.
    #[test]
    fn without_a_cluster_nothing_joins_a_mark_that_was_settled_before() {
        let settled = ended(Settlement::Acknowledged, 102, true, outage(100, None));
        let joins = |asked, outage: &Outage, alone| {
            of_fencing(&fencing(asked, None), std::slice::from_ref(outage), Reach { alone, ..REACH })
                .is_some()
        };
        assert!(joins(183, &settled, false) && !joins(183, &settled, true));
        assert!(joins(107, &settled, true), "the agent is run again at once where its answer was lost");
        assert!(joins(183, &outage(100, None), true), "it is not settled yet");
    }

    fn by(controller: &str, made: i64) -> Incarnation {
        Incarnation::new(controller, 7, made)
    }

    /// B3: a controller whose clock is behind connected the host later. The broken variant was made by the same controller.
    #[test]
    fn of_two_controllers_the_connection_that_seems_older_may_be_the_newer_one() {
        let known = Outage { incarnations: vec![by("ctl1", 400)], ..outage(600, None) };
        let late =
            |controller, made| Fencing { incarnation: Some(by(controller, made)), ..fencing(640, None) };
        assert!(!joins(&late("ctl2", 300), &known), "in doubt another outage");
        assert!(joins(&late("ctl1", 300), &known) && joins(&late("ctl2", 100), &known), "surely forgotten");
        let back = |current: Incarnation, member| {
            return_from(&known, Some(&current), (member, false), second(700), COALESCE)
        };
        assert_eq!(back(by("ctl2", 300), true), Some(second(600)), "not before its outage");
        assert_eq!((back(by("ctl2", 300), false), back(by("ctl1", 300), true)), (None, None));
    }

    /// The clock that dates it was set back since the outage, or is another one than dated the return, and the connection since is forgotten. The
    /// broken variants: the record was found, its host is not fenced or was not seen to be back, and it has the outage's own connection.
    #[test]
    fn what_appears_while_a_returned_host_is_fenced_again_is_of_a_later_outage() {
        let (first, reach) = (returned(250, outage(100, Some(10))), Reach { is_fenced: true, ..REACH });
        let appears = Reach { appeared: Some(second(120)), ..reach };
        let late = was_up(fencing(120, None));
        let fences = |fencing: &Fencing, outage: &Outage, reach| {
            of_fencing(fencing, std::slice::from_ref(outage), reach).is_some()
        };
        assert!(!fences(&late, &first, appears));
        assert!(!fences(&already_down(late.clone()), &first, appears));
        assert!(!fences(&was_up(fencing(120, Some(10))), &first, appears), "it may have read an older one");
        assert!(fences(&late, &first, reach) && fences(&late, &outage(100, Some(10)), appears));
        assert!(fences(&late, &first, Reach { is_fenced: false, ..appears }));
        assert!(fences(&fencing(120, Some(10)), &first, appears), "Pacemaker repeats it");
        let seen = |reach| {
            of_sighting(&sighting(second(120)), &known(&[]), std::slice::from_ref(&first), reach).is_some()
        };
        assert!(!seen(appears) && seen(reach));
    }

    /// Two controllers fence it at once, and their clocks differ by an hour. The broken variants: what was found, and what appears later.
    #[test]
    fn what_appears_soon_with_the_same_connection_is_of_one_outage_whatever_clocks_say() {
        let again = was_up(fencing(3_700, Some(10)));
        let joins = |outage: &Outage, appeared: Option<i64>| {
            let reach = Reach { appeared: appeared.map(second), ..REACH };
            of_fencing(&again, std::slice::from_ref(outage), reach).is_some()
        };
        let first = outage(100, Some(10));
        assert!(joins(&first, Some(280)) && !joins(&first, Some(281)) && !joins(&first, None));
        assert!(!joins(&Outage { is_proven: false, ..first }, Some(280)), "nothing shows that it was one");
        assert!(!joins(&outage(100, Some(20)), Some(110)), "another connection");
    }

    /// Two controllers' clocks differ by years, and no connection is known. The broken variants: it was found, its host was seen to be
    /// back, and the outage had another connection.
    #[test]
    fn a_host_that_was_down_already_is_in_the_outage_from_which_it_is_not_back() {
        let years = 10 * 365 * 86_400;
        let again = |made| already_down(fencing(years, made));
        let before = returned(years - 150, outage(years - 200, Some(years - 900)));
        let joins = |own: Outage, fencing: &Fencing, appeared: Option<i64>| {
            let reach = Reach { appeared: appeared.map(second), is_fenced: true, ..REACH };
            let outages = [own, before.clone()];
            of_fencing(fencing, &outages, reach).map(|joined| joined.outage.mark == outages[0].mark)
        };
        let own = || outage(100, None);
        assert_eq!(joins(own(), &again(None), Some(129)), Some(true));
        assert_eq!(joins(own(), &again(None), None), None);
        assert_eq!(joins(returned(110, own()), &again(None), Some(129)), None);
        assert_eq!(joins(outage(100, Some(10)), &again(Some(20)), Some(129)), None);
        assert_eq!(joins(outage(100, Some(10)), &again(Some(10)), Some(129)), Some(true));
    }

    /// The DC's clock is years ahead of the one that dated the outage and its connection. The broken variants: a record that was found, one
    /// that appeared long after, a host that was back, and one with another connection now.
    #[test]
    fn what_appears_here_with_a_mark_is_of_its_outage_whatever_other_clocks_say() {
        let years = 10 * 365 * 86_400;
        let known = Outage { made_at: second(years + 5), ..outage(20, Some(10)) };
        let joins = |outage: &Outage, appeared: Option<i64>, current: i64| {
            let connections = Connections { current: Some(connection(current)), ..Connections::default() };
            let seen = Sighting {
                node: HostName::parse("compute1").unwrap(),
                witness: Witness::History,
                at: second(2 * years),
                by_human: false,
            };
            let reach = Reach { appeared: appeared.map(second), ..REACH };
            of_sighting(&seen, &connections, std::slice::from_ref(outage), reach).is_some()
        };
        assert!(joins(&known, Some(years + 9), 10));
        assert!(joins(&Outage { is_proven: false, ..known.clone() }, Some(years + 9), 10), "it is the proof");
        assert!(!joins(&known, None, 10) && !joins(&known, Some(years + 400), 10));
        assert!(!joins(&returned(30, known.clone()), Some(years + 9), 10));
        assert!(!joins(&known, Some(years + 9), 11));
    }

    /// The connection in between is forgotten. The broken variants: the one before is not over, and no mark is near.
    #[test]
    fn evidence_is_of_the_mark_beside_it_though_an_older_outage_had_its_connection() {
        let old = ended(Settlement::Acknowledged, 150, true, outage(100, Some(10)));
        let new = Outage { is_proven: false, ..outage(1_000, None) };
        let of = |at, outages: &[Outage]| seen(at, &[10], outages).map(|outage| outage.first.seconds());
        assert_eq!(of(1_010, &[old.clone(), new.clone()]), Some(1_000));
        assert_eq!(of(1_010, &[Outage { newest: second(900), ..old.clone() }, new.clone()]), Some(100));
        assert_eq!(of(1_301, &[old, new]), Some(100));
    }

    /// A host fails a second after its connection, of which the last poll saw the start and not the first monitor. The broken variant
    /// holds the mark, since the CIB of that poll has the host as a member that was not fenced.
    #[test]
    fn a_cib_that_was_read_before_the_outage_shows_no_return() {
        let monitor = Incarnation::new("ctl1", 7, 400);
        let known = Outage { incarnations: vec![monitor.clone()], ..outage(402, None) };
        let back = |current: Incarnation| {
            return_from(&known, Some(&current), (true, true), second(403), COALESCE).is_some()
        };
        let start = Incarnation::new("ctl1", 5, 400);
        assert!(!back(start) && !back(monitor));
        let set_back = Incarnation::new("ctl1", 9, 100);
        let begun_again = Incarnation::new("ctl1", 5, 500);
        let of_another = Incarnation::new("ctl2", 5, 100);
        assert!(back(set_back) && back(begun_again) && back(of_another));
    }

    /// B3: the clock of the controller that recorded it is ahead, or behind.
    #[test]
    fn a_connection_proves_whatever_the_clocks_say() {
        for recorded in [1000 - 119, 1000, 1000 + 119, 1000 + 170] {
            let claimed = Outage { is_proven: false, ..outage(recorded, Some(10)) };
            let seen = sighting(second(1004));
            let joined = of_sighting(&seen, &known(&[10]), std::slice::from_ref(&claimed), REACH).unwrap();
            assert_eq!(joined.rule, Rule::SameConnection);
            assert!(is_proof(joined, &seen, claimed.first, &known(&[10])), "{recorded}");
        }
    }

    /// The broken variant of the test above: if only clocks join the two, an older sighting proves nothing.
    #[test]
    fn an_old_sighting_does_not_prove_a_newer_claim_by_its_clock() {
        let seen = sighting(second(1000));
        let one = outage(1100, None);
        for rule in [Rule::NearByClock, Rule::LikelyConnection] {
            let is_proof =
                |claimed| is_proof(Joined { outage: &one, rule }, &seen, second(claimed), &known(&[10]));
            assert!(is_proof(1120) && !is_proof(1121));
        }
        let close = [10, 950];
        let claimed = outage(1130, Some(950));
        let joined = of_sighting(&seen, &known(&close), std::slice::from_ref(&claimed), REACH).unwrap();
        assert_eq!(joined.rule, Rule::LikelyConnection, "which connection it ended is a guess");
    }

    /// The host was back in between: what was seen before belongs to another outage. The broken variants are a connection
    /// made before, or ended by this outage, and a rule that is more than clocks.
    #[test]
    fn what_was_seen_before_a_return_proves_nothing_after_it() {
        let (seen, claimed, own) = (sighting(second(1000)), outage(1080, Some(10)), outage(1080, Some(1020)));
        let proves = |rule, connections: &[i64], outage| {
            is_proof(Joined { outage, rule }, &seen, second(1080), &known(connections))
        };
        for rule in [Rule::NearByClock, Rule::LikelyConnection] {
            assert!(!proves(rule, &[10, 1020], &claimed), "{rule:?}");
            assert!(proves(rule, &[10, 1004], &claimed) && proves(rule, &[10, 1090], &claimed), "{rule:?}");
            assert!(proves(rule, &[10, 1020], &own), "{rule:?}");
        }
        for rule in [Rule::OwnMark, Rule::SameConnection] {
            assert!(proves(rule, &[10, 1020], &claimed));
        }
    }

    /// This controller's CIB daemon hangs, and shows the host as it was before: its mark is proven all the same.
    #[test]
    fn a_cib_that_is_old_keeps_no_mark_from_its_proof() {
        let (seen, claimed) = (sighting(second(1001)), outage(1000, Some(950)));
        let stale = Connections { current: Some(connection(950)), is_back: true, ..known(&[10, 950]) };
        let joined = of_sighting(&seen, &stale, std::slice::from_ref(&claimed), REACH).unwrap();
        assert_eq!(joined.rule, Rule::LikelyConnection);
        assert!(is_proof(joined, &seen, second(1000), &stale));
    }

    /// Two outages with one connection in the records: a sighting belongs to the one that had begun.
    #[test]
    fn of_two_outages_with_one_connection_the_one_that_had_begun_goes_first() {
        let both = [returned(103, outage(100, Some(10))), outage(170, Some(10))];
        assert_eq!(seen(101, &[10], &both), Some(&both[0]));
        assert_eq!(seen(171, &[10], &both), Some(&both[1]));
    }

    /// B3: its alert has a time after the host's return, by a clock that is ahead. The broken variant was fenced since.
    #[test]
    fn a_host_that_was_not_fenced_since_its_last_connection_failed_before_it() {
        let first = [returned(130, outage(100, Some(10)))];
        let late = sighting(second(190));
        let of = |is_back| {
            let known = Connections { is_back, ..known(&[10, 130, 133]) };
            assert_eq!(of_sighting(&late, &known, &first, REACH), None);
            of_sighting_before_return(&late, &known, &first, REACH).map(|joined| joined.rule)
        };
        assert_eq!((of(true), of(false)), (Some(Rule::BeforeReturn), None));
    }

    /// `node_fenced` is erased by each connection.
    #[test]
    fn node_fenced_speaks_of_the_last_connection_whatever_the_clocks_say() {
        let outages = [returned(200, outage(100, Some(10))), outage(230, Some(200))];
        let fenced = Sighting { witness: Witness::NodeFenced, ..sighting(second(190)) };
        let known = |current| Connections { current: Some(connection(current)), ..known(&[10, 200]) };
        let joined = of_sighting(&fenced, &known(200), &outages, REACH).unwrap();
        assert_eq!((joined.outage, joined.rule), (&outages[1], Rule::SameConnection));
        let forgotten = of_sighting(&fenced, &known(10), &outages, REACH).unwrap();
        assert_eq!((forgotten.outage, forgotten.rule), (&outages[1], Rule::LikelyConnection));
    }
}
