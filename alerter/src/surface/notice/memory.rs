//! What one target was notified of, and what it is to be notified of next. Pure: no I/O, no clock.

use std::collections::{BTreeMap, BTreeSet};

use journal::Notified;
use marks::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::condition::{About, Conditions, Key, Notice, State};

use super::body;
use crate::problem::Condition;

/// What the target knows of a condition that it was notified of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Knows {
    /// That it holds.
    #[default]
    It,
    /// That it holds, perhaps: the notice may not have arrived.
    Perhaps,
    /// That it is over, perhaps.
    PerhapsItsEnd,
}

#[derive(Clone, Debug)]
struct Known {
    since: Timestamp,
    about: About,
    knows: Knows,
}

/// The text of a row of the journal, beside its key and its time.
#[derive(Serialize, Deserialize)]
struct Kept {
    #[serde(flatten)]
    about: About,
    #[serde(default, skip_serializing_if = "is_sure")]
    knows: Knows,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_sure(knows: &Knows) -> bool {
    *knows == Knows::It
}

/// What came of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The target took it.
    Taken,
    /// It takes nothing now.
    NotNow,
    /// It takes others, but not this one.
    NotThis,
    /// Not known.
    Unknown,
}

/// One target's memory. The journal keeps a copy of it, in which a notice that is under way may have arrived: a daemon that
/// ends then does not learn whether it did.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    entries: BTreeMap<Key, Known>,
    /// What is sent until it is taken: the same bytes each time.
    pending: BTreeMap<Key, Notice>,
    /// Notices that are being sent.
    under_way: BTreeMap<Key, Notice>,
    /// Notices that the target did not take: others go first.
    aside: BTreeSet<Key>,
}

impl Memory {
    /// What a former daemon notified. A row that cannot be read counts as not notified.
    pub(super) fn of_journal(rows: Vec<Notified>) -> Self {
        let entry = |row: Notified| {
            let Kept { about, knows } = serde_json::from_str(&row.about).ok()?;
            Some((Key::parse(&row.condition)?, Known { since: row.since, about, knows }))
        };
        Self { entries: rows.into_iter().filter_map(entry).collect(), ..Self::default() }
    }

    /// The conditions that the target was notified of, or may have been.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.entries.keys().chain(self.under_way.keys())
    }

    /// What the journal keeps of a condition; none where there is nothing to keep.
    pub(super) fn row(&self, key: &Key) -> Option<Notified> {
        let under_way = self.under_way.get(key).map(perhaps);
        let Known { since, about, knows } = under_way.or_else(|| self.entries.get(key).cloned())?;
        let about = serde_json::to_string(&Kept { about, knows }).expect("texts are always JSON");
        Some(Notified { condition: key.to_string(), since, about })
    }

    /// What is to be notified next, the oldest first, and is not under way; none where there is nothing more.
    pub(super) fn next(&mut self, found: &Conditions, now: Timestamp) -> Option<Notice> {
        let mut steps = self.steps(found, now);
        self.pending.retain(|key, old| steps.iter().any(|new| new.key == *key && is_same(new, old)));
        self.aside.retain(|key| steps.iter().any(|new| new.key == *key));
        steps.retain(|step| !self.under_way.contains_key(&step.key));
        steps.sort_by(|a, b| (a.since, &a.key).cmp(&(b.since, &b.key)));
        let fresh = steps.iter().position(|step| !self.aside.contains(&step.key));
        if fresh.is_none() {
            self.aside.clear();
        }
        let next = steps.into_iter().nth(fresh.unwrap_or(0))?;
        Some(self.pending.entry(next.key.clone()).or_insert(next).clone())
    }

    /// How many notices the target still has to be notified.
    pub(super) fn outstanding(&self, found: &Conditions, now: Timestamp) -> usize {
        self.steps(found, now).len()
    }

    /// Takes note that a notice is about to be sent. Says whether the journal has to be written before that.
    pub(super) fn begins(&mut self, notice: &Notice) -> bool {
        let before = self.row(&notice.key);
        self.under_way.insert(notice.key.clone(), notice.clone());
        self.row(&notice.key) != before
    }

    /// Takes note of the result of a notice. Says whether the journal has to be written.
    pub(super) fn answered(&mut self, notice: &Notice, answer: Answer) -> bool {
        let before = self.row(&notice.key);
        self.under_way.remove(&notice.key);
        self.learn(notice, answer);
        self.row(&notice.key) != before
    }

    fn learn(&mut self, notice: &Notice, answer: Answer) {
        let key = &notice.key;
        match answer {
            Answer::Taken => {
                self.pending.remove(key);
                self.entries.remove(key);
                if notice.state == State::Raised {
                    self.entries.insert(key.clone(), Known { knows: Knows::It, ..perhaps(notice) });
                }
            }
            Answer::Unknown => {
                self.entries.insert(key.clone(), perhaps(notice));
            }
            Answer::NotThis => {
                self.aside.insert(key.clone());
            }
            Answer::NotNow => {}
        }
    }

    /// Forgets conditions that are over and whose end is never notified. Gives the keys.
    pub(super) fn forget_expired(&mut self, found: &Conditions) -> Vec<Key> {
        let is_silent = |what| matches!(what, Condition::Expired | Condition::Reminder);
        let is_over = |key: &&Key| is_silent(key.what) && !found.may_hold(key);
        let over: Vec<Key> = self.entries.keys().filter(is_over).cloned().collect();
        self.entries.retain(|key, _| !over.contains(key));
        over
    }

    fn steps(&self, found: &Conditions, now: Timestamp) -> Vec<Notice> {
        let raise = found.holds.iter().filter_map(|(key, condition)| {
            let since = match self.entries.get(key) {
                Some(Known { knows: Knows::It, .. }) => return None,
                Some(Known { knows: Knows::Perhaps, since, .. }) => *since,
                Some(Known { knows: Knows::PerhapsItsEnd, .. }) | None => condition.since,
            };
            let (about, message) = (condition.about.clone(), condition.message.clone());
            Some(Notice { state: State::Raised, key: key.clone(), since, time: now, about, message })
        });
        let over = self.entries.iter().filter(|(key, _)| !found.may_hold(key));
        let clear = over.map(|(key, Known { since, about, .. })| Notice {
            state: State::Cleared,
            key: key.clone(),
            since: *since,
            time: now,
            about: about.clone(),
            message: body::end(key, about),
        });
        raise.chain(clear).collect()
    }
}

/// What the target knows where the notice may have arrived.
fn perhaps(notice: &Notice) -> Known {
    let knows = match notice.state {
        State::Raised => Knows::Perhaps,
        State::Cleared => Knows::PerhapsItsEnd,
    };
    Known { since: notice.since, about: notice.about.clone(), knows }
}

/// Whether both are the same message, to be sent in the same bytes.
fn is_same(new: &Notice, old: &Notice) -> bool {
    (new.state, new.since) == (old.state, old.since)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::condition::Current;
    use super::*;

    const CONDITIONS: usize = 4;

    fn key(number: usize) -> Key {
        Key::new(Condition::Held, number.to_string())
    }

    /// What a test does.
    #[derive(Clone, Debug)]
    enum Act {
        /// A condition begins, or ends.
        Step(usize),
        /// Nothing can be said of a condition, or something again.
        Hide(usize),
        /// One notice is sent; where nobody knows what came of it, it has arrived or not.
        Send(Answer, bool),
        /// A new daemon, with what the journal has.
        Restart,
        /// The same while a notice is under way, which has arrived or not.
        Stop(bool),
    }

    /// A target that takes what it gets, and a daemon that notifies it.
    #[derive(Default)]
    struct World {
        memory: Memory,
        /// What a new daemon has of it.
        journal: BTreeMap<Key, Notified>,
        found: Conditions,
        time: i64,
        /// What has arrived, in order.
        arrived: Vec<Notice>,
        /// What was answered as taken, in order.
        taken: Vec<Notice>,
        /// The broken variant: a new daemon knows of nothing that was notified.
        is_forgetful: bool,
        /// The broken variant: the journal has what the target is sure of, and nothing of what may have arrived.
        is_sure: bool,
    }

    impl World {
        fn act(&mut self, act: &Act) {
            self.time += 1;
            match act {
                Act::Step(number) => self.step(*number),
                Act::Hide(number) => {
                    let key = key(*number);
                    if !self.found.open.remove(&key) {
                        self.found.holds.remove(&key);
                        self.found.open.insert(key);
                    }
                }
                Act::Send(answer, has_arrived) => {
                    self.send(*answer, *has_arrived);
                }
                Act::Restart => self.restart(),
                Act::Stop(has_arrived) => self.stop(*has_arrived),
            }
        }

        fn step(&mut self, number: usize) {
            let key = key(number);
            self.found.open.remove(&key);
            if self.found.holds.remove(&key).is_none() {
                let about = About { kind: number.to_string(), ..About::default() };
                let condition = Current { since: Timestamp(self.time), about, message: "it is so".into() };
                self.found.holds.insert(key, condition);
            }
        }

        /// Says whether there was anything to send.
        fn send(&mut self, answer: Answer, has_arrived: bool) -> bool {
            let Some(notice) = self.begin() else { return false };
            if self.memory.answered(&notice, answer) {
                self.keep(&notice.key);
            }
            if answer == Answer::Taken {
                self.taken.push(notice.clone());
            }
            if answer == Answer::Taken || (answer == Answer::Unknown && has_arrived) {
                self.arrived.push(notice);
            }
            true
        }

        fn begin(&mut self) -> Option<Notice> {
            let notice = self.memory.next(&self.found, Timestamp(self.time))?;
            if self.memory.begins(&notice) {
                self.keep(&notice.key);
            }
            Some(notice)
        }

        fn keep(&mut self, key: &Key) {
            let row = self.memory.row(key);
            if self.is_sure && row.as_ref().is_some_and(|row| row.about.contains("perhaps")) {
                return;
            }
            self.journal.remove(key);
            self.journal.extend(row.map(|row| (key.clone(), row)));
        }

        fn stop(&mut self, has_arrived: bool) {
            let under_way = self.begin();
            self.arrived.extend(under_way.filter(|_| has_arrived));
            self.restart();
        }

        fn restart(&mut self) {
            let rows = self.journal.values().cloned().collect();
            self.memory = if self.is_forgetful { Memory::default() } else { Memory::of_journal(rows) };
        }

        /// What the target believes in the end, where that is not so.
        fn error(&mut self) -> Option<String> {
            while self.send(Answer::Taken, true) {}
            let known = (0..CONDITIONS).map(key).filter(|key| !self.found.open.contains(key));
            let is_wrong =
                |key: &Key| (self.believes(key) == Some(State::Raised)) != self.found.holds.contains_key(key);
            known.filter(is_wrong).map(|key| key.to_string()).next()
        }

        /// What the target makes of what has arrived.
        fn believes(&self, key: &Key) -> Option<State> {
            self.arrived.iter().rev().find(|notice| notice.key == *key).map(|notice| notice.state)
        }

        /// What is wrong with what was taken: once begun, once ended, in turns.
        fn complaint(&self) -> Option<String> {
            (0..CONDITIONS).map(key).find_map(|key| {
                let states: Vec<State> =
                    self.taken.iter().filter(|notice| notice.key == key).map(|n| n.state).collect();
                let wanted = [State::Raised, State::Cleared].into_iter().cycle();
                let differs = states.iter().zip(wanted).any(|(state, wanted)| *state != wanted);
                differs.then(|| format!("{key}: {states:?}"))
            })
        }
    }

    /// Where every answer is sure, no daemon ends before it.
    fn acts(answers: Vec<Answer>) -> impl Strategy<Value = Vec<Act>> {
        let stops = u32::from(answers.contains(&Answer::Unknown));
        let act = prop_oneof![
            3 => (0..CONDITIONS).prop_map(Act::Step),
            1 => (0..CONDITIONS).prop_map(Act::Hide),
            6 => (proptest::sample::select(answers), any::<bool>()).prop_map(|(a, arrived)| Act::Send(a, arrived)),
            1 => Just(Act::Restart),
            stops => any::<bool>().prop_map(Act::Stop),
        ];
        proptest::collection::vec(act, 1..120)
    }

    const SURE: [Answer; 3] = [Answer::Taken, Answer::NotNow, Answer::NotThis];
    const ALL: [Answer; 4] = [Answer::Taken, Answer::NotNow, Answer::NotThis, Answer::Unknown];

    proptest! {
        /// S1-5: whatever happens in whatever order, a condition is notified once and its end once, and no end of what was not
        /// notified; in the end the target knows what is so.
        #[test]
        fn each_condition_is_notified_once_and_its_end_once(acts in acts(SURE.to_vec())) {
            let mut world = World::default();
            acts.iter().for_each(|act| world.act(act));
            prop_assert_eq!(world.error(), None);
            prop_assert_eq!(world.complaint(), None);
        }

        /// Where nobody knows whether a notice arrived, it may come twice; in the end the target knows what is so, whenever
        /// daemons end.
        #[test]
        fn what_may_have_arrived_is_notified_again_or_taken_back(acts in acts(ALL.to_vec())) {
            let mut world = World::default();
            acts.iter().for_each(|act| world.act(act));
            prop_assert_eq!(world.error(), None);
        }
    }

    /// S1-5: what has arrived before a daemon ended is taken back by the next one, or notified again. The broken variant is a
    /// journal that has nothing of what is not sure.
    #[test]
    fn a_new_daemon_knows_what_may_have_arrived() {
        let unknown = [Act::Send(Answer::Unknown, true), Act::Restart];
        for is_sure in [false, true] {
            for ends in [&unknown[..], &[Act::Stop(true)]] {
                let (step, taken) = ([Act::Step(0)], [Act::Send(Answer::Taken, true)]);
                let never_cleared = [&step[..], ends, &step].concat();
                let never_notified = [&step[..], &taken, &step, ends, &step].concat();
                for acts in [never_cleared, never_notified] {
                    let mut world = World { is_sure, ..World::default() };
                    acts.iter().for_each(|act| world.act(act));
                    assert_eq!(world.error().is_some(), is_sure, "{acts:?}");
                }
            }
        }
    }

    /// What the target did not take it was not notified, before a restart and after it.
    #[test]
    fn what_did_not_arrive_is_not_taken_back() {
        let mut world = World::default();
        [Act::Step(0), Act::Send(Answer::NotNow, false), Act::Restart, Act::Step(0)]
            .iter()
            .for_each(|act| world.act(act));
        assert!(!world.send(Answer::Taken, true));
    }

    /// The journal is written where something changes in it, and not at every repetition.
    #[test]
    fn a_repetition_is_no_news() {
        let mut world = World::default();
        world.step(0);
        let notice = world.memory.next(&world.found, Timestamp(0)).unwrap();
        let mut say = |answer| (world.memory.begins(&notice), world.memory.answered(&notice, answer));
        assert_eq!(say(Answer::NotThis), (true, true));
        assert_eq!(say(Answer::Unknown), (true, false));
        assert_eq!(say(Answer::Unknown), (false, false));
        assert_eq!(say(Answer::Taken), (false, true));
    }

    /// The journal is asked of what is being said too: it may be pushed out from among the oldest meanwhile.
    #[test]
    fn what_is_under_way_is_known() {
        let mut world = World::default();
        world.step(0);
        let notice = world.begin().unwrap();
        assert_eq!(world.memory.keys().collect::<Vec<_>>(), [&notice.key]);
        assert_eq!(world.memory.next(&world.found, Timestamp(0)), None);
        world.memory.answered(&notice, Answer::NotNow);
        assert_eq!(world.memory.keys().next(), None);
        assert!(world.memory.next(&world.found, Timestamp(0)).is_some());
    }

    /// The broken variant: a daemon that forgets what was notified.
    #[test]
    fn a_daemon_that_forgets_is_noticed() {
        for is_forgetful in [false, true] {
            let mut world = World { is_forgetful, ..World::default() };
            let send = Act::Send(Answer::Taken, true);
            [Act::Step(0), send.clone(), Act::Restart, send].iter().for_each(|act| world.act(act));
            assert_eq!(world.complaint().is_some(), is_forgetful);
        }
    }

    #[test]
    fn what_has_passed_while_the_target_was_down_is_not_notified() {
        let mut world = World::default();
        world.step(0);
        assert!(world.send(Answer::NotNow, false));
        world.step(0);
        assert!(!world.send(Answer::Taken, true));
    }

    #[test]
    fn the_same_notice_has_the_same_bytes_each_time() {
        let mut world = World::default();
        world.step(0);
        let first = world.memory.next(&world.found, Timestamp(7)).unwrap();
        world.memory.answered(&first, Answer::Unknown);
        let condition = world.found.holds.get_mut(&key(0)).unwrap();
        (condition.since, condition.message) = (Timestamp(99), "it is still so".into());
        assert_eq!(world.memory.next(&world.found, Timestamp(8)), Some(first));
    }

    /// One that the target does not take must not keep the others back.
    #[test]
    fn a_rejected_notice_is_in_nobodys_way() {
        let mut world = World::default();
        (0..3).for_each(|number| world.act(&Act::Step(number)));
        let mut sent = Vec::new();
        for answer in [Answer::NotThis, Answer::Taken, Answer::NotThis, Answer::Taken, Answer::NotThis] {
            let next = world.memory.next(&world.found, Timestamp(0)).unwrap();
            world.memory.answered(&next, answer);
            sent.push(next.key.of);
        }
        assert_eq!(sent, ["0", "1", "2", "0", "2"]);
    }

    #[test]
    fn the_end_of_what_was_too_late_is_forgotten_without_a_word() {
        let key = Key::new(Condition::Expired, "17");
        let row =
            Notified { condition: key.to_string(), since: Timestamp(0), about: r#"{"kind":"x"}"#.into() };
        let mut memory = Memory::of_journal(vec![row]);
        let mut found = Conditions { unknown: BTreeSet::from([Condition::Expired]), ..Conditions::default() };
        assert_eq!(memory.forget_expired(&found), []);
        found.unknown.clear();
        assert_eq!(memory.forget_expired(&found), std::slice::from_ref(&key));
        assert_eq!((memory.next(&found, Timestamp(0)), memory.row(&key)), (None, None));
    }

    #[test]
    fn a_row_that_says_nothing_counts_as_not_notified() {
        let row = |condition: &str, about: &str| Notified {
            condition: condition.into(),
            since: Timestamp(0),
            about: about.into(),
        };
        let rows =
            vec![row("held 1", r#"{"kind":"x"}"#), row("gone 1", r#"{"kind":"x"}"#), row("held 2", "{")];
        assert_eq!(Memory::of_journal(rows).keys().collect::<Vec<_>>(), [&key(1)]);
    }
}
