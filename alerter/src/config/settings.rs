//! Third stage: typed and validated settings.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use marks::host::{HostName, HostPatterns};
use marks::journal::DEFAULT_PATH;
use marks::register::Register;
use tracing::Level;

use super::groups::{self, Group, Groups};
use super::notice::{self, NoticeTarget};
use super::reader::{Section, shown};
use crate::drivers::{self, Driver, Step};

/// The limits of a time in the configuration, in seconds: a day is longer than anything that makes sense.
const SECONDS: std::ops::RangeInclusive<u32> = 1..=86_400;

/// The whole configuration of the daemon.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `[store]`: where marks are kept.
    pub store: StorePlace,
    /// `[hosts]`: which hosts are told, and as what.
    pub hosts: HostRules,
    /// `[groups.NAME]`: hosts that routes name together.
    pub groups: Vec<Group>,
    /// `[intake]`: when a record of a fencing makes a mark.
    pub intake: IntakeRules,
    /// `[delivery] degraded-after`: how long a route may accept nothing until the daemon calls itself degraded.
    pub degraded_after: Duration,
    /// `[delivery] max-in-flight`: how many exchanges each route may have under way.
    pub max_in_flight: usize,
    /// `[delivery] ack-batch`: how many acknowledgements are written down together at most.
    pub ack_batch: usize,
    /// `[log] level`.
    pub log_level: Level,
    /// `[DRIVER.NAME]`: one or more.
    pub routes: Vec<Route>,
    /// `[notice.NAME]`: who is told of what an operator should know.
    pub notices: Vec<NoticeTarget>,
    /// The main file that this was read from.
    pub file: PathBuf,
}

impl Settings {
    /// The names of the groups that a host is in: one at the most, if their patterns are as they should be.
    pub fn groups_of(&self, node: &HostName) -> Vec<&str> {
        groups::of(&self.groups, node)
    }
}

/// Where marks are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorePlace {
    /// The journal; absolute.
    pub path: PathBuf,
    /// The register beside it.
    pub register: Register,
}

/// When a record of a fencing makes a mark (design, section 6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntakeRules {
    /// `coalesce`: records of a host within it are one outage, where nothing better is known.
    pub coalesce: Duration,
    /// `evidence-grace`: how long Pacemaker's word alone waits for the record of `fence_mark`.
    pub evidence_grace: Duration,
    /// `horizon`: what is found later than this makes no mark.
    pub horizon: Duration,
}

/// Which hosts are told, and as what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostRules {
    /// What makes an FQDN of a short node name.
    pub domain: Option<String>,
    /// Node names that are told as something else.
    pub names: BTreeMap<HostName, HostName>,
    /// Whether instances are on shared storage; where unset, what the agent was given counts.
    pub on_shared_storage: Option<bool>,
    /// The nodes that are told; where unset, the remote nodes of the CIB, and without a register all that were fenced.
    pub matching: Option<HostPatterns>,
    /// `audit-after`: how long a host may be gone without having been fenced until an operator is warned.
    pub audit_after: Duration,
}

/// One endpoint with its driver.
#[derive(Clone, Debug)]
pub struct Route {
    /// Unique over all drivers.
    pub name: RouteName,
    /// The nodes whose marks it gets, those of `hosts` and those of `groups`; none means all of them.
    pub hosts: Option<HostPatterns>,
    /// `required`: whether a mark stays open until this route has it.
    pub required: bool,
    /// What it does for a mark. A route that does more than tell has one of these for each step.
    pub step: Step,
    /// What speaks with the endpoint.
    pub driver: Arc<dyn Driver>,
}

impl Route {
    /// Whether it gets the marks of this node.
    pub fn covers(&self, node: &HostName) -> bool {
        self.hosts.as_ref().is_none_or(|hosts| hosts.covers(node))
    }
}

/// A route's name: 1 to 64 of `A-Z a-z 0-9 _ -`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteName(String);

impl RouteName {
    /// Reads a name; `None` if it is no such name.
    pub fn parse(text: &str) -> Option<Self> {
        is_plain_name(text).then(|| Self(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RouteName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What routes and groups may be called.
pub(super) fn is_plain_name(text: &str) -> bool {
    let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    plain && (1..=64).contains(&text.len())
}

/// Reads everything; what is wrong is noted and replaced by its default, so that the rest is checked too.
pub(super) fn read(mut root: Section<'_, '_>, file: &Path, kinds: &'static [drivers::Kind]) -> Settings {
    let store = store(root.section("store"));
    let hosts = hosts(root.section("hosts"));
    let groups = Groups::read(root.section("groups"));
    let intake = intake(root.section("intake"));
    let Pace { degraded_after, max_in_flight, ack_batch } = pace(root.section("delivery"));
    let log_level = log(root.section("log"));
    let routes = routes(&mut root, kinds, &groups);
    let notices = notice::read(&mut root);
    root.finish();
    let (groups, file) = (groups.settled(), file.to_owned());
    Settings {
        store,
        hosts,
        groups,
        intake,
        degraded_after,
        max_in_flight,
        ack_batch,
        log_level,
        routes,
        notices,
        file,
    }
}

fn store(mut section: Section<'_, '_>) -> StorePlace {
    let path = section.text("path", journal_path).unwrap_or_else(|| PathBuf::from(DEFAULT_PATH));
    let register = section.text("register", register).unwrap_or_default();
    section.finish();
    StorePlace { path, register }
}

fn journal_path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.is_absolute() && path.file_name().is_some() && !text.ends_with('/') && !text.contains('\0') {
        true => Ok(path),
        false => Err(format!("must be the absolute path of a file, such as {DEFAULT_PATH}")),
    }
}

fn register(text: &str) -> Result<Register, String> {
    Register::parse(text).ok_or_else(|| "unknown register: use \"attrd\", \"cib\" or \"none\"".to_owned())
}

fn hosts(mut section: Section<'_, '_>) -> HostRules {
    let domain = section.text("domain", domain);
    let on_shared_storage = section.flag("on-shared-storage");
    let matching = matching(&mut section);
    let names = names(section.section("names"));
    let audit_after = seconds(&mut section, "audit-after", 300);
    section.finish();
    HostRules { domain, names, on_shared_storage, matching, audit_after }
}

fn domain(text: &str) -> Result<String, String> {
    let domain = text.strip_prefix('.').unwrap_or(text);
    HostName::parse(domain).map(|name| name.as_str().to_owned()).map_err(|why| format!("no domain: {why}"))
}

fn matching(section: &mut Section<'_, '_>) -> Option<HostPatterns> {
    let patterns = patterns(section, "match")?;
    if patterns.is_empty() {
        section.complain(
            "match",
            "the list is empty, so no host would ever be told: name hosts, or remove the key",
        );
    }
    HostPatterns::from_entries(patterns).ok()
}

/// A list of node names or patterns.
pub(super) fn patterns<'a>(section: &mut Section<'a, '_>, key: &'static str) -> Option<Vec<&'a str>> {
    section.texts(key, |text| match HostPatterns::from_entries([text]) {
        Ok(_) => Ok(()),
        Err(why) => Err(why.to_string()),
    })
}

/// `[hosts.names]`: a name that is told for two nodes would report a live host, so it is refused. What other nodes are
/// called without an entry here only the intake knows.
fn names(mut section: Section<'_, '_>) -> BTreeMap<HostName, HostName> {
    let mut names = BTreeMap::new();
    for (key, entry) in section.entries() {
        let told = section.last_text(entry, fqdn);
        let Ok(node) = HostName::parse(key) else {
            section.complain_at(entry.key, "the key must be a node name");
            continue;
        };
        let Some(told) = told else { continue };
        if names.values().any(|other| *other == told) {
            section.complain_at(
                entry.key,
                format!("{node} has the same name as another node: one would be reported for the other"),
            );
        }
        if names.insert(node.clone(), told).is_some() {
            section.complain_at(
                entry.key,
                format!("{node} stands here twice (upper and lower case are the same)"),
            );
        }
    }
    names
}

fn fqdn(text: &str) -> Result<HostName, String> {
    let name = HostName::parse(text).map_err(|why| why.to_string())?;
    if name.has_domain() { Ok(name) } else { Err("must be a full name with its domain".to_owned()) }
}

fn intake(mut section: Section<'_, '_>) -> IntakeRules {
    let coalesce = seconds(&mut section, "coalesce", 180);
    let evidence_grace = seconds(&mut section, "evidence-grace", 10);
    let horizon = seconds(&mut section, "horizon", 86_400);
    section.finish();
    IntakeRules { coalesce, evidence_grace, horizon }
}

fn seconds(section: &mut Section<'_, '_>, key: &'static str, default: u32) -> Duration {
    Duration::from_secs(section.number(key, SECONDS).unwrap_or(default).into())
}

/// `[delivery]`.
struct Pace {
    degraded_after: Duration,
    max_in_flight: usize,
    ack_batch: usize,
}

fn pace(mut section: Section<'_, '_>) -> Pace {
    let degraded_after = seconds(&mut section, "degraded-after", 300);
    let max_in_flight = section.number("max-in-flight", 1..=1024).unwrap_or(32) as usize;
    let ack_batch = section.number("ack-batch", 1..=1024).unwrap_or(64) as usize;
    section.finish();
    Pace { degraded_after, max_in_flight, ack_batch }
}

fn log(mut section: Section<'_, '_>) -> Level {
    let words =
        [("error", Level::ERROR), ("warn", Level::WARN), ("info", Level::INFO), ("debug", Level::DEBUG)];
    let level = section.choice("level", &words).unwrap_or(Level::INFO);
    section.finish();
    level
}

fn routes<'a>(
    root: &mut Section<'a, '_>,
    kinds: &'static [drivers::Kind],
    groups: &Groups<'a>,
) -> Vec<Route> {
    let mut routes = Vec::new();
    let mut seen = BTreeMap::new();
    let mut any = false;
    let mut surely_told = Vec::new();
    for kind in kinds {
        let mut of_kind = root.section(kind.word);
        any |= of_kind.entries().next().is_some();
        only_tables(&mut of_kind, "route");
        for key in of_kind.sections() {
            if let Some(other) = seen.insert(key, kind.word) {
                let message =
                    format!("[{other}.{key}] has this name already: names are unique over all drivers");
                of_kind.named_section(key).complain_here(message);
            }
            let mut section = of_kind.named_section(key);
            let reach = reach(&mut section, groups);
            surely_told.push(reach.hosts.is_none() && reach.required);
            routes.extend(route(section, key, kind, reach));
        }
    }
    if !any {
        root.missing(format!(
            "no route is configured, so nobody would be told: add a table such as [{}.recovery]",
            kinds[0].word
        ));
    } else if !surely_told.is_empty() && !surely_told.contains(&true) {
        root.missing(
            "no required route takes every host, so a mark could end untold: leave hosts, groups and required = false out of one route",
        );
    }
    routes
}

/// `[http]` itself holds nothing but routes, and `[groups]` nothing but groups.
pub(super) fn only_tables(section: &mut Section<'_, '_>, what: &str) {
    for (key, entry) in section.entries() {
        if let Some(value) = entry.values.first() {
            let (title, key) = (section.title().to_owned(), shown(key));
            section.complain_at(
                value.place,
                format!("{title}.{key} belongs into a {what}: write [{title}.NAME], one table for each"),
            );
        }
    }
}

/// What of a route is the framework's own, whatever its driver.
struct Reach {
    hosts: Option<HostPatterns>,
    required: bool,
}

fn reach<'a>(section: &mut Section<'a, '_>, groups: &Groups<'a>) -> Reach {
    let hosts = patterns(section, "hosts");
    if hosts.as_ref().is_some_and(Vec::is_empty) {
        section.complain(
            "hosts",
            "the list is empty, so this route would get no mark: name hosts, or remove the key",
        );
    }
    let named = hosts.into_iter().chain(groups.named_by(section)).flatten();
    let hosts = HostPatterns::from_entries(named).ok();
    Reach { hosts, required: section.flag("required").unwrap_or(true) }
}

fn route(
    mut section: Section<'_, '_>,
    key: &str,
    kind: &drivers::Kind,
    Reach { hosts, required }: Reach,
) -> Option<Route> {
    let name = RouteName::parse(key);
    if name.is_none() {
        section.complain_here("a route's name must be 1 to 64 letters, digits, '-' or '_'");
    }
    let driver = (kind.configure)(&mut section);
    section.finish();
    Some(Route { name: name?, hosts, required, step: Step::Failure, driver: driver? })
}

#[cfg(test)]
mod tests {
    use super::super::problem::{Place, Problems, Source};
    use super::super::{fragments, inputs};
    use super::*;

    /// Two drivers that take any table and make nothing of it.
    static TWO: [drivers::Kind; 2] = [
        drivers::Kind { word: "http", configure: |_| None },
        drivers::Kind { word: "other", configure: |_| None },
    ];

    fn problems_of(text: &str) -> Vec<String> {
        let source = Source { rank: 0, file: "f".into(), text: text.to_owned() };
        let mut problems = Problems::default();
        let parsed = [fragments::parse(&source, &mut problems)];
        let inputs = inputs::merge(&parsed, Place { source: &source, offset: 0 });
        let mut root = Section::root(&inputs, &mut problems);
        let groups = Groups::read(root.section("groups"));
        let made = routes(&mut root, &TWO, &groups);
        assert!(made.is_empty());
        problems.into_result().err().map(|e| e.to_string()).into_iter().collect()
    }

    /// S1-17: names are what marks remember, so no two drivers may share one.
    #[test]
    fn a_route_name_is_unique_over_all_drivers() {
        let twice = problems_of("[http.a]\n[other.b]\n[other.a]\n");
        assert_eq!(twice, ["f:3:8: [http.a] has this name already: names are unique over all drivers"]);
        assert!(problems_of("[http.a]\n[other.b]\n").is_empty());
    }

    #[test]
    fn a_route_name_is_short_and_plain() {
        for (name, good) in
            [("a", true), ("A-b_9", true), ("", false), ("a b", false), ("a.b", false), ("ä", false)]
        {
            assert_eq!(RouteName::parse(name).is_some(), good, "{name}");
        }
        assert!(RouteName::parse(&"a".repeat(64)).is_some() && RouteName::parse(&"a".repeat(65)).is_none());
    }
}
