//! `[api]`: where the API is served beside the control socket, and who may use it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use drivers::Step;
use marks::host::HostPatterns;
use marks::register::Register;
use site::{Section, is_plain_name};

use super::listen::{Addresses, Served};
use super::routes::Route;
use super::values::patterns;
use crate::config::token::{Digest, Token};

/// The addresses with what is needed there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Api {
    /// `uri`, `owner` and `group`.
    pub served: Served,
    /// `[api.tokens.NAME]`: who may ask.
    pub tokens: Vec<Token>,
}

/// Reads `[api]`; without the table there is none.
pub(super) fn read(
    root: &mut Section<'_, '_>,
    register: Register,
    routes: &[Arc<Route>],
    addresses: &mut Addresses,
) -> Option<Api> {
    let mut around = Around { register, routes, known: BTreeMap::new(), named: BTreeSet::new() };
    let api = table(root.section("api"), addresses, &mut around);
    check_routes(root, routes, &around.named);
    api
}

/// Nothing is served without a token: the control socket is for root.
fn table<'a>(
    mut section: Section<'a, '_>,
    addresses: &mut Addresses,
    around: &mut Around<'a, '_>,
) -> Option<Api> {
    let is_there = section.entries().next().is_some();
    let served = addresses.read_for_tokens(&mut section);
    let has_token = !section.section("tokens").sections().is_empty();
    let tokens = tokens(section.section("tokens"), around);
    if is_there && !section.has("uri") {
        section.missing("[api] has no uri: set it to an address, such as \"tcp://127.0.0.1:7420\"");
    }
    if is_there && !has_token {
        section
            .missing("[api] has no token, so nobody could use it: add [api.tokens.NAME] with a token-file");
    }
    section.finish();
    served.map(|served| Api { served, tokens })
}

/// What tokens are checked against.
struct Around<'a, 'r> {
    register: Register,
    routes: &'r [Arc<Route>],
    /// The tokens that were read already.
    known: BTreeMap<Digest, &'a str>,
    /// The routes that any of them names.
    named: BTreeSet<String>,
}

fn tokens<'a>(mut section: Section<'a, '_>, around: &mut Around<'a, '_>) -> Vec<Token> {
    section.only_tables("token");
    let names = section.sections();
    names.into_iter().filter_map(|name| token(section.named_section(name), name, around)).collect()
}

/// Two names for one token would leave it open who sent a request.
fn token<'a>(mut section: Section<'a, '_>, name: &'a str, around: &mut Around<'a, '_>) -> Option<Token> {
    if !is_plain_name(name) {
        section.complain_here("a token's name must be 1 to 64 letters, digits, '-' or '_'");
    }
    let file = section.text("token-file", |text| {
        let file = PathBuf::from(text);
        Token::read(&file).map(|digest| (file, digest))
    });
    let routes = section.texts("routes", |text| confirmed_route(around.routes, text)).unwrap_or_default();
    let routes: Vec<String> = routes.into_iter().map(str::to_owned).collect();
    around.named.extend(routes.iter().cloned());
    let hosts = patterns(&mut section, "hosts").and_then(|hosts| HostPatterns::from_entries(hosts).ok());
    let trust_marks = section.flag("trust-marks");
    if !section.has("token-file") {
        let title = section.title().to_owned();
        section
            .missing(format!("[{title}] has no token-file: set it to a file with the token in its one line"));
    }
    if trust_marks == Some(true) && around.register != Register::None {
        section.complain(
            "trust-marks",
            "with a register the cluster has to prove every mark: remove trust-marks",
        );
    }
    let other = file.as_ref().and_then(|(_, digest)| around.known.insert(*digest, name));
    if other.is_some() {
        section.complain("token-file", "another name has the same token: give each name its own");
    }
    section.finish();
    let (file, _) = file?;
    let (name, trust_marks) = (name.to_owned(), trust_marks.unwrap_or(false));
    Some(Token { name, file, trust_marks, routes, hosts })
}

fn confirmed_route(routes: &[Arc<Route>], name: &str) -> Result<(), String> {
    match routes.iter().find(|route| route.step == Step::Failure && route.name.as_str() == name) {
        None => Err("there is no route of this name".to_owned()),
        Some(route) if route.driver.confirms_later() => Ok(()),
        Some(_) => Err("the answer of this route acknowledges: set ack = \"callback\" for it".to_owned()),
    }
}

/// A route that waits for a callback needs the API: the control socket is for root on this controller alone.
fn check_routes(root: &mut Section<'_, '_>, routes: &[Arc<Route>], named: &BTreeSet<String>) {
    let why = match root.section("api").has("uri") {
        false => "no receiver could confirm a mark: add [api] with a uri, or let the answer acknowledge",
        true => {
            "no receiver could confirm a mark: name the route in routes of the receiver's [api.tokens.NAME]"
        }
    };
    for route in routes.iter().filter(|route| route.step == Step::Failure && route.driver.confirms_later()) {
        if root.section("api").has("uri") && named.contains(route.name.as_str()) {
            continue;
        }
        let mut kind = root.section(route.driver.kind());
        let Some(key) = kind.sections().into_iter().find(|key| *key == route.name.as_str()) else { continue };
        kind.named_section(key).complain("ack", why);
    }
}
