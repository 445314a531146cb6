//! The page's text: the verdict, what to do, and the hosts.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::picture::{PATIENCE, Picture};
use super::table;
use crate::problem::{Level, Problem, of_marks};
use crate::surface::headline::Headline;
use crate::surface::markup::sent;
use crate::words::{length, utc};

/// More problems than this are counted.
const PROBLEMS: usize = 12;

/// The page of a picture, and the page for the time when it is old and the journal does not answer.
pub(super) fn texts(picture: &Picture) -> (String, String) {
    let rest = html! { (problems(picture)) (table::draw(picture, count_open(picture))) };
    let of = |verdict: &Verdict| {
        let inside = html! { (verdict.draw(picture)) (rest) };
        sent(page(verdict, &inside, &utc(picture.now)))
    };
    (of(&Verdict::of(picture)), of(&Verdict::late(picture)))
}

const HEAD: PreEscaped<&str> = PreEscaped(
    r#"<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><link rel="stylesheet" href="/page.css"><script src="/page.js" defer></script><noscript><meta http-equiv="refresh" content="10"></noscript>"#,
);

fn page(verdict: &Verdict, inside: &Markup, as_of: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head { (HEAD) title { (verdict.title()) } link id="icon" rel="icon" href=(verdict.icon()); }
            body {
                // Outside of `main`: it changes with every poll.
                p id="bar" { b { "nova-host-alerter" } " as of " time id="as-of" { (as_of) } " " span id="age" {} }
                main id="page" { (inside) }
                p id="live" role="status" {}
            }
        }
    }
}

/// How bad it is, how many marks are open, and one sentence.
struct Verdict {
    level: Level,
    /// None where it is not known.
    open: Option<usize>,
    sentence: String,
    /// Why that is so, and what to do.
    note: Option<String>,
}

impl Verdict {
    fn of(picture: &Picture) -> Self {
        let open = count_open(picture);
        let mut headline = Headline { open, unmarked: picture.unmarked, ..Headline::default() };
        let waiting = open + picture.unmarked;
        if picture.daemon.is_err() {
            headline.unknown = Some("the journal cannot be read".to_owned());
            return Self::unknown(&headline, None);
        }
        if picture.figures.journal.at.is_none() && waiting == 0 {
            headline.unknown = Some("the journal was not counted yet".to_owned());
        }
        let least = if waiting > 0 || headline.unknown.is_some() { Level::Warning } else { Level::Ok };
        let worst = picture.problems.iter().map(|one| one.level).max().unwrap_or(Level::Ok);
        let is_critical = !of_marks(&picture.figures.journal, picture.damaged.len()).is_empty();
        let level = if is_critical { Level::Critical } else { worst.max(least) };
        let open = headline.unknown.is_none().then_some(waiting);
        Self { level, open, sentence: headline.sentence(), note: None }
    }

    /// The picture is old: what has happened since is not known.
    fn late(picture: &Picture) -> Self {
        let unknown = Some("the journal does not answer".to_owned());
        let (limit, at) = (length(PATIENCE), utc(picture.now));
        let note = format!(
            "The journal has not answered within {limit}; this page is as of {at}. Check the journal's disk."
        );
        Self::unknown(&Headline { unknown, ..Headline::default() }, Some(note))
    }

    fn unknown(headline: &Headline, note: Option<String>) -> Self {
        Self { level: Level::Critical, open: None, sentence: headline.sentence(), note }
    }

    fn title(&self) -> String {
        match self.open {
            Some(0) => "nova-host-alerter".to_owned(),
            Some(open) => format!("({open}) nova-host-alerter"),
            None => "(?) nova-host-alerter".to_owned(),
        }
    }

    fn icon(&self) -> String {
        format!("/icon.svg?{}", self.level.as_str())
    }

    fn draw(&self, picture: &Picture) -> Markup {
        let level = self.level.as_str();
        html! {
            header class=(level) id="verdict" data-title=(self.title()) data-icon=(self.icon()) {
                h1 id="headline" { (self.sentence) }
                @if let Some(note) = &self.note { p { (note) } }
                p.faint { b.level { (sign(self.level)) " " (level) } (oldest(picture)) }
            }
        }
    }
}

/// A level without its colour.
fn sign(level: Level) -> &'static str {
    match level {
        Level::Ok => "✓",
        Level::Warning => "!",
        Level::Critical => "✗",
    }
}

fn oldest(picture: &Picture) -> Markup {
    html! {
        @if let Some(mark) = picture.open.first().map(|row| &row.recent.mark) {
            " · oldest: " (mark.node) ", fenced " (utc(mark.failure_time)) " ("
            time { (length(picture.now.since(mark.failure_time))) } " ago)"
        }
        @if let Ok(daemon) = &picture.daemon { " · " (daemon.controller) ", version " (daemon.version) }
    }
}

/// How many marks are open: those that were counted a moment ago, or those that are here where these are more.
fn count_open(picture: &Picture) -> usize {
    let counted = usize::try_from(picture.figures.journal.marks.open()).unwrap_or(usize::MAX);
    counted.max(picture.open.len() + picture.damaged.len())
}

/// What to do, once for each cause.
fn problems(picture: &Picture) -> Markup {
    if let Err(why) = &picture.daemon {
        return html! { p.reason { "The journal cannot be read: " (why) } };
    }
    html! {
        section id="problems" {
            h2 { "What to do" }
            @if picture.problems.is_empty() {
                p { "No problem is known." @if !picture.open.is_empty() { " The alerter sends the marks." } }
            }
            ol.problems { @for one in picture.problems.iter().take(PROBLEMS) { (problem(one)) } }
            @if let Some(more @ 1..) = picture.problems.len().checked_sub(PROBLEMS) {
                p.advice { (more) " more: " code { "nova-host-alerter status" } }
            }
        }
    }
}

fn problem(problem: &Problem) -> Markup {
    let level = problem.level.as_str();
    html! {
        li class=(level) data-problem=(problem.kind) {
            p.reason { b.level { (sign(problem.level)) " " (level) } " " (quoted(&problem.what)) }
            p.advice { (quoted(&problem.then)) }
        }
    }
}

/// What stands between backquotes is to be typed.
fn quoted(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 0 { (part) } @else { code { (part) } }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use journal::Damage;
    use marks::time::Timestamp;
    use serde_json::json;

    use super::*;

    use crate::state::Figures;

    pub(in crate::surface::page) const NOW: Timestamp = Timestamp(1_800_000_000_000);

    /// Nothing is open, and all of it is known.
    pub(in crate::surface::page) fn picture() -> Picture {
        let daemon = json!({"version": "1", "pid": 1, "controller": "ctl1", "health": {"healthy": true, "degraded": false, "reasons": []},
            "routes": [], "cluster": null, "groups": [], "orders": [], "problems": [], "unaccounted": []});
        let mut figures = Figures::default();
        figures.journal.at = Some(NOW);
        Picture {
            now: NOW,
            figures: Arc::new(figures),
            daemon: Ok(serde_json::from_value(daemon).expect("as the socket has it")),
            problems: Vec::new(),
            open: Vec::new(),
            ended: Vec::new(),
            damaged: Vec::new(),
            unmarked: 0,
        }
    }

    fn damaged() -> Vec<Damage> {
        vec![Damage { table: "mark", key: "f4cd5eb8-0000".into() }]
    }

    const ALL_IS_WELL: &str = "No fenced host waits to be reported.";

    /// The broken variant believes figures that nobody has taken, or says it beside a mark that cannot be believed.
    #[test]
    fn notified_is_said_only_where_it_is_known() {
        let (well, late) = texts(&picture());
        assert!(well.contains(ALL_IS_WELL) && well.contains("<header class=\"ok\""));
        assert!(well.contains("<title>nova-host-alerter</title>") && well.contains("/icon.svg?ok"));
        assert!(!late.contains(ALL_IS_WELL) && late.contains("does not answer"));
        assert!(late.contains("<title>(?) nova-host-alerter") && late.contains("/icon.svg?critical"));
        for unknown in [
            Picture { daemon: Err("I/O error".into()), ..picture() },
            Picture { figures: Arc::default(), ..picture() },
            Picture { damaged: damaged(), ..picture() },
            Picture { unmarked: 1, ..picture() },
        ] {
            let text = texts(&unknown).0;
            assert!(!text.contains(ALL_IS_WELL) && !text.contains("<header class=\"ok\""), "{text}");
        }
        let unmarked = texts(&Picture { unmarked: 1, ..picture() }).0;
        assert!(unmarked.contains("<title>(1) nova-host-alerter"), "{unmarked}");
    }
}
