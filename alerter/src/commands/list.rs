//! `list`: a line for each mark and for each fencing without one, or a line for each cause where there are many.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use journal::Journal;
use marks::delivery::State;
use marks::fencing::Fencing;
use marks::register::{About, Decision, Scope};
use marks::time::Timestamp;

use super::answer::{print, println_all, say};
use super::delivery::DeliveryReport;
use super::filter::Filter;
use super::read::{self, Cut, sound};
use super::report::{MarkReport, Taken};
use super::sources::Sources;
use super::terminal::Style;
use super::text;
use super::unmarked::{self, Rules};
use super::{decide, terminal};
use crate::cli::{self, Cli};
use crate::policy::Hold;
use crate::words::{near, without_uid, written};

/// More lines than this a terminal gets grouped by their cause.
const GROUPED_ABOVE: usize = 30;
/// So many hosts of a group are named.
const NAMED: usize = 3;

/// What one line says.
struct Line {
    /// The smaller, the more it needs a person.
    rank: u8,
    host: String,
    state: String,
    failed: Timestamp,
    /// Each route with its state.
    deliveries: String,
    /// What keeps it from its end.
    why: String,
}

pub(super) fn run(cli: &Cli, options: &cli::List) -> anyhow::Result<ExitCode> {
    let sources = Sources::open(cli)?;
    let filter = Filter::read(cli, &options.filter, sources.journal.as_ref())?;
    let with_settled = options.all || options.settled || filter.wants_settled();
    let Cut { shown: reports, is_cut } = read::reports(&sources, &filter, with_settled, options.limit)?;
    if is_cut {
        let which = if with_settled { "newest" } else { "oldest" };
        say(&read::cut(reports.len(), which), &mut io::stderr());
    }
    if cli.is_for_programs() {
        return print(cli, &reports, String::new).map(|()| ExitCode::SUCCESS);
    }
    let lines = lines(&sources, &filter, &reports)?;
    let is_grouped = io::stdout().is_terminal() && !options.all && lines.len() > GROUPED_ABOVE;
    println_all(&match is_grouped {
        _ if lines.is_empty() => nothing(&filter, with_settled, sources.register.view()),
        true => grouped(&lines, Style::of_stdout()),
        false => table(&lines, Style::of_stdout()),
    });
    Ok(ExitCode::SUCCESS)
}

fn nothing(filter: &Filter, with_settled: bool, view: &str) -> String {
    match with_settled || filter.is_empty() {
        true => format!("no open marks ({view})"),
        false => format!("no such open mark ({view}): `--settled` shows settled ones too"),
    }
}

fn table(lines: &[Line], style: Style) -> String {
    let heading = ["HOST", "STATE", "FENCED AT", "DELIVERIES"].map(str::to_owned).to_vec();
    let row = |line: &Line| {
        vec![line.host.clone(), line.state.clone(), minute(line.failed), line.deliveries.clone()]
    };
    let rows: Vec<Vec<String>> = std::iter::once(heading).chain(lines.iter().map(row)).collect();
    text::headed(&rows, style)
}

/// One line for each cause.
fn grouped(lines: &[Line], style: Style) -> String {
    let mut groups: BTreeMap<(u8, &str, &str), Vec<&Line>> = BTreeMap::new();
    for line in lines {
        groups.entry((line.rank, &line.state, &line.why)).or_default().push(line);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|((rank, ..), lines)| (*rank, std::cmp::Reverse(lines.len())));
    let heading = ["MARKS", "STATE", "WHY", "OLDEST", "HOSTS"].map(str::to_owned).to_vec();
    let row = |((_, state, why), lines): &((u8, &str, &str), Vec<&Line>)| {
        let oldest = lines.iter().map(|line| line.failed).min().map(minute).unwrap_or_default();
        let named: Vec<&str> = lines.iter().take(NAMED).map(|line| line.host.as_str()).collect();
        let hosts = named.join(", ") + if lines.len() > NAMED { ", …" } else { "" };
        vec![lines.len().to_string(), (*state).to_owned(), (*why).to_owned(), oldest, hosts]
    };
    let rows: Vec<Vec<String>> = std::iter::once(heading).chain(groups.iter().map(row)).collect();
    let foot = format!("{} marks by cause; each: `nova-host-alerter list --all`", lines.len());
    text::headed(&rows, style) + &style.cut(&foot) + "\n"
}

/// What needs a person first; the oldest of that.
fn lines(sources: &Sources, filter: &Filter, reports: &[MarkReport]) -> anyhow::Result<Vec<Line>> {
    let now = Timestamp::now();
    let orders = decide::in_force(sources.journal.as_ref(), &sources.register, now)?;
    let mut lines: Vec<Line> = reports.iter().map(|report| of_mark(report, &orders, now)).collect();
    lines.extend(unmarked(sources, filter, now)?);
    lines.sort_by(|one, other| {
        (one.rank, one.failed, &one.host).cmp(&(other.rank, other.failed, &other.host))
    });
    Ok(lines)
}

/// Fencings that no mark covers yet.
fn unmarked(sources: &Sources, filter: &Filter, now: Timestamp) -> anyhow::Result<Vec<Line>> {
    if filter.asks_for_delivery() {
        return Ok(Vec::new());
    }
    let journal = sources.journal.as_ref();
    let unfolded = sound(journal.map(Journal::unfolded_fencings).transpose()?);
    let own = (sources.controller.as_str(), Rules::of(&sources.site));
    let new = unmarked::unmarked(journal, unfolded, &sources.register, own, now)?;
    let is_wanted = |fencing: &&Fencing| filter.takes(&fencing.node, fencing.asked_at);
    let here = new.here.iter().filter(is_wanted).map(|one| of_fencing(one, "waits for the daemon"));
    let there = new.elsewhere.iter().filter(is_wanted);
    let there = there.map(|one| of_fencing(one, "in the register, not marked"));
    Ok(here.chain(there).collect())
}

fn of_fencing(fencing: &Fencing, why: &str) -> Line {
    Line {
        rank: 2,
        host: fencing.node.to_string(),
        state: "fenced".to_owned(),
        failed: fencing.asked_at,
        deliveries: why.to_owned(),
        why: why.to_owned(),
    }
}

fn of_mark(report: &MarkReport, orders: &[Decision], now: Timestamp) -> Line {
    Line {
        rank: rank(report),
        host: report.mark.node.to_string(),
        state: state(report),
        failed: report.mark.failure_time,
        deliveries: deliveries(report, brief),
        why: why(report, orders, now),
    }
}

/// Damage and doubts come first, then what a route rejects or does not accept; what ends by itself or was decided comes later.
fn rank(report: &MarkReport) -> u8 {
    let is_tried = |delivery: &DeliveryReport| !delivery.state.is_final() && delivery.attempts > 0;
    let hold = report.holds.first();
    match report.stage() {
        State::Quarantined => 0,
        _ if report.mark.settled.is_some() => 7,
        _ if hold.is_some_and(|hold| hold.passes()) => 6,
        _ if matches!(hold, Some(Hold::Pause | Hold::Maintenance)) => 5,
        State::Held => 1,
        State::Parked => 2,
        _ if report.deliveries.iter().any(is_tried) => 3,
        _ => 4,
    }
}

/// The state, and what holds the mark.
pub(super) fn state(report: &MarkReport) -> String {
    match report.holds.as_slice() {
        [] if report.mark.settled.is_some() => format!("settled ({})", report.state),
        [] => report.stage().as_str().to_owned(),
        holds => {
            let words: Vec<&str> = holds.iter().map(|hold| hold.as_str()).collect();
            format!("{} ({}{})", report.state, words.join(", "), text::as_of(report))
        }
    }
}

/// Every route with its state, also those that only the register knows of.
pub(super) fn deliveries(report: &MarkReport, shown: impl Fn(&DeliveryReport) -> String) -> String {
    let mut all: Vec<String> = report.deliveries.iter().map(shown).collect();
    if !report.in_journal {
        all.push("known from the register".to_owned());
        let taken = |taken: &Taken| format!("{} acknowledged (by the alerter on {})", taken.route, taken.by);
        all.extend(report.acknowledged.iter().map(taken));
    }
    all.extend(report.damaged.iter().map(|damage| format!("{} quarantined (damaged)", damage.key)));
    all.join("; ")
}

fn brief(delivery: &DeliveryReport) -> String {
    let why = delivery.failure().map(|last| format!(": {}", last.kind));
    let state = match (&why, delivery.state) {
        // The state of the mark says it.
        (Some(_), State::Pending) => String::new(),
        (_, state) => format!(" {}", state.as_str()),
    };
    format!("{}{state}{}", delivery.route, why.unwrap_or_default())
}

/// What keeps a mark from its end; the same text for all marks that one thing keeps.
fn why(report: &MarkReport, orders: &[Decision], now: Timestamp) -> String {
    if report.mark.settled.is_some() {
        return report.state.to_owned();
    }
    if let Some(hold) = report.holds.first() {
        return held_by(report, *hold, orders, now);
    }
    let open = report.deliveries.iter().filter(|delivery| !delivery.state.is_final());
    let mut routes: Vec<String> = open.filter(|one| !one.waits_in_chain()).map(route).collect();
    if !report.in_journal {
        routes.push("known from the register alone".to_owned());
    }
    routes.join("; ")
}

fn route(delivery: &DeliveryReport) -> String {
    let route = &delivery.route;
    match (&delivery.last, delivery.state) {
        (_, State::InFlight) => format!("an attempt to {route} is under way"),
        (Some(last), State::Parked) => format!("{route} rejects it ({})", last.kind),
        (Some(last), _) => format!("{route}: {}", last.kind),
        (None, _) => format!("{route} was not tried yet"),
    }
}

fn held_by(report: &MarkReport, hold: Hold, orders: &[Decision], now: Timestamp) -> String {
    let held = report.held.as_ref().filter(|_| !hold.is_doubt());
    let decision = held.and_then(|held| orders.iter().find(|order| Some(order.id) == held.cause.decision));
    match (decision, hold, held.and_then(|held| held.cause.scope.as_ref())) {
        (Some(decision), ..) => by_order(decision, now),
        (None, Hold::Storm, Some(Scope::Group(group))) => format!("a storm of group {group}"),
        (None, ..) => hold.as_str().to_owned(),
    }
}

/// `root's pause until 16:00Z`.
fn by_order(order: &Decision, now: Timestamp) -> String {
    let who = without_uid(&order.actor);
    let of = match order.about.scope() {
        Some(scope @ (Scope::Group(_) | Scope::Host(_))) => format!(" of {scope}"),
        _ => String::new(),
    };
    let until = match (&order.about, order.about.until()) {
        (_, Some(at)) => format!(" until {}", moment(at, now)),
        (About::Pause { .. }, None) => " until `resume`".to_owned(),
        (_, None) => String::new(),
    };
    terminal::clean(&format!("{who}'s {}{of}{until}", order.about.kind()))
}

/// Seconds would take three columns, and say nothing to people.
const MINUTE: &str = "%Y-%m-%d %H:%MZ";

fn moment(at: Timestamp, now: Timestamp) -> String {
    near(at, now, "%H:%MZ", MINUTE)
}

fn minute(at: Timestamp) -> String {
    written(at, MINUTE)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use marks::host::HostName;
    use marks::id::NoteId;
    use marks::mark::Settlement;
    use marks::register::Cause;

    use super::super::merged::CLUSTER;
    use super::super::report::HeldReport;
    use super::super::trouble::tests::{MINUTE, delivery, proven};
    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn pause() -> Decision {
        let until = Some(NOW + Duration::from_secs(8 * 3600));
        Decision {
            id: NoteId::parse("01a1fdbf-0d60-71c8-80b2-0dca4f558146").unwrap(),
            about: About::Pause { scope: Scope::All, until },
            at: NOW,
            actor: "root (uid 0)".into(),
            reason: "the cloud is upgraded".into(),
        }
    }

    fn in_state(host: &str, state: State) -> MarkReport {
        MarkReport { deliveries: vec![delivery(state)], ..proven(host, MINUTE * 10) }
    }

    fn held(host: &str, hold: Hold, cause: Cause) -> MarkReport {
        let why = "x".to_owned();
        let held = HeldReport { why, cause, since: NOW, until: None, as_of_last_run: false };
        MarkReport { holds: vec![hold], state: "held", held: Some(held), ..in_state(host, State::Pending) }
    }

    fn paused(host: &str) -> MarkReport {
        held(host, Hold::Pause, Cause { scope: Some(Scope::All), decision: Some(pause().id) })
    }

    fn sorted(reports: &[MarkReport]) -> Vec<Line> {
        let mut lines: Vec<Line> = reports.iter().map(|report| of_mark(report, &[pause()], NOW)).collect();
        lines.sort_by(|one, other| (one.rank, &one.host).cmp(&(other.rank, &other.host)));
        lines
    }

    fn all() -> Vec<Line> {
        let storm = Cause { scope: Some(Scope::Group("rack1".into())), decision: None };
        let mut settled = in_state("compute9", State::Acknowledged);
        (settled.mark.settled, settled.state) = (Some((Settlement::Acknowledged, NOW)), "acknowledged");
        let long = "compute-of-a-very-long-name-in-rack-17-of-the-third-data-centre-0042";
        let mut nameless = held("compute3", Hold::NoFqdn, Cause::default());
        nameless.mark.fqdn = None::<HostName>;
        sorted(&[
            settled,
            in_state("compute1", State::Pending),
            in_state(long, State::Parked),
            paused("compute4"),
            held("compute2", Hold::Storm, storm),
            nameless,
        ])
    }

    fn drawn(columns: usize) -> String {
        table(&all(), Style { has_colours: false, columns: Some(columns) })
    }

    /// The broken variant lets the terminal break the lines.
    #[test]
    fn it_fits_80_120_and_200_columns() {
        assert_eq!([80, 120, 200].map(drawn), GOLDEN);
        for columns in [40, 80, 120, 200] {
            assert!(drawn(columns).lines().all(|line| line.chars().count() <= columns), "{}", drawn(columns));
        }
    }

    const GOLDEN: [&str; 3] = [
        "\
HOST                 STATE                FENCED AT          DELIVERIES
compute2             held (storm)         2027-01-15 07:50Z  recovery: rejected
compute3             held (no-fqdn)       2027-01-15 07:50Z  recovery: rejected
compute-o…ntre-0042  parked               2027-01-15 07:50Z  recovery parked: r…
compute1             pending              2027-01-15 07:50Z  recovery: rejected
compute4             held (pause)         2027-01-15 07:50Z  recovery: rejected
compute9             settled (acknowled…  2027-01-15 07:50Z  recovery acknowled…
",
        "\
HOST                                                STATE                   FENCED AT          DELIVERIES
compute2                                            held (storm)            2027-01-15 07:50Z  recovery: rejected
compute3                                            held (no-fqdn)          2027-01-15 07:50Z  recovery: rejected
compute-of-a-very-long-na…e-third-data-centre-0042  parked                  2027-01-15 07:50Z  recovery parked: rejected
compute1                                            pending                 2027-01-15 07:50Z  recovery: rejected
compute4                                            held (pause)            2027-01-15 07:50Z  recovery: rejected
compute9                                            settled (acknowledged)  2027-01-15 07:50Z  recovery acknowledged
",
        "\
HOST                                                                  STATE                   FENCED AT          DELIVERIES
compute2                                                              held (storm)            2027-01-15 07:50Z  recovery: rejected
compute3                                                              held (no-fqdn)          2027-01-15 07:50Z  recovery: rejected
compute-of-a-very-long-name-in-rack-17-of-the-third-data-centre-0042  parked                  2027-01-15 07:50Z  recovery parked: rejected
compute1                                                              pending                 2027-01-15 07:50Z  recovery: rejected
compute4                                                              held (pause)            2027-01-15 07:50Z  recovery: rejected
compute9                                                              settled (acknowledged)  2027-01-15 07:50Z  recovery acknowledged
",
    ];

    #[test]
    fn many_are_grouped_by_their_cause() {
        let mut reports: Vec<MarkReport> = (0..38).map(|number| paused(&format!("r1-{number:02}"))).collect();
        reports.extend((0..262).map(|number| in_state(&format!("r2-{number:03}"), State::Parked)));
        let shown = grouped(&sorted(&reports), Style { has_colours: false, columns: Some(100) });
        let wanted = "\
MARKS  STATE         WHY                             OLDEST             HOSTS
262    parked        recovery rejects it (rejected)  2027-01-15 07:50Z  r2-000, r2-001, r2-002, …
38     held (pause)  root's pause until 16:00Z       2027-01-15 07:50Z  r1-00, r1-01, r1-02, …
300 marks by cause; each: `nova-host-alerter list --all`
";
        assert_eq!(shown, wanted);
    }

    #[test]
    fn a_day_is_said_where_it_is_another_one() {
        assert_eq!(moment(NOW, NOW), "08:00Z");
        assert_eq!(moment(NOW + Duration::from_secs(86_400), NOW), "2027-01-16 08:00Z");
        assert_eq!(by_order(&pause(), NOW), "root's pause until 16:00Z");
        assert_eq!(nothing(&Filter::default(), false, CLUSTER), "no open marks (cluster)");
    }
}
