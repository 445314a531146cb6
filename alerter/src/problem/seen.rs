//! What is wrong with the alerter, its routes and its cluster, from what the daemon sees at one moment. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use marks::host::HostName;
use marks::time::Timestamp;
use pacemaker::cib::MarkFault;

use super::route::{self, RouteSight};
use super::{Kind, Level, Place, Problem, account};
use crate::cluster::{AUDIT_AFTER, Fault, Matter, missed_sentence};
use crate::delivery::trouble;
use crate::intake::account::Unaccounted;
use crate::words::named;

/// Why the configuration in the files is not in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotInForce {
    /// One sentence.
    pub why: String,
    /// The configuration is sound, and the journal was in its way.
    pub is_busy: bool,
}

/// All that is seen.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    /// The time.
    pub now: Timestamp,
    /// Where an operator has to go.
    pub place: Place,
    /// `[delivery] degraded-after`.
    pub degraded_after: Duration,
    /// How long the engine has made no progress, where that is beyond the watchdog's limit.
    pub stalled: Option<Duration>,
    /// Why the journal cannot be written.
    pub journal: Option<String>,
    /// Our own addresses that are not served, one sentence for each.
    pub unserved: Vec<String>,
    /// Why the configuration in the files is not in force.
    pub reload: Option<NotInForce>,
    /// The configured routes.
    pub routes: Vec<RouteSight>,
    /// Routes that are not configured any more, each with how many marks wait for it.
    pub stranded: BTreeMap<String, usize>,
    /// Operators' decisions about groups that are not configured, one sentence for each.
    pub unknown_groups: Vec<String>,
    /// Records of fencings that are unaccounted for.
    pub unaccounted: Vec<Unaccounted>,
    /// None where there is no cluster to ask.
    pub cluster: Option<Cluster>,
}

/// What is seen of the cluster.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// Whether marks may be sent: there is quorum, the register can be read, and the last poll is not old.
    pub is_permitted: bool,
    /// What is wrong with it.
    pub faults: Vec<Fault>,
    /// Hosts that are gone without having been fenced, and for how long.
    pub missed: Vec<(HostName, Duration)>,
    /// Guest nodes that the configuration takes for compute hosts.
    pub guests: Vec<(HostName, String)>,
    /// Mark devices that do not work.
    pub marks: Vec<MarkFault>,
    /// Hosts with a health check that fails, each with what its agent says.
    pub unhealthy: BTreeMap<HostName, String>,
    /// How long ago the last poll began.
    pub age: Option<Duration>,
    /// Entries in the register that are of use.
    pub entries: usize,
    /// Bytes of the register's longest answer, where a message limits it.
    pub longest_answer: Option<usize>,
}

/// Everything that is wrong, the alerter's own matters first.
pub fn problems(sight: &Sight) -> Vec<Problem> {
    let mut all = of_alerter(sight);
    all.extend(sight.cluster.iter().flat_map(|cluster| of_cluster(cluster, sight.now)));
    let of_route = |one| route::of(one, sight.degraded_after, sight.now, &sight.place);
    all.extend(sight.routes.iter().filter_map(of_route));
    all.extend(sight.stranded.iter().map(|(route, marks)| of_stranded(route, *marks, &sight.place)));
    all.extend(account::of(&sight.unaccounted, sight.place.log));
    all
}

fn of_alerter(sight: &Sight) -> Vec<Problem> {
    let mut all = Vec::new();
    all.extend(sight.stalled.map(|time| {
        let what = format!("nothing is sent: the engine has made no progress for {} s", time.as_secs());
        Problem::of(Kind::Stalled, what)
    }));
    all.extend(sight.journal.iter().map(|why| of_journal(why, &sight.place)));
    let several = |kind, sentences: &[String]| -> Vec<Problem> {
        let one = |what: &String| Problem { subject: Some(what.clone()), ..Problem::of(kind, what.clone()) };
        sentences.iter().map(one).collect()
    };
    all.extend(several(Kind::NotServed, &sight.unserved));
    all.extend(sight.reload.iter().map(of_reload));
    all.extend(several(Kind::UnknownGroup, &sight.unknown_groups));
    all
}

fn of_reload(reload: &NotInForce) -> Problem {
    let problem = Problem::of(Kind::Configuration, reload.why.clone());
    match reload.is_busy {
        true => Problem {
            then: "run `nova-host-alerter reload` again when the journal can be written".into(),
            ..problem
        },
        false => problem,
    }
}

fn of_journal(why: &str, place: &Place) -> Problem {
    let directory = place.typeable_directory();
    let then = format!(
        "check the journal's disk: `df -h {directory}`, `findmnt --target {directory}`, `dmesg`; make room, or mount it writable; the alerter then continues by itself"
    );
    Problem { then, ..Problem::of(Kind::JournalUnwritable, why.to_owned()) }
}

fn of_stranded(route: &str, marks: usize, place: &Place) -> Problem {
    let then = format!(
        "configure {route} again in {} and run `nova-host-alerter reload`; or report the hosts to its recovery controller by hand and run `nova-host-alerter dismiss --route {route} --reason TEXT`",
        place.file
    );
    let what = trouble::stranded(route, marks);
    Problem { route: Some(route.to_owned()), then, ..Problem::of(Kind::Stranded, what) }
}

/// What is wrong with the cluster.
pub fn of_cluster(cluster: &Cluster, now: Timestamp) -> Vec<Problem> {
    let mut all: Vec<Problem> =
        cluster.faults.iter().map(|fault| of_fault(fault, cluster.is_permitted)).collect();
    if !cluster.is_permitted && all.iter().all(|problem| problem.level < Level::Critical) {
        let what = "the last poll of the cluster is older than two seconds, so nothing may be sent now";
        all.push(Problem::of(Kind::NotPermitted, what.to_owned()));
    }
    all.extend(cluster.missed.iter().map(|(host, time)| of_missed(host, *time, now)));
    all.extend(cluster.guests.iter().map(|(host, why)| {
        let one = Problem::of(Kind::GuestNode, format!("{host}: {why}"));
        Problem { hosts: vec![host.to_string()], ..one }
    }));
    all.extend(cluster.marks.iter().map(of_mark_device));
    all.extend(of_unhealthy(&cluster.unhealthy));
    all
}

/// One problem for each cause, however many hosts have it.
fn of_unhealthy(hosts: &BTreeMap<HostName, String>) -> Vec<Problem> {
    let mut causes: BTreeMap<String, (Vec<String>, &str)> = BTreeMap::new();
    for (host, reason) in hosts {
        causes.entry(cause(reason)).or_insert((Vec::new(), reason)).0.push(host.to_string());
    }
    let problem = |(cause, (hosts, reason)): (String, (Vec<String>, &str))| {
        let one = Problem::of(Kind::HostHealth, format!("{}: {reason}", named(&hosts)));
        Problem { hosts, subject: Some(cause), ..one }
    };
    causes.into_iter().map(problem).collect()
}

/// A reason without its numbers; where the agent has counted hosts, what that shows, whatever fails on each of them.
fn cause(reason: &str) -> String {
    let words = |text: &str| {
        let words = text.split(' ').filter(|word| word.parse::<u64>().is_err());
        words.collect::<Vec<_>>().join(" ")
    };
    let counted = reason.split_once("; ").map(|(_, because)| because).filter(|text| words(text) != *text);
    words(counted.map_or(reason, |text| text.rsplit_once(": ").map_or(text, |(_, shown)| shown)))
}

fn of_mark_device(fault: &MarkFault) -> Problem {
    let device = &fault.device;
    let (what, then) = match &fault.failed_on {
        Some(node) => (
            format!("the mark device {device} failed on {node}, so that controller may not be able to mark a fenced host"),
            format!(
                "on {node}, run `fence_mark -o monitor` to see why, or install the package there; then run `crm_resource --cleanup --resource {device}`"
            ),
        ),
        None => (
            format!("the mark device {device} is stopped (target-role), so every fencing level with it fails"),
            "find out who stopped it; if nobody needs that, run the command that `nova-host-alerter setup --check` shows".to_owned(),
        ),
    };
    let about = fault.failed_on.as_deref().unwrap_or("stopped");
    Problem { subject: Some(format!("{device} {about}")), then, ..Problem::of(Kind::MarkDevice, what) }
}

/// What keeps marks from being sent is critical.
fn of_fault((matter, what): &Fault, is_permitted: bool) -> Problem {
    let kind = match matter {
        Matter::NoQuorum => Kind::NoQuorum,
        Matter::QuorumUnknown => Kind::QuorumUnknown,
        Matter::RegisterUnreadable => Kind::RegisterUnreadable,
        Matter::RegisterUnwritable => Kind::RegisterUnwritable,
        Matter::CibUnreadable => Kind::CibUnreadable,
        Matter::HistoryUnreadable => Kind::HistoryUnreadable,
        Matter::Evidence => Kind::Evidence,
        Matter::RegisterEntry => Kind::RegisterEntry,
        Matter::RegisterKey => Kind::RegisterKey,
        Matter::RegisterPartial => Kind::RegisterPartial,
        Matter::RegisterSize => Kind::RegisterSize,
        Matter::ClockSkew => Kind::ClockSkew,
        Matter::OtherRecovery => Kind::OtherRecovery,
    };
    let stops = matches!(
        matter,
        Matter::RegisterUnreadable
            | Matter::RegisterUnwritable
            | Matter::CibUnreadable
            | Matter::HistoryUnreadable
    );
    // There is one problem of each kind, but one of evidence for each file that is not used.
    let subject = (kind == Kind::Evidence).then(|| what.clone());
    let one = Problem { subject, ..Problem::of(kind, what.clone()) };
    if stops && !is_permitted { Problem { level: Level::Critical, ..one } } else { one }
}

fn of_missed(host: &HostName, time: Duration, now: Timestamp) -> Problem {
    let what = missed_sentence(host, time);
    let then = format!(
        "check the host: if it is dead, run `stonith_admin --reboot {host}`; if it was removed for good, remove its resource"
    );
    let since = now - time;
    Problem {
        hosts: vec![host.to_string()],
        since: Some(since),
        then,
        subject: Some(host.as_str().to_ascii_lowercase()),
        news_at: Some(since + AUDIT_AFTER + Duration::from_millis(1)),
        ..Problem::of(Kind::NotFenced, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(sight: &Sight) -> Vec<(Level, Kind)> {
        problems(sight).into_iter().map(|one| (one.level, one.kind)).collect()
    }

    fn with(faults: &[Matter], is_permitted: bool) -> Sight {
        let faults = faults.iter().map(|matter| (*matter, "why".to_owned())).collect();
        let cluster = Some(Cluster { is_permitted, faults, ..Cluster::default() });
        Sight { cluster, ..Sight::default() }
    }

    #[test]
    fn without_quorum_nothing_is_notified_and_that_is_critical() {
        assert_eq!(kinds(&Sight::default()), []);
        assert_eq!(kinds(&with(&[], false)), [(Level::Critical, Kind::NotPermitted)]);
        assert_eq!(kinds(&with(&[Matter::NoQuorum], false)), [(Level::Critical, Kind::NoQuorum)]);
        let unread = |is_permitted| kinds(&with(&[Matter::RegisterUnreadable], is_permitted))[0].0;
        assert_eq!((unread(true), unread(false)), (Level::Warning, Level::Critical));
    }

    /// The broken variant guesses by the sentence: one of a path or of a word in the configuration is the disk's.
    #[test]
    fn the_kind_goes_by_where_it_was_seen_and_not_by_what_it_says() {
        let said = "unknown word journal for quorum".to_owned();
        let sight = Sight {
            reload: Some(NotInForce { why: said.clone(), is_busy: false }),
            unserved: vec![said.clone()],
            unknown_groups: vec![said.clone()],
            stalled: Some(Duration::from_secs(99)),
            stranded: [("old".to_owned(), 3)].into(),
            journal: Some(said),
            place: Place { directory: "/srv/the journal".into(), file: "/etc/a.toml".into(), log: "" },
            ..Sight::default()
        };
        let all = [
            (Level::Critical, Kind::Stalled),
            (Level::Critical, Kind::JournalUnwritable),
            (Level::Warning, Kind::NotServed),
            (Level::Warning, Kind::Configuration),
            (Level::Critical, Kind::UnknownGroup),
            (Level::Warning, Kind::Stranded),
        ];
        assert_eq!(kinds(&sight), all);
        let found = problems(&sight);
        assert!(found.iter().all(|one| one.degrades && !one.then.is_empty()));
        assert!(found[1].then.contains("`df -h '/srv/the journal'`"), "{}", found[1].then);
        assert!(found[5].then.contains("configure old again in /etc/a.toml and"), "{}", found[5].then);
    }

    /// The broken variant has a sound configuration corrected.
    #[test]
    fn a_configuration_that_met_a_busy_journal_is_not_corrected() {
        let then = |is_busy| {
            let reload = Some(NotInForce { why: "why".into(), is_busy });
            let sight = Sight { reload, ..Sight::default() };
            problems(&sight).remove(0).then
        };
        assert!(then(false).starts_with("find the mistake") && then(true).contains("reload` again when"));
    }

    /// The broken variant is one problem for all: the next one would not be seen beside the first.
    #[test]
    fn each_mark_device_that_does_not_work_is_a_problem_of_its_own() {
        let fault =
            |node: Option<&str>| MarkFault { device: "mark".into(), failed_on: node.map(str::to_owned) };
        let marks = vec![fault(Some("ctl1")), fault(Some("ctl2")), fault(None)];
        let cluster = Some(Cluster { is_permitted: true, marks, ..Cluster::default() });
        let found = problems(&Sight { cluster, ..Sight::default() });
        let subjects: Vec<&str> = found.iter().filter_map(|one| one.subject.as_deref()).collect();
        assert_eq!(subjects, ["mark ctl1", "mark ctl2", "mark stopped"]);
        assert!(found.iter().all(|one| one.kind == Kind::MarkDevice && one.level == Level::Warning));
        assert!(
            found[1].what.contains("failed on ctl2") && found[1].then.contains("--cleanup --resource mark`")
        );
        assert!(found[2].what.contains("stopped") && found[2].then.contains("setup --check"));
    }

    /// A new daemon counts from its start: until the limit a missed host is no news and degrades nothing.
    #[test]
    fn a_host_is_missed_after_the_limit() {
        let limit = AUDIT_AFTER;
        let of = |time| {
            let missed = vec![(HostName::parse("Compute1").unwrap(), time)];
            let cluster = Cluster { is_permitted: true, missed, ..Cluster::default() };
            let sight =
                Sight { now: Timestamp(1_800_000_000_000), cluster: Some(cluster), ..Sight::default() };
            problems(&sight).remove(0)
        };
        let (young, old) = (of(limit), of(limit + Duration::from_secs(1)));
        let now = Timestamp(1_800_000_000_000);
        assert_eq!(young.not_yet_news(now), Some(Duration::from_millis(1)));
        assert_eq!((old.not_yet_news(now), old.degrades), (None, false));
        assert_eq!(old.subject.as_deref(), Some("compute1"));
        assert!(old.sentence().contains("300") || old.what.contains("301 s"), "{}", old.what);
        assert!(old.then.contains("`stonith_admin --reboot Compute1`"), "{}", old.then);
    }
}
