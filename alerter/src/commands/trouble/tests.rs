//! What is said, and what is typed then.

use std::sync::LazyLock;
use std::time::Duration;

use marks::delivery::{Attempt, Delivery, State};
use marks::host::HostName;
use marks::id::NoteId;
use marks::mark::{Doubt, MarkRow, Proof, Standing};
use marks::register::Cause;

use super::*;
use crate::control::api::Health;

const NOW: Timestamp = Timestamp(1_800_000_000_000);
static PLACE: LazyLock<Place> = LazyLock::new(|| Place {
    file: "/etc/alerter.toml".into(),
    directory: "/var/lib/nova-host-alerter".into(),
    log: "`journalctl -t nova-host-alerter`",
});
pub(in crate::commands) const MINUTE: Duration = Duration::from_secs(60);

pub(in crate::commands) fn daemon() -> Daemon {
    Daemon {
        version: "0".into(),
        pid: 1,
        controller: "ctl1".into(),
        health: Health {
            healthy: true,
            better_elsewhere: false,
            degraded: false,
            reasons: Vec::new(),
            journal: "".into(),
        },
        routes: Vec::new(),
        cluster: None,
        groups: Vec::new(),
        orders: Vec::new(),
        problems: Vec::new(),
        unaccounted: Vec::new(),
    }
}

pub(in crate::commands) fn sight<'a>(daemon: Option<&'a Daemon>, open: &'a [MarkReport]) -> Sight<'a> {
    Sight {
        now: NOW,
        limits: Limits::default(),
        daemon,
        silent: None,
        is_blind: false,
        elsewhere: None,
        config: &[],
        journal: None,
        place: &PLACE,
        is_root: true,
        resource: Some("alerter"),
        register: None,
        open,
        routes: None,
        orders: &[],
        new: &[],
        damaged: &[],
        unaccounted: &[],
        tried: &[],
    }
}

/// A mark of that age with a delivery to `recovery`.
fn mark(host: &str, age: Duration, standing: Standing) -> MarkReport {
    let mark = MarkRow { standing, ..samples::mark_of(host, NOW - age) };
    let deliveries = vec![delivery(State::Pending)];
    MarkReport {
        kept: Recent { mark, deliveries, damaged: Vec::new(), held: None },
        view: "cluster",
        in_journal: true,
        fence_count: 1,
        acknowledged: Vec::new(),
        as_of_last_run: false,
    }
}

/// The same mark with this delivery alone.
pub(in crate::commands) fn with(delivery: Delivery, report: MarkReport) -> MarkReport {
    MarkReport { kept: Recent { deliveries: vec![delivery], ..report.kept }, ..report }
}

pub(in crate::commands) fn delivery(state: State) -> Delivery {
    let last = Some(Attempt { at: NOW, kind: "rejected".into(), detail: "HTTP 422".into() });
    let new = samples::delivery(&samples::mark_of("compute1", NOW), "recovery");
    Delivery { state, attempts: 3, next_due: NOW + MINUTE * 5, last, ..new }
}

pub(in crate::commands) fn proven(host: &str, age: Duration) -> MarkReport {
    mark(host, age, Standing::Proven(Proof::Alert))
}

fn held(host: &str, hold: Hold, why: &str, until: Option<Timestamp>) -> MarkReport {
    held_by(host, hold, why, until, Cause::default())
}

pub(in crate::commands) fn held_by(
    host: &str,
    hold: Hold,
    why: &str,
    until: Option<Timestamp>,
    cause: Cause,
) -> MarkReport {
    let report = proven(host, MINUTE * 60);
    let (mark, words) = (report.kept.mark.id, vec![hold.as_str().to_owned()]);
    let held = HeldMark { mark, words, until, why: why.into(), cause, since: NOW - MINUTE };
    MarkReport { kept: Recent { held: Some(held), ..report.kept }, ..report }
}

fn kinds(troubles: &[Problem]) -> Vec<(Level, &str)> {
    troubles.iter().map(|trouble| (trouble.level, trouble.kind.as_str())).collect()
}

#[test]
fn an_alerter_that_runs_nowhere_is_critical_and_one_that_runs_elsewhere_is_none() {
    let nowhere = problems(&sight(None, &[]));
    assert_eq!(kinds(&nowhere), [(Level::Critical, "not-running")]);
    let silent = problems(&Sight { silent: Some("17"), ..sight(None, &[]) });
    assert!(silent[0].what.contains("process 17") && silent.len() == 1);
    // A user who is not root would see an outage that does not exist.
    let blind = Sight { is_blind: true, journal: Some("permission denied"), ..sight(None, &[]) };
    assert_eq!(kinds(&problems(&blind)), [(Level::Critical, "journal")]);
    assert!(problems(&Sight { elsewhere: Some("ctl2"), ..sight(None, &[]) }).is_empty());
    assert!(problems(&sight(Some(&daemon()), &[])).is_empty());
}

/// The broken variant has a line for each of a hundred hosts.
#[test]
fn what_one_thing_holds_is_said_once() {
    let until = Some(NOW + MINUTE);
    let open: Vec<MarkReport> = (1..=5)
        .map(|n| held(&format!("c{n}"), Hold::Storm, "too many hosts of group rack1 are down at once", until))
        .collect();
    let all = problems(&sight(Some(&daemon()), &open));
    assert_eq!(kinds(&all), [(Level::Warning, "storm")]);
    assert!(all[0].what.starts_with("c1, c2, c3 and 2 more are held (storm) since 2027-01-15 07:59:00Z, until 2027-01-15 08:01:00Z (then sent anyway): too many"));
    assert_eq!((all[0].hosts.len(), all[0].until), (5, until));
    // What ends within moments by itself needs nobody yet.
    let brief = [held("c1", Hold::MaxInFlight, "as many as may be", None)];
    let all = problems(&sight(Some(&daemon()), &brief));
    assert!(all.iter().all(|trouble| trouble.kind.as_str() != "max-in-flight"));
}

#[test]
fn a_doubt_says_what_to_check_and_grows_critical() {
    let of = |age| {
        let open = [mark("compute1", age, Standing::Doubtful(Doubt::Unconfirmed))];
        problems(&sight(Some(&daemon()), &open)).remove(0)
    };
    let young = of(MINUTE);
    assert_eq!((young.level, young.kind.as_str()), (Level::Warning, "unconfirmed"));
    assert!(young.what.starts_with("compute1 is held (unconfirmed) since"), "{}", young.what);
    assert!(young.then.contains("`nova-host-alerter release compute1 --reason TEXT`"), "{}", young.then);
    assert_eq!(of(MINUTE * 20).level, Level::Critical);
    let unproven = |age| {
        let open = [mark("compute1", age, Standing::Doubtful(Doubt::Unproven))];
        kinds(&problems(&sight(Some(&daemon()), &open)))
            .first()
            .map(|(level, kind)| (*level, (*kind).to_owned()))
    };
    // Pacemaker's word comes when the whole fencing is over.
    assert_eq!(unproven(MINUTE), None);
    assert_eq!(unproven(MINUTE * 2), Some((Level::Warning, "unproven".to_owned())));
}

#[test]
fn a_mark_that_cannot_go_says_why() {
    let in_state = |state| [with(delivery(state), proven("compute1", MINUTE))];
    let of = |state| problems(&sight(Some(&daemon()), &in_state(state)));
    assert_eq!(kinds(&of(State::Parked)), [(Level::Critical, "rejected")]);
    assert_eq!(kinds(&of(State::Quarantined)), [(Level::Critical, "quarantined")]);
    assert_eq!(kinds(&of(State::Held)), [(Level::Warning, "held-on-route")]);
    assert!(of(State::Pending).is_empty());
    let refused = Problem { route: Some("recovery".into()), ..Problem::of(Kind::Refused, "why".into()) };
    let daemon = running(vec![refused]);
    let again = Delivery { next_due: NOW, ..delivery(State::Parked) };
    let open = [with(again, proven("compute1", MINUTE))];
    let all = kinds(&problems(&sight(Some(&daemon), &open))).len();
    assert_eq!(all, 1, "it is the route's trouble, and said once");
    let all = problems(&sight(Some(&daemon), &in_state(State::Parked)));
    assert!(kinds(&all).contains(&(Level::Critical, "rejected")), "that is about the host");
    let routes = BTreeSet::from(["other".to_owned()]);
    let all = problems(&Sight { routes: Some(&routes), ..sight(Some(&daemon), &in_state(State::Pending)) });
    let route = all.iter().find(|trouble| trouble.kind == Kind::NoRoute).unwrap();
    assert!(route.what.contains("route recovery is not configured"));
}

/// What an operator decided to hold is not old: the operator knows.
#[test]
fn an_old_mark_is_bad_and_one_that_is_paused_is_not_old() {
    let of = |report| {
        kinds(&problems(&sight(Some(&daemon()), &[report])))
            .first()
            .map(|(level, kind)| (*level, (*kind).to_owned()))
    };
    assert_eq!(of(proven("c1", MINUTE)), None);
    assert_eq!(of(proven("c1", MINUTE * 6)), Some((Level::Warning, "old".to_owned())));
    assert_eq!(of(proven("c1", MINUTE * 16)), Some((Level::Critical, "old".to_owned())));
    // A critical age alone counts, though the other one's default is above it.
    let (daemon, report) = (daemon(), proven("c1", MINUTE * 2));
    let limits = Limits { critical: MINUTE, ..Limits::default() };
    let sight = Sight { limits, ..sight(Some(&daemon), std::slice::from_ref(&report)) };
    assert_eq!(kinds(&problems(&sight)), [(Level::Critical, "old")]);
    let paused = held("c1", Hold::Pause, "everything is paused by alice: move", None);
    assert_eq!(of(paused), Some((Level::Warning, "pause".to_owned())));
}

fn decision(about: About, reason: &str) -> Decision {
    let (id, at, actor) = (NoteId::generate(), NOW - MINUTE, "alice".to_owned());
    Decision { id, about, at, actor, reason: reason.to_owned() }
}

fn pause(group: &str, reason: &str) -> Decision {
    decision(About::Pause { scope: Scope::Group(group.into()), until: None }, reason)
}

/// The broken variant names the first order, or the first storm, that there is: both lines would say the same.
#[test]
fn the_command_is_that_of_the_order_or_the_group_that_holds_these_marks() {
    let of = |hold, scope: Option<Scope>| {
        let open = [held_by("c1", hold, "of it", None, Cause { scope, decision: None })];
        problems(&sight(Some(&daemon()), &open)).remove(0).then
    };
    let paused = |order: &Decision| of(Hold::Pause, order.about.scope());
    let (one, other) = (pause("rack1", "move"), pause("rack2", "move"));
    assert!(paused(&one).contains("`nova-host-alerter resume --group rack1`"), "{}", paused(&one));
    assert!(paused(&other).contains("`nova-host-alerter resume --group rack2`"), "{}", paused(&other));
    let all = decision(About::Pause { scope: Scope::All, until: None }, "move");
    assert!(paused(&all).contains("`nova-host-alerter resume`"), "{}", paused(&all));
    let worked_on = |scope| {
        let order = decision(About::Maintenance { scope, until: NOW + MINUTE }, "disk");
        of(Hold::Maintenance, order.about.scope())
    };
    let of_group = worked_on(Scope::Group("rack1".into()));
    assert!(of_group.contains("`nova-host-alerter maintenance end --group rack1`"), "{of_group}");
    let of_host = worked_on(Scope::Host(HostName::parse("c9").unwrap()));
    assert!(of_host.contains("`nova-host-alerter maintenance end c9`"), "{of_host}");
    let storm = of(Hold::Storm, Some(Scope::Group("rack2".into())));
    assert!(storm.contains("`nova-host-alerter release --group rack2 --reason TEXT`"), "{storm}");
}

fn running(problems: Vec<Problem>) -> Daemon {
    Daemon { problems, ..daemon() }
}

/// The broken variant says twice what it sees itself, or hides what a young route does.
#[test]
fn what_the_daemon_says_is_said_unless_it_is_said_better_here() {
    let of = |kind: Kind| Problem::of(kind, "why".into());
    let said = |problem: Problem| {
        let daemon = running(vec![problem]);
        let all = problems(&sight(Some(&daemon), &[]));
        kinds(&all).into_iter().map(|(_, kind)| kind.to_owned()).collect::<Vec<String>>()
    };
    assert_eq!(said(of(Kind::NoQuorum)), ["no-quorum"]);
    assert_eq!(said(of(Kind::Unknown)), ["degraded"]);
    assert_eq!(said(of(Kind::Unaccounted)), [""; 0]);
    let young = |kind| Problem { news_at: Some(NOW + MINUTE), ..of(kind) };
    assert_eq!(said(young(Kind::NotFenced)), [""; 0]);
    assert_eq!(said(young(Kind::Failing)), ["failing"]);
    let problems_of = |config: &[String]| {
        let daemon = running(vec![of(Kind::Configuration)]);
        problems(&Sight { config, ..sight(Some(&daemon), &[]) }).len()
    };
    assert_eq!((problems_of(&[]), problems_of(&["unknown key ulr".to_owned()])), (1, 1));
    let stranded = Problem { route: Some("recovery".into()), ..of(Kind::Stranded) };
    let (daemon, open, routes) = (running(vec![stranded]), [proven("c1", MINUTE)], BTreeSet::new());
    let all = problems(&Sight { routes: Some(&routes), ..sight(Some(&daemon), &open) });
    assert_eq!(kinds(&all), [(Level::Critical, "no-route")], "it is said of the mark");
}

#[test]
fn no_command_for_several_marks_has_a_gap_where_the_host_stands() {
    let running = daemon();
    for doubt in [Doubt::Unconfirmed, Doubt::Unproven, Doubt::OutcomeUnknown, Doubt::FencedAgain] {
        let open = ["c1", "c2"].map(|host| mark(host, MINUTE * 3, Standing::Doubtful(doubt)));
        let then = problems(&sight(Some(&running), &open)).remove(0).then;
        assert!(
            then.contains("unmark c1 --reason TEXT`") && then.ends_with("; do the same for each host"),
            "{then}"
        );
    }
    let open = ["c1", "c2"].map(|host| held(host, Hold::Storm, "too many hosts", None));
    let storm = problems(&sight(Some(&running), &open)).remove(0).then;
    assert!(storm.contains("unmark c1 --reason TEXT`") && !storm.contains("HOST"), "{storm}");
}
