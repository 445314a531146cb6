//! `list`: a line for each mark and for each fencing without one.

use std::io;
use std::process::ExitCode;

use journal::Journal;
use marks::delivery::{Delivery, State};
use marks::fencing::Fencing;
use marks::time::Timestamp;

use super::answer::{print, println_all, say};
use super::delivery::failure;
use super::filter::Filter;
use super::read::{self, Cut, sound};
use super::report::{MarkReport, Taken};
use super::sources::Sources;
use super::terminal::Style;
use super::text;
use super::unmarked::{self, Rules};
use crate::cli::{self, Cli};
use crate::policy::Hold;

/// What one line says.
struct Line {
    /// The smaller, the more it needs a person.
    rank: u8,
    host: String,
    state: String,
    failed: Timestamp,
    /// Each route with its state.
    deliveries: String,
}

pub(super) fn run(cli: &Cli, options: &cli::List) -> anyhow::Result<ExitCode> {
    let sources = Sources::open(cli)?;
    let filter = Filter::read(&options.filter)?.in_states(&options.states)?;
    let with_settled = options.all || filter.wants_settled();
    let Cut { shown: reports, is_cut } = read::reports(&sources, &filter, with_settled, options.limit)?;
    if is_cut {
        let which = if with_settled { "newest" } else { "oldest" };
        say(&read::cut(reports.len(), which), &mut io::stderr());
    }
    if cli.is_for_programs() {
        return print(cli, &reports, String::new).map(|()| ExitCode::SUCCESS);
    }
    let lines = lines(&sources, &filter, &reports)?;
    println_all(&match lines.is_empty() {
        true => nothing(&filter, with_settled, sources.register.view()),
        false => table(&lines, Style::of_stdout()),
    });
    Ok(ExitCode::SUCCESS)
}

fn nothing(filter: &Filter, with_settled: bool, view: &str) -> String {
    match with_settled || filter.is_empty() {
        true => format!("no open marks ({view})"),
        false => format!("no such open mark ({view}): `--all` shows settled ones too"),
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

/// What needs a person first; the oldest of that.
fn lines(sources: &Sources, filter: &Filter, reports: &[MarkReport]) -> anyhow::Result<Vec<Line>> {
    let now = Timestamp::now();
    let mut lines: Vec<Line> = reports.iter().map(of_mark).collect();
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
    let records = sources.records();
    let unfolded = sound(records.here(Journal::unfolded_fencings)?);
    let own = (sources.controller.as_str(), Rules::of(&sources.site));
    let new = unmarked::unmarked(records, unfolded, own, now)?;
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
    }
}

fn of_mark(report: &MarkReport) -> Line {
    Line {
        rank: rank(report),
        host: report.kept.mark.node.to_string(),
        state: state(report),
        failed: report.kept.mark.failure_time,
        deliveries: deliveries(report),
    }
}

/// Damage and doubts come first, then what a route rejects or does not accept; what ends by itself or was decided comes later.
fn rank(report: &MarkReport) -> u8 {
    let is_tried = |delivery: &Delivery| !delivery.state.is_final() && delivery.attempts > 0;
    let holds = report.holds();
    let hold = holds.first();
    match report.stage() {
        State::Quarantined => 0,
        _ if report.kept.mark.settled.is_some() => 7,
        _ if hold.is_some_and(|hold| hold.passes()) => 6,
        _ if matches!(hold, Some(Hold::Pause | Hold::Maintenance)) => 5,
        State::Held => 1,
        State::Parked => 2,
        _ if report.kept.deliveries.iter().any(is_tried) => 3,
        _ => 4,
    }
}

/// The state, and what holds the mark.
pub(super) fn state(report: &MarkReport) -> String {
    match report.holds().as_slice() {
        [] if report.kept.mark.settled.is_some() => format!("settled ({})", report.state()),
        [] => report.stage().as_str().to_owned(),
        holds => {
            let words: Vec<&str> = holds.iter().map(|hold| hold.as_str()).collect();
            format!("{} ({}{})", report.state(), words.join(", "), text::as_of(report))
        }
    }
}

/// Every route with its state, also those that only the register knows of.
fn deliveries(report: &MarkReport) -> String {
    let mut all: Vec<String> = report.kept.deliveries.iter().map(brief).collect();
    if !report.in_journal {
        all.push("known from the register".to_owned());
        let taken = |taken: &Taken| format!("{} acknowledged (by the alerter on {})", taken.route, taken.by);
        all.extend(report.acknowledged.iter().map(taken));
    }
    all.extend(report.kept.damaged.iter().map(|damage| format!("{} quarantined (damaged)", damage.key)));
    all.join("; ")
}

fn brief(delivery: &Delivery) -> String {
    let why = failure(delivery).map(|last| format!(": {}", last.kind));
    let state = match (&why, delivery.state) {
        // The state of the mark says it.
        (Some(_), State::Pending) => String::new(),
        (_, state) => format!(" {}", state.as_str()),
    };
    format!("{}{state}{}", delivery.route, why.unwrap_or_default())
}

/// Seconds would take three columns, and say nothing to people.
const MINUTE: &str = "%Y-%m-%d %H:%MZ";

fn minute(at: Timestamp) -> String {
    at.written(MINUTE)
}

#[cfg(test)]
mod tests {

    use journal::Recent;
    use marks::host::HostName;
    use marks::mark::{MarkRow, Settlement};
    use marks::register::{Cause, Scope};

    use super::super::merged::CLUSTER;
    use super::super::trouble::tests::{MINUTE, delivery, held_by, proven, with};
    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn in_state(host: &str, state: State) -> MarkReport {
        with(delivery(state), proven(host, MINUTE * 10))
    }

    fn held(host: &str, hold: Hold, cause: Cause) -> MarkReport {
        let report = held_by(host, hold, "x", None, cause);
        let failure_time = NOW - MINUTE * 10;
        let mark = MarkRow { failure_time, ..report.kept.mark };
        MarkReport { kept: Recent { mark, ..report.kept }, ..report }
    }

    fn paused(host: &str) -> MarkReport {
        held(host, Hold::Pause, Cause { scope: Some(Scope::All), decision: None })
    }

    fn sorted(reports: &[MarkReport]) -> Vec<Line> {
        let mut lines: Vec<Line> = reports.iter().map(of_mark).collect();
        lines.sort_by(|one, other| (one.rank, &one.host).cmp(&(other.rank, &other.host)));
        lines
    }

    fn all() -> Vec<Line> {
        let storm = Cause { scope: Some(Scope::Group("rack1".into())), decision: None };
        let mut settled = in_state("compute9", State::Acknowledged);
        settled.kept.mark.settled = Some((Settlement::Acknowledged, NOW));
        let long = "compute-of-a-very-long-name-in-rack-17-of-the-third-data-centre-0042";
        let mut nameless = in_state("compute3", State::Pending);
        nameless.kept.mark.fqdn = None::<HostName>;
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
    fn an_empty_list_says_so() {
        assert_eq!(nothing(&Filter::default(), false, CLUSTER), "no open marks (cluster)");
    }
}
