//! What became of the instances of a failed host: where each was found, and what that adds up to. Pure: the answers and
//! the time are arguments. It explains an outage and decides nothing about a mark.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::mark::{MarkRow, Settlement};
use crate::time::Timestamp;

/// Nova's status of an instance that is off.
const STOPPED: &str = "SHUTOFF";
/// How many instances are asked for by themselves in one round.
pub const BATCH: usize = 100;
/// A host that is back has instances that Nova has as running and that do not run: nova-compute compares them each ten minutes
/// (`sync_power_state_interval`).
const SETTLING: Duration = Duration::from_secs(660);

/// An instance as Nova shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its id, a UUID.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The project that it belongs to.
    pub project: String,
    /// Nova's status, such as `ACTIVE`.
    pub status: String,
    /// Whether Nova works on it: it has a task.
    pub is_busy: bool,
    /// The host that it is on; `None` if it is on none.
    pub host: Option<String>,
}

/// Where an instance was found last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "place")]
pub enum Place {
    /// On the failed host.
    There,
    /// Not up yet: on no host, in an error, stopped though it ran before, or Nova works on it.
    Moving,
    /// On another host, Nova has finished, and it runs if it ran before.
    Elsewhere {
        /// That host.
        host: String,
        /// When it was first found there, by this controller's clock.
        at: Timestamp,
    },
    /// On the failed host, which is back: Nova has finished, and as Nova has it, it runs if it ran before.
    Again {
        /// When it was first found so, by this controller's clock.
        at: Timestamp,
    },
    /// Nova does not have it any more.
    Deleted,
}

/// An instance that stood on the failed host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// Its name.
    pub name: String,
    /// Whether it was stopped when it was first found on the failed host: then it is recovered when it is stopped elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_stopped: bool,
    /// The project that it belongs to.
    pub project: String,
    /// Where it was found last.
    #[serde(flatten)]
    pub place: Place,
}

/// Why Nova is not asked any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Every instance is up: on another host, or on its own one, which is back.
    Recovered,
    /// The first answer came after the acknowledgement and had no instance: nobody knows which had left by then.
    NothingSeen,
    /// The host was back before Nova's first whole answer: nobody knows what was there.
    HostBack,
    /// The host failed again: the later mark, which was acknowledged too, has the instances that were not up.
    FailedAgain,
    /// The mark ended without an acknowledgement.
    NotReported,
    /// It took longer than `ask-for`.
    GaveUp,
}

/// What is known of the instances of one failed host. Empty before the first answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// When Nova gave its first whole answer.
    pub began_at: Option<Timestamp>,
    /// When it gave its newest one.
    pub asked_at: Option<Timestamp>,
    /// Since when `recovery-limit` is over and some are left.
    pub late_since: Option<Timestamp>,
    /// How it ended, and when.
    pub ended: Option<(End, Timestamp)>,
    /// The instance that was asked for last by itself: the next round goes on behind it.
    #[serde(default)]
    pub behind: Option<String>,
    /// By their ids.
    pub instances: BTreeMap<String, Instance>,
}

/// What decides how an outage is followed, beside Nova's answers.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The mark as the journal has it.
    pub mark: &'a MarkRow,
    /// How the question is asked.
    pub rules: &'a Rules,
    /// Whether its host has a later mark that was acknowledged, and Nova has answered about that.
    pub failed_again: bool,
}

/// A failed host when its list was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// It is not back.
    Away,
    /// It is back.
    Back {
        /// Whether its nova-compute is up, as far as Nova said: without it Nova has every instance in the state of before.
        is_up: bool,
    },
}

/// How the question is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Between two questions about a host.
    pub every: Duration,
    /// How long after the acknowledgement no instance may be left.
    pub limit: Duration,
    /// How long after the acknowledgement, or after the host's return, Nova is asked.
    pub ask_for: Duration,
}

/// How many there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// All that still exist.
    pub all: usize,
    /// On another host.
    pub elsewhere: usize,
    /// On the failed host again, which is back.
    pub again: usize,
    /// On the failed host, and not up.
    pub there: usize,
    /// On their way.
    pub moving: usize,
    /// Nova does not have them any more.
    pub deleted: usize,
}

impl Tally {
    /// How many are not recovered.
    pub fn left(&self) -> usize {
        self.there + self.moving
    }
}

impl Rules {
    /// Whether Nova is asked for long enough to see that instances are left, or that they run on their own host again.
    pub fn is_long_enough(&self) -> bool {
        self.ask_for > self.limit && self.ask_for >= SETTLING + self.every * 2
    }
}

impl Recovery {
    /// What a later outage of the host begins with: the instances that were not up yet, and whether they ran before this one.
    pub fn carried(&self) -> Self {
        if matches!(self.ended, Some((End::Recovered, _))) {
            return Self::default();
        }
        let mut instances = self.instances.clone();
        instances.retain(|_, one| !one.place.is_sure());
        Self { instances, ..Self::default() }
    }

    /// Takes in everything that Nova has on the failed host.
    pub fn note_host(&mut self, found: Vec<Seen>, host: Host, now: Timestamp) {
        // What is first seen on a host that is back may be new there.
        if host != Host::Away && self.began_at.is_none() {
            return;
        }
        let mut there: BTreeMap<String, Seen> = found.into_iter().map(|one| (one.id.clone(), one)).collect();
        for (id, instance) in &mut self.instances {
            match there.remove(id) {
                Some(seen) => instance.stands(&seen, host, now),
                // It is not there any more, and where it is was not asked yet.
                None => instance.leaves(),
            }
        }
        if host == Host::Away {
            self.instances.extend(there.into_values().map(Seen::on_the_failed_host));
        }
        self.began_at = self.began_at.or(Some(now));
        self.asked_at = Some(now);
    }

    /// Takes in what Nova says of one instance that is not on the failed host any more; `None`: Nova does not have it.
    pub fn note_one(&mut self, id: &str, failed: &str, seen: Option<&Seen>, now: Timestamp) {
        let Some(instance) = self.instances.get_mut(id) else { return };
        instance.place = match seen {
            None => Place::Deleted,
            // Nova shows it by its id for a while, and lists it no more.
            Some(seen) if seen.status == "SOFT_DELETED" => Place::Deleted,
            Some(seen) => seen.place(failed, instance.was_stopped, now),
        };
    }

    /// Notes that this instance was asked for, whatever came of it.
    pub fn asked(&mut self, id: &str) {
        self.behind = Some(id.to_owned());
    }

    /// The instances that have to be asked for by themselves in this round: not on the host, and not found up elsewhere yet.
    /// Each round goes on behind the one before, so that none waits for others.
    pub fn unknown(&self) -> Vec<String> {
        let is_unknown = |one: &Instance| matches!(one.place, Place::Moving);
        let all = || self.instances.iter().filter(|(_, one)| is_unknown(one)).map(|(id, _)| id);
        let is_behind = |id: &&String| self.behind.as_ref().is_none_or(|behind| *id > behind);
        let (first, rest) = (all().filter(is_behind), all().filter(|id| !is_behind(id)));
        first.chain(rest).take(BATCH).cloned().collect()
    }

    /// What it adds up to.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for one in self.instances.values() {
            let count = match one.place {
                Place::There => &mut tally.there,
                Place::Again { .. } => &mut tally.again,
                Place::Moving => &mut tally.moving,
                Place::Elsewhere { .. } => &mut tally.elsewhere,
                Place::Deleted => &mut tally.deleted,
            };
            *count += 1;
        }
        tally.all = self.instances.len() - tally.deleted;
        tally
    }

    /// The names of those that are not recovered.
    pub fn left(&self) -> Vec<&str> {
        self.names(|place| matches!(place, Place::There | Place::Moving))
    }

    /// The names of those that are not known to be up: what runs on its own host again must stay so for a while.
    pub fn unproven(&self) -> Vec<&str> {
        self.names(|place| match place {
            Place::Again { at } => !self.has_settled(*at),
            place => !place.is_sure(),
        })
    }

    fn names(&self, is_wanted: impl Fn(&Place) -> bool) -> Vec<&str> {
        let wanted = self.instances.values().filter(|one| is_wanted(&one.place));
        wanted.map(|one| one.name.as_str()).collect()
    }

    /// When the last instance was found up, if none is left. While a host that is back may still show stopped instances as running,
    /// that is not known.
    pub fn last_up(&self) -> Option<Timestamp> {
        let ups = self.instances.values().filter_map(|one| match one.place {
            Place::Elsewhere { at, .. } | Place::Again { at } => Some(at),
            _ => None,
        });
        let tally = self.tally();
        let is_proven = || tally.again == 0 || matches!(self.ended, Some((End::Recovered, _)));
        ups.max().filter(|_| tally.left() == 0 && is_proven())
    }

    /// From `lost` to the last instance; none where some are left, or where the clock was set back meanwhile.
    pub fn downtime(&self, lost: Timestamp) -> Option<Duration> {
        self.last_up().filter(|up| *up >= lost).map(|up| up.since(lost))
    }

    /// Whether Nova has to be asked now.
    pub fn is_due(&self, rules: &Rules, now: Timestamp) -> bool {
        // A clock that was set back must not stop it.
        let rests = |asked: Timestamp| asked <= now && now.since(asked) < rules.every;
        self.ended.is_none() && !self.asked_at.is_some_and(rests)
    }

    /// Whether it ends now, and how. Before the acknowledgement nobody has acted, so a host without an instance is not
    /// recovered by then; after it instances may have left before the first answer.
    pub fn end(&self, case: &Case<'_>, now: Timestamp) -> Option<End> {
        let back = case.mark.returned_at;
        let taken = match case.mark.settled {
            _ if case.failed_again => return Some(End::FailedAgain),
            _ if back.is_some() && self.began_at.is_none() => return Some(End::HostBack),
            Some((Settlement::Acknowledged, at)) => at,
            Some(_) => return Some(End::NotReported),
            None => return None,
        };
        if self.is_done() {
            return Some(self.how(taken));
        }
        (now.since(back.map_or(taken, |back| back.max(taken))) >= case.rules.ask_for).then_some(End::GaveUp)
    }

    /// Whether every instance is up. What runs again on its own host must stay so for a while.
    fn is_done(&self) -> bool {
        self.began_at.is_some() && self.unproven().is_empty()
    }

    /// Whether what was first found running on its own host again at this time is known to run.
    fn has_settled(&self, at: Timestamp) -> bool {
        self.asked_at.is_some_and(|asked| asked.since(at) >= SETTLING)
    }

    /// How an outage ended whose instances are all up. `taken`: when the mark was acknowledged.
    fn how(&self, taken: Timestamp) -> End {
        let is_late = self.began_at.is_none_or(|began| began > taken);
        if self.instances.is_empty() && is_late { End::NothingSeen } else { End::Recovered }
    }

    /// Whether `recovery-limit` is over and instances are left.
    pub fn is_late(&self, case: &Case<'_>, now: Timestamp) -> bool {
        let is_over = |(how, at)| how == Settlement::Acknowledged && now.since(at) >= case.rules.limit;
        case.mark.settled.is_some_and(is_over) && self.tally().left() > 0
    }
}

impl Place {
    /// Whether nothing is left to be done for an instance there.
    fn is_sure(&self) -> bool {
        matches!(self, Self::Elsewhere { .. } | Self::Deleted)
    }
}

impl Instance {
    /// It is on the failed host now. What was up already stays so where the host is back: somebody may have moved it there.
    fn stands(&mut self, seen: &Seen, host: Host, now: Timestamp) {
        let is_up = host == Host::Back { is_up: true } && !seen.is_busy && seen.is_up(self.was_stopped);
        match self.place {
            Place::Elsewhere { .. } if is_up => {}
            // A clock that was set back must not keep it from settling.
            Place::Again { at } if is_up && at <= now => {}
            _ if is_up => self.place = Place::Again { at: now },
            _ => self.place = Place::There,
        }
    }

    /// It is not on the failed host now. What was found elsewhere, or was deleted, stays so.
    fn leaves(&mut self) {
        if matches!(self.place, Place::There | Place::Again { .. }) {
            self.place = Place::Moving;
        }
    }
}

impl Seen {
    /// The instance that it is, when it is first found on the failed host.
    fn on_the_failed_host(self) -> (String, Instance) {
        let Self { id, name, project, status, .. } = self;
        let was_stopped = status == STOPPED;
        (id, Instance { name, was_stopped, project, place: Place::There })
    }

    /// A new Nova (2.95) leaves what it evacuates stopped.
    fn is_up(&self, was_stopped: bool) -> bool {
        match self.status.as_str() {
            "ERROR" | "REBUILD" | "BUILD" => false,
            STOPPED => was_stopped,
            _ => true,
        }
    }

    /// Where it is. Nova sets the host before it has built the instance there, and an instance in an error runs nowhere.
    fn place(&self, failed: &str, was_stopped: bool, now: Timestamp) -> Place {
        match &self.host {
            Some(host) if host.eq_ignore_ascii_case(failed) => Place::There,
            Some(host) if !self.is_busy && self.is_up(was_stopped) => {
                Place::Elsewhere { host: host.clone(), at: now }
            }
            _ => Place::Moving,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mark::tests::row;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);
    const MINUTE: Duration = Duration::from_secs(60);
    const RULES: Rules =
        Rules { every: MINUTE, limit: Duration::from_secs(900), ask_for: Duration::from_secs(86_400) };

    const UP: Host = Host::Back { is_up: true };
    const DOWN: Host = Host::Back { is_up: false };

    fn seen(id: &str, host: Option<&str>, status: &str) -> Seen {
        let host = host.map(str::to_owned);
        let (name, project) = (format!("name-{id}"), "project".to_owned());
        Seen { id: id.to_owned(), name, project, status: status.to_owned(), is_busy: false, host }
    }

    fn of(ids: &[&str]) -> Recovery {
        let mut recovery = Recovery::default();
        recovery.note_host(ids.iter().map(|id| seen(id, Some("c7"), "ACTIVE")).collect(), Host::Away, NOW);
        recovery
    }

    fn acknowledged(at: Timestamp) -> MarkRow {
        MarkRow { settled: Some((Settlement::Acknowledged, at)), ..row() }
    }

    fn case(mark: &MarkRow) -> Case<'_> {
        Case { mark, rules: &RULES, failed_again: false }
    }

    /// The broken variants count what is not on the host as recovered: one that is being built, one in an error.
    #[test]
    fn an_instance_is_recovered_where_nova_has_finished_on_another_host() {
        for (host, status, is_busy, left) in [
            (Some("c8"), "ACTIVE", false, 0),
            (Some("c8"), "SHUTOFF", false, 1),
            (Some("c8"), "ACTIVE", true, 1),
            (Some("c8"), "REBUILD", false, 1),
            (Some("c8"), "ERROR", false, 1),
            (Some("C7"), "ACTIVE", false, 1),
            (None, "ACTIVE", false, 1),
        ] {
            let mut recovery = of(&["a"]);
            recovery.note_host(Vec::new(), Host::Away, NOW + MINUTE);
            assert_eq!((recovery.unknown(), recovery.tally().moving), (vec!["a".to_owned()], 1));
            recovery.note_one("a", "c7", Some(&Seen { is_busy, ..seen("a", host, status) }), NOW + MINUTE);
            assert_eq!(recovery.tally().left(), left, "{host:?} {status} {is_busy}");
            assert_eq!(recovery.last_up(), (left == 0).then_some(NOW + MINUTE));
        }
    }

    /// The broken variant takes an instance that was evacuated and left stopped for one that runs.
    #[test]
    fn what_was_stopped_before_may_be_stopped_elsewhere() {
        let mut recovery = Recovery::default();
        recovery.note_host(vec![seen("a", Some("c7"), "SHUTOFF")], Host::Away, NOW);
        recovery.note_host(Vec::new(), Host::Away, NOW);
        recovery.note_one("a", "c7", Some(&seen("a", Some("c8"), "SHUTOFF")), NOW);
        assert_eq!(recovery.tally().elsewhere, 1);
    }

    #[test]
    fn what_was_deleted_is_not_missed() {
        let mut recovery = of(&["a", "bb", "c"]);
        recovery.note_host(vec![seen("bb", Some("c7"), "ACTIVE")], Host::Away, NOW);
        recovery.note_one("a", "c7", None, NOW);
        recovery.note_one("c", "c7", Some(&seen("c", Some("c7"), "SOFT_DELETED")), NOW);
        assert_eq!(recovery.tally(), Tally { all: 1, there: 1, deleted: 2, ..Tally::default() });
        assert_eq!((recovery.left(), recovery.unknown()), (vec!["name-bb"], Vec::new()));
    }

    /// The time of the last one counts, and only when none is left. One that goes back counts as there again.
    #[test]
    fn the_downtime_ends_with_the_last_instance() {
        let mut recovery = of(&["a", "b"]);
        recovery.note_host(vec![seen("b", Some("c7"), "ACTIVE")], Host::Away, NOW + MINUTE);
        recovery.note_one("a", "c7", Some(&seen("a", Some("c8"), "ACTIVE")), NOW + MINUTE);
        assert_eq!(recovery.last_up(), None);
        recovery.note_host(Vec::new(), Host::Away, NOW + MINUTE * 2);
        assert_eq!(recovery.unknown(), ["b"], "where the first one is, is known");
        recovery.note_one("b", "c7", Some(&seen("b", Some("c9"), "ACTIVE")), NOW + MINUTE * 2);
        assert_eq!(recovery.last_up(), Some(NOW + MINUTE * 2));
        recovery.note_host(vec![seen("a", Some("c7"), "ACTIVE")], Host::Away, NOW + MINUTE * 3);
        assert_eq!((recovery.last_up(), recovery.tally().there), (None, 1));
    }

    #[test]
    fn many_are_asked_for_in_rounds() {
        let ids: Vec<String> = (0..10_000).map(|number| format!("{number:05}")).collect();
        let mut recovery = of(&ids.iter().map(String::as_str).collect::<Vec<_>>());
        recovery.note_host(Vec::new(), Host::Away, NOW);
        let mut rounds = 0;
        while let round @ [_, ..] = recovery.unknown().as_slice() {
            for id in round {
                recovery.note_one(id, "c7", Some(&seen(id, Some("c8"), "ACTIVE")), NOW);
            }
            rounds += 1;
        }
        assert_eq!((rounds, recovery.tally().elsewhere), (100, 10_000));
    }

    /// A hundred that stay in an error keep no other from being asked. The broken variant begins each round with the same.
    #[test]
    fn instances_that_stay_away_keep_no_other_waiting() {
        let ids: Vec<String> = (0..150).map(|number| format!("{number:03}")).collect();
        let mut recovery = of(&ids.iter().map(String::as_str).collect::<Vec<_>>());
        recovery.note_host(Vec::new(), Host::Away, NOW);
        for _round in 0..2 {
            for id in recovery.unknown() {
                let (host, status) =
                    if id.as_str() < "100" { (None, "ERROR") } else { (Some("c8"), "ACTIVE") };
                recovery.note_one(&id, "c7", Some(&seen(&id, host, status)), NOW);
                recovery.asked(&id);
            }
        }
        assert_eq!((recovery.tally().elsewhere, recovery.tally().moving), (50, 100));
    }

    /// The broken variant calls a host recovered whose instances had all left before the first answer.
    #[test]
    fn what_was_never_seen_is_not_recovered() {
        let later = NOW + MINUTE;
        let mut none = Recovery::default();
        none.note_host(Vec::new(), Host::Away, later);
        assert_eq!(none.end(&case(&acknowledged(NOW)), later), Some(End::NothingSeen));
        assert_eq!(none.end(&case(&acknowledged(later)), later), Some(End::Recovered));
    }

    /// A host was restarted by its fencing. The broken variants end with its return: instances that do not start again are missed,
    /// and those that Nova still has as running, and that do not run.
    #[test]
    fn a_host_that_is_back_is_followed_until_its_instances_run_there_again() {
        let back = MarkRow { returned_at: Some(NOW), ..acknowledged(NOW) };
        let mut recovery = of(&["a", "b"]);
        let both = |b: &str| vec![seen("a", Some("c7"), "ACTIVE"), seen("b", Some("c7"), b)];
        assert_eq!(recovery.end(&case(&back), NOW), None);
        recovery.note_host(both("ACTIVE"), UP, NOW);
        assert_eq!((recovery.tally().again, recovery.last_up()), (2, None));
        assert_eq!((recovery.left().len(), recovery.unproven().len()), (0, 2));
        assert_eq!(recovery.end(&case(&back), NOW + SETTLING), None, "it was not asked since");
        let given_up = Recovery { ended: Some((End::GaveUp, NOW)), ..recovery.clone() };
        assert_eq!(given_up.last_up(), None, "nobody knows whether they run");
        let late = NOW + RULES.limit;
        recovery.note_host(both("SHUTOFF"), UP, late);
        assert_eq!((recovery.left(), recovery.is_late(&case(&back), late)), (vec!["name-b"], true));
        recovery.note_host(both("ACTIVE"), UP, late);
        recovery.note_host(both("ACTIVE"), UP, late + SETTLING);
        recovery.ended = recovery.end(&case(&back), late + SETTLING).zip(Some(late));
        assert_eq!((recovery.ended, recovery.last_up()), (Some((End::Recovered, late)), Some(late)));
        let mut set_back = of(&["a"]);
        set_back.note_host(vec![seen("a", Some("c7"), "ACTIVE")], UP, late);
        set_back.note_host(vec![seen("a", Some("c7"), "ACTIVE")], UP, NOW);
        set_back.note_host(vec![seen("a", Some("c7"), "ACTIVE")], UP, NOW + SETTLING);
        assert!(set_back.end(&case(&back), NOW + SETTLING).is_some(), "its clock was set back");
    }

    /// The broken variant takes what a restart of the host left stopped for stopped before, at its next failure.
    #[test]
    fn a_later_outage_has_what_was_not_up_yet() {
        let mut first = of(&["a", "b"]);
        first.note_host(vec![seen("a", Some("c7"), "SHUTOFF")], UP, NOW);
        first.note_one("b", "c7", Some(&seen("b", Some("c8"), "ACTIVE")), NOW);
        let mut later = first.carried();
        assert_eq!((later.began_at, later.left()), (None, vec!["name-a"]));
        later.note_host(vec![seen("a", Some("c7"), "SHUTOFF")], Host::Away, NOW);
        later.note_host(Vec::new(), Host::Away, NOW);
        later.note_one("a", "c7", Some(&seen("a", Some("c8"), "SHUTOFF")), NOW);
        assert_eq!(later.left(), ["name-a"]);
        first.ended = Some((End::Recovered, NOW));
        assert_eq!(first.carried(), Recovery::default());
    }

    /// The broken variants count an instance twice that was evacuated and brought back, and one that is new there.
    #[test]
    fn what_comes_to_a_host_that_is_back_is_no_news_of_its_failure() {
        let mut recovery = of(&["a"]);
        recovery.note_host(Vec::new(), Host::Away, NOW);
        recovery.note_one("a", "c7", Some(&seen("a", Some("c8"), "ACTIVE")), NOW);
        let found = ["a", "new"].map(|id| seen(id, Some("c7"), "ACTIVE")).to_vec();
        for host in [UP, DOWN] {
            recovery.note_host(found.clone(), host, NOW + MINUTE);
            assert_eq!(recovery.tally().all, 1);
            assert_eq!(recovery.last_up(), (host == UP).then_some(NOW), "{host:?}");
        }
        let mut unknown = Recovery::default();
        unknown.note_host(found, UP, NOW);
        assert_eq!(unknown, Recovery::default());
    }

    /// The broken variant ends at the first empty answer, before anybody was notified: nobody has acted by then.
    #[test]
    fn it_ends_with_the_last_instance_the_return_or_its_time() {
        let (some, none) = (of(&["a"]), of(&[]));
        let late = NOW + RULES.ask_for;
        assert_eq!(none.end(&case(&row()), NOW), None);
        assert_eq!(none.end(&case(&acknowledged(NOW)), NOW), Some(End::Recovered));
        assert_eq!(Recovery::default().end(&case(&acknowledged(NOW)), NOW), None, "Nova was not asked yet");
        assert_eq!(some.end(&case(&acknowledged(NOW)), NOW), None);
        assert_eq!(some.end(&case(&acknowledged(NOW)), late), Some(End::GaveUp));
        let back = MarkRow { returned_at: Some(late), ..acknowledged(NOW) };
        assert_eq!(Recovery::default().end(&case(&back), late), Some(End::HostBack));
        assert_eq!(some.end(&case(&back), late), None, "it has its time from the return on");
        assert_eq!(some.end(&case(&back), late + RULES.ask_for), Some(End::GaveUp));
        let open = MarkRow { returned_at: Some(NOW), ..row() };
        assert_eq!(some.end(&case(&open), late), None, "its controller may act later");
        let again = Case { failed_again: true, ..case(&back) };
        assert_eq!(some.end(&again, late), Some(End::FailedAgain));
        let dismissed = MarkRow { settled: Some((Settlement::Dismissed, NOW)), ..row() };
        assert_eq!(some.end(&case(&dismissed), NOW), Some(End::NotReported));
    }

    #[test]
    fn it_is_late_only_after_the_limit_and_with_some_left() {
        let at = |recovery: &Recovery, after| recovery.is_late(&case(&acknowledged(NOW)), NOW + after);
        assert!(at(&of(&["a"]), RULES.limit) && !at(&of(&["a"]), RULES.limit - MINUTE));
        assert!(!at(&of(&[]), RULES.limit) && !of(&["a"]).is_late(&case(&row()), NOW + RULES.limit));
    }

    /// The broken variant waits for a clock that was set back by a year.
    #[test]
    fn nova_is_asked_once_in_each_interval() {
        let due = |recovery: &Recovery, now| recovery.is_due(&RULES, now);
        assert!(due(&Recovery::default(), NOW));
        let recovery = of(&["a"]);
        assert!(!due(&recovery, NOW + MINUTE / 2) && due(&recovery, NOW + MINUTE));
        assert!(due(&recovery, NOW - MINUTE * 60 * 24 * 365));
        assert!(!due(&Recovery { ended: Some((End::Recovered, NOW)), ..recovery }, NOW + MINUTE));
    }
}
