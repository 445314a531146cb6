//! The page's text: one sentence first, then what is open, the routes, what is in force, and the last days.

use marks::delivery::{Delivery, State};
use marks::time::Timestamp;

use super::picture::{Held, Open, Picture, SPAN};
use crate::control::api::{ClusterStatus, Daemon, RouteStatus};
use crate::markup::Markup;
use crate::steer::groups::GroupStatus;
use crate::timeline::Timeline;
use crate::words::{length, utc};

/// More open marks than this are counted.
const SHOWN: usize = 200;

/// The whole document.
pub(super) fn page(picture: &Picture) -> Markup {
    let mut out = Markup::default();
    out.own("<!DOCTYPE html>");
    out.tag("html", &[("lang", &"en")], |html| {
        html.own(
            r#"<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><title>nova-host-alerter</title><link rel="stylesheet" href="/page.css"><link rel="icon" href="/icon.svg"><script src="/page.js" defer></script><noscript><meta http-equiv="refresh" content="10"></noscript></head>"#,
        );
        html.tag("body", &[], |body| {
            body.tag("main", &[("id", &"page")], |inside| inside.add(&main(picture)));
            body.leaf("p", &[("id", &"live"), ("role", &"status")], "");
        });
    });
    out
}

/// What changes.
pub(super) fn main(picture: &Picture) -> Markup {
    let mut out = Markup::default();
    headline(&mut out, picture);
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

fn headline(out: &mut Markup, picture: &Picture) {
    let (class, sentence) = summary(picture);
    out.tag("header", &[("class", &class)], |header| {
        header.leaf("h1", &[("id", &"headline")], sentence);
        match &picture.daemon {
            Err(why) => header.leaf("p", &[], format_args!("The journal cannot be read: {why}")),
            Ok(daemon) => {
                for reason in &daemon.health.reasons {
                    header.leaf("p", &[("class", &"reason")], reason);
                }
                let (version, controller) = (&daemon.version, &daemon.controller);
                let about = format!("{controller}, version {version}, as of {}", utc(picture.now));
                header.leaf("p", &[("class", &"faint")], about);
            }
        }
    });
}

fn summary(picture: &Picture) -> (&'static str, String) {
    let of = |state| picture.figures.journal.marks.of(state);
    let (open, held) = (picture.figures.journal.marks.open(), of(State::Held));
    let Ok(daemon) = &picture.daemon else {
        return ("bad", format!("{open} mark(s) open when the journal could be read last"));
    };
    let (refused, others) = (failing(daemon, true), failing(daemon, false));
    let is_stuck = of(State::Parked) + of(State::Quarantined) > 0;
    // A route that nobody waits for is no reason to wake anybody.
    let class = match () {
        () if !refused.is_empty() || is_stuck => "bad",
        () if open > 0 || daemon.health.degraded || !others.is_empty() => "open",
        () => "good",
    };
    let mut sentence = match open {
        0 => "Every fenced host has been told".to_owned(),
        open => format!("{open} mark(s) open, {held} of them held"),
    };
    for (names, more) in [(refused, ""), (others, ", not required")] {
        if !names.is_empty() {
            sentence += &format!("; nothing is accepted on {}{more}", names.join(", "));
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
    if picture.open.is_empty() {
        return;
    }
    section(out, "open", "Open", |inside| {
        inside.tag("ul", &[("class", &"cards")], |cards| {
            picture.open.iter().take(SHOWN).for_each(|one| card(cards, one, picture.now));
        });
        let all = usize::try_from(picture.figures.journal.marks.open())
            .unwrap_or(usize::MAX)
            .max(picture.open.len());
        if let Some(more @ 1..) = all.checked_sub(SHOWN) {
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
        let ago = length(now.since(failed));
        card.leaf("p", &[("class", &"faint")], format_args!("fenced {} ({ago} ago), mark {id}", utc(failed)));
        if let Some(held) = &open.hold {
            hold(card, held, now);
        }
        open.recent.deliveries.iter().for_each(|delivery| way(card, delivery, open.hold.as_ref()));
    });
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
    let since = length(now.since(held.since));
    let text = format!("{by} for {since}, {end}{why}");
    card.leaf("p", &[("class", &"hold"), ("data-hold", word)], text);
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
            let limit = length(std::time::Duration::from_millis(route.limit_ms));
            line.text(format_args!(" waiting{required}, {} at most {limit} an exchange", route.driver));
        });
        card.leaf("p", &[("class", &"faint")], &route.endpoint);
        card.leaf("p", &[("class", &"faint breaker"), ("data-breaker", &breaker)], meaning(breaker));
        if let Some(since) = route.failing_since {
            let (time, detail) =
                (length(now.since(Timestamp(since))), route.detail.as_deref().unwrap_or_default());
            card.leaf("p", &[("class", &"hold")], format_args!("nothing accepted for {time}: {detail}"));
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
