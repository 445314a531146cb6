//! The page's text: one sentence first, then what is open, the routes, what is in force, and the last days.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use journal::Damage;
use marks::delivery::{Delivery, State};
use marks::time::Timestamp;
use maud::{DOCTYPE, Markup, PreEscaped, Render, html};

use super::picture::{Open, PATIENCE, Picture, SPAN};
use crate::control::api::{ClusterStatus, Daemon, RouteStatus};
use crate::policy::groups::GroupStatus;
use crate::problem::{Kind, Level, Limits, Place, Problem, damaged, of_marks};
use crate::surface::headline::Headline;
use crate::surface::markup::sent;
use crate::surface::timeline::Timeline;
use crate::words::{length, utc};

/// More open marks than this are counted.
const SHOWN: usize = 200;

/// What is sent.
pub(super) struct Texts {
    /// The whole document.
    pub(super) page: String,
    /// What changes of it.
    pub(super) fragment: String,
    /// The same for fragments that differ in nothing but the time, for a minute.
    pub(super) tag: String,
    /// When it was read.
    pub(super) as_of: String,
}

/// The texts for those who ask now, and for those who ask when it is old and the journal does not answer.
pub(super) fn texts(picture: &Picture) -> (Texts, Texts) {
    let below = below(picture);
    let of = |header: Markup| {
        let (main, as_of) = (html! { (header) (below) }, utc(picture.now));
        let page = sent(page(&main, &as_of));
        let fragment = sent(main);
        Texts { page, tag: tag(&fragment, picture.now), fragment, as_of }
    };
    (of(header(picture)), of(late(picture)))
}

const HEAD: PreEscaped<&str> = PreEscaped(
    r#"<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><title>nova-host-alerter</title><link rel="stylesheet" href="/page.css"><link rel="icon" href="/icon.svg"><script src="/page.js" defer></script><noscript><meta http-equiv="refresh" content="10"></noscript></head>"#,
);

fn page(main: &Markup, as_of: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (HEAD)
            body {
                main id="page" { (main) }
                // Outside of what is replaced: it changes with every poll.
                footer.faint { "as of " time id="as-of" { (as_of) } }
                p id="live" role="status" {}
            }
        }
    }
}

/// A selection and the place on a screen reader are lost where the text is replaced: how long ago something was is no
/// reason for that, nor that the picture has moved by a hair. Once a minute both are brought up to date.
fn tag(fragment: &str, now: Timestamp) -> String {
    let text = fragment.split("<svg").next().unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    for part in without(text, "<time>", "</time>") {
        without(part, REASON, "</p>").for_each(|part| part.hash(&mut hasher));
    }
    (now.0 / 60_000).hash(&mut hasher);
    format!("\"{:x}\"", hasher.finish())
}

/// A sentence of the daemon's, which says for how long already.
const REASON: &str = r#"<p class="reason""#;

/// What stands between `from` and `to` is left out.
fn without<'t>(text: &'t str, from: &'t str, to: &'t str) -> impl Iterator<Item = &'t str> {
    let behind = move |part: &'t str| part.split_once(to).map_or(part, |(_, behind)| behind);
    text.split(from).enumerate().map(move |(number, part)| if number == 0 { part } else { behind(part) })
}

/// A length of time that grows by itself.
fn growing(time: Duration) -> Markup {
    html! { time { (length(time)) } }
}

/// What stands below the headline.
fn below(picture: &Picture) -> Markup {
    html! {
        (figures(picture))
        (open(picture))
        @if let Ok(daemon) = &picture.daemon {
            (routes(picture, daemon))
            @if !daemon.orders.is_empty() {
                (section("orders", "In force", html! { @for order in &daemon.orders { p.order { (order) } } }))
            }
            (section("groups", "Groups", html! { ul.cards { @for one in &daemon.groups { (group(one)) } } }))
            (section("cluster", "Cluster", cluster(daemon.cluster.as_ref())))
        }
        (section("timeline", "The last 7 days", Timeline::of(&picture.episodes, picture.now - SPAN, picture.now)))
    }
}

fn section(id: &str, title: &str, inside: impl Render) -> Markup {
    html! { section id=(id) { h2 { (title) } (inside) } }
}

fn header(picture: &Picture) -> Markup {
    let (class, sentence) = summary(picture);
    html! {
        header class=(class) {
            h1 id="headline" { (sentence) }
            @match &picture.daemon {
                Err(why) => p { "The journal cannot be read: " (why) },
                Ok(daemon) => {
                    @for problem in news(daemon, picture.now) {
                        p.reason data-problem=(problem.kind) { (problem.what) }
                        (commands("advice", &problem.then))
                    }
                    p.faint { (daemon.controller) ", version " (daemon.version) }
                }
            }
        }
    }
}

/// What is wrong with the alerter, its routes and its cluster, and old enough to be shown to who does not ask for it.
fn news(daemon: &Daemon, now: Timestamp) -> impl Iterator<Item = &Problem> {
    daemon.problems.iter().filter(move |problem| problem.not_yet_news(now).is_none())
}

/// Nobody knows what has happened since.
fn late(picture: &Picture) -> Markup {
    let unknown = Some("the journal does not answer".to_owned());
    let sentence = Headline { unknown, ..Headline::default() }.sentence();
    html! {
        header.bad {
            h1 id="headline" { (sentence) }
            p.reason {
                "The journal has not answered within " (length(PATIENCE)) ": what stands below is as of "
                (utc(picture.now)) "; look at the journal's disk"
            }
        }
    }
}

/// How many marks are open: those that were counted a moment ago, or those that are here where these are more.
fn count_open(picture: &Picture) -> usize {
    let counted = usize::try_from(picture.figures.journal.marks.open()).unwrap_or(usize::MAX);
    counted.max(picture.open.len() + picture.damaged.len())
}

fn summary(picture: &Picture) -> (&'static str, String) {
    let open = count_open(picture);
    let oldest = picture.open.first().map(|open| &open.recent.mark);
    let mut headline = Headline {
        open,
        unmarked: picture.unmarked,
        oldest: oldest.map(|mark| format!("{} since {}", mark.node, utc(mark.failure_time))),
        ..Headline::default()
    };
    let Ok(daemon) = &picture.daemon else {
        headline.unknown = Some("the journal cannot be read".to_owned());
        return ("bad", headline.sentence());
    };
    if picture.figures.journal.at.is_none() && open + picture.unmarked == 0 {
        headline.unknown = Some("the journal was not counted yet".to_owned());
    }
    let of_marks = of_marks(&picture.figures.journal, picture.damaged.len());
    let young_routes = daemon.problems.iter().filter(|one| one.kind.is_of_endpoint());
    let counted = news(daemon, picture.now).chain(young_routes);
    let worst = counted.map(|one| one.level_at(picture.now, Limits::default())).max();
    let waits = open + picture.unmarked > 0 || headline.unknown.is_some();
    let class = match worst {
        Some(Level::Critical) => "bad",
        _ if !of_marks.is_empty() => "bad",
        None if !waits => "good",
        _ => "open",
    };
    let mut sentence = headline.sentence();
    for (names, more) in [(failing(daemon, true), ""), (failing(daemon, false), ", not required")] {
        if !names.is_empty() {
            sentence += &format!(" Nothing is accepted on {}{more}.", names.join(", "));
        }
    }
    (class, sentence)
}

/// The routes that accept nothing.
fn failing(daemon: &Daemon, is_required: bool) -> Vec<&str> {
    let is_meant = |route: &&RouteStatus| route.required == is_required && route.failing_since.is_some();
    daemon.routes.iter().filter(is_meant).map(|route| route.name.as_str()).collect()
}

fn figures(picture: &Picture) -> Markup {
    html! {
        ul.figures {
            @for state in State::ALL {
                @let count = picture.figures.journal.marks.of(state);
                @let word = state.as_str();
                li.figure.(if count == 0 { "none" } else { word }) data-state=(word) {
                    b id={ "count-" (word) } { (count) }
                    span { (word) }
                }
            }
        }
    }
}

fn open(picture: &Picture) -> Markup {
    if picture.open.is_empty() && picture.damaged.is_empty() {
        return Markup::default();
    }
    let shown = picture.open.len().min(SHOWN) + picture.damaged.len().min(SHOWN);
    let inside = html! {
        ul.cards {
            @for row in picture.damaged.iter().take(SHOWN) { (damaged_mark(row, &picture.place)) }
            @for one in picture.open.iter().take(SHOWN) { (card(one, picture.now)) }
        }
        @if let Some(more @ 1..) = count_open(picture).checked_sub(shown) {
            p.faint { "and " (more) " more: see `nova-host-alerter list`" }
        }
    };
    section("open", "Open", inside)
}

fn card(open: &Open, now: Timestamp) -> Markup {
    let (mark, state) = (&open.recent.mark, open.state.as_str());
    let failed = mark.failure_time;
    html! {
        li.card.(state) data-mark=(mark.id) {
            h3.host { (mark.node) }
            span.badge { (state) }
            p.faint { "fenced " (utc(failed)) " (" (growing(now.since(failed))) " ago), mark " (mark.id) }
            @for problem in &open.problems { (of_mark(problem)) }
            @for delivery in &open.recent.deliveries { (way(delivery, &open.problems)) }
        }
    }
}

/// A mark whose own row cannot be believed, not even in its host's name.
fn damaged_mark(row: &Damage, place: &Place) -> Markup {
    html! {
        li.card.quarantined {
            h3 { "a damaged mark" }
            span.badge { (State::Quarantined.as_str()) }
            (of_mark(&damaged(&[row], place)))
        }
    }
}

fn of_mark(problem: &Problem) -> Markup {
    html! {
        p.hold data-hold=[problem.kind.is_hold().then(|| problem.word())] { (problem.what) }
        (commands("advice", &problem.then))
    }
}

/// What stands between backquotes is to be typed.
fn commands(class: &str, text: &str) -> Markup {
    html! {
        p class=(class) {
            @for (at, part) in text.split('`').enumerate() {
                @if at % 2 == 0 { (part) } @else { code { (part) } }
            }
        }
    }
}

fn way(delivery: &Delivery, problems: &[Problem]) -> Markup {
    let Delivery { route, state, attempts, .. } = delivery;
    // What stands above already is not said again, and what the policy holds is not about to be sent.
    let is_explained = problems.iter().any(|one| one.route.as_ref() == Some(route));
    let is_held = problems.iter().any(|one| matches!(one.kind, Kind::Held(_)));
    let waits = is_held && *state == State::Pending;
    let standing = if waits { "waits until the hold ends" } else { state.as_str() };
    let last = delivery.last.as_ref().filter(|_| !state.is_final() && !is_explained);
    html! {
        p.way data-delivery=(route) data-state=(state.as_str()) {
            b { (route) } " " (standing) ", "
            @match attempts {
                0 => "not tried yet",
                1 => { (figure("attempts", attempts)) " attempt" }
                _ => { (figure("attempts", attempts)) " attempts" }
            }
            @if let Some(last) = last { ": " (last.detail) }
        }
    }
}

/// A count in a sentence.
fn figure(name: &str, count: impl std::fmt::Display) -> Markup {
    html! { span data-figure=(name) { (count) } }
}

fn routes(picture: &Picture, daemon: &Daemon) -> Markup {
    let breaker = |route: &RouteStatus| picture.breakers.get(&route.name).copied().unwrap_or("closed");
    let cards = html! {
        ul.cards { @for one in &daemon.routes { (route(one, breaker(one), picture.now)) } }
    };
    section("routes", "Routes", cards)
}

/// Colour and word for a route.
fn standing(route: &RouteStatus, breaker: &str) -> (&'static str, &'static str) {
    match (route.failing_since.is_some(), breaker, route.required) {
        (_, "parked", true) => ("card parked", "refuses"),
        (_, "parked", false) => ("card pending", "refuses"),
        (true, _, true) => ("card parked", "accepts nothing"),
        (true, _, false) => ("card pending", "accepts nothing"),
        (false, "open", _) => ("card pending", "probing"),
        (false, ..) => ("card ready", "ready"),
    }
}

/// What the state of its endpoint means for the marks that wait.
fn meaning(breaker: &str) -> &'static str {
    match breaker {
        "open" => "breaker open: one mark at a time tries whether it answers again, the others wait",
        "parked" => "breaker parked: it refuses, and is asked again now and then until somebody corrects it",
        _ => "breaker closed: marks are sent as they come",
    }
}

fn route(route: &RouteStatus, breaker: &str, now: Timestamp) -> Markup {
    let (class, word) = standing(route, breaker);
    html! {
        li class=(class) data-route=(route.name) {
            h3 { (route.name) }
            span.badge { (word) }
            p.faint {
                (figure("waiting", route.waiting)) " waiting"
                @if !route.required { ", not required" }
                ", " (route.driver) " at most " (length(Duration::from_millis(route.limit_ms))) " an exchange"
            }
            p.faint { (route.endpoint) }
            p.faint.breaker data-breaker=(breaker) { (meaning(breaker)) }
            @if let Some(since) = route.failing_since {
                p.hold {
                    "nothing accepted for " (growing(now.since(since)))
                    ": " (route.detail.as_deref().unwrap_or_default())
                }
            }
        }
    }
}

fn group(group: &GroupStatus) -> Markup {
    html! {
        li.card data-group=(group.name) {
            h3 { (group.name) }
            p {
                (figure("size", group.size)) " host(s), "
                // Without a limit nobody counts who is down.
                @if group.allowed.is_some() { (figure("unhealthy", group.unhealthy)) " down, " }
                (figure("marked", group.marked)) " mark(s) open, "
                (figure("in_flight", group.in_flight)) " in flight"
            }
            p.faint {
                "limit " (group.limit) "; "
                @match group.allowed {
                    Some(allowed) => (figure("allowed", allowed)),
                    None => "any number",
                }
                " more may fail"
            }
            @for (word, count) in &group.held {
                p.hold data-held=(word) { (figure("held", count)) " held by " (word) }
            }
        }
    }
}

fn cluster(cluster: Option<&ClusterStatus>) -> Markup {
    let Some(cluster) = cluster else { return html! { p { "one controller, without a register" } } };
    let told = if cluster.permitted { "marks may be told" } else { "nothing may be told now" };
    html! {
        p { "register " (cluster.register) ": " (cluster.entries) " entries, " (told) }
        @for warning in &cluster.warnings { p.hold { (warning) } }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::state::Figures;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

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
            breakers: BTreeMap::new(),
            open: Vec::new(),
            episodes: Vec::new(),
            damaged: Vec::new(),
            place: Place::default(),
            unmarked: 0,
        }
    }

    fn damaged() -> Vec<Damage> {
        vec![Damage { table: "mark", key: "f4cd5eb8-0000".into() }]
    }

    /// The broken variant believes figures that nobody has taken, or says it beside a card of a mark.
    #[test]
    fn notified_is_said_only_where_it_is_known() {
        let (told, late) = texts(&picture());
        assert!(
            told.page.contains("No fenced host waits to be told.")
                && told.page.contains("<header class=\"good\">")
        );
        assert!(
            !late.page.contains("No fenced host waits to be told.") && late.page.contains("does not answer")
        );
        for unknown in [
            Picture { daemon: Err("I/O error".into()), ..picture() },
            Picture { figures: Arc::default(), ..picture() },
            Picture { damaged: damaged(), ..picture() },
            Picture { unmarked: 1, ..picture() },
        ] {
            let text = texts(&unknown).0.page;
            assert!(
                !text.contains("No fenced host waits to be told.")
                    && !text.contains("<header class=\"good\">"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_mark_that_cannot_be_believed_has_a_card() {
        let text = texts(&Picture { damaged: damaged(), ..picture() }).0.fragment;
        assert!(
            text.contains(
                "1 damaged row(s) in the journal, never sent and never dropped: mark f4cd5eb8-0000"
            ),
            "{text}"
        );
        let odd = vec![Damage { table: "mark", key: "<b>\u{202e}".into() }];
        let text = texts(&Picture { damaged: odd, ..picture() }).0;
        let is_shown = |text: &str| text.contains("never dropped: mark &lt;b&gt;\u{fffd}");
        assert!(is_shown(&text.page) && is_shown(&text.fragment), "{}", text.page);
    }

    /// The broken variant has a new tag each second.
    #[test]
    fn the_tag_is_the_same_while_nothing_but_the_time_changes() {
        let of = |now, daemon: &Daemon| {
            let (now, daemon) = (now, Ok(daemon.clone()));
            texts(&Picture { now, daemon, ..picture() }).0
        };
        let mut daemon = picture().daemon.expect("it is there");
        daemon.problems = vec![Problem::of(Kind::Stalled, "nothing for 5 s".into())];
        daemon.routes = vec![
            serde_json::from_value(json!({"name": "wiki", "driver": "http", "endpoint": "http://wiki/", "required": true,
                "limit_ms": 1000, "waiting": 0, "failing_since": Timestamp(NOW.0 - 5000), "failure": "connect", "detail": "no", "refuses": false}))
            .expect("as the socket has it"),
        ];
        let (first, second) = (of(NOW, &daemon), of(NOW + Duration::from_secs(7), &daemon));
        assert!(first.tag == second.tag && first.page != second.page && first.as_of != second.as_of);
        assert_ne!(first.tag, of(NOW + Duration::from_secs(60), &daemon).tag);
        daemon.problems[0].what = "nothing for 6 s".into();
        assert_eq!(first.tag, of(NOW, &daemon).tag);
        daemon.routes[0].waiting = 1;
        assert_ne!(first.tag, of(NOW, &daemon).tag);
    }
}
