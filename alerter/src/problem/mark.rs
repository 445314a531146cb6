//! The problems of marks, with one text for each kind, of one mark or of several. Pure.

use std::collections::BTreeSet;

use journal::{Damage, Recent};
use marks::delivery::{Delivery, RETURN, State};
use marks::mark::MarkRow;
use marks::register::Scope;
use marks::time::Timestamp;

use super::{Kind, Level, Limits, Place, Problem};
use crate::policy::{self, Hold};
use crate::words::{NAMED, named, named_up_to, release_of_held, utc};

/// So many rejected hosts are named: somebody has to check each of them.
const REJECTED: usize = 10;
/// The failure of a chain's last step that never answered.
const TIMEOUT: &str = "timeout";

/// One problem of one mark, or the same of several.
#[derive(Clone, Debug)]
struct Finding {
    kind: Kind,
    routes: Vec<String>,
    /// The machine word of the newest answer.
    failure: Option<String>,
    /// A sentence about all of them, or about one.
    why: String,
    /// Whom the decision that holds them is about.
    scope: Option<Scope>,
    /// Since when the first, until when the last.
    since: Timestamp,
    until: Option<Timestamp>,
}

/// The hosts that a problem is about.
struct Whom {
    /// Each once; none where they are not known.
    hosts: Vec<String>,
    marks: usize,
    /// The argument of an advised command: the only one, or the first of several.
    target: String,
}

impl Whom {
    fn named(&self) -> String {
        if self.hosts.is_empty() { format!("{} mark(s)", self.marks) } else { named(&self.hosts) }
    }
}

impl Finding {
    fn of(kind: Kind, routes: &[&str], since: Timestamp) -> Self {
        let routes = routes.iter().map(|route| (*route).to_owned()).collect();
        Self { kind, routes, failure: None, why: String::new(), scope: None, since, until: None }
    }

    /// What holds it: a doubt about the mark itself, or else the policy.
    fn held(of: &Recent) -> Option<Self> {
        let first = *holds(of).first()?;
        let kind = Kind::Held(first);
        let Some(held) = of.held.as_ref().filter(|_| !first.is_doubt()) else {
            return Some(Self { why: meaning(first).to_owned(), ..Self::of(kind, &[], of.mark.made_at) });
        };
        let (why, scope, until) = (held.why.clone(), held.cause.scope.clone(), held.until);
        Some(Self { why, scope, until, ..Self::of(kind, &[], held.since) })
    }

    /// What several marks must have in common to be one problem.
    fn alike(&self) -> (Kind, &[String], &str, Option<&Scope>) {
        (self.kind, &self.routes, &self.why, self.scope.as_ref())
    }

    /// Whether it is about the return of a host.
    fn is_return(&self) -> bool {
        self.routes.iter().any(|route| route.ends_with(RETURN))
    }
}

/// What holds a mark, as far as its journal says: first the doubts about the mark itself, then what the policy does.
pub fn holds(of: &Recent) -> Vec<Hold> {
    let words = of.held.iter().flat_map(|held| &held.words);
    policy::doubts(&of.mark).into_iter().chain(words.filter_map(|word| Hold::parse(word))).collect()
}

/// The word for a whole mark: [`State::of_mark`]. A damaged delivery is one that is open.
pub fn stage(of: &Recent) -> State {
    let settled = of.mark.settled.map(|(how, _)| how);
    match settled.is_none() && !of.damaged.is_empty() {
        true => State::Quarantined,
        false => State::of_mark(settled, !holds(of).is_empty(), &of.deliveries),
    }
}

/// The routes that a mark waits for where none of them is configured; nothing where it lacks something.
pub fn gone<'r>(of: &'r Recent, configured: &BTreeSet<String>) -> Option<Vec<&'r str>> {
    let open = of.deliveries.iter().filter(|delivery| !delivery.state.is_final());
    let open: Vec<&str> = open.map(|delivery| delivery.route.as_str()).collect();
    let is_sound = of.mark.lacks().next().is_none() && of.damaged.is_empty();
    (is_sound && !open.iter().any(|route| configured.contains(*route))).then_some(open)
}

/// What a daemon says of itself, and what is wrong with open marks: each cause once, said of its marks where it is theirs. `routes`:
/// those that are configured, where that is known.
pub fn with_marks<'a>(
    own: impl Iterator<Item = &'a Problem>,
    open: &[&Recent],
    routes: Option<&BTreeSet<String>>,
    (now, limits, place): (Timestamp, Limits, &Place),
) -> Vec<Problem> {
    let gone_of = |one| routes.and_then(|routes| gone(one, routes)).unwrap_or_default();
    let gone: BTreeSet<&str> = open.iter().flat_map(|one| gone_of(one)).collect();
    let is_own = |one: &&Problem| match one.kind {
        Kind::Stranded => !one.route.as_deref().is_some_and(|route| gone.contains(route)),
        kind => kind.is_of_endpoint() || one.not_yet_news(now).is_none(),
    };
    let found = open.iter().flat_map(|one| of_mark(one, routes).into_iter().map(|found| (&one.mark, found)));
    let of_marks = grouped(found.collect(), now, place).into_iter().filter(|one| one.is_shown(now, limits));
    let all = own.filter(is_own).cloned().chain(of_marks);
    all.map(|one| Problem { level: one.level_at(now, limits), ..one }).collect()
}

/// The problems of a mark. A held mark is not sent, so it has no other problem.
fn of_mark(of: &Recent, routes: Option<&BTreeSet<String>>) -> Vec<Finding> {
    if let Some(held) = Finding::held(of) {
        return vec![held];
    }
    let Recent { mark, deliveries, damaged, .. } = of;
    if !damaged.is_empty() || deliveries.iter().any(|one| one.state == State::Quarantined) {
        return vec![Finding::of(Kind::Quarantined, &[], mark.made_at)];
    }
    if let Some(gone) = routes.and_then(|routes| gone(of, routes)) {
        return vec![Finding::of(Kind::NoRoute, &gone, mark.made_at)];
    }
    deliveries.iter().filter_map(|one| of_delivery(one, mark.made_at)).collect()
}

/// The problem of a delivery itself, not of its route.
fn of_delivery(delivery: &Delivery, made_at: Timestamp) -> Option<Finding> {
    let exhausted_at = delivery.chain.and_then(|step| step.exhausted_at);
    let kind = match delivery.state {
        state if state.is_final() => return None,
        _ if exhausted_at.is_some() => Kind::ChainExhausted,
        State::Held if !delivery.waits_in_chain() => Kind::HeldOnRoute,
        _ if delivery.is_rejected() => Kind::Rejected,
        _ => return None,
    };
    let nothing = (kind == Kind::ChainExhausted).then_some((TIMEOUT, "it never answered"));
    let last = delivery.last.as_ref();
    let said = last.map(|last| (last.kind.as_str(), last.detail.as_str())).or(nothing);
    let since = exhausted_at.or(last.map(|last| last.at)).unwrap_or(made_at);
    let why = said.map(|(word, detail)| format!(" ({word}): {detail}")).unwrap_or_default();
    let failure = said.map(|(word, _)| word.to_owned());
    Some(Finding { failure, why, ..Finding::of(kind, &[&delivery.route], since) })
}

/// One problem for all marks with the same finding.
fn grouped(mut found: Vec<(&MarkRow, Finding)>, now: Timestamp, place: &Place) -> Vec<Problem> {
    found.sort_by(|(_, one), (_, other)| one.alike().cmp(&other.alike()));
    let alike = found.chunk_by(|(_, one), (_, other)| one.alike() == other.alike());
    alike.filter_map(|several| together(several, now, place)).collect()
}

fn together(several: &[(&MarkRow, Finding)], now: Timestamp, place: &Place) -> Option<Problem> {
    let (row, first) = several.first()?;
    let mut seen = BTreeSet::new();
    let hosts = several.iter().filter(|(row, _)| seen.insert(&row.node));
    let hosts = hosts.map(|(row, _)| row.node.to_string()).collect();
    // A return is of a mark that has ended: the host's name does not identify it.
    let target = if first.is_return() { row.id.to_string() } else { row.node.to_string() };
    let since = several.iter().map(|(_, one)| one.since).min()?;
    // If one has no known end, the last end is not known.
    let until = several.iter().map(|(_, one)| one.until).collect::<Option<Vec<_>>>();
    let until = until.and_then(|all| all.into_iter().max());
    let all = Finding { since, until, ..first.clone() };
    Some(problem(&all, &Whom { hosts, marks: several.len(), target }, now, place))
}

fn problem(found: &Finding, whom: &Whom, now: Timestamp, place: &Place) -> Problem {
    let hold = if let Kind::Held(hold) = found.kind { Some(hold) } else { None };
    let (what, then) = match hold {
        Some(hold) => (held(hold, found, whom), hold_advice(hold, found, whom, place)),
        None => stuck(found, whom, place),
    };
    let names_target = hold.map_or(found.kind != Kind::NoRoute, Hold::advice_names_target);
    let each = if whom.hosts.len() > 1 && names_target { "; do the same for each host" } else { "" };
    let one = Problem::of(found.kind, what);
    // The recovery controller still takes a living host for dead: somebody has to undo that.
    let is_bad = found.kind == Kind::HeldOnRoute && found.is_return();
    let not_yet_news = hold.and_then(|hold| hold.not_yet_news(found.since, now));
    Problem {
        level: if is_bad { Level::Critical } else { one.level },
        hosts: whom.hosts.clone(),
        route: (!found.routes.is_empty()).then(|| found.routes.join(", ")),
        since: Some(found.since),
        until: found.until,
        then: then + each,
        subject: found.scope.as_ref().map(Scope::to_string),
        failure: found.failure.clone(),
        grows: hold.is_some_and(Hold::is_doubt),
        degrades: hold.map_or(one.degrades, |hold| hold.needs_a_person(found.since, now)),
        news_at: not_yet_news.map(|left| now + left),
        ..one
    }
}

fn held(hold: Hold, found: &Finding, whom: &Whom) -> String {
    let is = if whom.marks == 1 { "is" } else { "are" };
    let until = match (found.until, hold) {
        (Some(at), Hold::Storm) => format!(", until {} (then sent anyway)", utc(at)),
        (Some(at), _) => format!(", until {}", utc(at)),
        (None, Hold::Pause) => ", until `resume`".to_owned(),
        (None, _) => String::new(),
    };
    format!("{} {is} held ({}) since {}{until}: {}", whom.named(), found.kind, utc(found.since), found.why)
}

/// With the host and the file filled in.
fn hold_advice(hold: Hold, found: &Finding, whom: &Whom, place: &Place) -> String {
    let target = &whom.target;
    if let Some(lack) = hold.lack() {
        return policy::set(lack, &format!(" of {}", place.file));
    }
    hold.advice(target, found.scope.as_ref())
        .replace("unmark HOST --reason TEXT`", &format!("unmark {target} --reason TEXT`"))
        .replace("end HOST`", &format!("end {target}`"))
}

/// Why a doubt about a mark holds it.
fn meaning(hold: Hold) -> &'static str {
    match hold {
        Hold::NoFqdn => "the full name is not known",
        Hold::NoStorage => "nobody says whether its instances are on shared storage",
        Hold::Unconfirmed => "the fencing was reported, but Pacemaker has not confirmed it",
        Hold::Unproven => "only the register says that there was a fencing",
        Hold::OutcomeUnknown => "the recovery controller may have been told of it before",
        Hold::FencedAgain => {
            "fenced again after the last mark ended, possibly without having been back in between"
        }
        _ => "a rule of the configuration holds the mark",
    }
}

/// What it is, and what to do.
fn stuck(found: &Finding, whom: &Whom, place: &Place) -> (String, String) {
    let (named, who, since) = (whom.named(), &whom.target, utc(found.since));
    let (route, why) = (found.routes.join(", "), &found.why);
    let unmark = format!("`nova-host-alerter unmark {who} --reason TEXT`");
    match found.kind {
        Kind::Quarantined => {
            let on = if route.is_empty() { route } else { format!(" (route {route})") };
            (
                format!(
                    "the mark of {named} is damaged in the journal{on}: it is never sent and never dropped"
                ),
                format!(
                    "run `nova-host-alerter show {who}` to see which route was not notified and when the host failed; if the host is off, report it to the recovery controller with that controller's own client; then run {unmark}"
                ),
            )
        }
        Kind::NoRoute => (
            format!("the mark of {named} cannot be sent: route {route} is not configured any more"),
            format!(
                "configure {route} again in {} and run `nova-host-alerter reload`; or report the host to the recovery controller by hand and run {}",
                place.file,
                dismissals(&found.routes)
            ),
        ),
        Kind::HeldOnRoute if found.is_return() => (
            format!("the return of {named} is held on route {route}{why}"),
            format!(
                "check whether the recovery controller still treats the host as failed; if so, undo that by hand; then run {unmark}; if the route leads to the same service under another name, run `nova-host-alerter release {who} --reason TEXT`"
            ),
        ),
        Kind::HeldOnRoute => (
            format!("the mark of {named} is held on route {route} since {since}{why}"),
            format!(
                "to send it anyway, run `{}`; to end it, run {unmark}",
                release_of_held(who, found.failure.as_deref().unwrap_or_default())
            ),
        ),
        Kind::ChainExhausted => (
            format!(
                "no step of the chain acknowledged the mark of {named}; the last step, route {route}, is retried forever{why}"
            ),
            format!(
                "correct an endpoint and run `nova-host-alerter retry {who}`; or send the event by hand (`nova-host-alerter show {who}` prints it), then run {unmark}"
            ),
        ),
        _ if found.is_return() => (
            format!("route {route} does not accept the return of {named}{why}"),
            format!(
                "check whether the recovery controller still treats the host as failed; if so, undo that by hand; then run {unmark}; or correct the endpoint and run `nova-host-alerter retry {who}`"
            ),
        ),
        _ => (
            format!("route {route} does not accept the mark of {}{why}", named_up_to(&whom.hosts, REJECTED)),
            format!(
                "check the log of the recovery controller, then run `nova-host-alerter retry {who}`; or send the event by hand (`nova-host-alerter show {who}` prints its JSON), then run {unmark}"
            ),
        ),
    }
}

/// A command for each of the routes.
fn dismissals(routes: &[String]) -> String {
    let one = |route: &String| format!("`nova-host-alerter dismiss --route {route} --reason TEXT`");
    routes.iter().map(one).collect::<Vec<_>>().join(" and ")
}

/// Damaged rows of the journal. Such a row does not name its host; the cluster's fencing history does.
pub fn damaged(rows: &[&Damage], place: &Place) -> Problem {
    let named: Vec<String> =
        rows.iter().take(NAMED).map(|row| format!("{} {}", row.table, row.key)).collect();
    let what = format!(
        "{} damaged row(s) in the journal, never sent and never dropped: {}",
        rows.len(),
        named.join(", ")
    );
    let ends: Vec<String> = rows
        .iter()
        .filter(|row| row.table == "delivery")
        .take(NAMED)
        .map(|row| format!("`nova-host-alerter unmark {} --reason TEXT`", setup::shell(row.id())))
        .collect();
    let end = match ends.is_empty() {
        true => "; no command ends such a row: it is listed until it is repaired".to_owned(),
        false => format!("; then end it: {}", ends.join(", ")),
    };
    let then = format!(
        "find the host: it is in `stonith_admin --history '*' --verbose` (fenced hosts), but not in `nova-host-alerter list --all` (marked hosts); if it is off, report it to its recovery controller with that controller's own client{end}; check the disk: `df -h {}`, `dmesg`",
        place.typeable_directory()
    );
    Problem { then, ..Problem::of(Kind::Damaged, what) }
}
