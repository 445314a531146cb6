//! The page's text: one sentence first, then what is open, the routes, what is in force, and the last days.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use journal::Damage;
use marks::delivery::{Delivery, State};
use marks::time::Timestamp;

use super::picture::{Held, Open, PATIENCE, Picture, SPAN};
use crate::control::api::{ClusterStatus, Daemon, RouteStatus};
use crate::policy::groups::GroupStatus;
use crate::problem::{Level, Limits, Problem, of_marks};
use crate::surface::headline::Headline;
use crate::surface::markup::Markup;
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
    let of = |header: &Markup| {
        let mut main = Markup::default();
        main.add(header);
        main.add(&below);
        let as_of = utc(picture.now);
        let (page, tag) = (page(&main, &as_of).into(), tag(main.as_str(), picture.now));
        Texts { page, fragment: main.into(), tag, as_of }
    };
    (of(&header(picture)), of(&late(picture)))
}

fn page(main: &Markup, as_of: &str) -> Markup {
    let mut out = Markup::default();
    out.own("<!DOCTYPE html>");
    out.tag("html", &[("lang", &"en")], |html| {
        html.own(
            r#"<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><title>nova-host-alerter</title><link rel="stylesheet" href="/page.css"><link rel="icon" href="/icon.svg"><script src="/page.js" defer></script><noscript><meta http-equiv="refresh" content="10"></noscript></head>"#,
        );
        html.tag("body", &[], |body| {
            body.tag("main", &[("id", &"page")], |inside| inside.add(main));
            // Outside of what is replaced: it changes with every look.
            body.tag("footer", &[("class", &"faint")], |footer| {
                footer.text("as of ");
                footer.leaf("time", &[("id", &"as-of")], as_of);
            });
            body.leaf("p", &[("id", &"live"), ("role", &"status")], "");
        });
    });
    out
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
fn growing(out: &mut Markup, time: Duration) {
    out.leaf("time", &[], length(time));
}

/// What stands below the headline.
fn below(picture: &Picture) -> Markup {
    let mut out = Markup::default();
    figures(&mut out, picture);
    open(&mut out, picture);
    if let Ok(daemon) = &picture.daemon {
        routes(&mut out, picture, daemon);
        in_force(&mut out, daemon);
        groups(&mut out, &daemon.groups);
        cluster(&mut out, daemon);
    }
    section(&mut out, "timeline", "The last 7 days", |inside| {
        inside.add(&Timeline::of(&picture.episodes, picture.now - SPAN, picture.now));
    });
    out
}

fn section(out: &mut Markup, id: &'static str, title: &str, inside: impl FnOnce(&mut Markup)) {
    out.tag("section", &[("id", &id)], |section| {
        section.leaf("h2", &[], title);
        inside(section);
    });
}

fn header(picture: &Picture) -> Markup {
    let (class, sentence) = summary(picture);
    let mut out = Markup::default();
    out.tag("header", &[("class", &class)], |header| {
        header.leaf("h1", &[("id", &"headline")], sentence);
        match &picture.daemon {
            Err(why) => header.leaf("p", &[], format_args!("The journal cannot be read: {why}")),
            Ok(daemon) => {
                for problem in news(daemon, picture.now) {
                    header.leaf("p", &[("class", &"reason"), ("data-problem", &problem.kind)], &problem.what);
                    commands(header, "advice", &problem.then);
                }
                let (version, controller) = (&daemon.version, &daemon.controller);
                header.leaf("p", &[("class", &"faint")], format_args!("{controller}, version {version}"));
            }
        }
    });
    out
}

/// What is wrong with the alerter, its routes and its cluster, and old enough to be shown to who does not ask for it.
fn news(daemon: &Daemon, now: Timestamp) -> impl Iterator<Item = &Problem> {
    daemon.problems.iter().filter(move |problem| problem.not_yet_news(now).is_none())
}

/// Nobody knows what has happened since.
fn late(picture: &Picture) -> Markup {
    let unknown = Some("the journal does not answer".to_owned());
    let mut out = Markup::default();
    out.tag("header", &[("class", &"bad")], |header| {
        let sentence = Headline { unknown, ..Headline::default() }.sentence();
        header.leaf("h1", &[("id", &"headline")], sentence);
        let (wait, at) = (length(PATIENCE), utc(picture.now));
        let below = format!(
            "The journal has not answered within {wait}: what stands below is as of {at}; look at the journal's disk"
        );
        header.leaf("p", &[("class", &"reason")], below);
    });
    out
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
    let worst = news(daemon, picture.now).map(|one| one.level_at(picture.now, Limits::default())).max();
    let waits = open + picture.unmarked > 0 || headline.unknown.is_some();
    let class = match worst {
        _ if !of_marks.is_empty() => "bad",
        Some(Level::Critical) => "bad",
        Some(_) => "open",
        None if waits => "open",
        None => "good",
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

fn figures(out: &mut Markup, picture: &Picture) {
    out.tag("ul", &[("class", &"figures")], |list| {
        for state in State::ALL {
            let count = picture.figures.journal.marks.of(state);
            let class =
                if count == 0 { "figure none".to_owned() } else { format!("figure {}", state.as_str()) };
            list.tag("li", &[("class", &class), ("data-state", &state.as_str())], |item| {
                item.leaf("b", &[("id", &format_args!("count-{}", state.as_str()))], count);
                item.leaf("span", &[], state.as_str());
            });
        }
    });
}

fn open(out: &mut Markup, picture: &Picture) {
    if picture.open.is_empty() && picture.damaged.is_empty() {
        return;
    }
    section(out, "open", "Open", |inside| {
        inside.tag("ul", &[("class", &"cards")], |cards| {
            picture.damaged.iter().take(SHOWN).for_each(|row| damaged_mark(cards, row));
            picture.open.iter().take(SHOWN).for_each(|one| card(cards, one, picture.now));
        });
        let shown = picture.open.len().min(SHOWN) + picture.damaged.len().min(SHOWN);
        if let Some(more @ 1..) = count_open(picture).checked_sub(shown) {
            inside.leaf(
                "p",
                &[("class", &"faint")],
                format_args!("and {more} more: see `nova-host-alerter list`"),
            );
        }
    });
}

fn card(cards: &mut Markup, open: &Open, now: Timestamp) {
    let mark = &open.recent.mark;
    let (id, state) = (mark.id.to_string(), open.state.as_str());
    cards.tag("li", &[("class", &format_args!("card {state}")), ("data-mark", &id)], |card| {
        card.leaf("h3", &[("class", &"host")], &mark.node);
        card.leaf("span", &[("class", &"badge")], state);
        let failed = mark.failure_time;
        card.tag("p", &[("class", &"faint")], |line| {
            line.text(format_args!("fenced {} (", utc(failed)));
            growing(line, now.since(failed));
            line.text(format_args!(" ago), mark {id}"));
        });
        if let Some(held) = &open.hold {
            hold(card, held, now);
        }
        open.recent.deliveries.iter().for_each(|delivery| way(card, delivery, open.hold.as_ref()));
        open.recent.damaged.iter().for_each(|row| damage(card, row));
    });
}

/// A mark whose own row cannot be believed, not even in its host's name.
fn damaged_mark(cards: &mut Markup, row: &Damage) {
    cards.tag("li", &[("class", &"card quarantined")], |card| {
        card.leaf("h3", &[], "a damaged mark");
        card.leaf("span", &[("class", &"badge")], State::Quarantined.as_str());
        damage(card, row);
    });
}

fn damage(card: &mut Markup, row: &Damage) {
    let Damage { table, key } = row;
    let said = format_args!("the {table} row {key} is damaged: it is not sent and not dropped");
    card.leaf("p", &[("class", &"hold"), ("data-damaged", table)], said);
    let id = row.id();
    commands(
        card,
        "advice",
        &format!(
            "look at it with `nova-host-alerter show {id}`, end it with `nova-host-alerter unmark {id} --reason TEXT`"
        ),
    );
}

fn hold(card: &mut Markup, held: &Held, now: Timestamp) {
    let Held { word, route, .. } = held;
    let by = match route {
        Some(route) => format!("held by the terms of route {route} ({word})"),
        None => format!("held by {word}"),
    };
    let end = held
        .until
        .map_or_else(|| "no end by itself".to_owned(), |at| format!("until {} at the latest", utc(at)));
    let why = held.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    card.tag("p", &[("class", &"hold"), ("data-hold", word)], |line| {
        line.text(format_args!("{by} for "));
        growing(line, now.since(held.since));
        line.text(format_args!(", {end}{why}"));
    });
    commands(card, "advice", &held.advice);
}

/// What stands between backquotes is to be typed.
fn commands(out: &mut Markup, class: &'static str, text: &str) {
    out.tag("p", &[("class", &class)], |line| {
        for (at, part) in text.split('`').enumerate() {
            match at % 2 {
                0 => line.text(part),
                _ => line.leaf("code", &[], part),
            }
        }
    });
}

fn way(card: &mut Markup, delivery: &Delivery, held: Option<&Held>) {
    let Delivery { route, state, attempts, .. } = delivery;
    // A hold by a route's terms is explained above already, and what the policy holds is not about to be sent.
    let is_explained = held.is_some_and(|held| held.route.as_ref() == Some(route));
    let waits = held.is_some_and(|held| held.route.is_none()) && *state == State::Pending;
    let standing = if waits { "waits until the hold ends" } else { state.as_str() };
    let last = delivery.last.as_ref().filter(|_| !state.is_final() && !is_explained);
    let why = last.map(|last| format!(": {}", last.detail)).unwrap_or_default();
    let tried = match attempts {
        0 => "not tried yet",
        1 => "attempt",
        _ => "attempts",
    };
    let about: [(&'static str, &dyn std::fmt::Display); 3] =
        [("class", &"way"), ("data-delivery", route), ("data-state", &state.as_str())];
    card.tag("p", &about, |line| {
        line.leaf("b", &[], route);
        line.text(format_args!(" {standing}, "));
        if *attempts > 0 {
            figure(line, "attempts", attempts);
            line.text(" ");
        }
        line.text(format_args!("{tried}{why}"));
    });
}

/// A count in a sentence.
fn figure(out: &mut Markup, name: &'static str, count: impl std::fmt::Display) {
    out.leaf("span", &[("data-figure", &name)], count);
}

fn routes(out: &mut Markup, picture: &Picture, daemon: &Daemon) {
    section(out, "routes", "Routes", |inside| {
        inside.tag("ul", &[("class", &"cards")], |cards| {
            for one in &daemon.routes {
                let breaker = picture.breakers.get(&one.name).copied().unwrap_or("closed");
                route(cards, one, breaker, picture.now);
            }
        });
    });
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

fn route(cards: &mut Markup, route: &RouteStatus, breaker: &'static str, now: Timestamp) {
    let (class, word) = standing(route, breaker);
    cards.tag("li", &[("class", &class), ("data-route", &route.name)], |card| {
        card.leaf("h3", &[], &route.name);
        card.leaf("span", &[("class", &"badge")], word);
        card.tag("p", &[("class", &"faint")], |line| {
            figure(line, "waiting", route.waiting);
            let required = if route.required { "" } else { ", not required" };
            let limit = length(Duration::from_millis(route.limit_ms));
            line.text(format_args!(" waiting{required}, {} at most {limit} an exchange", route.driver));
        });
        card.leaf("p", &[("class", &"faint")], &route.endpoint);
        card.leaf("p", &[("class", &"faint breaker"), ("data-breaker", &breaker)], meaning(breaker));
        if let Some(since) = route.failing_since {
            card.tag("p", &[("class", &"hold")], |line| {
                line.text("nothing accepted for ");
                growing(line, now.since(Timestamp(since)));
                line.text(format_args!(": {}", route.detail.as_deref().unwrap_or_default()));
            });
        }
    });
}

fn in_force(out: &mut Markup, daemon: &Daemon) {
    if daemon.orders.is_empty() {
        return;
    }
    section(out, "orders", "In force", |inside| {
        daemon.orders.iter().for_each(|order| inside.leaf("p", &[("class", &"order")], order));
    });
}

fn groups(out: &mut Markup, groups: &[GroupStatus]) {
    section(out, "groups", "Groups", |inside| {
        inside.tag("ul", &[("class", &"cards")], |cards| groups.iter().for_each(|one| group(cards, one)));
    });
}

fn group(cards: &mut Markup, group: &GroupStatus) {
    cards.tag("li", &[("class", &"card"), ("data-group", &group.name)], |card| {
        card.leaf("h3", &[], &group.name);
        card.tag("p", &[], |line| {
            // Without a limit nobody counts who is down.
            let down = group.allowed.map(|_| ("unhealthy", group.unhealthy, " down, "));
            let counts = [
                Some(("size", group.size, " host(s), ")),
                down,
                Some(("marked", group.marked, " mark(s) open, ")),
                Some(("in_flight", group.in_flight, " in flight")),
            ];
            for (name, count, words) in counts.into_iter().flatten() {
                figure(line, name, count);
                line.text(words);
            }
        });
        card.tag("p", &[("class", &"faint")], |line| {
            line.text(format_args!("limit {}; ", group.limit));
            match group.allowed {
                Some(allowed) => figure(line, "allowed", allowed),
                None => line.text("any number"),
            }
            line.text(" more may fail");
        });
        for (word, count) in &group.held {
            card.tag("p", &[("class", &"hold"), ("data-held", word)], |line| {
                figure(line, "held", count);
                line.text(format_args!(" held by {word}"));
            });
        }
    });
}

fn cluster(out: &mut Markup, daemon: &Daemon) {
    section(out, "cluster", "Cluster", |inside| match &daemon.cluster {
        None => inside.leaf("p", &[], "one controller, without a register"),
        Some(cluster) => of_cluster(inside, cluster),
    });
}

fn of_cluster(inside: &mut Markup, cluster: &ClusterStatus) {
    let told = if cluster.permitted { "marks may be told" } else { "nothing may be told now" };
    inside.leaf("p", &[], format_args!("register {}: {} entries, {told}", cluster.register, cluster.entries));
    cluster.warnings.iter().for_each(|warning| inside.leaf("p", &[("class", &"hold")], warning));
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::problem::Kind;
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
            unmarked: 0,
        }
    }

    fn damaged() -> Vec<Damage> {
        vec![Damage { table: "mark", key: "f4cd5eb8-0000".into() }]
    }

    /// The broken variant believes figures that nobody has taken, or says it beside a card of a mark.
    #[test]
    fn told_is_said_only_where_it_is_known() {
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
            text.contains("the mark row f4cd5eb8-0000 is damaged") && text.contains("show f4cd5eb8-0000"),
            "{text}"
        );
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
                "limit_ms": 1000, "waiting": 0, "failing_since": NOW.0 - 5000, "failure": "connect", "detail": "no", "refuses": false}))
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
