//! What `status` shows: one screen, the most important first. Pure.

use super::overview::{Stage, Status, age};
use super::terminal::{Colour, Style, clean};
use super::text::{self, time};
use crate::control::api::{ClusterStatus, Daemon, RouteStatus};
use crate::policy::groups::GroupStatus;
use crate::problem::{Kind, Level, Problem};
use crate::words::named_up_to;

/// So many problems fit on one screen.
const TROUBLES: usize = 6;
/// So many lines of pauses and maintenances.
const ORDERS: usize = 4;
/// So many groups that hold nothing are shown with the others.
const GROUPS: usize = 6;

/// All of it.
pub(super) fn drawn(status: &Status, style: Style) -> String {
    let mut out = style.wrap("", &status.headline).trim_end().to_owned();
    out = out.lines().map(|line| style.paint(colour(status.level), line) + "\n").collect();
    out += &style.wrap("", &where_it_runs(status));
    if let Some(release) = &status.untried_pacemaker {
        out += &style.wrap("", &format!("Pacemaker {}: this release is not tested with it", clean(release)));
    }
    out += &problems(&status.problems, style);
    out += &style.wrap("marks     ", &marks(status));
    out += &status
        .orders
        .iter()
        .take(ORDERS)
        .map(|order| style.wrap("in force  ", &clean(order)))
        .collect::<String>();
    if status.orders.len() > ORDERS {
        out += &format!(
            "          and {} more: see `nova-host-alerter maintenance list`\n",
            status.orders.len() - ORDERS
        );
    }
    let Some(daemon) = &status.daemon else { return out };
    out += &daemon.cluster.as_ref().map(cluster).unwrap_or_default();
    out += &text::headed(&routes(daemon, &status.problems), style);
    out + &text::headed(&groups(&daemon.groups), style)
}

fn colour(level: Option<Level>) -> Colour {
    match level {
        Some(Level::Critical) => Colour::Red,
        Some(Level::Warning) => Colour::Yellow,
        _ => Colour::Green,
    }
}

fn where_it_runs(status: &Status) -> String {
    // The day is that of the marks above, or does not matter.
    let at = status.at.and_then(|at| Some(format!("; {}", time(at).split_once(' ')?.1))).unwrap_or_default();
    let view = status.view;
    match (&status.daemon, &status.alerter_on) {
        (Some(Daemon { version, controller, pid, .. }), _) => {
            format!("nova-host-alerter {version} runs on {controller} (process {pid}); {view}{at}")
        }
        (None, Some(node)) if status.runs_elsewhere => format!(
            "the alerter runs on {node}: run this command there; routes and holds below are as of the alerter's last run here; {view}{at}"
        ),
        (None, _) => {
            format!("the daemon does not answer; marks are kept and sent when it runs again; {view}{at}")
        }
    }
}

fn problems(all: &[Problem], style: Style) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut out = String::from("\n");
    for trouble in all.iter().take(TROUBLES) {
        let word = format!("{:<8}  ", trouble.level.as_str());
        let lines = style.wrap(&word, &clean(&trouble.what));
        // The colour goes in behind the wrapping: its codes have no width.
        out +=
            &lines.replacen(word.trim_end(), &style.paint(colour(Some(trouble.level)), word.trim_end()), 1);
        out += &style.wrap("       -> ", &clean(&trouble.then));
    }
    if all.len() > TROUBLES {
        out += &format!(
            "and {} more: `nova-host-alerter status --json`, `nova-host-alerter list`\n",
            all.len() - TROUBLES
        );
    }
    out + "\n"
}

fn marks(status: &Status) -> String {
    let stage = |(word, stage): (&&str, &Stage)| {
        let age = age(stage.oldest_at, status);
        format!("{} {word} (oldest {}, {age})", stage.marks, stage.oldest_host)
    };
    let mut said: Vec<String> = status.states.iter().map(stage).collect();
    if status.unknown.is_some() {
        said.push("not known: the journal cannot be read".to_owned());
    } else if said.is_empty() {
        said.push("none open".to_owned());
    }
    let more = [
        (status.new_fencings, "fencing(s) wait for the daemon"),
        (
            status.unmarked_fencings,
            "fencing(s) in the register have no mark: they wait for the alerter, or the alerter holds them",
        ),
        (status.settled_still_tried, "settled mark(s) are still tried on routes that are not required"),
        (status.damaged, "damaged row(s)"),
    ];
    said.extend(more.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
    said.join(", ")
}

fn cluster(cluster: &ClusterStatus) -> String {
    let sending = if cluster.permitted { "marks may be sent" } else { "no mark may be sent now" };
    format!("register  {}: {} entries, {sending}\n", cluster.register, cluster.entries)
}

fn routes(daemon: &Daemon, problems: &[Problem]) -> Vec<Vec<String>> {
    let heading = ["ROUTE", "DRIVER", "WAITING", "STATE", "ENDPOINT"].map(str::to_owned).to_vec();
    std::iter::once(heading).chain(daemon.routes.iter().map(|one| route(one, problems))).collect()
}

/// So many hosts are named that a route rejects.
const REJECTED: usize = 3;

fn route(route: &RouteStatus, problems: &[Problem]) -> Vec<String> {
    let is_of_it =
        |trouble: &&Problem| trouble.route.as_ref() == Some(&route.name) && trouble.kind == Kind::Rejected;
    let rejected: Vec<&str> =
        problems.iter().filter(is_of_it).flat_map(|trouble| &trouble.hosts).map(String::as_str).collect();
    let waits = route.waits_until.filter(|_| route.waiting > 0);
    let state = match (route.failing_since, &route.failure) {
        (Some(since), Some(kind)) if route.refuses => {
            format!("refuses ({kind}) since {}", time(since))
        }
        (Some(since), Some(kind)) => format!("accepts nothing ({kind}) since {}", time(since)),
        _ if waits.is_some() => "failed of late".to_owned(),
        _ => "ready".to_owned(),
    };
    let state =
        waits.map_or_else(|| state.clone(), |until| format!("{state}, asked again at {}", time(until)));
    // That says nothing of other marks.
    let state = match rejected.is_empty() {
        true => state,
        false => format!("{state}; rejects {}", named_up_to(&rejected, REJECTED)),
    };
    let state = if route.required { state } else { format!("not required; {state}") };
    vec![route.name.clone(), route.driver.clone(), route.waiting.to_string(), state, clean(&route.endpoint)]
}

/// Groups are shown where there are several, or where the only one has a limit or holds something.
fn groups(groups: &[GroupStatus]) -> Vec<Vec<String>> {
    let says = |group: &&GroupStatus| group.allowed.is_some() || !group.held.is_empty();
    let mut shown: Vec<&GroupStatus> = groups.iter().filter(says).collect();
    if groups.len() > 1 && groups.len() <= GROUPS {
        shown = groups.iter().collect();
    }
    if shown.is_empty() {
        return Vec::new();
    }
    shown.sort_by_key(|group| group.held.is_empty());
    let heading =
        ["GROUP", "HOSTS", "DOWN", "MARKED", "IN FLIGHT", "HELD", "LIMIT", "MORE ALLOWED"].map(str::to_owned);
    std::iter::once(heading.to_vec()).chain(shown.into_iter().map(group)).collect()
}

fn group(group: &GroupStatus) -> Vec<String> {
    let held = group.held.iter().map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>();
    let since = group.storm_since.map(|at| format!("storm since {}", time(at)));
    let held: Vec<String> = held.into_iter().chain(since).collect();
    let number = |number: usize| number.to_string();
    vec![
        group.name.clone(),
        number(group.size),
        number(group.unhealthy),
        number(group.marked),
        number(group.in_flight),
        if held.is_empty() { "0".to_owned() } else { held.join(", ") },
        group.limit.clone(),
        group.allowed.map_or_else(|| "any".to_owned(), number),
    ]
}

#[cfg(test)]
mod tests {

    use marks::time::Timestamp;

    use super::super::overview::tests::status;
    use super::*;

    fn plain(status: &Status) -> String {
        drawn(status, Style::PLAIN)
    }

    #[test]
    fn the_controller_that_has_the_alerter_is_named_where_it_is_another_one() {
        let second = |alerter_on: Option<&str>, runs_elsewhere| {
            let alerter_on = alerter_on.map(str::to_owned);
            let said = plain(&Status { alerter_on, runs_elsewhere, ..status() });
            said.lines().nth(1).unwrap_or_default().to_owned()
        };
        assert!(second(Some("ctl2"), true).starts_with("the alerter runs on ctl2: run this command there"));
        let silent = "the daemon does not answer; marks are kept and sent when it runs again";
        assert!(second(Some("CTL1"), false).starts_with(silent) && second(None, false).starts_with(silent));
    }

    /// The broken variant goes by the failures alone, which an acknowledgement from before the wait has ended.
    #[test]
    fn a_route_whose_marks_wait_for_its_endpoint_is_not_ready() {
        let state = |waiting, waits_until, failing_since: Option<Timestamp>| {
            let failure = failing_since.map(|_| "connect".to_owned());
            let [name, driver, endpoint] = ["r", "http", "http://r/"].map(str::to_owned);
            let (detail, refuses) = (None, false);
            let (required, limit_ms) = (true, 30_000);
            let one = RouteStatus {
                name,
                driver,
                endpoint,
                required,
                limit_ms,
                waiting,
                failing_since,
                failure,
                detail,
                refuses,
                waits_until,
            };
            route(&one, &[])[3].clone()
        };
        let at = Some(Timestamp(0));
        let until = "asked again at 1970-01-01 00:00:00Z";
        assert_eq!(state(2, at, None), format!("failed of late, {until}"));
        let twice = state(2, at, at);
        assert!(twice.starts_with("accepts nothing (connect) since") && twice.ends_with(until), "{twice}");
        assert_eq!([state(0, at, None), state(2, None, None)], ["ready", "ready"]);
    }

    #[test]
    fn what_waits_beside_marks_is_counted() {
        let said = plain(&Status { settled_still_tried: 3, unmarked_fencings: 2, ..status() });
        assert!(said.contains("3 settled mark(s) are still tried on routes that are not required"), "{said}");
        assert!(said.contains("2 fencing(s) in the register have no mark"), "{said}");
        assert!(plain(&status()).contains("marks     none open\n"));
        let unread = plain(&Status { unknown: Some("I/O error".into()), ..status() });
        assert!(unread.contains("marks     not known: the journal cannot be read\n"), "{unread}");
    }
}
