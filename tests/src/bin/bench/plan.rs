//! What the policy costs: the plan of everything, and what one host's change adds to it, however many hosts there are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hint::black_box;
use std::time::{Duration, Instant};

use alerter::config::rules::{Amount, Limit, Rules};
use alerter::policy::Hold;
use alerter::policy::plan::{Planner, plan};
use alerter::policy::state::{GroupState, Stage, State, Subject};
use alerter::probes::Conclusion;
use anyhow::ensure;
use marks::host::HostName;
use marks::id::{FencingId, MarkId};
use marks::mark::Settlement;
use marks::time::Timestamp;

use crate::figures::{Times, line, ratio};

const OPEN: usize = 10_000;
const GROUPS: usize = 10;
const ROUNDS: usize = 51;
/// So many changes are measured together: one takes less than reading the clock should count for.
const CHANGES: usize = 300;
/// The sizes that are compared.
const FEW: usize = 100;
const MANY: usize = 10_000;
/// One host in so many is up; these are the hosts that change.
const UP: usize = 10;
const START: Timestamp = Timestamp(1_000_000_000);

pub(crate) fn run() -> anyhow::Result<()> {
    let share = Limit::AtMost(Amount::Percent(40));
    let storm = Rules { limit: share, cooldown: Duration::from_secs(300), ..Rules::default() };
    whole("all in a storm", &storm, Some(Hold::Storm))?;
    let crowd = Rules { max_in_flight: Some(10), ..Rules::default() };
    whole("ten of each group at once", &crowd, Some(Hold::MaxInFlight))?;
    whole("nothing is held", &Rules::default(), None)?;
    // What has ended is forgotten soon, so that their number stays the same.
    changes(&Rules { cooldown: Duration::from_millis(3), ..storm })
}

/// The plan of every open mark, in turns with a pass that only sorts their ids into a map.
fn whole(what: &str, rules: &Rules, hold: Option<Hold>) -> anyhow::Result<()> {
    let (state, now) = (state_of(OPEN, rules, |_| true)?, START + Duration::from_secs(60));
    let ids: HashMap<MarkId, usize> = state.subjects().map(|subject| (subject.mark, subject.group)).collect();
    let (mut own, mut floor) = (Times::default(), Times::default());
    for _ in 0..ROUNDS {
        let mut planned = BTreeMap::new();
        own.time(|| {
            planned = plan(&state, now);
            Ok(())
        })?;
        ensure!(planned.len() == OPEN, "{} marks are planned, and not {OPEN}", planned.len());
        let last = planned.values().filter_map(|holds| holds.first()).next_back();
        ensure!(last.map(|held| held.hold) == hold, "{what}: {last:?}");
        floor.time(|| {
            let sorted: BTreeMap<MarkId, usize> = ids.iter().map(|(mark, group)| (*mark, *group)).collect();
            ensure!(black_box(sorted).len() == OPEN, "two marks have one id");
            Ok(())
        })?;
    }
    line(&format!("plan of {OPEN} open marks, {what}"), &own);
    line("  a sorted map of their ids", &floor);
    ratio("milliseconds", own.median(), "< 10");
    ratio("to the map", own.median() / floor.median(), "-");
    Ok(())
}

/// One host's changes, each alone, among few hosts and among many in turns.
fn changes(rules: &Rules) -> anyhow::Result<()> {
    let (mut few, mut many) = (Among::new(FEW, rules)?, Among::new(MANY, rules)?);
    for _ in 0..ROUNDS {
        few.round()?;
        many.round()?;
    }
    for among in [&few, &many] {
        line(&format!("a change among {} hosts, in microseconds", among.hosts.len()), &among.own);
        line("  a map and a set of the same size", &among.floor);
        ratio("to them", among.own.median() / among.floor.median(), "-");
    }
    ratio(&format!("{MANY} hosts to {FEW}"), many.own.median() / few.own.median(), "about 1");
    ratio("the same of the map and the set", many.floor.median() / few.floor.median(), "-");
    Ok(())
}

/// A state in which most hosts are down, and what the same number of ids costs without a policy.
struct Among {
    hosts: Vec<HostName>,
    state: State,
    planner: Planner,
    map: HashMap<MarkId, Timestamp>,
    order: BTreeSet<(Timestamp, MarkId)>,
    now: Timestamp,
    turn: usize,
    /// Of one change, in thousandths of a millisecond.
    own: Times,
    floor: Times,
}

impl Among {
    fn new(count: usize, rules: &Rules) -> anyhow::Result<Self> {
        let mut state = state_of(count, rules, |index| !is_up(index))?;
        let (mut planner, now) = (Planner::default(), START + Duration::from_secs(1));
        planner.replan(&mut state, now);
        let down = count - count / UP;
        let held = planner.held().count();
        ensure!(held == down, "{held} marks are held, and not {down}");
        let map: HashMap<MarkId, Timestamp> = state.subjects().map(|s| (s.mark, s.failed_at)).collect();
        let order = map.iter().map(|(mark, at)| (*at, *mark)).collect();
        let hosts = (0..count).map(host).collect::<Result<_, _>>()?;
        let (own, floor) = (Times::default(), Times::default());
        Ok(Self { hosts, state, planner, map, order, now, turn: 0, own, floor })
    }

    fn round(&mut self) -> anyhow::Result<()> {
        let (mut own, mut floor) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..CHANGES / 3 {
            // Those that are up, in a mixed order: 7 has no divisor in common with their number.
            self.turn = (self.turn + 7) % (self.hosts.len() / UP);
            let failed = subject(&self.hosts[self.turn * UP], self.turn * UP, self.now);
            let mark = failed.mark;
            own += self.fail_and_return(failed)?;
            let begun = Instant::now();
            for at in [self.now, self.now + Duration::from_millis(1), self.now + Duration::from_millis(2)] {
                self.map.insert(mark, at);
                self.order.insert((at, mark));
                self.order.remove(&(at, mark));
                self.map.remove(&mark);
            }
            floor += begun.elapsed();
        }
        self.own.0.push(own.as_secs_f64() * 1e6 / CHANGES as f64);
        self.floor.0.push(floor.as_secs_f64() * 1e6 / CHANGES as f64);
        Ok(())
    }

    /// Three changes: it fails and is held, it is back, and an operator ends its mark.
    fn fail_and_return(&mut self, failed: Subject) -> anyhow::Result<Duration> {
        let first = self.change(failed.clone())?;
        ensure!(self.planner.holds_of(failed.mark).len() == 1, "a host in a storm is not held");
        let back = Subject { returned_at: Some(self.now), ..failed.clone() };
        let second = self.change(back.clone())?;
        let end = Some((Settlement::Dismissed, self.now));
        let third = self.change(Subject { end, ..back })?;
        ensure!(self.planner.holds_of(failed.mark).is_empty(), "a mark that has ended is held");
        Ok(first + second + third)
    }

    fn change(&mut self, subject: Subject) -> anyhow::Result<Duration> {
        self.now = self.now + Duration::from_millis(1);
        let begun = Instant::now();
        self.state.see(subject);
        let changes = self.planner.replan(&mut self.state, self.now);
        let took = begun.elapsed();
        let said = changes.held.len() + changes.freed.len();
        ensure!(said <= 1, "one host's change changed {said} marks");
        Ok(took)
    }
}

fn is_up(index: usize) -> bool {
    index.is_multiple_of(UP)
}

/// Hosts in groups of the same size, with an open mark of each that is down.
fn state_of(count: usize, rules: &Rules, is_down: impl Fn(usize) -> bool) -> anyhow::Result<State> {
    let group = |index: usize| GroupState::new(&format!("rack{index}"), rules.clone(), false);
    let mut state = State::new((0..GROUPS).map(group).collect());
    (0..GROUPS).for_each(|group| state.set_size(group, count / GROUPS));
    for index in (0..count).filter(|index| is_down(*index)) {
        state.see(subject(&host(index)?, index, START));
    }
    state.pass_to(START);
    Ok(state)
}

fn host(index: usize) -> anyhow::Result<HostName> {
    Ok(HostName::parse(&format!("r{}-compute{index}", index / UP % GROUPS))?)
}

fn subject(host: &HostName, index: usize, at: Timestamp) -> Subject {
    Subject {
        mark: FencingId::generate().into(),
        host: host.clone(),
        fqdn: None,
        group: index / UP % GROUPS,
        failed_at: at,
        known_at: at,
        returned_at: None,
        end: None,
        doubts: Vec::new(),
        is_member: true,
        is_released: false,
        probe: Conclusion::Open,
        stage: Stage::Ready,
    }
}
