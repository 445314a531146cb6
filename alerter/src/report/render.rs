//! The report as one page of HTML: no script, nothing from elsewhere, readable on a phone and on paper. Every text from
//! outside is escaped, whoever wrote it.

use std::fmt::Write as _;
use std::time::Duration;

use marks::time::Timestamp;

use super::{Event, Numbers, Percentiles};

const CSS: &str = "body{font:16px/1.45 system-ui,sans-serif;max-width:64rem;margin:0 auto;padding:1rem;color:#1a1a1a;background:#fff}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem;border-bottom:1px solid #bbb}\
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%}\
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid #ddd;overflow-wrap:anywhere}\
td.n,th.n{text-align:right;white-space:nowrap}dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(9rem,1fr));gap:.6rem}\
dl div{border:1px solid #ccc;border-radius:.3rem;padding:.5rem}dt{color:#555;font-size:.85rem}dd{margin:0;font-size:1.4rem}\
.none{color:#555}@media print{body{max-width:none;padding:0;font-size:10pt}h2{break-after:avoid}tr{break-inside:avoid}.wide{overflow:visible}}";

/// The whole page. `timeline` is markup that is finished, with its own style; empty where there is none.
pub fn page(numbers: &Numbers, controller: &str, (timeline, style): (&str, &str)) -> String {
    let mut out = String::new();
    let (from, to) = (time(numbers.from), time(numbers.to));
    let title = format!("Host failures, {from} to {to}");
    let head = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<title>{0}</title>\n<style>{CSS}{style}</style>\n</head>\n<body>\n\
         <h1>{0}</h1>\n<p>From the journal of {1}; all times are UTC.</p>\n",
        escape(&title),
        escape(controller)
    );
    out.push_str(&head);
    counts(&mut out, numbers);
    if !timeline.is_empty() {
        section(&mut out, "Timeline", timeline);
    }
    times(&mut out, numbers);
    slowest(&mut out, numbers);
    repeated(&mut out, numbers);
    trouble(&mut out, numbers);
    events(&mut out, "Ended without an acknowledgement", &numbers.ended);
    events(&mut out, "What operators did", &numbers.operators);
    notes(&mut out, numbers);
    out.push_str("</body>\n</html>\n");
    out
}

fn counts(out: &mut String, numbers: &Numbers) {
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
    let cells =
        figures.map(|(what, number)| format!("<div><dt>{what}</dt><dd>{}</dd></div>", escape(&number)));
    section(out, "Counts", &format!("<dl>{}</dl>", cells.concat()));
}

fn times(out: &mut String, numbers: &Numbers) {
    let line = |name: &str, of: &Percentiles| {
        let spans = [of.p50, of.p90, of.p99, of.max].map(|ms| number(&span(ms)));
        format!("<tr><td>{}</td>{}{}</tr>", escape(name), number(&of.count.to_string()), spans.concat())
    };
    let overall = numbers.acknowledged.iter().map(|of| line("all required routes", of));
    let rows: String = overall.chain(numbers.by_route.iter().map(|(route, of)| line(route, of))).collect();
    let head =
        [("Route", false), ("Marks", true), ("p50", true), ("p90", true), ("p99", true), ("Most", true)];
    table(out, "Time to acknowledge", &head, &rows);
}

fn slowest(out: &mut String, numbers: &Numbers) {
    let mut rows = String::new();
    for slow in &numbers.slowest {
        let causes: Vec<String> = slow.causes.iter().map(|cause| escape(cause)).collect();
        let causes = if causes.is_empty() { "nothing kept it".to_owned() } else { causes.join("<br>") };
        let cells = [escape(&slow.host), escape(&time(slow.failed)), causes, escape(&slow.mark)];
        let cells = cells.map(|cell| format!("<td>{cell}</td>"));
        let _into_memory = write!(rows, "<tr>{}{}</tr>", number(&span(slow.took)), cells.concat());
    }
    let head = [("Took", true), ("Host", false), ("Failed", false), ("Why", false), ("Mark", false)];
    table(out, "The slowest", &head, &rows);
}

fn repeated(out: &mut String, numbers: &Numbers) {
    let line = |host: &super::Repeated| {
        format!("<tr><td>{}</td>{}</tr>", escape(&host.host), number(&host.outages.to_string()))
    };
    let rows: String = numbers.repeated.iter().map(line).collect();
    table(out, "Hosts with several outages", &[("Host", false), ("Outages", true)], &rows);
}

fn trouble(out: &mut String, numbers: &Numbers) {
    let mut rows = String::new();
    for trouble in &numbers.trouble {
        let to = trouble.to.map_or_else(|| "still".to_owned(), time);
        let until = Timestamp(trouble.to.unwrap_or(numbers.to));
        let lasted = span(super::between(Timestamp(trouble.from), until));
        let cells = [&trouble.route, &time(trouble.from), &to, &lasted, &trouble.detail];
        let cells = cells.map(|cell| format!("<td>{}</td>", escape(cell)));
        let _into_memory = write!(rows, "<tr>{}</tr>", cells.concat());
    }
    let head = [("Route", false), ("From", false), ("To", false), ("Lasted", false), ("At first", false)];
    table(out, "Endpoints in trouble", &head, &rows);
}

fn events(out: &mut String, title: &str, events: &[Event]) {
    let mut rows = String::new();
    for event in events {
        let count = if event.count > 1 { format!(" ({} times)", event.count) } else { String::new() };
        let word = format!("{}{count}", event.event);
        let cells = [&time(event.at), &word, &event.about, &event.actor, &event.detail];
        let cells = cells.map(|cell| format!("<td>{}</td>", escape(cell)));
        let _into_memory = write!(rows, "<tr>{}</tr>", cells.concat());
    }
    let head = [("When", false), ("What", false), ("Host or route", false), ("Who", false), ("Why", false)];
    table(out, title, &head, &rows);
}

fn notes(out: &mut String, numbers: &Numbers) {
    let mut text = "<p>The time to acknowledge runs from the failure to the acknowledgement. Percentiles are by nearest rank: the \
         smallest value that so many percent of all are not greater than.</p>"
        .to_owned();
    if numbers.damaged > 0 {
        let _into_memory =
            write!(text, "<p><strong>{} damaged rows are not counted here.</strong></p>", numbers.damaged);
    }
    section(out, "Notes", &text);
}

fn table(out: &mut String, title: &str, head: &[(&str, bool)], rows: &str) {
    if rows.is_empty() {
        return section(out, title, "<p class=\"none\">none</p>");
    }
    let cell = |(name, is_number): &(&str, bool)| {
        let class = if *is_number { " class=\"n\"" } else { "" };
        format!("<th scope=\"col\"{class}>{name}</th>")
    };
    let head: String = head.iter().map(cell).collect();
    let body = format!(
        "<div class=\"wide\"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    );
    section(out, title, &body);
}

fn section(out: &mut String, title: &str, body: &str) {
    let _into_memory = writeln!(out, "<section><h2>{title}</h2>\n{body}</section>");
}

fn number(text: &str) -> String {
    format!("<td class=\"n\">{}</td>", escape(text))
}

/// UTC, to the second.
fn time(at: i64) -> String {
    match jiff::Timestamp::from_millisecond(at) {
        Ok(at) => at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => format!("{at} ms"),
    }
}

/// In the two largest units that say something.
fn span(ms: u64) -> String {
    let span = Duration::from_millis(ms);
    let seconds = span.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", span.as_secs_f64()),
        10..120 => format!("{seconds} s"),
        120..7200 => format!("{} min {} s", seconds / 60, seconds % 60),
        7200..172_800 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// A text in HTML; control characters and what turns the direction of writing become visible marks.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if crate::plain::is_hidden(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_said_in_units_that_tell_something() {
        let of = |seconds: u64| span(seconds * 1000);
        assert_eq!(
            [0, 9, 10, 119, 120, 7199, 7200, 172_800].map(of),
            ["0.0 s", "9.0 s", "10 s", "119 s", "2 min 0 s", "119 min 59 s", "2 h 0 min", "2 d 0 h"]
        );
    }

    #[test]
    fn nothing_from_outside_is_markup() {
        assert_eq!(
            escape("<b a=\"1\">'&\u{1b}\u{202e}x"),
            "&lt;b a=&quot;1&quot;&gt;&#39;&amp;\u{fffd}\u{fffd}x"
        );
    }
}
