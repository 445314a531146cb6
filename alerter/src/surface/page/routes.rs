//! The routes in a strip, and more about routes, groups and the cluster for those who open it.

use std::cmp::Reverse;
use std::time::Duration;

use maud::{Markup, html};

use super::picture::Picture;
use crate::control::api::{ClusterStatus, Daemon, RouteStatus};
use crate::policy::groups::GroupStatus;
use crate::problem::Level;
use crate::words::length;

/// More routes than this are counted in the strip.
const CHIPS: usize = 8;

/// A count in a sentence.
pub(super) fn figure(name: &str, count: impl std::fmt::Display) -> Markup {
    html! { span data-figure=(name) { (count) } }
}

/// How bad it is, and words for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Ready,
    Probing,
    /// It rejects the marks of some hosts.
    Choosing,
    Failing,
    Rejecting,
    Refusing,
}

impl Standing {
    fn of(route: &RouteStatus, breaker: &str) -> Self {
        match breaker {
            "parked" => Self::Refusing,
            _ if route.rejects_all => Self::Rejecting,
            _ if route.failing_since.is_some() => Self::Failing,
            "open" => Self::Probing,
            _ if route.rejected > 0 => Self::Choosing,
            _ => Self::Ready,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Probing => "tries one mark",
            Self::Choosing => "rejects some marks",
            Self::Failing => "accepts nothing",
            Self::Rejecting => "rejects every mark",
            Self::Refusing => "refuses",
        }
    }

    fn level(self, required: bool) -> Level {
        match (self, required) {
            (Self::Ready, _) => Level::Ok,
            (Self::Choosing | Self::Failing | Self::Rejecting | Self::Refusing, true) => Level::Critical,
            _ => Level::Warning,
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Ready => "✓",
            Self::Probing => "…",
            _ => "✗",
        }
    }
}

fn breaker(picture: &Picture, route: &RouteStatus) -> &'static str {
    picture.breakers.get(&route.name).copied().unwrap_or("closed")
}

/// Each route with its state, the worst first.
pub(super) fn strip(picture: &Picture, daemon: &Daemon) -> Markup {
    let standing = |route: &&RouteStatus| Standing::of(route, breaker(picture, route));
    let mut routes: Vec<&RouteStatus> = daemon.routes.iter().collect();
    routes.sort_by_key(|route| Reverse((standing(route).level(route.required), standing(route))));
    html! {
        ul.strip aria-label="Routes" {
            @for route in routes.iter().take(CHIPS) { (chip(route, standing(route), breaker(picture, route))) }
            @if let Some(more @ 1..) = routes.len().checked_sub(CHIPS) {
                li { a href="#more" { (more) " more " (if more == 1 { "route" } else { "routes" }) } }
            }
        }
    }
}

fn chip(route: &RouteStatus, standing: Standing, breaker: &str) -> Markup {
    html! {
        li class=(standing.level(route.required).as_str()) data-route=(route.name) data-breaker=(breaker) {
            b { (standing.sign()) " " (route.name) } " " (standing.words())
            @if route.waiting > 0 { ", " (figure("waiting", route.waiting)) " waiting" }
            @if !route.required { ", not required" }
        }
    }
}

/// What is seldom asked for.
pub(super) fn details(picture: &Picture, daemon: &Daemon) -> Markup {
    html! {
        details id="more" {
            summary data-key="more" { "Routes, groups and cluster" }
            div.wide { table {
                thead { tr { @for name in ["Route", "State", "Waiting", "Driver", "Limit", "Endpoint"] { th scope="col" { (name) } } } }
                tbody { @for route in &daemon.routes { (route_row(route, breaker(picture, route))) } }
            } }
            div.wide { table {
                thead { tr { @for name in ["Group", "Open", "In flight", "Held", "Hosts down", "Limit"] { th scope="col" { (name) } } } }
                tbody { @for group in &daemon.groups { (group_row(group)) } }
            } }
            p { (cluster(daemon.cluster.as_ref())) }
        }
    }
}

fn route_row(route: &RouteStatus, breaker: &str) -> Markup {
    html! {
        tr {
            th scope="row" { (route.name) }
            td { (Standing::of(route, breaker).words()) " (breaker " (breaker) ")" }
            td { (route.waiting) }
            td { (route.driver) }
            td { (length(Duration::from_millis(route.limit_ms))) }
            td { (route.endpoint) }
        }
    }
}

fn group_row(group: &GroupStatus) -> Markup {
    html! {
        tr data-group=(group.name) {
            th scope="row" { (group.name) }
            td { (figure("marked", group.marked)) }
            td { (figure("in_flight", group.in_flight)) }
            td {
                @if group.held.is_empty() { "0" }
                @for (place, (word, count)) in group.held.iter().enumerate() {
                    @if place > 0 { ", " }
                    span data-held=(word) { (figure("held", count)) " " (word) }
                }
            }
            td {
                // Without a limit the alerter does not count which hosts are down.
                @match group.allowed {
                    Some(_) if group.size > 0 => { (figure("unhealthy", group.unhealthy)) " of " (figure("size", group.size)) }
                    _ => "not counted",
                }
            }
            td {
                (group.limit)
                @if let Some(allowed) = group.allowed { ", " (figure("allowed", allowed)) " more may fail" }
            }
        }
    }
}

fn cluster(cluster: Option<&ClusterStatus>) -> String {
    let Some(cluster) = cluster else { return "One controller, without a register.".to_owned() };
    let may = if cluster.permitted { "marks may be sent" } else { "no mark may be sent now" };
    format!("Register {}: {} entries, {may}.", cluster.register, cluster.entries)
}
