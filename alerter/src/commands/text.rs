//! How answers look on a terminal.

use comfy_table::{Table, presets::NOTHING};
use marks::fencing::Fencing;
use marks::time::Timestamp;

use super::delivery::{ChainReport, DeliveryReport};
use super::merged::CLUSTER;
use super::report::{MarkReport, Story, Taken};
use super::story;
pub(super) use crate::words::{short as span, utc as time};

/// Columns as wide as their widest cell, two spaces between them.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt() + "\n"
}

/// The heading of `list`.
pub(super) fn heading() -> Vec<String> {
    ["HOST", "STATE", "FENCED AT", "FENCINGS", "MARK", "DELIVERIES"].map(str::to_owned).to_vec()
}

/// A line of `list`.
pub(super) fn line(report: &MarkReport) -> Vec<String> {
    let mark = &report.mark;
    let mut deliveries: Vec<String> = report.deliveries.iter().map(short).collect();
    if !report.in_journal {
        deliveries.push("known from the register".to_owned());
        let taken = |taken: &Taken| format!("{} acknowledged (by the alerter on {})", taken.route, taken.by);
        deliveries.extend(report.acknowledged.iter().map(taken));
    }
    deliveries.extend(report.damaged.iter().map(|damage| format!("{} quarantined (damaged)", damage.key)));
    let state = match report.holds.as_slice() {
        [] if mark.settled.is_some() => format!("settled ({})", report.state),
        [] => report.state.to_owned(),
        holds => {
            let words: Vec<&str> = holds.iter().map(|hold| hold.as_str()).collect();
            format!("{} ({}{})", report.state, words.join(", "), as_of(report))
        }
    };
    let cells = [
        mark.node.to_string(),
        state,
        time(mark.failure_time),
        report.fence_count.to_string(),
        mark.id.to_string(),
        deliveries.join("; "),
    ];
    cells.to_vec()
}

/// A line of `list` for a fencing of which no daemon has made a mark yet, with the reason.
pub(super) fn new_fencing(fencing: &Fencing, why: &str) -> Vec<String> {
    vec![
        fencing.node.to_string(),
        "fenced".to_owned(),
        time(fencing.asked_at),
        "1".to_owned(),
        fencing.id.to_string(),
        why.to_owned(),
    ]
}

/// All of `list`. Where the cluster could not be asked, every line says so.
pub(super) fn listing(lines: Vec<Vec<String>>, view: &str) -> String {
    if lines.is_empty() {
        return format!("no open marks ({view})");
    }
    let all = std::iter::once(heading()).chain(lines);
    if view == CLUSTER {
        return table(&all.collect::<Vec<_>>());
    }
    let with_view = |(number, line): (usize, Vec<String>)| {
        let view = if number == 0 { "VIEW" } else { view };
        [line, vec![view.to_owned()]].concat()
    };
    table(&all.enumerate().map(with_view).collect::<Vec<_>>())
}

/// What the policy held when an alerter ran here last may be held or notified elsewhere now.
fn as_of(report: &MarkReport) -> &'static str {
    let is_former = report.held.as_ref().is_some_and(|held| held.as_of_last_run);
    if is_former { ", as of the alerter's last run here" } else { "" }
}

fn short(delivery: &DeliveryReport) -> String {
    let waits = delivery.chain.as_ref().is_some_and(|chain| chain.waits);
    let last = delivery.last.as_ref().filter(|_| !delivery.state.is_final() && !waits);
    let why = last.map(|last| format!(", last: {}", last.kind)).unwrap_or_default();
    let required = if delivery.required { "" } else { ", not required" };
    let (route, state) = (&delivery.route, delivery.state.as_str());
    let chain = delivery.chain.as_ref().map(|chain| format!(", {}", step(chain))).unwrap_or_default();
    format!("{route} {state} ({} attempt(s){why}{required}{chain})", delivery.attempts)
}

/// What holds a mark, until when, and what to do.
fn held(report: &MarkReport) -> String {
    let Some(first) = report.holds.first() else { return String::new() };
    let mut out = String::new();
    if let Some(held) = &report.held {
        let until = held.until.map(|at| format!(", until {} at the latest", time(at))).unwrap_or_default();
        let as_of = as_of(report);
        out += &format!("  held            since {}{until}{as_of}: {}\n", time(held.since), held.why);
    }
    let words: Vec<&str> = report.holds.iter().map(|hold| hold.as_str()).collect();
    out += &format!("  held by         {}\n", words.join(", "));
    let scope = report.held.as_ref().filter(|_| !first.is_doubt()).and_then(|held| held.cause.scope.as_ref());
    out + &format!("  what to do      {}\n", first.advice(&report.mark.id.to_string(), scope))
}

/// A step's place in its chain, and its time.
fn step(chain: &ChainReport) -> String {
    let place = format!("step {} of {}", chain.step, chain.steps);
    match chain {
        ChainReport { waits: true, until: Some(at), .. } => format!("{place}, left at {}", time(*at)),
        ChainReport { waits: true, .. } => format!("{place}, not its turn yet"),
        ChainReport { exhausted_at: Some(at), .. } => {
            format!("{place}, none is left since {}", time(*at))
        }
        ChainReport { since: Some(since), until: Some(until), .. } => {
            format!("{place} since {}, until {}", time(*since), time(*until))
        }
        ChainReport { left: Some(left), .. } => format!("{place}, its clock stands with {left} s left"),
        _ => place,
    }
}

/// All of `show`, at a time.
pub(super) fn story(of: &Story, now: Timestamp) -> String {
    let (report, mark) = (&of.report, &of.report.mark);
    let told = mark.fqdn.as_ref().map_or(
        "nothing yet: no FQDN is known; set [hosts] domain or a name of its own in [hosts.names]",
        |name| name.as_str(),
    );
    let mut out = format!(
        "{}: {} ({})\n  mark            {}\n  told as         {told}\n  shared storage  {}\n  fenced at       {}\n",
        mark.node,
        report.state,
        report.view,
        mark.id,
        mark.on_shared_storage,
        time(mark.failure_time)
    );
    out += &format!("  standing        {}\n", of.vouched);
    if let Some(at) = mark.returned_at {
        out += &format!("  returned at     {}\n", time(at));
    }
    out += &held(report);
    out += &lines("came from", &of.came_from);
    out += &lines("kept in", &of.kept_in);
    for taken in report.acknowledged.iter().filter(|_| !report.in_journal) {
        let (route, at) = (&taken.route, time(taken.at));
        out += &format!("  delivery        {route} acknowledged at {at} by the alerter on {}\n", taken.by);
    }
    for delivery in &report.deliveries {
        out += &format!("  delivery        {}\n", short(delivery));
        if let Some(last) = &delivery.last {
            out += &format!("                  {}: {}\n", time(last.at), last.detail);
        }
        // What is held goes when the hold ends, and what is due already when its route is asked again.
        if let Some(next) = delivery.next_due.filter(|next| *next > now && report.holds.is_empty()) {
            out += &format!("                  next attempt at {}\n", time(next));
        }
        out += &format!("                  {}\n", delivery.body);
    }
    for damage in &report.damaged {
        out +=
            &format!("  damaged         {} {}: it is not sent and not dropped\n", damage.table, damage.key);
    }
    out + &story::lines(of)
}

/// Sentences under one label.
fn lines(label: &str, sentences: &[String]) -> String {
    let labels = std::iter::once(label).chain(std::iter::repeat(""));
    labels.zip(sentences).map(|(label, sentence)| format!("  {label:<16}{sentence}\n")).collect()
}

#[cfg(test)]
mod tests {
    use marks::time::Timestamp;

    use super::*;

    #[test]
    fn a_table_lines_up() {
        let rows = [vec!["a".to_owned(), "bb".to_owned()], vec!["ccc".to_owned(), "d".to_owned()]];
        assert_eq!(table(&rows), "a    bb\nccc  d\n");
        let wide = [["日本", "x"], ["a", "y"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&wide), "日本  x\na     y\n", "a letter may take two columns");
    }

    #[test]
    fn a_local_view_is_said_on_every_line() {
        let line = || vec![heading().iter().map(|_| "x".to_owned()).collect::<Vec<_>>()];
        assert!(listing(line(), "local view").lines().skip(1).all(|line| line.ends_with("local view")));
        assert!(!listing(line(), CLUSTER).contains("VIEW"));
        assert_eq!(listing(vec![], CLUSTER), "no open marks (cluster)");
    }

    #[test]
    fn sentences_stand_under_one_label() {
        let two = ["one".to_owned(), "two".to_owned()];
        assert_eq!(lines("kept in", &two), "  kept in         one\n                  two\n");
    }

    #[test]
    fn a_step_says_its_place_and_its_time() {
        let chain = ChainReport {
            step: 2,
            steps: 3,
            timeout: 60,
            waits: false,
            since: Some(Timestamp(0)),
            until: Some(Timestamp(60_000)),
            left: None,
            exhausted_at: None,
        };
        assert_eq!(step(&chain), "step 2 of 3 since 1970-01-01 00:00:00Z, until 1970-01-01 00:01:00Z");
        let chain = ChainReport { since: None, until: None, left: Some(7), ..chain };
        assert_eq!(step(&chain), "step 2 of 3, its clock stands with 7 s left");
        let chain = ChainReport { exhausted_at: Some(Timestamp(1_000)), ..chain };
        assert_eq!(step(&chain), "step 2 of 3, none is left since 1970-01-01 00:00:01Z");
        let chain = ChainReport { waits: true, exhausted_at: None, ..chain };
        assert_eq!(step(&chain), "step 2 of 3, not its turn yet");
        let chain = ChainReport { until: Some(Timestamp(0)), ..chain };
        assert_eq!(step(&chain), "step 2 of 3, left at 1970-01-01 00:00:00Z");
    }
}
