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
        routes(&mut out, daemon, picture.now);
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
    let daemon = picture.daemon.as_ref().ok();
    let failing =
        daemon.iter().flat_map(|daemon| &daemon.routes).filter(|route| route.failing_since.is_some());
    let failing: Vec<&str> = failing.map(|route| route.name.as_str()).collect();
    let refused = match failing.as_slice() {
        [] => String::new(),
        names => format!("; nothing is accepted on {}", names.join(", ")),
    };
    let class = if daemon.is_none() || !failing.is_empty() || of(State::Parked) + of(State::Quarantined) > 0 {
        "bad"
    } else if open > 0 || daemon.is_some_and(|daemon| daemon.health.degraded) {
        "open"
    } else {
        "good"
    };
    let sentence = match open {
        0 => format!("Every fenced host has been told{refused}"),
        open => format!("{open} mark(s) open, {held} of them held{refused}"),
    };
    (class, sentence)
}

fn figures(out: &mut Markup, picture: &Picture) {
    out.tag("ul", &[("class", &"figures")], |list| {
        for state in State::ALL {
            let count = picture.figures.journal.marks.of(state);
            let class =
                if count == 0 { "figure none".to_owned() } else { format!("figure {}", state.as_str()) };
            list.tag("li", &[("class", &class), ("data-state", &state.as_str())], |item| {
                item.leaf("b", &[], count);
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
            hold(card, held, &id, now);
        }
        open.recent.deliveries.iter().for_each(|delivery| way(card, delivery));
    });
}

fn hold(card: &mut Markup, held: &Held, mark: &str, now: Timestamp) {
    let end = held
        .until
        .map_or_else(|| "no end by itself".to_owned(), |at| format!("until {} at the latest", utc(at)));
    let why = held.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let since = length(now.since(held.since));
    card.leaf(
        "p",
        &[("class", &"hold")],
        format_args!("held by {} for {since}, {end}{why}", held.hold.as_str()),
    );
    card.leaf("p", &[("class", &"advice")], held.hold.advice(mark));
}

fn way(card: &mut Markup, delivery: &Delivery) {
    let state = delivery.state.as_str();
    let last = delivery.last.as_ref().filter(|_| !delivery.state.is_final());
    let why = last.map(|last| format!(": {}", last.detail)).unwrap_or_default();
    let (route, attempts) = (&delivery.route, delivery.attempts);
    card.leaf("p", &[("class", &"way")], format_args!("{route} {state}, {attempts} attempt(s){why}"));
}

fn routes(out: &mut Markup, daemon: &Daemon, now: Timestamp) {
    section(out, "routes", "Routes", |inside| {
        inside.tag("ul", &[("class", &"cards")], |cards| {
            daemon.routes.iter().for_each(|one| route(cards, one, now));
        });
    });
}

fn route(cards: &mut Markup, route: &RouteStatus, now: Timestamp) {
    let (class, word) =
        if route.failing_since.is_some() { ("card parked", "refuses") } else { ("card", "ready") };
    cards.tag("li", &[("class", &class), ("data-route", &route.name)], |card| {
        card.leaf("h3", &[], &route.name);
        card.leaf("span", &[("class", &"badge")], word);
        let required = if route.required { "" } else { ", not required" };
        let (waiting, limit) = (route.waiting, length(std::time::Duration::from_millis(route.limit_ms)));
        let about = format!("{waiting} waiting{required}, {} at most {limit} an exchange", route.driver);
        card.leaf("p", &[("class", &"faint")], about);
        card.leaf("p", &[("class", &"faint")], &route.endpoint);
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
        let (size, down, marked) = (group.size, group.unhealthy, group.marked);
        card.leaf(
            "p",
            &[],
            format_args!("{size} host(s), {down} down, {marked} mark(s) open, {} in flight", group.in_flight),
        );
        let allowed = group.allowed.map_or_else(|| "any number".to_owned(), |allowed| allowed.to_string());
        card.leaf(
            "p",
            &[("class", &"faint")],
            format_args!("limit {}; {allowed} more may fail", group.limit),
        );
        for (word, count) in &group.held {
            card.leaf("p", &[("class", &"hold")], format_args!("{count} held by {word}"));
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
