//! The report as one page of HTML: no script, nothing from elsewhere, readable on a phone and on paper. Every text from
//! outside is escaped, whoever wrote it.

use std::fmt::Display;
use std::time::Duration;

use marks::time::Timestamp;

use super::{Event, Numbers, Percentiles};
use crate::surface::markup::Markup;
use crate::surface::timeline;
use crate::words::{measured, utc};

const CSS: &str = "body{font:16px/1.45 system-ui,sans-serif;max-width:64rem;margin:0 auto;padding:1rem;color:#1a1a1a;background:#fff}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem;border-bottom:1px solid #bbb}\
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%}\
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid #ddd;overflow-wrap:anywhere}\
td.n,th.n{text-align:right;white-space:nowrap}dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(9rem,1fr));gap:.6rem}\
dl div{border:1px solid #ccc;border-radius:.3rem;padding:.5rem}dt{color:#555;font-size:.85rem}dd{margin:0;font-size:1.4rem}\
.none{color:#555}@media print{body{max-width:none;padding:0;font-size:10pt}h2{break-after:avoid}tr{break-inside:avoid}.wide{overflow:visible}}";

const HEAD: &str = r#"<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
"#;

/// The whole page; `drawn` is its timeline.
pub fn page(numbers: &Numbers, controller: &str, drawn: &Markup) -> Markup {
    let (from, to) = (time(numbers.from), time(numbers.to));
    let title = format!("Host failures, {from} to {to}");
    let mut out = Markup::default();
    out.own("<!DOCTYPE html>\n");
    out.tag("html", &[("lang", &"en")], |html| {
        html.tag("head", &[], |head| {
            head.own(HEAD);
            head.leaf("title", &[], &title);
            head.tag("style", &[], |style| {
                style.own(CSS);
                style.own(timeline::CSS);
            });
        });
        html.tag("body", &[], |body| {
            body.leaf("h1", &[], &title);
            body.leaf("p", &[], format_args!("From the journal of {controller}; all times are UTC."));
            sections(body, numbers, drawn);
        });
    });
    out
}

fn sections(out: &mut Markup, numbers: &Numbers, drawn: &Markup) {
    counts(out, numbers);
    section(out, "Timeline", |inside| inside.add(drawn));
    times(out, numbers);
    slowest(out, numbers);
    repeated(out, numbers);
    trouble(out, numbers);
    events(out, "Ended without an acknowledgement", &numbers.ended);
    events(out, "What operators did", &numbers.operators);
    notes(out, numbers);
}

fn counts(out: &mut Markup, numbers: &Numbers) {
    let (outages, held) = (&numbers.outages, &numbers.held);
    let figures = [
        ("outages", outages.all.to_string()),
        ("hosts", outages.hosts.to_string()),
        ("told", outages.told.to_string()),
        ("open", outages.open.to_string()),
        ("dismissed", outages.dismissed.to_string()),
        ("cancelled", outages.cancelled.to_string()),
        ("expired", outages.expired.to_string()),
        ("parked for a while", numbers.parked.to_string()),
        ("held", held.marks.to_string()),
        ("held altogether", span(held.total_ms)),
        ("held at the longest", span(held.longest_ms)),
        ("duplicates not told", numbers.duplicates.to_string()),
    ];
    let figure = |list: &mut Markup, (what, number): &(&str, String)| {
        list.tag("div", &[], |div| {
            div.leaf("dt", &[], what);
            div.leaf("dd", &[], number);
        });
    };
    section(out, "Counts", |inside| {
        inside.tag("dl", &[], |list| figures.iter().for_each(|each| figure(list, each)));
    });
}

fn times(out: &mut Markup, numbers: &Numbers) {
    let head =
        [("Route", false), ("Marks", true), ("p50", true), ("p90", true), ("p99", true), ("Most", true)];
    let overall = numbers.acknowledged.iter().map(|of| ("all required routes", of));
    let lines = overall.chain(numbers.by_route.iter().map(|(route, of)| (route.as_str(), of)));
    let cells = |(name, of): (&str, &Percentiles)| {
        let spans = [of.p50, of.p90, of.p99, of.max].map(span);
        [vec![name.to_owned(), of.count.to_string()], spans.to_vec()].concat()
    };
    table(out, "Time to acknowledge", &head, lines.map(cells));
}

fn slowest(out: &mut Markup, numbers: &Numbers) {
    let head = [("Took", true), ("Host", false), ("Failed", false), ("Why", false), ("Mark", false)];
    let cells = |slow: &super::Slow| {
        let why = if slow.causes.is_empty() { "nothing kept it".to_owned() } else { slow.causes.join("\n") };
        vec![span(slow.took), slow.host.clone(), time(slow.failed), why, slow.mark.clone()]
    };
    table(out, "The slowest", &head, numbers.slowest.iter().map(cells));
}

fn repeated(out: &mut Markup, numbers: &Numbers) {
    let cells = |host: &super::Repeated| vec![host.host.clone(), host.outages.to_string()];
    let head = [("Host", false), ("Outages", true)];
    table(out, "Hosts with several outages", &head, numbers.repeated.iter().map(cells));
}

fn trouble(out: &mut Markup, numbers: &Numbers) {
    let head = [("Route", false), ("From", false), ("To", false), ("Lasted", false), ("At first", false)];
    let cells = |trouble: &super::Trouble| {
        let to = trouble.to.map_or_else(|| "still".to_owned(), time);
        let until = Timestamp(trouble.to.unwrap_or(numbers.to));
        let lasted = span(super::between(Timestamp(trouble.from), until));
        vec![trouble.route.clone(), time(trouble.from), to, lasted, trouble.detail.clone()]
    };
    table(out, "Endpoints in trouble", &head, numbers.trouble.iter().map(cells));
}

fn events(out: &mut Markup, title: &str, events: &[Event]) {
    let head = [("When", false), ("What", false), ("Host or route", false), ("Who", false), ("Why", false)];
    let cells = |event: &Event| {
        let count = if event.count > 1 { format!(" ({} times)", event.count) } else { String::new() };
        let word = format!("{}{count}", event.event);
        vec![time(event.at), word, event.about.clone(), event.actor.clone(), event.detail.clone()]
    };
    table(out, title, &head, events.iter().map(cells));
}

fn notes(out: &mut Markup, numbers: &Numbers) {
    section(out, "Notes", |inside| {
        inside.leaf(
            "p",
            &[],
            "The time to acknowledge runs from the failure to the acknowledgement. Percentiles are by nearest rank: the \
             smallest value that so many percent of all are not greater than.",
        );
        if numbers.damaged > 0 {
            inside.tag("p", &[], |p| {
                p.leaf("strong", &[], format_args!("{} damaged rows are not counted here.", numbers.damaged));
            });
        }
    });
}

/// A table with a name and whether it is a number for each column; in a cell each line has its own.
fn table(
    out: &mut Markup,
    title: &str,
    head: &[(&'static str, bool)],
    rows: impl Iterator<Item = Vec<String>>,
) {
    let mut rows = rows.peekable();
    section(out, title, |inside| {
        if rows.peek().is_none() {
            return inside.leaf("p", &[("class", &"none")], "none");
        }
        inside.tag("div", &[("class", &"wide")], |wide| {
            wide.tag("table", &[], |table| {
                table.tag("thead", &[], |thead| thead.tag("tr", &[], |line| heading(line, head)));
                table.tag("tbody", &[], |body| {
                    rows.for_each(|cells| body.tag("tr", &[], |line| row(line, head, &cells)));
                });
            });
        });
    });
}

fn heading(line: &mut Markup, head: &[(&'static str, bool)]) {
    for (name, is_number) in head {
        match is_number {
            true => line.leaf("th", &[("scope", &"col"), ("class", &"n")], name),
            false => line.leaf("th", &[("scope", &"col")], name),
        }
    }
}

fn row(line: &mut Markup, head: &[(&'static str, bool)], cells: &[String]) {
    for ((_, is_number), cell) in head.iter().zip(cells) {
        let number: [(&str, &dyn Display); 1] = [("class", &"n")];
        line.tag("td", if *is_number { &number } else { &[] }, |inside| {
            for (place, text) in cell.split('\n').enumerate() {
                if place > 0 {
                    inside.void("br", &[]);
                }
                inside.text(text);
            }
        });
    }
}

fn section(out: &mut Markup, title: &str, body: impl FnOnce(&mut Markup)) {
    out.tag("section", &[], |inside| {
        inside.leaf("h2", &[], title);
        body(inside);
    });
    out.own("\n");
}

fn time(at: i64) -> String {
    utc(Timestamp(at))
}

fn span(ms: u64) -> String {
    measured(Duration::from_millis(ms))
}
