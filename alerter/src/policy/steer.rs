//! Steers delivery by the policy: tells the plan what the journal, the cluster and operators say, and writes down what it
//! holds. Everything that makes a mark is followed by this before anything is sent.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use drivers::Step;
use journal::{Busy, Gate, HeldMark, Journal, JournalError, Room};
use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::MarkRow;
use marks::time::Timestamp;
use tracing::{info, warn};

use super::inventory::Inventory;
use super::orders::Orders;
use crate::base::Base;
use crate::config::rules::Rules;
use crate::config::{Group, Settings};
use crate::delivery::RouteStates;
use crate::lock::lock;
use crate::policy::plan::{self, Changes, Planner};
use crate::policy::state::{GroupState, Probe, Stage, State, Subject};
use crate::policy::{Held, Hold, doubts};
use crate::probes::{Confirm, Verdict};

/// So long after a start marks wait for the first CIB.
const FIRST_CIB: Duration = Duration::from_secs(60);

/// How often all chains are looked at, whatever may have stirred.
const ALL_CHAINS: Duration = Duration::from_secs(60);

/// What the policy remembers.
#[derive(Default)]
pub struct PolicyMemory {
    steering: Mutex<Steering>,
    verdicts: Mutex<HashMap<MarkId, Verdict>>,
    strays: Mutex<Vec<String>>,
}

impl PolicyMemory {
    /// The plan, as the journal's thread made it last.
    pub fn steering(&self) -> MutexGuard<'_, Steering> {
        lock(&self.steering)
    }

    /// What probes have said since the policy looked last.
    pub fn verdicts(&self) -> MutexGuard<'_, HashMap<MarkId, Verdict>> {
        lock(&self.verdicts)
    }

    /// Operators' decisions about groups that are not configured, a sentence each: they hold every host.
    pub fn strays(&self) -> MutexGuard<'_, Vec<String>> {
        lock(&self.strays)
    }

    /// These are all; each that is new is said.
    fn put_strays(&self, strays: &[String]) {
        let mut known = self.strays();
        strays.iter().filter(|stray| !known.contains(stray)).for_each(|stray| warn!("{stray}"));
        strays.clone_into(&mut known);
    }
}

/// The policy with what it goes by.
#[derive(Clone, Copy)]
pub struct Policy<'a> {
    /// The configuration, and what is seen of the cluster.
    pub base: &'a Base,
    /// What is being sent.
    pub routes: &'a RouteStates,
    /// What it remembers.
    pub memory: &'a PolicyMemory,
}

/// The plan, and what it is made of.
#[derive(Default)]
pub struct Steering {
    inventory: Inventory,
    /// None while nothing can hold anything.
    pub(super) plan: Option<Plan>,
    /// The configuration that was looked at last.
    settings: Option<Arc<Settings>>,
    /// What operators decided is known up to here.
    decided: Option<i64>,
    /// When the time of a chain's step is over.
    step_ends: Option<Timestamp>,
    /// When all chains were looked at; none after a start.
    all_chains: Option<Timestamp>,
    /// Of which marks the policy has said something since chains were looked at.
    said: Vec<MarkId>,
}

pub(super) struct Plan {
    /// The indexes of groups are those of this configuration.
    pub(super) settings: Arc<Settings>,
    pub(super) state: State,
    pub(super) planner: Planner,
    /// The history is known up to here.
    seen: i64,
    released: HashSet<MarkId>,
    next: Option<Timestamp>,
    /// The marks that were being told at the last look.
    busy: HashMap<MarkId, Busy>,
    /// Groups in which a storm held at the last look.
    storms: Vec<bool>,
    /// What the journal held when the plan was begun, and what the plan has not said itself yet.
    former: BTreeMap<MarkId, HeldMark>,
}

impl Steering {
    /// When something changes by itself.
    pub fn next(&self) -> Option<Timestamp> {
        self.plan.as_ref().and_then(|plan| plan.next).into_iter().chain(self.step_ends).min()
    }

    /// Why the policy holds a mark; nothing where it does not.
    pub fn holds_of(&self, mark: MarkId) -> &[Held] {
        self.plan.as_ref().map_or(&[], |plan| plan.planner.holds_of(mark))
    }

    /// Whether the configuration is the one that was looked at last.
    fn is_of(&self, settings: &Arc<Settings>) -> bool {
        self.settings.as_ref().is_some_and(|known| Arc::ptr_eq(known, settings))
    }

    /// After a reload. Where groups or hosts are others the plan is begun anew, as by a daemon that starts; of what a group's
    /// probes have found nothing is forgotten while they are the same. Gives these.
    fn renew(&mut self, settings: &Arc<Settings>) -> HashMap<MarkId, (String, Probe)> {
        if self.is_of(settings) {
            return HashMap::new();
        }
        let is_first = self.settings.replace(Arc::clone(settings)).is_none();
        (self.decided, self.all_chains) = (None, None);
        let same =
            |plan: &Plan| plan.settings.groups == settings.groups && plan.settings.hosts == settings.hosts;
        match &mut self.plan {
            Some(plan) if same(plan) => plan.settings = Arc::clone(settings),
            Some(plan) if !is_first => {
                let probed = plan.probed(settings);
                self.plan = None;
                return probed;
            }
            _ => {}
        }
        HashMap::new()
    }

    /// Whether nothing can have changed but what the cluster says, which is looked at apart.
    fn is_current(
        &self,
        journal: &Journal,
        policy: Policy<'_>,
        now: Timestamp,
    ) -> Result<bool, JournalError> {
        if !self.is_of(&policy.base.settings()) || self.decided != Some(journal.decisions_version()?) {
            return Ok(false);
        }
        let Some(plan) = &self.plan else { return Ok(true) };
        let is_early = plan.next.is_none_or(|next| now < next);
        let is_quiet = is_early && policy.memory.verdicts().is_empty();
        Ok(is_quiet && journal.newest_history()? == plan.seen)
    }

    /// What the plan knows of a mark's probes.
    pub fn probe_of(&self, mark: MarkId) -> Option<&Probe> {
        Some(&self.plan.as_ref()?.state.subject(mark)?.probe)
    }

    /// What is known of the groups; none while nothing can hold anything.
    pub fn state(&self) -> Option<&State> {
        Some(&self.plan.as_ref()?.state)
    }

    /// The storms that hold, a sentence each.
    pub fn stormy(&self) -> Vec<String> {
        let groups = self.state().map_or(&[][..], State::groups);
        let stormy = groups.iter().filter(|group| group.storm().holds());
        stormy.map(|group| group.storm_sentence().to_owned()).collect()
    }

    /// Whether there is a group of which only a few may be told at once.
    pub fn is_limited(&self) -> bool {
        self.plan.as_ref().is_some_and(Plan::is_limited)
    }

    /// Marks that wait for the probes of their groups, each with its host and what is asked, in the order in which they are
    /// told.
    pub fn to_probe(&self) -> Vec<(MarkId, HostName, Confirm)> {
        let Some(plan) = &self.plan else { return Vec::new() };
        let groups = plan.state.groups().iter().enumerate().filter(|(_, group)| group.probes);
        let open = groups.flat_map(|(index, _)| plan.state.open_of(index));
        let waits = |subject: &&Subject| {
            let first = plan.planner.holds_of(subject.mark).first();
            first.is_some_and(|held| held.hold == Hold::Confirm)
        };
        let question = |subject: &Subject| {
            let confirm = plan.settings.groups[subject.group].confirm.clone()?;
            Some((subject.mark, subject.host.clone(), confirm))
        };
        open.filter(waits).filter_map(question).collect()
    }
}

/// As [`steer`], where anything may have changed since, and what only matters where marks may be told: chains go on, and of
/// groups that are told a few at a time the first may go. Before every look at what is due, with what that will be given.
///
/// # Errors
/// As [`steer`].
pub fn keep_up(
    journal: &mut Journal,
    policy: Policy<'_>,
    (room, gate): (&[Room], Option<Gate>),
    now: Timestamp,
) -> Result<(), JournalError> {
    let is_current = policy.memory.steering().is_current(journal, policy, now)?;
    if !is_current {
        steer(journal, policy, now)?;
    }
    advance_chains(journal, policy, true, now)?;
    take_turns(journal, policy, (room, gate), now)
}

/// Lets the first go of groups that are told a few at a time.
fn take_turns(
    journal: &mut Journal,
    policy: Policy<'_>,
    look: (&[Room], Option<Gate>),
    now: Timestamp,
) -> Result<(), JournalError> {
    let mut steering = policy.memory.steering();
    let Steering { plan, said, all_chains, .. } = &mut *steering;
    let Some(current) = plan.as_mut().filter(|plan| plan.is_limited()) else { return Ok(()) };
    match current.take_turns(journal, policy, look, now) {
        Ok(changed) => {
            said.extend(changed);
            Ok(())
        }
        Err(error) => {
            (*plan, *all_chains) = (None, None);
            Err(error)
        }
    }
}

/// Lets the chains go on whose marks may go. Now and then all of them are looked at; else what may have changed.
fn advance_chains(
    journal: &mut Journal,
    policy: Policy<'_>,
    is_permitted: bool,
    now: Timestamp,
) -> Result<(), JournalError> {
    let mut steering = policy.memory.steering();
    let may_go = |mark| is_permitted && steering.holds_of(mark).is_empty();
    let settings = policy.base.settings();
    let is_there = |name: &str| settings.routes.iter().any(|route| route.name.as_str() == name);
    let is_recent = |at: Timestamp| at <= now && now.since(at) < ALL_CHAINS;
    let looks_at_all = !steering.all_chains.is_some_and(is_recent);
    let advanced = match looks_at_all {
        true => journal.advance_chains(&may_go, &is_there, now)?,
        false => journal.advance_stirred(&steering.said, &may_go, &is_there, now)?,
    };
    steering.said.clear();
    if looks_at_all {
        steering.all_chains = Some(now);
    }
    for step in &advanced.escalated {
        warn!(mark = %step.mark.id, host = %step.mark.node, route = %step.delivery.route, "{} goes on to route {}: its chain's step before did not take it", step.mark.node, step.delivery.route);
    }
    for step in &advanced.exhausted {
        warn!(mark = %step.mark.id, host = %step.mark.node, route = %step.delivery.route, "no step of the chain of {} took it: route {} is tried on", step.mark.node, step.delivery.route);
    }
    steering.step_ends = journal.next_step(now)?;
    Ok(())
}

/// Brings the plan up to date and writes down what has changed.
///
/// # Errors
/// As any write. After an error nothing may be sent; what was not written is written the next time.
pub fn steer(journal: &mut Journal, policy: Policy<'_>, now: Timestamp) -> Result<(), JournalError> {
    // Without any CIB nobody knows who is in which group: what was held stays so, and the engine sends nothing.
    if waits_for_cib(policy, now) { Ok(()) } else { plan(journal, policy, now) }
}

/// While nothing may be told the clocks of all chains stand.
///
/// # Errors
/// As any write.
pub fn stop_chains(journal: &mut Journal, policy: Policy<'_>, now: Timestamp) -> Result<(), JournalError> {
    policy.memory.steering().all_chains = None;
    advance_chains(journal, policy, false, now)?;
    policy.memory.steering().all_chains = None;
    Ok(())
}

/// Whether the first CIB is still to come, for which nothing is told; not for ever, since marks would be lost by it.
pub fn waits_for_cib(policy: Policy<'_>, now: Timestamp) -> bool {
    policy.base.cluster.is_some()
        && policy.base.cib().is_none()
        && now.since(*policy.base.started()) < FIRST_CIB
}

fn plan(journal: &mut Journal, policy: Policy<'_>, now: Timestamp) -> Result<(), JournalError> {
    let mut steering = policy.memory.steering();
    let settings = policy.base.settings();
    let probed = steering.renew(&settings);
    let Steering { inventory, plan, decided, said, all_chains, .. } = &mut *steering;
    let (version, has_begun) = (journal.decisions_version()?, decided.take().is_some());
    let orders = Orders::read(journal, (&policy.base.damages, &settings), now)?;
    policy.memory.put_strays(&orders.strays);
    let is_new = inventory.look(policy.base, &settings);
    let is_needed = is_needed(&settings, &orders, inventory);
    if is_needed && plan.is_none() {
        let mut begun = Plan::begin(journal, policy, (inventory, settings, &orders), now)?;
        begun.take_over(probed);
        *plan = Some(begun);
    } else if !is_needed && (plan.is_some() || !has_begun) {
        *plan = None;
        *all_chains = None;
        let freed: Vec<MarkId> = journal.holds()?.into_keys().collect();
        journal.hold(&[], &freed, now)?;
    }
    let Some(current) = plan else {
        *decided = Some(version);
        return Ok(());
    };
    if is_new {
        current.regroup(inventory);
    }
    match current.go_on(journal, policy, (orders, inventory), now) {
        Ok(changed) => {
            said.extend(changed);
            *decided = Some(version);
            Ok(())
        }
        Err(error) => {
            // What was decided and not written is decided anew from what stands in the journal.
            (*plan, *all_chains) = (None, None);
            Err(error)
        }
    }
}

/// Whether anything can hold anything. Where nothing can, no mark is read for it.
fn is_needed(settings: &Settings, orders: &Orders, inventory: &Inventory) -> bool {
    let asks = |group: &Group| group.rules != Rules::default() || has_probes(group);
    settings.groups.iter().any(asks) || !orders.is_empty() || !inventory.skipped.is_empty()
}

fn has_probes(group: &Group) -> bool {
    group.confirm.is_some()
}

impl Plan {
    pub(super) fn begin(
        journal: &Journal,
        policy: Policy<'_>,
        (inventory, settings, orders): (&Inventory, Arc<Settings>, &Orders),
        now: Timestamp,
    ) -> Result<Self, JournalError> {
        let (groups, former) = (&settings.groups, journal.holds()?);
        let of_use = |rules: &Rules| rules.max_hold.max(rules.cooldown + rules.healthy_delay);
        let longest = groups.iter().map(|group| of_use(&group.rules)).max();
        let new = |group: &Group| GroupState::new(&group.name, group.rules.clone(), has_probes(group));
        let mut plan = Self {
            state: State::new(groups.iter().map(new).collect()),
            planner: Planner::default(),
            seen: journal.newest_history()?,
            released: journal.released_marks()?,
            next: None,
            busy: HashMap::new(),
            storms: former_storms(groups, &former),
            former,
            settings,
        };
        // Before any mark: who was set aside did not count when the marks were made, and a storm that was none has no cooldown.
        plan.state.set_skipped(&inventory.skipped);
        plan.state.set_orders(orders.maintenance.clone(), orders.pauses.clone());
        plan.resize(inventory);
        plan.busy = busy(journal, policy, now)?;
        let rows = journal.marks_that_count(now - longest.unwrap_or_default())?;
        policy.base.damages.report(&rows.damaged);
        rows.sound.iter().for_each(|row| plan.see(inventory, row));
        Ok(plan)
    }

    /// What probes have found that another configuration asks too, each with the name of the mark's group.
    fn probed(&self, settings: &Settings) -> HashMap<MarkId, (String, Probe)> {
        let asks = |settings: &Settings, name: &str| {
            settings.groups.iter().find(|group| group.name == name).and_then(|group| group.confirm.clone())
        };
        let names: Vec<&String> = self.state.groups().iter().map(|group| &group.name).collect();
        let is_same = |subject: &&Subject| {
            let name = names[subject.group];
            asks(&self.settings, name) == asks(settings, name)
        };
        let kept = self.state.subjects().filter(is_same);
        kept.map(|subject| (subject.mark, (names[subject.group].clone(), subject.probe.clone()))).collect()
    }

    /// Takes over what probes have found of marks that are in the same group as before.
    fn take_over(&mut self, probed: HashMap<MarkId, (String, Probe)>) {
        for (mark, (group, probe)) in probed {
            let is_there = self
                .state
                .subject(mark)
                .is_some_and(|subject| self.state.groups()[subject.group].name == group);
            if is_there {
                self.state.set_probe(mark, probe);
            }
        }
    }

    /// Gives the marks of which something else is said than before.
    fn go_on(
        &mut self,
        journal: &mut Journal,
        policy: Policy<'_>,
        (orders, inventory): (Orders, &Inventory),
        now: Timestamp,
    ) -> Result<Vec<MarkId>, JournalError> {
        let mut said = Vec::new();
        // Before what has changed: a mark that the receiver has confirmed meanwhile may be on its way all the same.
        if self.is_limited() {
            self.busy = busy(journal, policy, now)?;
        }
        self.feed(journal, policy, inventory)?;
        let skips = self.state.set_skipped(&inventory.skipped);
        if self.state.set_orders(orders.maintenance, orders.pauses) || skips {
            self.resize(inventory);
        }
        for index in 0..self.state.groups().len() {
            self.state.set_released(index, orders.released.get(&index).copied());
        }
        self.look_at_probes(policy);
        let changes = self.planner.replan(&mut self.state, now);
        self.next = changes.next;
        said.extend(changes.held.iter().map(|(mark, _)| *mark).chain(changes.freed.iter().copied()));
        self.write(journal, &changes, now)?;
        self.seen = journal.newest_history()?;
        self.report_storms();
        Ok(said)
    }

    fn is_limited(&self) -> bool {
        self.state.groups().iter().any(GroupState::is_limited)
    }

    /// Asks the look for what is due who could be told, in the order in which they would be, and no more than may be told;
    /// gives the marks of which something else is said than before.
    fn take_turns(
        &mut self,
        journal: &mut Journal,
        policy: Policy<'_>,
        (room, gate): (&[Room], Option<Gate>),
        now: Timestamp,
    ) -> Result<Vec<MarkId>, JournalError> {
        self.busy = busy(journal, policy, now)?;
        let told = |subject: &Subject| match self.is_told(subject.mark, subject.end.is_some()) {
            true => Some((subject.mark, Stage::UnderWay)),
            false if subject.stage == Stage::UnderWay => Some((subject.mark, Stage::Waiting)),
            false => None,
        };
        let told: Vec<(MarkId, Stage)> = self.state.subjects().filter_map(told).collect();
        told.into_iter().for_each(|(mark, stage)| self.state.set_stage(mark, stage));
        let takes = open_doors(policy);
        for group in 0..self.state.groups().len() {
            for (mark, stage) in self.stages(journal, group, (room, gate, &takes), now)? {
                self.state.set_stage(mark, stage);
            }
        }
        let changes = self.planner.replan(&mut self.state, now);
        self.next = changes.next;
        self.write(journal, &changes, now)?;
        self.seen = journal.newest_history()?;
        Ok(changes.held.iter().map(|(mark, _)| *mark).chain(changes.freed).collect())
    }

    /// Whether a mark takes a place because of what is under way. What is only asked about, after a failover or a callback, may
    /// be more than there are places: of these an open one waits for its turn, or it would be told beside the others.
    fn is_told(&self, mark: MarkId, has_ended: bool) -> bool {
        match self.busy.get(&mark) {
            Some(Busy::Told) => true,
            Some(Busy::Asked) => has_ended || self.planner.holds_of(mark).is_empty(),
            None => false,
        }
    }

    /// How far the open marks of a group are. Behind the last that may go nobody is asked about: they wait for their turn.
    fn stages(
        &self,
        journal: &Journal,
        group: usize,
        (room, gate, takes): (&[Room], Option<Gate>, &HashSet<String>),
        now: Timestamp,
    ) -> Result<Vec<(MarkId, Stage)>, JournalError> {
        let Some(places) = self.state.groups()[group].places() else { return Ok(Vec::new()) };
        let mut left = places.saturating_sub(plan::under_way(&self.state, group, now));
        let mut stages = Vec::new();
        for subject in self.state.open_of(group) {
            let mark = subject.mark;
            let stage = if self.is_told(mark, false) {
                Stage::UnderWay
            } else if left == 0 || !self.planner.is_free(mark) {
                Stage::Ready
            } else {
                let due = journal.due_on(mark, room, gate, now)?;
                let is_ready = due.iter().any(|(route, tried)| tried.is_none() && takes.contains(*route));
                // What was not tried at an endpoint in trouble is due since its host failed.
                let since = due.iter().map(|(_, tried)| tried.unwrap_or(subject.failed_at)).min();
                match since {
                    _ if is_ready => Stage::Ready,
                    Some(since) => Stage::Blocked(since),
                    None => Stage::Waiting,
                }
            };
            let takes_place = stage == Stage::Ready && self.planner.is_free(mark) && !subject.is_released;
            left -= usize::from(takes_place && left > 0);
            stages.push((mark, stage));
        }
        Ok(stages)
    }

    /// Reads what has changed.
    fn feed(
        &mut self,
        journal: &Journal,
        policy: Policy<'_>,
        inventory: &Inventory,
    ) -> Result<(), JournalError> {
        let (touched, newest) = journal.touched_since(self.seen)?;
        if newest == self.seen {
            return Ok(());
        }
        self.released = journal.released_marks()?;
        for mark in touched {
            match journal.find_mark(mark)? {
                Some(Ok(row)) => self.see(inventory, &row),
                Some(Err(damage)) => policy.base.damages.report(&[damage]),
                None => {}
            }
        }
        self.seen = newest;
        Ok(())
    }

    fn see(&mut self, inventory: &Inventory, row: &MarkRow) {
        let known = self.state.subject(row.id);
        let probe = known.map_or_else(Default::default, |old| old.probe.clone());
        let stage = match known {
            None if self.busy.get(&row.id) == Some(&Busy::Asked) && row.settled.is_none() => Stage::Ready,
            _ if self.is_told(row.id, row.settled.is_some()) => Stage::UnderWay,
            Some(old) => old.stage,
            None => Stage::Ready,
        };
        self.state.see(Subject {
            mark: row.id,
            host: row.node.clone(),
            group: inventory.group_of(&self.settings, &row.node),
            failed_at: row.failure_time,
            known_at: row.made_at,
            returned_at: row.returned_at,
            end: row.settled,
            doubts: doubts(row),
            is_member: inventory.is_member(&row.node),
            is_released: self.released.contains(&row.id),
            probe,
            stage,
        });
    }

    fn resize(&mut self, inventory: &Inventory) {
        let sizes = inventory.sizes(self.state.groups().len(), &self.state);
        sizes.into_iter().enumerate().for_each(|(group, size)| self.state.set_size(group, size));
    }

    /// By a new CIB hosts may be in other groups, or not be there any more.
    fn regroup(&mut self, inventory: &Inventory) {
        let moved = |subject: &Subject| {
            let group = inventory.group_of(&self.settings, &subject.host);
            let is_member = inventory.is_member(&subject.host);
            let is_same = (group, is_member) == (subject.group, subject.is_member);
            (!is_same).then(|| Subject { group, is_member, ..subject.clone() })
        };
        let moved: Vec<Subject> = self.state.subjects().filter_map(moved).collect();
        moved.into_iter().for_each(|subject| self.state.see(subject));
        self.resize(inventory);
    }

    fn look_at_probes(&mut self, policy: Policy<'_>) {
        for (mark, verdict) in policy.memory.verdicts().drain() {
            let probe = match verdict {
                Verdict::Open => Probe::Open,
                Verdict::Confirmed => Probe::Confirmed,
                Verdict::Healthy(which) => Probe::Healthy(which),
            };
            self.state.set_probe(mark, probe);
        }
    }

    fn write(
        &mut self,
        journal: &mut Journal,
        changes: &Changes,
        now: Timestamp,
    ) -> Result<(), JournalError> {
        let former = std::mem::take(&mut self.former);
        let is_new = |held: &HeldMark| {
            former.get(&held.mark).is_none_or(|old| HeldMark { since: held.since, ..old.clone() } != *held)
        };
        let rows = changes.held.iter().filter_map(|(mark, holds)| row(*mark, holds, now)).filter(is_new);
        let rows: Vec<HeldMark> = rows.collect();
        // A mark whose only reasons are its own doubts has no row.
        let doubted = changes.held.iter().filter(|(mark, holds)| row(*mark, holds, now).is_none());
        let mut freed: Vec<MarkId> =
            changes.freed.iter().chain(doubted.map(|(mark, _)| mark)).copied().collect();
        freed.extend(former.into_keys().filter(|mark| self.planner.holds_of(*mark).is_empty()));
        journal.hold(&rows, &freed, now)
    }

    /// One line when a storm begins, and one when it ends.
    fn report_storms(&mut self) {
        for (index, group) in self.state.groups().iter().enumerate() {
            let holds = group.storm().holds();
            if std::mem::replace(&mut self.storms[index], holds) == holds {
                continue;
            }
            let (name, size, down) = (&group.name, group.size, group.unhealthy());
            let limit = self.settings.groups[index].limit_shown();
            if holds {
                warn!(
                    "{down} of {size} hosts of group {name} are down, and its limit is {limit}: what is not told yet is held"
                );
            } else {
                info!("the storm of group {name} is over: {down} of its {size} hosts are down");
            }
        }
    }
}

fn former_storms(groups: &[Group], former: &BTreeMap<MarkId, HeldMark>) -> Vec<bool> {
    let is_storm = |held: &HeldMark| held.words.iter().any(|word| word == Hold::Storm.as_str());
    vec![former.values().any(is_storm); groups.len()]
}

/// The row of a mark that more than its own doubts hold.
fn row(mark: MarkId, holds: &[Held], now: Timestamp) -> Option<HeldMark> {
    let own: Vec<_> = holds.iter().filter(|held| !held.hold.is_doubt()).collect();
    let first = own.first()?;
    let words = own.iter().map(|held| held.hold.as_str().to_owned()).collect();
    let (until, why, cause) = (first.until, first.why.as_ref().to_owned(), first.cause.clone());
    Some(HeldMark { mark, words, until, why, cause, since: now })
}

/// The marks that are being told or asked about: as the journal says, and what is on its way all the same.
fn busy(
    journal: &Journal,
    policy: Policy<'_>,
    now: Timestamp,
) -> Result<HashMap<MarkId, Busy>, JournalError> {
    let mut busy = journal.busy_marks(Step::Confirm.suffix(), now)?;
    let outboxes = policy.routes.outboxes();
    let told =
        outboxes.iter().filter(|(route, _)| !route.contains('.')).flat_map(|(_, outbox)| outbox.under_way());
    busy.extend(told.map(|mark| (mark, Busy::Told)));
    Ok(busy)
}

/// The routes whose endpoints take marks, as far as is known.
fn open_doors(policy: Policy<'_>) -> HashSet<String> {
    let outboxes = policy.routes.outboxes();
    let is_open = |name: &str| outboxes.get(name).is_none_or(|outbox| outbox.endpoint.is_closed());
    let settings = policy.base.settings();
    let routes = settings.own_routes().map(|route| route.name.as_str());
    routes.filter(|name| is_open(name)).map(str::to_owned).collect()
}
