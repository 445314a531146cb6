//! How many hosts of a group are down, over time, and the storm that makes. Pure: time is an argument.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use marks::host::HostName;
use marks::id::MarkId;
use marks::time::Timestamp;

use crate::config::rules::Rules;

/// From when to when a mark's host counts as down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: Timestamp,
    /// None: not known yet.
    pub(super) to: Option<Timestamp>,
}

/// The count of a group.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    /// Each host that is down, with its marks that say so.
    down: HashMap<HostName, u32>,
    /// The marks that count now.
    live: HashMap<MarkId, (HostName, Option<Timestamp>)>,
    /// When they stop doing so, where that is known.
    ends: BTreeSet<(Timestamp, MarkId)>,
    /// Marks that were counted and ended at their time.
    ended: HashSet<MarkId>,
    storm: Storm,
    /// Everything up to here is in the storm.
    clock: Timestamp,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            down: HashMap::new(),
            live: HashMap::new(),
            ends: BTreeSet::new(),
            ended: HashSet::new(),
            storm: Storm::Calm,
            clock: Timestamp(i64::MIN),
        }
    }

    /// The count of marks whose spans are all known, as it came about.
    pub(super) fn replay<'a>(
        spans: impl Iterator<Item = (MarkId, &'a HostName, Span)>,
        rules: &Rules,
        size: usize,
        now: Timestamp,
    ) -> Self {
        let mut spans: Vec<_> =
            spans.filter(|(_, _, span)| span.to.is_none_or(|to| to > span.from)).collect();
        spans.sort_by_key(|(mark, _, span)| (span.from, *mark));
        let mut tally = Self::new();
        for (mark, host, span) in spans {
            let from = span.from.min(now);
            tally.put(mark, host, Some(Span { from, ..span }), rules, size);
        }
        tally.pass_to(now, rules, size);
        tally
    }

    /// A mark is not needed any more.
    pub(super) fn forget(&mut self, mark: MarkId) {
        self.remove(mark);
        self.ended.remove(&mark);
    }

    /// How many hosts are down.
    pub(super) fn unhealthy(&self) -> usize {
        self.down.len()
    }

    pub(super) fn storm(&self) -> Storm {
        self.storm
    }

    /// Whether a span begins in a time that was counted already: then all is to be counted again.
    pub(super) fn is_late(&self, mark: MarkId, span: Option<Span>, cooldown: Duration) -> bool {
        // What has ended, and whose cooldown is over, changes nothing any more.
        let matters = |span: &Span| span.to.is_none_or(|to| to > span.from && to + cooldown > self.clock);
        let is_counted = self.live.contains_key(&mark) || self.ended.contains(&mark);
        !is_counted && span.is_some_and(|span| span.from < self.clock && matters(&span))
    }

    /// Takes a mark's span in the place of what was known of it. What has passed meanwhile passes first.
    pub(super) fn put(
        &mut self,
        mark: MarkId,
        host: &HostName,
        span: Option<Span>,
        rules: &Rules,
        size: usize,
    ) {
        if let Some(span) = span.filter(|span| span.from > self.clock) {
            self.pass_to(span.from, rules, size);
        }
        if self.live.contains_key(&mark)
            && span.is_some_and(|span| span.to.is_some_and(|to| to <= self.clock))
        {
            self.ended.insert(mark);
        }
        self.remove(mark);
        if let Some(span) = span.filter(|span| span.to.is_none_or(|to| to > self.clock)) {
            *self.down.entry(host.clone()).or_default() += 1;
            self.live.insert(mark, (host.clone(), span.to));
            self.ends.extend(span.to.map(|to| (to, mark)));
        }
        self.check(rules, size);
    }

    fn remove(&mut self, mark: MarkId) {
        let Some((host, to)) = self.live.remove(&mark) else { return };
        if let Some(to) = to {
            self.ends.remove(&(to, mark));
        }
        if let Some(count) = self.down.get_mut(&host) {
            *count -= 1;
            if *count == 0 {
                self.down.remove(&host);
            }
        }
    }

    /// What the count now means for the storm.
    pub(super) fn check(&mut self, rules: &Rules, size: usize) {
        let is_allowed = rules.limit.allows(self.down.len(), size);
        self.storm = self.storm.after(is_allowed, self.clock, rules.cooldown);
    }

    /// Time passes: what ends until `now` ends at its own time.
    pub(super) fn pass_to(&mut self, now: Timestamp, rules: &Rules, size: usize) {
        while let Some((at, _)) = self.ends.first().copied().filter(|(at, _)| *at <= now) {
            self.clock = self.clock.max(at);
            while let Some((_, mark)) = self.ends.first().copied().filter(|(end, _)| *end <= at) {
                self.remove(mark);
                self.ended.insert(mark);
            }
            self.check(rules, size);
        }
        self.clock = self.clock.max(now);
        self.storm = self.storm.at(self.clock, rules.cooldown);
    }

    /// When something changes by itself.
    pub(super) fn next(&self, rules: &Rules) -> Option<Timestamp> {
        let end = self.ends.first().map(|(at, _)| *at);
        end.into_iter().chain(self.storm.ends(rules.cooldown)).min()
    }
}

/// A storm of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storm {
    /// There is none.
    #[default]
    Calm,
    /// The limit is not kept.
    Raging {
        /// When it began.
        since: Timestamp,
    },
    /// The limit is kept again, and the cooldown runs.
    Cooling {
        /// When the storm began.
        since: Timestamp,
        /// When the limit began to be kept.
        calm_since: Timestamp,
    },
}

impl Storm {
    /// The storm after a check of the group's count at a time, no earlier than the check before. If the limit is exceeded during
    /// the cooldown, the cooldown starts again; the storm is the same one.
    pub fn after(self, is_allowed: bool, at: Timestamp, cooldown: Duration) -> Self {
        match (self.at(at, cooldown), is_allowed) {
            (Self::Calm, true) => Self::Calm,
            (Self::Calm, false) => Self::Raging { since: at },
            (Self::Raging { since }, true) => Self::Cooling { since, calm_since: at }.at(at, cooldown),
            (Self::Cooling { since, .. }, false) => Self::Raging { since },
            (same, _) => same,
        }
    }

    /// The storm at a later time, if the count has not changed.
    pub fn at(self, now: Timestamp, cooldown: Duration) -> Self {
        match self.ends(cooldown) {
            Some(end) if end <= now => Self::Calm,
            _ => self,
        }
    }

    /// When it ends by itself, if the count does not change.
    pub fn ends(self, cooldown: Duration) -> Option<Timestamp> {
        match self {
            Self::Cooling { calm_since, .. } => Some(calm_since + cooldown),
            Self::Calm | Self::Raging { .. } => None,
        }
    }

    /// Since when it is there.
    pub fn since(self) -> Option<Timestamp> {
        match self {
            Self::Calm => None,
            Self::Raging { since } | Self::Cooling { since, .. } => Some(since),
        }
    }

    /// Whether marks are held.
    pub fn holds(self) -> bool {
        self != Self::Calm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COOLDOWN: Duration = Duration::from_secs(10);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_seconds(second)
    }

    fn over(checks: &[(bool, i64)]) -> Storm {
        checks
            .iter()
            .fold(Storm::Calm, |storm, (allowed, second)| storm.after(*allowed, at(*second), COOLDOWN))
    }

    /// S4-11: the peer's first hole: a storm that ends with nobody unhealthy is over, and the next one is another.
    #[test]
    fn a_storm_ends_when_the_limit_was_kept_for_the_cooldown() {
        let ended = over(&[(false, 0), (true, 5)]);
        assert_eq!(ended.since(), Some(at(0)));
        assert_eq!(ended.at(at(14), COOLDOWN), ended);
        assert_eq!(ended.at(at(15), COOLDOWN), Storm::Calm);
        assert_eq!(over(&[(false, 0), (true, 5), (false, 100)]).since(), Some(at(100)));
    }

    /// The broken variant: the cooldown that goes on from the first calm ends at 15.
    #[test]
    fn another_storm_starts_the_cooldown_again() {
        let twice = over(&[(false, 0), (true, 5), (false, 12), (true, 13)]);
        assert_eq!(twice, Storm::Cooling { since: at(0), calm_since: at(13) });
        assert!(twice.at(at(22), COOLDOWN).holds() && !twice.at(at(23), COOLDOWN).holds());
    }
}
