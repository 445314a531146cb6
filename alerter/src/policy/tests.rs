//! What must hold of every plan, over random stories of hosts, operators and time. P4 to P9 are the properties of the study
//! that the policy was designed by.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use marks::host::HostName;
use marks::id::{FencingId, MarkId};
use marks::mark::Settlement;
use marks::register::Cause;
use marks::time::Timestamp;
use proptest::prelude::*;

use super::hold::{Held, Hold};
use super::plan::{Holds, Planner, turn, under_way};
use super::state::{GroupState, Order, Stage, State, Subject, Whom};
use super::tally::Storm;
use crate::config::rules::{Amount, Limit, Rules};
use crate::probes::Conclusion;

const START: Timestamp = Timestamp(1_000_000_000);
const HOSTS: usize = 8;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// What holds every open mark at `now`, the time that the state was last passed to. Pure.
fn plan(state: &State, now: Timestamp) -> BTreeMap<MarkId, Holds> {
    let mut decided = BTreeMap::new();
    for (index, group) in state.groups.iter().enumerate() {
        let mut places = group.places().map(|places| places.saturating_sub(under_way(state, index, now)));
        // Ready marks come first; places that are left are for marks whose endpoints are in trouble.
        let mut blocked: Vec<&Subject> = state.open_of(index).filter(|subject| is_blocked(subject)).collect();
        blocked.sort_by_key(|subject| turn(subject));
        for (is_first, subjects) in [(true, state.open_of(index).collect()), (false, blocked)] {
            for subject in subjects {
                let mut holds = state.holds_of(subject, now);
                let is_its_turn = if is_first { subject.stage == Stage::Ready } else { is_blocked(subject) };
                let waits = holds.is_empty() && is_its_turn && !subject.is_released;
                match places.as_mut().filter(|_| waits) {
                    Some(0) => holds.push(group.crowded()),
                    Some(left) => *left -= 1,
                    None => {}
                }
                decided.insert(subject.mark, holds);
            }
        }
    }
    decided
}

fn is_blocked(subject: &Subject) -> bool {
    matches!(subject.stage, Stage::Blocked(_))
}

/// One thing that happens. Numbers choose among what is there.
#[derive(Clone, Debug)]
enum Event {
    Fail { host: usize },
    Return { mark: usize },
    End { mark: usize, how: usize },
    Doubt { mark: usize, doubted: bool },
    Probe { mark: usize, answer: usize },
    Stage { mark: usize, stage: usize },
    Release { mark: usize },
    ReleaseGroup { group: usize },
    Skip { host: usize },
    Pause { whom: usize, lasts: u64 },
    Maintain { host: usize, lasts: u64 },
    Resume,
    Wait { seconds: u64 },
}

fn an_event() -> impl Strategy<Value = Event> {
    let mark = 0..64_usize;
    prop_oneof![
        6 => (0..HOSTS).prop_map(|host| Event::Fail { host }),
        3 => mark.clone().prop_map(|mark| Event::Return { mark }),
        3 => (mark.clone(), 0..4_usize).prop_map(|(mark, how)| Event::End { mark, how }),
        1 => (mark.clone(), any::<bool>()).prop_map(|(mark, doubted)| Event::Doubt { mark, doubted }),
        2 => (mark.clone(), 0..3_usize).prop_map(|(mark, answer)| Event::Probe { mark, answer }),
        3 => (mark.clone(), 0..4_usize).prop_map(|(mark, stage)| Event::Stage { mark, stage }),
        1 => mark.prop_map(|mark| Event::Release { mark }),
        1 => (0..2_usize).prop_map(|group| Event::ReleaseGroup { group }),
        1 => (0..HOSTS).prop_map(|host| Event::Skip { host }),
        1 => (0..3_usize, 1..100_u64).prop_map(|(whom, lasts)| Event::Pause { whom, lasts }),
        1 => (0..HOSTS, 1..100_u64).prop_map(|(host, lasts)| Event::Maintain { host, lasts }),
        1 => Just(Event::Resume),
        4 => (0..120_u64).prop_map(|seconds| Event::Wait { seconds }),
    ]
}

fn a_limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::None),
        (0..6_u32).prop_map(|hosts| Limit::AtMost(Amount::Hosts(hosts))),
        (0..=100_u32).prop_map(|percent| Limit::AtMost(Amount::Percent(percent))),
        (0..3_u32, 0..4_u32).prop_map(|(low, more)| Limit::Range { low, high: low + more }),
    ]
}

prop_compose! {
    fn rules()(
        limit in a_limit(),
        window in proptest::option::of(1..300_u64),
        times in (0..100_u64, 1..300_u64, 0..30_u64, 0..30_u64),
        max_in_flight in proptest::option::of(1..4_u32),
        serial in proptest::bool::weighted(0.2),
    ) -> Rules {
        let (cooldown, max_hold, deliver_after, healthy_delay) = times;
        Rules {
            limit,
            window: window.map(seconds),
            cooldown: seconds(cooldown),
            max_hold: seconds(max_hold),
            deliver_after: seconds(deliver_after),
            healthy_delay: seconds(healthy_delay),
            max_in_flight,
            serial,
        }
    }
}

/// A story: a state, what was said of it so far, and the time.
struct Story {
    state: State,
    planner: Planner,
    said: BTreeMap<MarkId, Holds>,
    marks: Vec<MarkId>,
    skipped: HashSet<HostName>,
    maintenance: Vec<Order>,
    pauses: Vec<Order>,
    now: Timestamp,
}

fn host(index: usize) -> HostName {
    HostName::parse(&format!("compute{index}")).unwrap()
}

fn order(whom: Whom, until: Timestamp, why: &str) -> Order {
    Order { whom, until: Some(until), why: why.into(), cause: Cause::default() }
}

impl Story {
    /// The first group has the even hosts, the second the odd ones.
    fn new(rules: [Rules; 2], probes: bool) -> Self {
        let [first, second] = rules;
        let groups = vec![GroupState::new("even", first, probes), GroupState::new("odd", second, false)];
        let mut state = State::new(groups);
        (0..2).for_each(|group| state.set_size(group, HOSTS / 2));
        Self {
            state,
            planner: Planner::default(),
            said: BTreeMap::new(),
            marks: Vec::new(),
            skipped: HashSet::new(),
            maintenance: Vec::new(),
            pauses: Vec::new(),
            now: START,
        }
    }

    /// No two things happen in the same millisecond: their order could not be known later.
    fn apply(&mut self, event: &Event) {
        self.now = self.now + Duration::from_millis(1);
        let now = self.now;
        match *event {
            Event::Fail { host } => self.fail(host),
            Event::Return { mark } => {
                self.change(mark, |subject| subject.returned_at = subject.returned_at.or(Some(now)));
            }
            Event::End { mark, how } => {
                let how = [
                    Settlement::Acknowledged,
                    Settlement::Dismissed,
                    Settlement::Cancelled,
                    Settlement::Expired,
                ][how];
                self.change(mark, |subject| {
                    subject.end = subject.end.or(Some((how, now)));
                    subject.stage = Stage::Waiting;
                });
            }
            Event::Doubt { mark, doubted } => self.change(mark, |subject| {
                subject.doubts = if doubted { vec![Hold::Unproven] } else { Vec::new() };
            }),
            Event::Probe { mark, answer } => {
                let answers =
                    [Conclusion::Open, Conclusion::Confirmed, Conclusion::Healthy("it answers".to_owned())];
                self.with(mark, |state, mark| state.set_probe(mark, answers[answer].clone()));
            }
            Event::Stage { mark, stage } => {
                let stage = [Stage::Ready, Stage::UnderWay, Stage::Waiting, Stage::Blocked(now)][stage];
                self.with(mark, |state, mark| {
                    if state.subject(mark).is_some_and(|subject| subject.end.is_none()) {
                        state.set_stage(mark, stage);
                    }
                });
            }
            Event::Release { mark } => self.change(mark, |subject| subject.is_released = true),
            Event::ReleaseGroup { group } => self.state.set_released(group, Some(now)),
            Event::Skip { host: index } => {
                if !self.skipped.remove(&host(index)) {
                    self.skipped.insert(host(index));
                }
                self.state.set_skipped(&self.skipped);
            }
            Event::Pause { whom, lasts } => {
                let whom = [Whom::All, Whom::Group(0), Whom::Group(1)][whom].clone();
                self.pauses.push(order(whom, now + seconds(lasts), "paused"));
                self.state.set_orders(self.maintenance.clone(), self.pauses.clone());
            }
            Event::Maintain { host: index, lasts } => {
                let whom = Whom::Host(host(index));
                self.maintenance.push(order(whom, now + seconds(lasts), "work"));
                self.state.set_orders(self.maintenance.clone(), self.pauses.clone());
            }
            Event::Resume => {
                (self.maintenance, self.pauses) = (Vec::new(), Vec::new());
                self.state.set_orders(Vec::new(), Vec::new());
            }
            Event::Wait { seconds: count } => self.now = now + seconds(count),
        }
    }

    fn fail(&mut self, index: usize) {
        let subject = Subject {
            mark: FencingId::generate().into(),
            host: host(index),
            fqdn: Some(host(index)),
            group: index % 2,
            failed_at: self.now,
            known_at: self.now,
            seen_at: self.now,
            returned_at: None,
            end: None,
            doubts: Vec::new(),
            is_member: true,
            is_released: false,
            probe: Conclusion::Open,
            stage: Stage::Ready,
        };
        self.marks.push(subject.mark);
        self.state.see(subject);
    }

    fn with(&mut self, mark: usize, act: impl FnOnce(&mut State, MarkId)) {
        if let Some(mark) = (!self.marks.is_empty()).then(|| self.marks[mark % self.marks.len()]) {
            act(&mut self.state, mark);
        }
    }

    fn change(&mut self, mark: usize, change: impl FnOnce(&mut Subject)) {
        self.with(mark, |state, mark| {
            if let Some(mut subject) = state.subject(mark).cloned() {
                change(&mut subject);
                state.see(subject);
            }
        });
    }

    /// The daemon's way: what has changed is added to what was said before.
    fn plan(&mut self) -> BTreeMap<MarkId, Holds> {
        let changes = self.planner.replan(&mut self.state, self.now);
        for mark in changes.freed {
            assert!(self.said.remove(&mark).is_some(), "what was not held cannot be freed");
        }
        self.said.extend(changes.held);
        assert!(changes.next.is_none_or(|next| next > self.now), "a change that is over is no next one");
        plan(&self.state, self.now)
    }

    fn open(&self) -> impl Iterator<Item = &Subject> {
        self.state.subjects().filter(|subject| subject.end.is_none())
    }
}

fn held_only(plan: &BTreeMap<MarkId, Holds>) -> BTreeMap<MarkId, Holds> {
    plan.iter().filter(|(_, holds)| !holds.is_empty()).map(|(mark, holds)| (*mark, holds.clone())).collect()
}

fn is_held_by(holds: &[Held], hold: Hold) -> bool {
    holds.iter().any(|held| held.hold == hold)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// What is said change by change is what the pure plan says of everything. Every open mark is in it and no other (P1, P5:
    /// what has ended is held by nothing), and reasons stand in their order.
    #[test]
    fn changes_add_up_to_the_plan(
        rules in [rules(), rules()],
        probes: bool,
        events in prop::collection::vec(an_event(), 1..80),
    ) {
        let mut story = Story::new(rules, probes);
        for event in &events {
            story.apply(event);
            let plan = story.plan();
            prop_assert_eq!(&story.said, &held_only(&plan));
            let open: Vec<MarkId> = plan.keys().copied().collect();
            let mut expected: Vec<MarkId> = story.open().map(|subject| subject.mark).collect();
            expected.sort();
            prop_assert_eq!(open, expected);
            for holds in plan.values() {
                prop_assert!(holds.is_sorted_by(|a, b| a.hold < b.hold), "{:?}", holds);
            }
        }
    }

    /// P4: a larger limit never holds what a smaller one allows.
    #[test]
    fn a_higher_limit_holds_nothing_more(
        rules in rules(),
        limit in 0..6_u32,
        more in 0..4_u32,
        events in prop::collection::vec(an_event(), 1..80),
    ) {
        let with = |hosts| {
            let limit = Limit::AtMost(Amount::Hosts(hosts));
            let rules = Rules { limit, max_in_flight: None, serial: false, ..rules.clone() };
            Story::new([rules.clone(), rules], false)
        };
        let (mut strict, mut lax) = (with(limit), with(limit + more));
        for event in &events {
            strict.apply(event);
            lax.apply(event);
            let (strict_plan, lax_plan) = (strict.plan(), lax.plan());
            for (mark, lax_mark) in strict.marks.iter().zip(&lax.marks) {
                let is_held = |plan: &BTreeMap<MarkId, Holds>, mark| plan.get(mark).is_some_and(|holds| !holds.is_empty());
                prop_assert!(!is_held(&lax_plan, lax_mark) || is_held(&strict_plan, mark));
            }
        }
    }

    /// P6: where nothing counts hosts, what becomes of one host changes nothing for another.
    #[test]
    fn one_host_changes_nothing_for_another(
        rules in rules(),
        events in prop::collection::vec(an_event(), 1..40),
        mark in 0..64_usize,
        answer in 0..3_usize,
    ) {
        let rules = Rules { limit: Limit::None, max_in_flight: None, serial: false, ..rules };
        let mut story = Story::new([rules.clone(), rules], true);
        events.iter().for_each(|event| story.apply(event));
        let before = story.plan();
        let Some(chosen) = (!story.marks.is_empty()).then(|| story.marks[mark % story.marks.len()]) else {
            return Ok(());
        };
        for event in [Event::Probe { mark, answer }, Event::Doubt { mark, doubted: true }, Event::End { mark, how: answer }] {
            story.apply(&event);
            let after = story.plan();
            for (other, holds) in before.iter().filter(|(other, _)| **other != chosen) {
                prop_assert_eq!(after.get(other), Some(holds));
            }
        }
    }

    /// P7: once no more marks come, every storm hold ends by itself, and so does whatever ends by time.
    #[test]
    fn every_storm_ends(
        rules in [rules(), rules()],
        events in prop::collection::vec(an_event(), 1..80),
    ) {
        let longest = rules.iter().map(|rules| rules.max_hold.max(rules.deliver_after)).max().unwrap();
        let mut story = Story::new(rules, false);
        events.iter().for_each(|event| story.apply(event));
        story.plan();
        story.now = story.now + longest + seconds(30);
        let plan = story.plan();
        for holds in plan.values() {
            prop_assert!(!is_held_by(holds, Hold::Storm) && !is_held_by(holds, Hold::Delay), "{:?}", holds);
        }
        prop_assert_eq!(&story.said, &held_only(&plan));
    }

    /// With any limit: while no mark takes a place, and one could, one does.
    #[test]
    fn a_free_place_is_always_taken(
        rules in rules(),
        most in 1..4_u32,
        events in prop::collection::vec(an_event(), 1..60),
    ) {
        let rules = Rules { max_in_flight: Some(most), serial: false, ..rules };
        let mut story = Story::new([rules.clone(), rules], false);
        events.iter().for_each(|event| story.apply(event));
        let plan = story.plan();
        for group in 0..2 {
            let own: Vec<&Subject> = story.open().filter(|subject| subject.group == group).collect();
            let waits = |subject: &&&Subject| plan[&subject.mark].iter().all(|held| held.hold == Hold::MaxInFlight);
            let is_ready = |subject: &&&Subject| subject.stage == Stage::Ready && !subject.is_released;
            let ready: Vec<_> = own.iter().filter(waits).filter(is_ready).collect();
            let busy = own.iter().filter(|subject| subject.stage == Stage::UnderWay).count();
            let free = ready.iter().filter(|subject| plan[&subject.mark].is_empty()).count();
            let most = usize::try_from(most).unwrap();
            prop_assert_eq!(free, ready.len().min(most.saturating_sub(busy)));
        }
    }

    /// After a failover another alerter, which has read everything at once, holds what this one held: nothing but the marks
    /// is needed for it.
    #[test]
    fn the_next_alerter_plans_the_same(
        rules in [rules(), rules()],
        events in prop::collection::vec(
            an_event().prop_filter("what only the marks say", |event| {
                matches!(event, Event::Fail { .. } | Event::Return { .. } | Event::End { .. } | Event::Wait { .. } | Event::ReleaseGroup { .. })
            }),
            1..80,
        ),
        order in any::<prop::sample::Index>(),
    ) {
        let cooldowns = [rules[0].cooldown, rules[1].cooldown];
        let mut story = Story::new(rules.clone(), false);
        for event in &events {
            story.apply(event);
            story.plan();
        }
        let mut next = Story::new(rules, false);
        next.now = story.now;
        let mut subjects: Vec<Subject> = story.state.subjects().cloned().collect();
        subjects.sort_by_key(|subject| subject.mark);
        let turn = order.index(subjects.len().max(1)).min(subjects.len());
        subjects.rotate_left(turn);
        subjects.into_iter().for_each(|subject| next.state.see(subject));
        for group in 0..2 {
            next.state.set_released(group, story.state.groups()[group].released_at);
        }
        prop_assert_eq!(next.plan(), plan(&story.state, story.now));
        for (group, cooldown) in cooldowns.into_iter().enumerate() {
            // Since when is said by what is remembered; until when must be the same.
            let end = |story: &Story| {
                let storm = story.state.groups()[group].storm();
                (storm.holds(), storm.ends(cooldown))
            };
            prop_assert_eq!(end(&next), end(&story));
        }
    }
}

fn storm_at(hosts: u32, max_hold: u64, cooldown: u64) -> Rules {
    Rules {
        limit: Limit::AtMost(Amount::Hosts(hosts)),
        max_hold: seconds(max_hold),
        cooldown: seconds(cooldown),
        ..Rules::default()
    }
}

fn words(story: &mut Story) -> Vec<Vec<&'static str>> {
    let plan = story.plan();
    story
        .marks
        .iter()
        .map(|mark| {
            plan.get(mark)
                .map_or_else(Vec::new, |holds| holds.iter().map(|held| held.hold.as_str()).collect())
        })
        .collect()
}

/// S4-4, S4-11: in flight and delivered hosts count until they are back; more than the limit holds all that were not sent.
#[test]
fn an_acknowledged_mark_counts_until_its_host_is_back() {
    let mut story = Story::new([storm_at(1, 1000, 0), Rules::default()], false);
    story.apply(&Event::Fail { host: 0 });
    assert_eq!(words(&mut story), [vec![""; 0]]);
    story.apply(&Event::End { mark: 0, how: 0 });
    story.apply(&Event::Wait { seconds: 60 });
    story.apply(&Event::Fail { host: 2 });
    assert_eq!(words(&mut story), [vec![], vec!["storm"]]);
    story.apply(&Event::Return { mark: 0 });
    assert_eq!(words(&mut story), [vec![""; 0], vec![]]);
}

/// S0-48: another group's storm holds nobody here.
#[test]
fn a_storm_is_its_group_s_own() {
    let mut story = Story::new([storm_at(0, 1000, 0), Rules::default()], false);
    story.apply(&Event::Fail { host: 0 });
    story.apply(&Event::Fail { host: 1 });
    assert_eq!(words(&mut story), [vec!["storm"], vec![]]);
}

/// Each of the three ends: the cooldown, the operator's release, the longest hold.
#[test]
fn a_storm_hold_ends_in_three_ways() {
    let begin = || {
        let mut story = Story::new([storm_at(1, 1000, 10), Rules::default()], false);
        story.apply(&Event::Fail { host: 0 });
        story.apply(&Event::Fail { host: 2 });
        assert_eq!(words(&mut story), [["storm"], ["storm"]]);
        story
    };
    let held = |story: &mut Story| words(story).iter().filter(|words| !words.is_empty()).count();
    let mut calm = begin();
    calm.apply(&Event::Return { mark: 0 });
    assert_eq!(held(&mut calm), 2, "the cooldown runs");
    calm.apply(&Event::Wait { seconds: 10 });
    assert_eq!(held(&mut calm), 0);
    let mut released = begin();
    released.apply(&Event::ReleaseGroup { group: 0 });
    assert_eq!(held(&mut released), 0);
    released.apply(&Event::Fail { host: 4 });
    assert_eq!(words(&mut released)[2], ["storm"], "an operator releases what he has seen");
    let mut long = begin();
    long.apply(&Event::Wait { seconds: 999 });
    assert_eq!(held(&mut long), 2);
    long.apply(&Event::Wait { seconds: 2 });
    assert_eq!(held(&mut long), 0);
}

/// The clock was set back by years. The broken variant waits for the clock to come to the return again, and the storm with it.
#[test]
fn a_host_that_came_back_by_a_clock_that_was_set_back_counts_no_more() {
    let mut story = Story::new([storm_at(0, 1_000, 10), Rules::default()], false);
    story.apply(&Event::Fail { host: 0 });
    story.apply(&Event::End { mark: 0, how: 0 });
    story.plan();
    let before = story.now;
    story.apply(&Event::Wait { seconds: 10 * 365 * 86_400 });
    story.apply(&Event::Return { mark: 0 });
    story.apply(&Event::Fail { host: 2 });
    story.apply(&Event::End { mark: 1, how: 1 });
    story.plan();
    story.now = before + seconds(20);
    story.plan();
    assert_eq!((story.state.groups()[0].unhealthy(), story.state.groups()[0].storm()), (0, Storm::Calm));
}

/// Section 6.3: all that holds is listed, the first of the order first; an operator's word for one mark goes before all.
#[test]
fn every_reason_is_listed_in_its_order() {
    let rules = Rules { deliver_after: seconds(30), ..storm_at(0, 1000, 0) };
    let mut story = Story::new([rules, Rules::default()], true);
    story.apply(&Event::Fail { host: 0 });
    story.apply(&Event::Skip { host: 0 });
    story.apply(&Event::Pause { whom: 0, lasts: 60 });
    story.apply(&Event::Maintain { host: 0, lasts: 60 });
    assert_eq!(words(&mut story), [["skip", "maintenance", "pause", "confirm", "delay"]]);
    story.apply(&Event::Skip { host: 0 });
    story.apply(&Event::Resume);
    assert_eq!(words(&mut story), [["confirm", "delay", "storm"]], "set aside, it counted for nothing");
    story.apply(&Event::Release { mark: 0 });
    assert_eq!(words(&mut story), [[""; 0]]);
}

/// An operator's word for one mark goes past the limit of how many are sent at once too.
#[test]
fn a_released_mark_waits_for_nobody() {
    let rules = Rules { max_in_flight: Some(1), ..Rules::default() };
    let mut story = Story::new([rules, Rules::default()], false);
    for host in [0, 2, 4] {
        story.apply(&Event::Fail { host });
    }
    assert_eq!(words(&mut story), [vec![], vec!["max-in-flight"], vec!["max-in-flight"]]);
    story.apply(&Event::Release { mark: 2 });
    assert_eq!(words(&mut story), [vec![], vec!["max-in-flight"], vec![]]);
}

/// One after another: the next one goes when the one before is back, or after the longest hold.
#[test]
fn a_serial_group_waits_for_the_host_to_be_back() {
    let rules = Rules { serial: true, max_hold: seconds(100), ..Rules::default() };
    let mut story = Story::new([rules, Rules::default()], false);
    for host in [0, 2, 4] {
        story.apply(&Event::Fail { host });
    }
    let admitted = |story: &mut Story| -> Vec<bool> {
        let plan = story.plan();
        story.marks.iter().map(|mark| plan.get(mark).is_some_and(Vec::is_empty)).collect()
    };
    let order: Vec<usize> = {
        let first = admitted(&mut story);
        assert_eq!(first.iter().filter(|admitted| **admitted).count(), 1);
        let at = first.iter().position(|admitted| *admitted).unwrap();
        story.apply(&Event::End { mark: at, how: 0 });
        assert_eq!(admitted(&mut story), [false; 3], "it was acknowledged, and is not back");
        vec![at]
    };
    story.apply(&Event::Return { mark: order[0] });
    let second = admitted(&mut story).iter().position(|admitted| *admitted).unwrap();
    story.apply(&Event::End { mark: second, how: 0 });
    assert_eq!(admitted(&mut story), [false; 3]);
    story.apply(&Event::Wait { seconds: 100 });
    assert_eq!(admitted(&mut story).iter().filter(|admitted| **admitted).count(), 1, "no mark waits forever");
}
