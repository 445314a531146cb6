//! Third stage: typed and validated settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use drivers::Step;
use marks::host::{HostName, HostPatterns};
use marks::mark::Lack;
use marks::register::Register;
use register::Etcd;
use site::{DEFAULT_STORE, Problem, Section, etcd, shown};
use tracing::{Level, warn};

use super::api::{self, Api};
use super::groups::{self, Attributes, Group, Groups, NamedRecipients};
use super::listen::{self, Addresses, Healthcheck, RouteName, Served};
use super::routes::{self, Route};
use super::values::{SECONDS, patterns};
use super::written::Written;

use crate::listen::{Address, PATH_MAX};
use crate::log::{self, To};
use crate::probes::Confirm;

/// The whole configuration of the daemon.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `[store]`: where marks are kept.
    pub store: StorePlace,
    /// `[hosts]`: which hosts are covered, and their names.
    pub hosts: HostRules,
    /// `[groups.NAME]`: in the order of the configuration; the last one is always `default`.
    pub groups: Vec<Group>,
    /// `[intake]`: when a record of a fencing makes a mark.
    pub intake: IntakeRules,
    /// `[delivery] degraded-after`: how long a route may accept nothing until the daemon calls itself degraded.
    pub degraded_after: Duration,
    /// `[delivery] max-in-flight`: how many exchanges each route may have under way.
    pub max_in_flight: usize,
    /// `[log]`: what is logged, and where.
    pub log: log::Rules,
    /// `[history]`: for how long and how much of it is kept.
    pub history: HistoryRules,
    /// `[DRIVER.NAME]`: one or more, and one for each further step of these.
    pub routes: Vec<Arc<Route>>,
    /// Warnings about it; the daemon runs with it all the same.
    pub warnings: Vec<Problem>,
    /// `[api]`: where the API is served beside the control socket; nowhere by default.
    pub api: Option<Api>,
    /// `[healthcheck]`: where `/health` is answered; nowhere by default.
    pub healthcheck: Healthcheck,
    /// `[metrics]`: where `/metrics` is answered; nowhere by default.
    pub metrics: Option<Served>,
    /// The content of each section, without those of routes.
    pub sections: BTreeMap<String, Written>,
    /// `[page]`: where the status page is; nowhere by default.
    pub page: Option<Served>,
    /// The main file that this was read from.
    pub file: PathBuf,
}

/// The routes that are notified of a host.
#[derive(Clone, Debug)]
pub enum Recipients<'s> {
    /// All of them.
    Each(Vec<&'s Route>),
    /// One after the other, each with the time that it may take, until one acknowledges.
    Chain(Vec<(&'s Route, Duration)>),
}

impl<'s> Recipients<'s> {
    /// The routes, without their timeouts.
    pub fn routes(&self) -> Vec<&'s Route> {
        match self {
            Self::Each(routes) => routes.clone(),
            Self::Chain(links) => links.iter().map(|(route, _)| *route).collect(),
        }
    }
}

impl Settings {
    /// The routes as they are configured, without their further steps.
    pub fn own_routes(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter().map(Arc::as_ref).filter(|route| route.step == Step::Failure)
    }

    /// Logs the warnings about it: at each start, and when it was read again.
    pub fn warn(&self) {
        for group in &self.groups {
            for warning in group.confirm.iter().flat_map(Confirm::warnings) {
                warn!("group {}: {warning}", group.name);
            }
        }
        self.warnings.iter().for_each(|warning| warn!("{warning}"));
        for route in self.own_routes() {
            for warning in &route.driver.about().warnings {
                warn!("route {}: {warning}", route.name);
            }
            if self.store.register == Register::None && route.goes_on_to(Step::Return) {
                warn!(
                    "route {}: without a register nothing says that a host is back, so no return is sent: set register",
                    route.name
                );
            }
        }
    }

    /// What it may not say of a host.
    pub fn lacks(&self) -> impl Iterator<Item = Lack> {
        let HostRules { domain, names, on_shared_storage, .. } = &self.hosts;
        let says = |group: &Group| group.on_shared_storage.is_some();
        let fqdn = (domain.is_none() && names.is_empty()).then_some(Lack::Fqdn);
        let storage = (on_shared_storage.is_none() && !self.groups.iter().all(says)).then_some(Lack::Storage);
        fqdn.into_iter().chain(storage)
    }

    /// The group of a host: the first one, in the order of the configuration, that it is in, `default` at last.
    pub fn group_of(&self, node: &HostName, attribute: Attributes<'_>) -> &Group {
        groups::of(&self.groups, node, attribute)
    }

    /// All the groups that a host is in, without `default`: one at the most, if they are as they should be.
    pub fn groups_of(&self, node: &HostName, attribute: Attributes<'_>) -> Vec<&Group> {
        groups::all_of(&self.groups, node, attribute)
    }

    /// Which routes are notified of a host, by its group.
    pub fn routes_for(&self, node: &HostName, attribute: Attributes<'_>) -> Recipients<'_> {
        let group = self.group_of(node, attribute);
        let route = |name: &RouteName| self.own_routes().find(|route| route.name == *name);
        match &group.recipients {
            NamedRecipients::Covering => {
                let free = self.own_routes().filter(|route| !self.is_named(&route.name));
                Recipients::Each(free.filter(|route| route.covers(node, &group.name)).collect())
            }
            NamedRecipients::Each(names) => Recipients::Each(names.iter().filter_map(route).collect()),
            NamedRecipients::Chain(links) => Recipients::Chain(
                links.iter().filter_map(|link| Some((route(&link.route)?, link.timeout))).collect(),
            ),
        }
    }

    /// Whether a group names this route: then it gets only the hosts of such groups.
    fn is_named(&self, route: &RouteName) -> bool {
        self.groups.iter().any(|group| group.recipients.names(route))
    }
}

/// Where marks are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorePlace {
    /// The journal; absolute.
    pub path: PathBuf,
    /// The register beside it.
    pub register: Register,
    /// `[store.etcd]`: where that is, if it is in etcd.
    pub etcd: Option<Etcd>,
}

/// When a record of a fencing makes a mark (design, section 6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntakeRules {
    /// `coalesce`: records of a host within it are one outage, if nothing better is known.
    pub coalesce: Duration,
    /// `horizon`: what is found later than this makes no mark.
    pub horizon: Duration,
}

/// What the journal keeps of what is over. What is open is always kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryRules {
    /// `keep`: how long after its end.
    pub keep: Duration,
    /// `max-size`: above so many bytes in use the oldest history goes before its time.
    pub max_bytes: u64,
}

impl Default for HistoryRules {
    /// A year and a month, so that a month can be compared with the same one a year ago; and half a gigabyte: more than a million rows,
    /// and little for a controller's /var.
    fn default() -> Self {
        Self::of(400, 512)
    }
}

impl HistoryRules {
    fn of(days: u32, mebibytes: u32) -> Self {
        Self { keep: Duration::from_secs(u64::from(days) * 86_400), max_bytes: u64::from(mebibytes) << 20 }
    }
}

/// Which hosts are covered, and their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostRules {
    /// What makes an FQDN of a short node name.
    pub domain: Option<String>,
    /// Full names of nodes that differ from node name and domain.
    pub names: BTreeMap<HostName, HostName>,
    /// Whether instances are on shared storage; where unset, the agent's own setting counts, and without one the mark is held.
    pub on_shared_storage: Option<bool>,
    /// The covered nodes; where unset, the remote nodes of the CIB, and without a register all that were fenced.
    pub matching: Option<HostPatterns>,
}

/// Reads everything. Each problem is noted and replaced by the default, so that the rest is checked too.
pub(super) fn read(mut root: Section<'_, '_>, file: &Path, kinds: &'static [drivers::Kind]) -> Settings {
    let sections = sections(&root, kinds);
    let store = store(root.section("store"));
    let hosts = hosts(root.section("hosts"));
    let groups = Groups::read(root.section("groups"), store.register == Register::None);
    let intake = intake(root.section("intake"));
    let (degraded_after, max_in_flight) = pace(root.section("delivery"));
    let log = log_rules(root.section("log"));
    let history = history(root.section("history"));
    let routes = routes::read(&mut root, kinds, &groups);
    let mut addresses = Addresses::default();
    addresses.reserve(Address::Unix(control_socket(&store.path)), "the control socket");
    let api = api::read(&mut root, store.register, &routes, &mut addresses);
    let healthcheck = listen::read(root.section("healthcheck"), &mut addresses);
    let metrics = served(root.section("metrics"), &mut addresses);
    let page = served(root.section("page"), &mut addresses);
    root.finish();
    let (groups, file) = (groups.settled(), file.to_owned());
    Settings {
        store,
        hosts,
        groups,
        intake,
        degraded_after,
        max_in_flight,
        log,
        history,
        routes,
        warnings: Vec::new(),
        api,
        healthcheck,
        metrics,
        sections,
        page,
        file,
    }
}

fn sections(root: &Section<'_, '_>, kinds: &[drivers::Kind]) -> BTreeMap<String, Written> {
    let is_of_routes = |key: &str| kinds.iter().any(|kind| kind.word == key);
    let all = root.entries().filter(|(key, _)| !is_of_routes(key));
    all.map(|(key, entry)| (shown(key), Written::of(entry.table.as_ref(), &[]))).collect()
}

fn store(mut section: Section<'_, '_>) -> StorePlace {
    let path = section.text("path", journal_path).unwrap_or_else(|| PathBuf::from(DEFAULT_STORE));
    let register = section.text("register", register).unwrap_or_default();
    let etcd = etcd::read(&mut section);
    if register == Register::Etcd {
        etcd::complain(&mut section);
    }
    section.finish();
    StorePlace { path, register, etcd }
}

fn journal_path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if !path.is_absolute() || path.file_name().is_none() || text.ends_with('/') || text.contains('\0') {
        return Err(format!("must be the absolute path of a file, such as {DEFAULT_STORE}"));
    }
    check_control_socket(&control_socket(&path))?;
    Ok(path)
}

fn register(text: &str) -> Result<Register, String> {
    Register::parse(text)
        .ok_or_else(|| "unknown register: use \"attrd\", \"cib\", \"etcd\" or \"none\"".to_owned())
}

fn hosts(mut section: Section<'_, '_>) -> HostRules {
    let domain = section.text("domain", domain);
    let on_shared_storage = section.flag("on-shared-storage");
    let matching = matching(&mut section);
    // The names of nodes without an entry are checked by the intake.
    let names = drivers::of_nodes(section.section("names"), fqdn);
    section.finish();
    HostRules { domain, names, on_shared_storage, matching }
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
            "the list is empty, so no host would ever be marked: name hosts, or remove the key",
        );
    }
    HostPatterns::from_entries(patterns).ok()
}

fn fqdn(text: &str) -> Result<HostName, String> {
    let name = HostName::parse(text).map_err(|why| why.to_string())?;
    if name.has_domain() { Ok(name) } else { Err("must be a full name with its domain".to_owned()) }
}

fn intake(mut section: Section<'_, '_>) -> IntakeRules {
    let coalesce = seconds(&mut section, "coalesce", 180);
    let horizon = seconds(&mut section, "horizon", 86_400);
    section.finish();
    IntakeRules { coalesce, horizon }
}

fn seconds(section: &mut Section<'_, '_>, key: &'static str, default: u32) -> Duration {
    Duration::from_secs(section.number(key, SECONDS).unwrap_or(default).into())
}

fn served(mut section: Section<'_, '_>, addresses: &mut Addresses) -> Option<Served> {
    let served = addresses.read(&mut section);
    section.finish();
    served
}

/// `[delivery]`: `degraded-after` and `max-in-flight`.
fn pace(mut section: Section<'_, '_>) -> (Duration, usize) {
    let degraded_after = seconds(&mut section, "degraded-after", 300);
    let max_in_flight = section.number("max-in-flight", 1..=1024).unwrap_or(32) as usize;
    section.finish();
    (degraded_after, max_in_flight)
}

/// A month at least: what the register and Pacemaker still know is much younger, so no removed row is ever taken in again. Less than
/// 16 MiB would leave no room for open marks.
fn history(mut section: Section<'_, '_>) -> HistoryRules {
    let days = section.number("keep", 30..=36_500).unwrap_or(400);
    let mebibytes = section.number("max-size", 16..=1_048_576).unwrap_or(512);
    section.finish();
    HistoryRules::of(days, mebibytes)
}

fn log_rules(mut section: Section<'_, '_>) -> log::Rules {
    let words =
        [("error", Level::ERROR), ("warn", Level::WARN), ("info", Level::INFO), ("debug", Level::DEBUG)];
    let level = section.choice("level", &words).unwrap_or(Level::INFO);
    let to = section.choice("to", &[("syslog", To::Syslog), ("stderr", To::Stderr)]).unwrap_or(To::Syslog);
    section.finish();
    log::Rules { level, to }
}

/// The control socket of a journal: in /run for the default one, else beside the journal.
pub fn control_socket(journal: &Path) -> PathBuf {
    if journal == Path::new(DEFAULT_STORE) {
        return PathBuf::from("/run/nova-host-alerter/control.sock");
    }
    journal.with_file_name("control.sock")
}

/// Whether the kernel takes this path.
///
/// # Errors
/// One sentence for the operator.
pub fn check_control_socket(path: &Path) -> Result<(), String> {
    let bytes = path.as_os_str().len();
    if bytes <= PATH_MAX {
        return Ok(());
    }
    let (path, most) = (path.display(), PATH_MAX);
    Err(format!(
        "the control socket would be {path}, which has {bytes} bytes of at most {most}: choose a shorter path for the journal"
    ))
}
