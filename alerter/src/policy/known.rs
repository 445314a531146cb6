//! What is known of marks, hosts and groups, and what follows. Pure: `news.rs` reads for it, `record.rs` writes what it decides.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use marks::id::MarkId;
use marks::mark::MarkRow;
use marks::time::Timestamp;
use tracing::{info, warn};

use super::hold::doubts_at_its_end;
use super::inventory::Inventory;
use super::orders::Orders;
use super::plan::{self, Changes, Planner};
use super::state::{GroupState, Stage, State, Subject};
use crate::config::{Group, Settings};
use crate::probes::Conclusion;

/// What has changed.
pub(super) struct News {
    pub(super) marks: Vec<MarkRow>,
    /// Those of them that an operator released.
    pub(super) released: HashSet<MarkId>,
    /// What is being sent; empty where no group is limited.
    pub(super) busy: HashSet<MarkId>,
}

/// What the probes have found of marks, each with the name of its group.
pub(super) type Probed = HashMap<MarkId, (String, Conclusion)>;

/// What is known.
pub(super) struct Known {
    /// The indexes of groups are those of this configuration.
    pub(super) settings: Arc<Settings>,
    pub(super) state: State,
    pub(super) planner: Planner,
    /// The history is known up to here.
    pub(super) seen: i64,
    /// When something changes by itself.
    pub(super) next: Option<Timestamp>,
    /// The marks that are being sent or asked about; empty where no group is limited.
    busy: HashSet<MarkId>,
    /// The groups in which a storm holds, as was reported.
    storms: Vec<bool>,
    /// This controller, and when its daemon started by its clock of now.
    here: (String, Timestamp),
}

impl Known {
    /// Nothing yet but the groups. `was_stormy`: a storm held when a former daemon ended.
    pub(super) fn new(settings: Arc<Settings>, was_stormy: bool, here: (String, Timestamp)) -> Self {
        let groups = &settings.groups;
        let new = |group: &Group| GroupState::new(&group.name, group.rules.clone(), group.confirm.is_some());
        Self {
            state: State::new(groups.iter().map(new).collect()),
            planner: Planner::default(),
            seen: 0,
            next: None,
            busy: HashSet::new(),
            storms: vec![was_stormy; groups.len()],
            here,
            settings,
        }
    }

    /// Whether the clock was not set since: the daemon's start moves with it.
    pub(super) fn is_by_clock(&self, started: Timestamp) -> bool {
        self.here.1 == started
    }

    /// The daemon's start by the clock of now.
    pub(super) fn mind_the_clock(&mut self, started: Timestamp, now: Timestamp) {
        if !self.is_by_clock(started) {
            self.state.set_clock(started.0.saturating_sub(self.here.1.0), now);
            self.here.1 = started;
        }
    }

    /// Whether its groups and hosts are those of this configuration.
    pub(super) fn is_of(&self, settings: &Settings) -> bool {
        self.settings.groups == settings.groups && self.settings.hosts == settings.hosts
    }

    /// Whether a group is sent a few at a time.
    pub(super) fn is_limited(&self) -> bool {
        self.state.groups().iter().any(GroupState::is_limited)
    }

    /// What probes have found that another configuration asks too, each with the name of the mark's group.
    pub(super) fn probed(&self, settings: &Settings) -> Probed {
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
    pub(super) fn take_over(&mut self, probed: Probed) {
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

    /// Takes up what has changed. Skips and maintenance come before any mark: such hosts do not count, and must not make a storm
    /// that would leave a cooldown.
    pub(super) fn take_up(
        &mut self,
        (inventory, is_new): (&Inventory, bool),
        orders: Orders,
        news: News,
        now: Timestamp,
    ) {
        let skips = self.state.set_skipped(&inventory.skipped);
        self.state.set_partial(orders.partial_since);
        let is_ordered = self.state.set_orders(orders.maintenance, orders.pauses);
        if is_new {
            self.regroup(inventory);
        }
        if is_new || skips || is_ordered {
            self.resize(inventory);
        }
        for index in 0..self.state.groups().len() {
            self.state.set_released(index, orders.released.get(&index).copied());
        }
        self.busy = news.busy;
        news.marks.iter().for_each(|row| self.see(inventory, row, news.released.contains(&row.id), now));
    }

    /// Takes up what probes have said.
    pub(super) fn take_conclusions(&mut self, said: impl Iterator<Item = (MarkId, Conclusion)>) {
        said.for_each(|(mark, conclusion)| self.state.set_probe(mark, conclusion));
    }

    /// Takes up how far the marks of limited groups are: these are being sent or asked about, and of others `ask` says whether an
    /// attempt could begin.
    ///
    /// # Errors
    /// As `ask`.
    pub(super) fn take_stages<E>(
        &mut self,
        busy: HashSet<MarkId>,
        ask: impl Fn(&Subject) -> Result<Stage, E>,
        now: Timestamp,
    ) -> Result<(), E> {
        self.busy = busy;
        let of = |subject: &Subject| match self.busy.contains(&subject.mark) {
            true => Some((subject.mark, Stage::UnderWay)),
            false if subject.stage == Stage::UnderWay => Some((subject.mark, Stage::Waiting)),
            false => None,
        };
        let under_way: Vec<(MarkId, Stage)> = self.state.subjects().filter_map(of).collect();
        under_way.into_iter().for_each(|(mark, stage)| self.state.set_stage(mark, stage));
        for group in 0..self.state.groups().len() {
            let stages = self.stages(group, &ask, now)?;
            stages.into_iter().for_each(|(mark, stage)| self.state.set_stage(mark, stage));
        }
        Ok(())
    }

    /// How far the open marks of a group are. Marks behind the last place only wait for their turn: `ask` is not called for them.
    fn stages<E>(
        &self,
        group: usize,
        ask: impl Fn(&Subject) -> Result<Stage, E>,
        now: Timestamp,
    ) -> Result<Vec<(MarkId, Stage)>, E> {
        let Some(places) = self.state.groups()[group].places() else { return Ok(Vec::new()) };
        let mut left = places.saturating_sub(plan::under_way(&self.state, group, now));
        let mut stages = Vec::new();
        for subject in self.state.open_of(group) {
            let is_free = self.planner.is_free(subject.mark);
            let stage = match self.busy.contains(&subject.mark) {
                true => Stage::UnderWay,
                false if left == 0 || !is_free => Stage::Ready,
                false => ask(subject)?,
            };
            let takes_place = stage == Stage::Ready && is_free && !subject.is_released;
            left -= usize::from(takes_place && left > 0);
            stages.push((subject.mark, stage));
        }
        Ok(stages)
    }

    /// Decides again where something may have changed, and reports storms.
    pub(super) fn decide(&mut self, now: Timestamp) -> Changes {
        let changes = self.planner.replan(&mut self.state, now);
        self.next = changes.next;
        self.report_storms();
        changes
    }

    fn see(&mut self, inventory: &Inventory, row: &MarkRow, is_released: bool, now: Timestamp) {
        let known = self.state.subject(row.id);
        let probe = known.map_or_else(Default::default, |old| old.probe.clone());
        let stage = match known {
            _ if self.busy.contains(&row.id) => Stage::UnderWay,
            Some(old) => old.stage,
            None => Stage::Ready,
        };
        let subject = Subject {
            mark: row.id,
            host: row.node.clone(),
            fqdn: row.fqdn.clone(),
            group: inventory.group_of(&self.settings, &row.node),
            failed_at: row.failure_time,
            known_at: row.made_at,
            seen_at: known.map_or_else(|| self.seen_at(row, now), |old| old.seen_at),
            returned_at: row.return_known_at,
            end: row.settled,
            doubts: doubts_at_its_end(row),
            is_member: inventory.is_member(&row.node),
            is_released,
            probe,
            stage,
        };
        self.state.see(subject.by_clock(now));
    }

    /// Another alerter's clock does not say how long a mark has waited: what may hold one that is open begins when it is first seen here.
    fn seen_at(&self, row: &MarkRow, now: Timestamp) -> Timestamp {
        if row.made_by == self.here.0 || row.settled.is_some() { row.made_at } else { now }
    }

    fn resize(&mut self, inventory: &Inventory) {
        let sizes = inventory.sizes(self.state.groups().len(), &self.state);
        sizes.into_iter().enumerate().for_each(|(group, size)| self.state.set_size(group, size));
    }

    /// With a new CIB hosts may be in other groups, or gone.
    fn regroup(&mut self, inventory: &Inventory) {
        let moved = |subject: &Subject| {
            let group = inventory.group_of(&self.settings, &subject.host);
            let is_member = inventory.is_member(&subject.host);
            let is_same = (group, is_member) == (subject.group, subject.is_member);
            (!is_same).then(|| Subject { group, is_member, ..subject.clone() })
        };
        let moved: Vec<Subject> = self.state.subjects().filter_map(moved).collect();
        moved.into_iter().for_each(|subject| self.state.see(subject));
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
                    "{down} of {size} hosts of group {name} are down, and its limit is {limit}: marks that were not sent yet are held"
                );
            } else {
                info!("the storm of group {name} is over: {down} of its {size} hosts are down");
            }
        }
    }
}
