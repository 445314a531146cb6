//! The keys of `[groups.NAME.confirm]` and of the probes below it.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use drivers::HostNames;
use drivers::openstack;
use drivers::program::command;
use drivers::web::{self, IdentityFiles};
use reqwest::tls;
use site::{Section, is_plain_name};

use super::poll_url::{PollUrl, PollUrlOptions};
use super::template::{Template, percent_encoded, same_for_all};
use super::{Confirm, Exec, Hypervisor, Probe, Rule, Tries, Way};

/// Stands for a host's name while a text is checked.
const SOMEBODY: &str = "nodename";
/// A program that was killed at its limit is waited for a moment longer.
const REAPING: Duration = Duration::from_secs(2);

/// A kind of probe: its word, and what reads a table of it.
type Kind = (&'static str, fn(&mut Section<'_, '_>) -> Option<Way>);

const KINDS: [Kind; 3] = [("poll-url", poll_url), ("exec", exec), ("hypervisor", hypervisor)];

/// Reads `[groups.NAME.confirm]`; none where it is not written, or wrong.
pub fn read(mut section: Section<'_, '_>) -> Option<Confirm> {
    if !section.is_there() {
        return None;
    }
    let words = [("all-failed", Rule::AllFailed), ("any-failed", Rule::AnyFailed)];
    let rule = section.choice("rule", &words).unwrap_or_default();
    let limit = seconds(&mut section, "limit", 10..=3600, 60);
    let again = seconds(&mut section, "again", 10..=3600, 60);
    let mut probes = Vec::new();
    for kind in KINDS {
        probes.extend(of_kind(section.section(kind.0), kind, limit));
    }
    if probes.is_empty() && section.is_sound() {
        let title = section.title().to_owned();
        section.missing(format!(
            "[{title}] has no probe: add one, as in [{title}.exec.bmc], or remove the table"
        ));
    }
    let is_sound = section.is_sound();
    section.finish();
    is_sound.then(|| Confirm { rule, limit, again, probes: probes.into() })
}

/// Reads all probes of a kind.
fn of_kind(mut section: Section<'_, '_>, (word, read): Kind, limit: Duration) -> Vec<Probe> {
    section.only_tables("probe");
    let mut probes = Vec::new();
    for name in section.sections() {
        let mut table = section.named_section(name);
        if !is_plain_name(name) {
            table.complain_here("a probe's name must be 1 to 64 letters, digits, '-' or '_'");
        }
        let way = read(&mut table);
        within(&mut table, way.as_ref(), limit);
        table.finish();
        probes.extend(way.map(|way| Probe { name: format!("{word}.{name}"), way }));
    }
    probes
}

/// A probe that takes longer than all may take would never be done.
fn within(table: &mut Section<'_, '_>, way: Option<&Way>, limit: Duration) {
    let longest = way.map_or(Duration::ZERO, longest);
    if longest > limit {
        let (longest, limit) = (longest.as_secs(), limit.as_secs());
        table.complain_here(format!(
            "the tries of this probe may take {longest} s, but all probes begin again after limit = {limit}: raise limit, or lower retries, retry-interval or timeout"
        ));
    }
}

fn longest(way: &Way) -> Duration {
    match way {
        Way::PollUrl(poll) => poll.tries().longest(),
        Way::Exec(exec) => exec.timeout + REAPING,
        Way::Hypervisor(nova) => nova.tries().longest(),
    }
}

/// `[….poll-url.NAME]`.
fn poll_url(table: &mut Section<'_, '_>) -> Option<Way> {
    let allow_http = table.flag("allow-http").unwrap_or(false);
    let url = table.text("url", |text| address(text, allow_http));
    let healthy = table.text("healthy", pattern);
    let tries = tries(table);
    let conn_error_as_unhealthy = table.flag("conn-error-as-unhealthy").unwrap_or(true);
    let Tls { ca_file, identity, tls_min, verify } = tls_keys(table);
    needs(table, "url", "set it to a url of the host, with {nodename} in it");
    needs(table, "healthy", "set it to a text that only a healthy host's answer contains");
    if table.is_sound() && url.as_ref().is_some_and(|(_, scheme)| *scheme == "http") {
        web::without_tls(table, &["ca-file", "certificate-file", "key-file", "tls-min", "verify"]);
    }
    let (url, healthy) = (url?.0, healthy?);
    if !table.is_sound() {
        return None;
    }
    let options =
        PollUrlOptions { url, healthy, tries, conn_error_as_unhealthy, ca_file, identity, tls_min, verify };
    match PollUrl::new(options) {
        Ok(probe) => Some(Way::PollUrl(Box::new(probe))),
        Err(why) => {
            table.complain(why.key, why.to_string());
            None
        }
    }
}

/// `[….exec.NAME]`.
fn exec(table: &mut Section<'_, '_>) -> Option<Way> {
    let command = command(table);
    let timeout = seconds(table, "timeout", 1..=300, 10);
    let command = templates(table, &command?)?;
    Some(Way::Exec(Exec { command, timeout }))
}

/// The parts of a command; the host's name stands in one of them at least.
fn templates(table: &mut Section<'_, '_>, command: &[String]) -> Option<Vec<Template>> {
    let mut parts = Vec::new();
    for (at, text) in command.iter().enumerate() {
        match Template::parse(text) {
            Ok(part) => parts.push(part),
            Err(why) => table.complain_in_list("command", at, why),
        }
    }
    let is_whole = parts.len() == command.len();
    if is_whole && !parts.iter().any(Template::is_about_the_host) {
        table.complain("command", same_for_all());
        return None;
    }
    is_whole.then_some(parts)
}

/// `[….hypervisor.NAME]`, with the cloud's keys of a route.
fn hypervisor(table: &mut Section<'_, '_>) -> Option<Way> {
    let tries = tries(table);
    // The probe has no time to wait for: a try may as well wait for the token.
    let cloud =
        openstack::CloudOptions { patience: tries.timeout, ..openstack::read_within(table, tries.timeout) };
    let host_name = HostNames::read(table);
    if !table.is_sound() {
        return None;
    }
    match Hypervisor::new(cloud, host_name, tries) {
        Ok(probe) => Some(Way::Hypervisor(Box::new(probe))),
        Err(why) => {
            table.complain(why.key, why.to_string());
            None
        }
    }
}

/// How often, and for how long.
fn tries(table: &mut Section<'_, '_>) -> Tries {
    let retries = table.number("retries", 0..=100).unwrap_or(3);
    let interval = seconds(table, "retry-interval", 0..=600, 3);
    let timeout = seconds(table, "timeout", 1..=30, 5);
    Tries { retries, interval, timeout }
}

/// What TLS needs; with the keys of the `http` driver, and `verify`.
struct Tls {
    ca_file: Option<PathBuf>,
    identity: Option<IdentityFiles>,
    tls_min: tls::Version,
    verify: bool,
}

fn tls_keys(table: &mut Section<'_, '_>) -> Tls {
    let ca_file = table.text("ca-file", |text| web::authorities(Path::new(text)).map(|_| text.into()));
    let identity = web::identity(table);
    let tls_min = web::tls_min(table);
    let verify = table.flag("verify").unwrap_or(true);
    if !verify && table.has("ca-file") {
        table.complain("ca-file", "ca-file has no meaning with verify = false: remove one of them");
    }
    Tls { ca_file, identity, tls_min, verify }
}

/// A url with the host's name in it, and its scheme.
fn address(text: &str, allow_http: bool) -> Result<(Template, &'static str), String> {
    let template = about_the_host(text)?;
    let url = web::address(&template.fill(&percent_encoded(SOMEBODY)), allow_http)?;
    Ok((template, if url.scheme() == "http" { "http" } else { "https" }))
}

fn about_the_host(text: &str) -> Result<Template, String> {
    let template = Template::parse(text)?;
    if template.is_about_the_host() { Ok(template) } else { Err(same_for_all()) }
}

/// A text that most answers do not have.
fn pattern(text: &str) -> Result<String, String> {
    match text.trim().is_empty() {
        true => Err("an empty text is in every answer, so every host would be healthy: set a word of the healthy answer".to_owned()),
        false if text.len() > 1024 => Err("must be at most 1024 bytes long".to_owned()),
        false => Ok(text.to_owned()),
    }
}

fn needs(table: &mut Section<'_, '_>, key: &'static str, what: &str) {
    if !table.has(key) {
        let title = table.title().to_owned();
        table.missing(format!("[{title}] has no {key}: {what}"));
    }
}

fn seconds(
    table: &mut Section<'_, '_>,
    key: &'static str,
    range: RangeInclusive<u32>,
    usual: u32,
) -> Duration {
    Duration::from_secs(table.number(key, range).unwrap_or(usual).into())
}
