//! Who is notified of a group's hosts: `routes`, or `chain`, or every route that takes them.

use std::time::Duration;

use site::{Place, Section};

use crate::config::listen::RouteName;

/// Who is notified of a group's hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedRecipients {
    /// Every route that takes the host, but for those that a group names.
    Covering,
    /// `routes`: each of these.
    Each(Vec<RouteName>),
    /// `chain`: one after the other, until one acknowledges.
    Chain(Vec<Link>),
}

/// A step of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The route.
    pub route: RouteName,
    /// How long it may take to acknowledge before the next one is notified; 60 s or more.
    pub timeout: Duration,
}

impl NamedRecipients {
    /// The routes that it names.
    pub fn named(&self) -> Vec<&RouteName> {
        match self {
            Self::Covering => Vec::new(),
            Self::Each(routes) => routes.iter().collect(),
            Self::Chain(links) => links.iter().map(|link| &link.route).collect(),
        }
    }

    /// Whether it names this route.
    pub fn names(&self, route: &RouteName) -> bool {
        self.named().contains(&route)
    }

    /// For people.
    pub fn shown(&self) -> String {
        match self {
            Self::Covering => "every route that covers the host".to_owned(),
            Self::Each(routes) => {
                let names: Vec<&str> = routes.iter().map(RouteName::as_str).collect();
                format!("each of {}", names.join(", "))
            }
            Self::Chain(links) => {
                let step = |link: &Link| format!("{} ({} s)", link.route, link.timeout.as_secs());
                links.iter().map(step).collect::<Vec<_>>().join(", then ")
            }
        }
    }
}

/// What was read, with the place of each name.
pub(super) struct Said<'a> {
    pub(super) recipients: NamedRecipients,
    pub(super) places: Vec<Place<'a>>,
}

impl Said<'_> {
    pub(super) fn nothing() -> Self {
        Self { recipients: NamedRecipients::Covering, places: Vec::new() }
    }
}

/// Reads who is notified of a group's hosts.
pub(super) fn read<'a>(table: &mut Section<'a, '_>) -> Said<'a> {
    let (routes, chain) = (routes(table), chain(table));
    if table.has("routes") && table.has("chain") {
        table.complain("chain", "a group has routes or a chain: remove one of them");
    }
    let said = chain.or(routes).unwrap_or_else(Said::nothing);
    check_twice(table, &said);
    said
}

fn routes<'a>(table: &mut Section<'a, '_>) -> Option<Said<'a>> {
    let names = table.texts("routes", |text| route(text).map(drop))?;
    if names.is_empty() {
        table.complain("routes", "the list is empty: name routes, or remove the key");
    }
    let places = (0..names.len()).filter_map(|at| table.place_in_list("routes", at)).collect();
    let names = names.into_iter().filter_map(RouteName::parse).collect();
    Some(Said { recipients: NamedRecipients::Each(names), places })
}

fn chain<'a>(table: &mut Section<'a, '_>) -> Option<Said<'a>> {
    let links = table.tables("chain", "{ route = \"NAME\", timeout = 600 }", link)?;
    if links.is_empty() {
        table.complain("chain", "the list is empty: name a route with its timeout, or remove the key");
    }
    let (links, places) = links.into_iter().unzip();
    Some(Said { recipients: NamedRecipients::Chain(links), places })
}

fn link<'a>(mut table: Section<'a, '_>) -> Option<(Link, Place<'a>)> {
    let (name, place) = (table.text("route", route), table.place_of("route"));
    let timeout = table.number("timeout", 60..=86_400);
    for key in ["route", "timeout"] {
        if !table.has(key) {
            table.complain_here(format!("{key} is missing: a step is {{ route = \"NAME\", timeout = 600 }}"));
        }
    }
    table.finish();
    Some((Link { route: name?, timeout: Duration::from_secs(timeout?.into()) }, place?))
}

fn route(text: &str) -> Result<RouteName, String> {
    RouteName::parse(text).ok_or_else(|| "must be the name of a route".to_owned())
}

fn check_twice<'a>(table: &mut Section<'a, '_>, said: &Said<'a>) {
    let names = said.recipients.named();
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name)
            && let Some(place) = said.places.get(at)
        {
            table.complain_at(*place, format!("{name} is here twice"));
        }
    }
}
