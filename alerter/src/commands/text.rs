//! Answers as text.

pub(super) use crate::words::{short as span, utc as time};

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use marks::delivery::Delivery;
use marks::mark::Lack;
use marks::time::Timestamp;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::delivery::{ChainReport, failure, next_due};
use super::report::{MarkReport, Story};
use super::terminal::{Colour, Style, clean};
use crate::outage::Moment;

/// Columns as wide as their widest cell, two spaces between them.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt() + "\n"
}

/// The table in lines that fit the terminal: the widest column is cut first.
pub(super) fn fitted(rows: &[Vec<String>], columns: Option<usize>) -> String {
    let Some(columns) = columns else { return table(rows) };
    let count = rows.first().map_or(0, Vec::len);
    let width_of = |at: usize| rows.iter().map(|row| row[at].width()).max().unwrap_or_default();
    let mut widths: Vec<usize> = (0..count).map(width_of).collect();
    while widths.iter().sum::<usize>() + 2 * count.saturating_sub(1) > columns {
        let widest = widths.iter_mut().max().filter(|width| **width > LEAST);
        let Some(widest) = widest else { break };
        *widest -= 1;
    }
    let cells = |row: &Vec<String>| {
        let cut = |(at, (cell, width)): (usize, (&String, &usize))| shortened(cell, *width, at == 0);
        row.iter().zip(&widths).enumerate().map(cut).collect::<Vec<_>>()
    };
    table(&rows.iter().map(cells).collect::<Vec<_>>())
}

/// No column is narrower because of the terminal.
const LEAST: usize = 4;

/// At most so wide; a name keeps its end, which says more than its middle.
fn shortened(text: &str, width: usize, keeps_end: bool) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let end = if keeps_end { width.saturating_sub(1) / 2 } else { 0 };
    let within = |room: usize| {
        let mut used = 0;
        move |c: &char| {
            used += c.width().unwrap_or_default();
            used <= room
        }
    };
    let head: String = text.chars().take_while(within(width.saturating_sub(1 + end))).collect();
    let tail: Vec<char> = text.chars().rev().take_while(within(end)).collect();
    head + "…" + &tail.into_iter().rev().collect::<String>()
}

/// The same with a faint heading; nothing of no rows.
pub(super) fn headed(rows: &[Vec<String>], style: Style) -> String {
    let text = fitted(rows, style.columns);
    let (heading, rest) = text.split_once('\n').unwrap_or((&text, ""));
    if rows.is_empty() { rest.to_owned() } else { style.paint(Colour::Faint, heading) + "\n" + rest }
}

/// What the policy held when an alerter ran here last may have another state elsewhere now.
pub(super) fn as_of(report: &MarkReport) -> &'static str {
    let is_former = report.as_of_last_run && report.kept.held.is_some();
    if is_former { ", as of the alerter's last run here" } else { "" }
}

/// A route with its state, its attempts and its place in a chain.
pub(super) fn short(delivery: &Delivery, steps: u32) -> String {
    let why = failure(delivery).map(|last| format!(", last: {}", last.kind)).unwrap_or_default();
    let required = if delivery.required { "" } else { ", not required" };
    let (route, state) = (&delivery.route, delivery.state.as_str());
    let chain =
        ChainReport::of(delivery, steps).map(|chain| format!(", {}", step(&chain))).unwrap_or_default();
    format!("{route} {state} ({} attempt(s){why}{required}{chain})", delivery.attempts)
}

/// What holds a mark, until when, and what to do.
fn held(report: &MarkReport) -> String {
    let holds = report.holds();
    let Some(first) = holds.first() else { return String::new() };
    let held = report.kept.held.as_ref();
    let mut out = String::new();
    if let Some(held) = held {
        let until = held.until.map(|at| format!(", until {} at the latest", time(at))).unwrap_or_default();
        let as_of = as_of(report);
        out += &format!("  held            since {}{until}{as_of}: {}\n", time(held.since), held.why);
    }
    let words: Vec<&str> = holds.iter().map(|hold| hold.as_str()).collect();
    out += &format!("  held by         {}\n", words.join(", "));
    let scope = held.filter(|_| !first.is_doubt()).and_then(|held| held.cause.scope.as_ref());
    out + &format!("  what to do      {}\n", first.advice(&report.kept.mark.id.to_string(), scope))
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
        ChainReport { left: Some(left), .. } => format!("{place}, its clock is stopped with {left} s left"),
        _ => place,
    }
}

/// All of `show`, at a time.
pub(super) fn story(of: &Story, now: Timestamp) -> String {
    let (report, mark) = (&of.report, &of.report.kept.mark);
    let reported =
        mark.fqdn.as_ref().map_or(
            "not yet: its FQDN is not known; set [hosts] domain or its name in [hosts.names]",
            |name| name.as_str(),
        );
    let shared = match mark.on_shared_storage {
        Some(shared) => shared.to_string(),
        None => format!("not known yet: set {}", Lack::Storage.setting()),
    };
    let mut out = format!(
        "{}: {} ({})\n  mark            {}\n  reported as     {reported}\n  shared storage  {shared}\n  fenced at       {}\n",
        mark.node,
        report.state(),
        report.view,
        mark.id,
        time(mark.failure_time)
    );
    out += &format!("  standing        {}\n", of.vouched);
    if let Some(at) = mark.returned_at {
        out += &format!("  returned at     {}\n", time(at));
    }
    out += &held(report);
    for taken in report.acknowledged.iter().filter(|_| !report.in_journal) {
        let (route, at) = (&taken.route, time(taken.at));
        out += &format!("  delivery        {route} acknowledged at {at} by the alerter on {}\n", taken.by);
    }
    for delivery in &report.kept.deliveries {
        out += &format!("  delivery        {}\n", short(delivery, report.steps()));
        if let Some(last) = &delivery.last {
            out += &format!("                  {}: {}\n", time(last.at), last.detail);
        }
        // A held mark goes when the hold ends; one that is due goes when its route is tried again.
        if let Some(next) = next_due(delivery).filter(|next| *next > now && report.holds().is_empty()) {
            out += &format!("                  next attempt at {}\n", time(next));
        }
        out += &format!("                  {}\n", String::from_utf8_lossy(&delivery.body));
    }
    for damage in &report.kept.damaged {
        out +=
            &format!("  damaged         {} {}: it is not sent and not dropped\n", damage.table, damage.key);
    }
    out + &lines(&of.timeline)
}

/// All lines, with the time since the host failed.
pub(super) fn lines(timeline: &[Moment]) -> String {
    let width = timeline.iter().map(|one| one.event.chars().count()).max().unwrap_or(0);
    let shown = |one: &Moment| {
        let by = if one.by.is_empty() { String::new() } else { format!(" ({})", one.by) };
        let (at, after, event, what) =
            (time(one.at), one.since_failure(), &one.event, clean(&one.sentence()));
        format!("  {at}  {after:>5}  {event:width$}  {what}{by}\n")
    };
    timeline.iter().map(shown).collect()
}

#[cfg(test)]
mod tests {

    use super::*;

    /// The broken variant cuts the end of every name: all hosts of a rack would be called the same.
    #[test]
    fn a_table_fits_and_what_is_cut_has_an_ellipsis() {
        let rows = [["HOST", "WHY"], ["compute-in-rack-0042", "the route rejects it"]]
            .map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(
            fitted(&rows, Some(30)),
            "HOST           WHY\ncompute…k-0042  the route rej…\n"
                .replace("HOST           ", "HOST            ")
        );
        assert_eq!(fitted(&rows, None), table(&rows));
        assert_eq!(
            (shortened("日本語", 5, false), shortened("ab", 2, true)),
            ("日本…".to_owned(), "ab".to_owned())
        );
    }
}
