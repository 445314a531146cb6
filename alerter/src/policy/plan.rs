//! The plan: which open marks may be sent now, and why the others may not. [`Planner`] gives what has changed since the last time, at
//! the cost of what has changed.

use std::collections::{BTreeSet, HashMap, HashSet};

use marks::id::MarkId;
use marks::mark::Settlement;
use marks::time::Timestamp;

use super::hold::Held;
use super::state::{Stage, State, Subject, lasts};

/// What holds a mark: the first is the one that is shown. Empty: it may be sent.
pub type Holds = Vec<Held>;

/// The place of a mark among those of its stage: by its host's failure, or by since when it is due again.
pub(super) fn turn(subject: &Subject) -> (Timestamp, MarkId) {
    match subject.stage {
        Stage::Blocked(since) => (since, subject.mark),
        _ => (subject.failed_at, subject.mark),
    }
}

/// How many hosts of a group take a place. In a serial group a host with an acknowledged mark counts until it is back, or for
/// as long as a storm would hold.
pub fn under_way(state: &State, group: usize, now: Timestamp) -> usize {
    let own = state.subjects.values().filter(|subject| subject.group == group);
    own.filter(|subject| is_under_way(state, subject, now)).count()
}

fn is_under_way(state: &State, subject: &Subject, now: Timestamp) -> bool {
    let rules = &state.groups[subject.group].rules;
    // After its end a mark takes a place no longer than a storm would hold.
    let may_last = subject.end.is_none_or(|(_, at)| lasts(at, rules.max_hold, now).is_some());
    let recovers = match subject.end {
        Some((Settlement::Acknowledged, _)) => {
            let is_back =
                subject.returned_at.is_some_and(|back| lasts(back, rules.healthy_delay, now).is_none());
            rules.serial && subject.is_member && !is_back
        }
        _ => false,
    };
    may_last && (recovers || subject.stage == Stage::UnderWay)
}

/// What has changed since the last plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Marks that are held now, or for other reasons than before.
    pub held: Vec<(MarkId, Holds)>,
    /// Marks that may be sent now, or have ended.
    pub freed: Vec<MarkId>,
    /// When something changes by itself.
    pub next: Option<Timestamp>,
}

/// What was decided last, and when to decide again.
#[derive(Clone, Debug, Default)]
pub struct Planner {
    /// The last decision about each held mark.
    said: HashMap<MarkId, Holds>,
    /// What holds marks, without the limit of how many are sent at once.
    own: HashMap<MarkId, Holds>,
    wakes: Wakes,
    groups: Vec<Queue>,
    /// Where a mark was counted: its group, and its place there.
    queue_of: HashMap<MarkId, (usize, (Timestamp, MarkId))>,
}

/// Marks of a group that is sent a few at a time.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// Whether a storm held when the group was checked last.
    is_stormy: bool,
    /// Nothing else holds them; in the order in which they are sent.
    ready: BTreeSet<(Timestamp, MarkId)>,
    /// Those whose endpoints are in trouble, the one that is due for longest first.
    blocked: BTreeSet<(Timestamp, MarkId)>,
    /// The first of these: they may be sent.
    admitted: BTreeSet<MarkId>,
    /// They take a place.
    busy: HashSet<MarkId>,
}

impl Queue {
    fn remove(&mut self, turn: (Timestamp, MarkId)) {
        self.ready.remove(&turn);
        self.blocked.remove(&turn);
        self.busy.remove(&turn.1);
    }

    /// Admits the first; gives those that are newly admitted, and those that have to wait again.
    fn admit(&mut self, places: usize) -> Vec<MarkId> {
        let left = places.saturating_sub(self.busy.len());
        let first = self.ready.iter().chain(&self.blocked).take(left);
        let admitted: BTreeSet<MarkId> = first.map(|(_, mark)| *mark).collect();
        let changed = admitted.symmetric_difference(&self.admitted).copied().collect();
        self.admitted = admitted;
        changed
    }
}

/// When something about a mark changes by itself.
#[derive(Clone, Debug, Default)]
struct Wakes {
    order: BTreeSet<(Timestamp, MarkId)>,
    of: HashMap<MarkId, Timestamp>,
}

impl Wakes {
    fn set(&mut self, mark: MarkId, at: Option<Timestamp>) {
        if let Some(old) = self.of.remove(&mark) {
            self.order.remove(&(old, mark));
        }
        if let Some(at) = at {
            self.of.insert(mark, at);
            self.order.insert((at, mark));
        }
    }

    fn take(&mut self, now: Timestamp) -> Vec<MarkId> {
        let due: Vec<MarkId> =
            self.order.iter().take_while(|(at, _)| *at <= now).map(|(_, mark)| *mark).collect();
        due.iter().for_each(|mark| self.set(*mark, None));
        due
    }

    fn next(&self) -> Option<Timestamp> {
        self.order.first().map(|(at, _)| *at)
    }
}

impl Planner {
    /// Whether nothing but the limit of how many are sent at once can hold a mark.
    pub fn is_free(&self, mark: MarkId) -> bool {
        !self.own.contains_key(&mark)
    }

    /// What holds a mark.
    pub fn holds_of(&self, mark: MarkId) -> &[Held] {
        self.said.get(&mark).map_or(&[], Vec::as_slice)
    }

    /// Every mark that is held.
    pub fn held(&self) -> impl Iterator<Item = (MarkId, &Holds)> {
        self.said.iter().map(|(mark, holds)| (*mark, holds))
    }

    /// Decides again where something may have changed. All its answers since the start together are the answer about all marks.
    pub fn replan(&mut self, state: &mut State, now: Timestamp) -> Changes {
        state.pass_to(now);
        self.groups.resize_with(state.groups.len(), Queue::default);
        let mut asked = std::mem::take(&mut state.changed);
        asked.extend(self.wakes.take(now));
        for (index, group) in state.groups.iter().enumerate() {
            let is_stormy = group.storm().holds();
            if std::mem::replace(&mut self.groups[index].is_stormy, is_stormy) != is_stormy {
                asked.extend(state.open[index].iter().map(|(_, mark)| *mark));
            }
        }
        let queues: BTreeSet<usize> =
            asked.iter().filter_map(|mark| self.decide(state, *mark, now)).collect();
        for index in queues {
            let places = state.groups[index].places().unwrap_or(usize::MAX);
            asked.extend(self.groups[index].admit(places));
        }
        let mut changes = Changes { next: self.next(state), ..Changes::default() };
        asked.into_iter().for_each(|mark| self.say(state, mark, &mut changes));
        changes
    }

    /// Gives the mark's group, where other marks may have to wait for it.
    fn decide(&mut self, state: &State, mark: MarkId, now: Timestamp) -> Option<usize> {
        let left = self.leave(mark);
        let Some(subject) = state.subjects.get(&mark) else {
            self.wakes.set(mark, None);
            return left;
        };
        let is_open = subject.end.is_none();
        let holds = if is_open { state.holds_of(subject, now) } else { Holds::new() };
        self.wakes.set(mark, wake(state, subject, &holds, now));
        let is_free = is_open && holds.is_empty();
        if !holds.is_empty() {
            self.own.insert(mark, holds);
        }
        if state.groups[subject.group].places().is_none() {
            return left;
        }
        let queue = &mut self.groups[subject.group];
        self.queue_of.insert(mark, (subject.group, turn(subject)));
        if is_under_way(state, subject, now) {
            queue.busy.insert(mark);
        } else if is_free && !subject.is_released {
            match subject.stage {
                Stage::Ready => drop(queue.ready.insert(turn(subject))),
                Stage::Blocked(_) => drop(queue.blocked.insert(turn(subject))),
                Stage::UnderWay | Stage::Waiting => {}
            }
        }
        Some(subject.group)
    }

    fn leave(&mut self, mark: MarkId) -> Option<usize> {
        self.own.remove(&mark);
        let (index, turn) = self.queue_of.remove(&mark)?;
        self.groups[index].remove(turn);
        Some(index)
    }

    fn say(&mut self, state: &State, mark: MarkId, changes: &mut Changes) {
        let holds = self.effective(state, mark);
        if holds.as_slice() == self.holds_of(mark) {
            return;
        }
        if holds.is_empty() {
            self.said.remove(&mark);
            changes.freed.push(mark);
        } else {
            self.said.insert(mark, holds.clone());
            changes.held.push((mark, holds));
        }
    }

    fn effective(&self, state: &State, mark: MarkId) -> Holds {
        if let Some(own) = self.own.get(&mark) {
            return own.clone();
        }
        let Some(subject) = state.subjects.get(&mark) else { return Holds::new() };
        let queue = &self.groups[subject.group];
        let turn = self.queue_of.get(&mark).map(|(_, turn)| turn);
        let is_queued = turn.is_some_and(|turn| queue.ready.contains(turn) || queue.blocked.contains(turn));
        let waits = is_queued && !queue.admitted.contains(&mark);
        if waits { vec![state.groups[subject.group].crowded()] } else { Holds::new() }
    }

    fn next(&self, state: &State) -> Option<Timestamp> {
        let groups = state.groups.iter().filter_map(|group| group.tally.next(&group.rules));
        groups.chain(self.wakes.next()).min()
    }
}

/// When something about a mark changes by itself.
fn wake(state: &State, subject: &Subject, holds: &[Held], now: Timestamp) -> Option<Timestamp> {
    let own = holds.iter().filter_map(|held| held.until);
    let rules = &state.groups[subject.group].rules;
    let back = subject.returned_at.map(|at| at + rules.healthy_delay);
    let given_up = subject.end.map(|(_, at)| at + rules.max_hold);
    let awaited = rules.serial || subject.stage == Stage::UnderWay;
    let recovery = back.into_iter().chain(given_up).filter(|_| awaited && subject.end.is_some());
    own.chain(recovery).filter(|at| *at > now).min()
}
