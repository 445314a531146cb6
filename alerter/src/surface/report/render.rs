//! The report as one page of HTML: no script, nothing from elsewhere, readable on a phone and on paper. Every text from outside is
//! escaped.

use std::time::Duration;

use marks::time::Timestamp;
use maud::{DOCTYPE, Markup, PreEscaped, Render, html};

use super::downtime::Downtime;
use super::history::Event;
use super::numbers::{Numbers, Repeated, Slow};
use super::percentile::Percentiles;
use super::spans::{Trouble, between};
use crate::surface::timeline;
use crate::words::{measured, utc};

const CSS: PreEscaped<&str> = PreEscaped(
    "body{font:16px/1.45 system-ui,sans-serif;max-width:64rem;margin:0 auto;padding:1rem;color:#1a1a1a;background:#fff}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem;border-bottom:1px solid #bbb}\
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%}\
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid #ddd;overflow-wrap:anywhere}\
td.n,th.n{text-align:right;white-space:nowrap}dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(9rem,1fr));gap:.6rem}\
dl div{border:1px solid #ccc;border-radius:.3rem;padding:.5rem}dt{color:#555;font-size:.85rem}dd{margin:0;font-size:1.4rem}\
.none{color:#555}@media print{body{max-width:none;padding:0;font-size:10pt}h2{break-after:avoid}tr{break-inside:avoid}.wide{overflow:visible}}",
);

const HEAD: PreEscaped<&str> = PreEscaped(
    r#"<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
"#,
);

/// The whole page; `drawn` is its timeline.
pub fn page(numbers: &Numbers, controller: &str, drawn: &Markup) -> Markup {
    let title = format!("Host failures, {} to {}", time(numbers.from), time(numbers.to));
    html! {
        (DOCTYPE) "\n"
        html lang="en" {
            head { (HEAD) title { (title) } style { (CSS) (PreEscaped(timeline::CSS)) } }
            body {
                h1 { (title) }
                p { "From the journal of " (controller) "; all times are UTC." }
                (counts(numbers))
                (section("Timeline", drawn))
                (times(numbers))
                (slowest(numbers))
                (repeated(numbers))
                (downtime(numbers))
                (trouble(numbers))
                (events("Ended without an acknowledgement", &numbers.ended))
                (events("What operators did", &numbers.operators))
                (notes(numbers))
            }
        }
    }
}

fn counts(numbers: &Numbers) -> Markup {
    let (outages, held) = (&numbers.outages, &numbers.held);
    let figures = [
        ("outages", outages.all.to_string()),
        ("hosts", outages.hosts.to_string()),
        ("acknowledged", outages.acknowledged.to_string()),
        ("open", outages.open.to_string()),
        ("dismissed", outages.dismissed.to_string()),
        ("cancelled", outages.cancelled.to_string()),
        ("expired", outages.expired.to_string()),
        ("parked for a while", numbers.parked.to_string()),
        ("held", held.marks.to_string()),
        ("held altogether", span(held.total_ms)),
        ("held at the longest", span(held.longest_ms)),
        ("duplicates not sent", numbers.duplicates.to_string()),
    ];
    section(
        "Counts",
        html! { dl { @for (what, number) in figures { div { dt { (what) } dd { (number) } } } } },
    )
}

fn times(numbers: &Numbers) -> Markup {
    let head =
        [("Route", false), ("Marks", true), ("p50", true), ("p90", true), ("p99", true), ("Most", true)];
    let overall = numbers.acknowledged.iter().map(|of| ("all required routes", of));
    let lines = overall.chain(numbers.by_route.iter().map(|(route, of)| (route.as_str(), of)));
    let cells = |(name, of): (&str, &Percentiles)| {
        let spans = [of.p50, of.p90, of.p99, of.max].map(span);
        [vec![name.to_owned(), of.count.to_string()], spans.to_vec()].concat()
    };
    table("Time to acknowledge", &head, lines.map(cells))
}

fn slowest(numbers: &Numbers) -> Markup {
    let head = [("Took", true), ("Host", false), ("Failed", false), ("Why", false), ("Mark", false)];
    let cells = |slow: &Slow| {
        let why = if slow.causes.is_empty() { "no delay".to_owned() } else { slow.causes.join("\n") };
        vec![span(slow.took), slow.host.clone(), time(slow.failed), why, slow.mark.clone()]
    };
    table("The slowest", &head, numbers.slowest.iter().map(cells))
}

fn repeated(numbers: &Numbers) -> Markup {
    let cells = |host: &Repeated| vec![host.host.clone(), host.outages.to_string()];
    let head = [("Host", false), ("Outages", true)];
    table("Hosts with several outages", &head, numbers.repeated.iter().map(cells))
}

/// Only where Nova is asked: elsewhere nobody knows.
fn downtime(numbers: &Numbers) -> Markup {
    let head = [
        ("Month", false),
        ("Host", false),
        ("Outages", true),
        ("Instances up", true),
        ("Left", true),
        ("Downtime", true),
        ("Longest", true),
    ];
    let cells = |one: &Downtime| {
        let counts = [one.outages, one.up, one.left].map(|count| count.to_string());
        let spans = [one.total_ms, one.longest_ms].map(span);
        [&[one.month.clone(), one.host.clone()][..], &counts[..], &spans[..]].concat()
    };
    match numbers.downtime.is_empty() {
        true => html! {},
        false => table("Downtime of instances", &head, numbers.downtime.iter().map(cells)),
    }
}

fn trouble(numbers: &Numbers) -> Markup {
    let head = [("Route", false), ("From", false), ("To", false), ("Lasted", false), ("At first", false)];
    let cells = |trouble: &Trouble| {
        let to = trouble.to.map_or_else(|| "still".to_owned(), time);
        let until = trouble.to.unwrap_or(numbers.to);
        let lasted = span(between(trouble.from, until));
        vec![trouble.route.clone(), time(trouble.from), to, lasted, trouble.detail.clone()]
    };
    table("Endpoints in trouble", &head, numbers.trouble.iter().map(cells))
}

fn events(title: &str, events: &[Event]) -> Markup {
    let head = [("When", false), ("What", false), ("Host or route", false), ("Who", false), ("Why", false)];
    let cells = |event: &Event| {
        let count = if event.count > 1 { format!(" ({} times)", event.count) } else { String::new() };
        let word = format!("{}{count}", event.event);
        vec![time(event.at), word, event.about.clone(), event.actor.clone(), event.detail.clone()]
    };
    table(title, &head, events.iter().map(cells))
}

fn notes(numbers: &Numbers) -> Markup {
    section(
        "Notes",
        html! {
            p {
                "The time to acknowledge runs from the failure to the acknowledgement. A percentile is the smallest \
                 measured value that at least so many percent of all values do not exceed."
            }
            @if numbers.damaged > 0 { p { strong { (numbers.damaged) " damaged rows are not counted here." } } }
        },
    )
}

/// A table with a name and whether it is a number for each column; in a cell each line has its own.
fn table(title: &str, head: &[(&str, bool)], rows: impl Iterator<Item = Vec<String>>) -> Markup {
    let mut rows = rows.peekable();
    section(
        title,
        html! {
            @if rows.peek().is_none() { p.none { "none" } }
            @else {
                div.wide { table {
                    thead { tr { @for (name, is_number) in head { th scope="col" class=[is_number.then_some("n")] { (name) } } } }
                    tbody { @for cells in rows { (row(head, &cells)) } }
                } }
            }
        },
    )
}

fn row(head: &[(&str, bool)], cells: &[String]) -> Markup {
    html! {
        tr { @for ((_, is_number), cell) in head.iter().zip(cells) {
            td class=[is_number.then_some("n")] {
                @for (place, text) in cell.split('\n').enumerate() { @if place > 0 { br; } (text) }
            }
        } }
    }
}

fn section(title: &str, body: impl Render) -> Markup {
    html! { section { h2 { (title) } (body) } "\n" }
}

fn time(at: Timestamp) -> String {
    utc(at)
}

fn span(ms: u64) -> String {
    measured(Duration::from_millis(ms))
}
