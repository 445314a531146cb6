//! What the endpoints of all routes say of the configuration and of the cluster's hosts, before there is a mark.

use drivers::{Failure, Finding, Named};
use marks::host::HostName;
use marks::mark::Lack;
use marks::register::Register;
use pacemaker::cib::Cib;
use serde::Serialize;

use crate::config::{Route, Settings};
use crate::intake::roll::{self, Roll};

/// What was learnt.
#[derive(Clone, Debug, Serialize)]
pub struct Answers {
    /// How many hosts of the cluster were asked about; none where no cluster could be asked.
    pub hosts: Option<usize>,
    /// How many of them each group has; nothing where no cluster could be asked.
    pub groups: Vec<OfGroup>,
    /// What an operator should know of groups of these sizes; hosts are reported all the same.
    pub warnings: Vec<String>,
    /// Why no cluster could be asked.
    pub no_cluster: Option<String>,
    /// Whether there is one to ask, by the configuration.
    pub wants_cluster: bool,
    /// The hosts whose full name only `fence_mark` may know: no endpoint was asked about them.
    pub unnamed: Vec<HostName>,
    /// What prevents that hosts are reported.
    pub findings: Vec<Obstacle>,
    /// What each route's endpoint says.
    pub routes: Vec<OfRoute>,
}

/// How large a group is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OfGroup {
    /// The group.
    pub group: String,
    /// How many hosts of the cluster are in it.
    pub hosts: usize,
}

/// What prevents that one host is reported, or all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Obstacle {
    /// The only host that it is about.
    pub host: Option<HostName>,
    /// Its word.
    pub kind: &'static str,
    /// The same for people.
    pub detail: String,
}

/// What the endpoint of a route says.
#[derive(Clone, Debug, Serialize)]
pub struct OfRoute {
    /// The route.
    pub route: String,
    /// Its driver.
    pub driver: &'static str,
    /// For people.
    pub endpoint: String,
    /// Whether its driver can ask it without a message.
    pub asked: bool,
    /// What is wrong.
    pub findings: Vec<Obstacle>,
}

impl Answers {
    /// Whether nothing is wrong, and every host was checked.
    pub fn is_clear(&self) -> bool {
        let is_complete = self.unnamed.is_empty() && !(self.wants_cluster && self.no_cluster.is_some());
        is_complete && self.findings.is_empty() && self.routes.iter().all(|route| route.findings.is_empty())
    }
}

impl From<Finding> for Obstacle {
    fn from(Finding { host, why }: Finding) -> Self {
        Self { host, kind: why.kind, detail: why.detail }
    }
}

/// Asks all at once. `cib` is the cluster as it stands, or why there is none.
pub async fn ask(settings: &Settings, cib: Result<Cib, String>) -> Answers {
    let roll = cib.as_ref().map(|cib| roll::of(settings, cib));
    let Roll { named, clashes, unnamed, unsaid } = roll.as_ref().cloned().unwrap_or_default();
    let grouped = cib.as_ref().map(|cib| roll::grouped(settings, cib)).unwrap_or_default();
    let under_way: Vec<_> = settings
        .own_routes()
        .map(|route| {
            tokio::spawn(of_route(route.clone(), notified(settings, route, &named, cib.as_ref().ok())))
        })
        .collect();
    let mut routes = Vec::new();
    for route in under_way {
        routes.push(route.await.expect("a panic anywhere ends the whole program"));
    }
    let guests = cib.as_ref().map(|cib| roll::guests(&settings.hosts, cib)).unwrap_or_default();
    Answers {
        hosts: roll.is_ok().then_some(named.len() + clashes.len() + unnamed.len()),
        groups: if roll.is_ok() { of_groups(settings, &grouped.sizes) } else { Vec::new() },
        warnings: grouped.warnings,
        no_cluster: cib.err(),
        wants_cluster: settings.store.register != Register::None,
        unnamed,
        findings: clashes
            .into_iter()
            .chain(unsaid.into_iter().map(of_unsaid))
            .chain(grouped.twice)
            .chain(guests)
            .map(Obstacle::from)
            .collect(),
        routes,
    }
}

fn of_unsaid(node: HostName) -> Finding {
    let says =
        format!("nobody says whether its instances are on shared storage: set {}", Lack::Storage.setting());
    Finding { host: Some(node), why: Failure::new(Lack::Storage.as_str(), &says) }
}

fn of_groups(settings: &Settings, sizes: &[usize]) -> Vec<OfGroup> {
    let groups = settings.groups.iter().zip(sizes);
    groups.map(|(group, size)| OfGroup { group: group.name.clone(), hosts: *size }).collect()
}

/// The hosts that a route is notified of.
fn notified(settings: &Settings, route: &Route, hosts: &[Named], cib: Option<&Cib>) -> Vec<Named> {
    let attribute = |node: &HostName, name: &str| cib?.node_attribute(node, name).map(str::to_owned);
    let is_notified = |host: &&Named| {
        let routes = settings.routes_for(&host.node, &attribute).routes();
        routes.iter().any(|own| own.name == route.name)
    };
    hosts.iter().filter(is_notified).cloned().collect()
}

async fn of_route(route: Route, hosts: Vec<Named>) -> OfRoute {
    let answer = route.driver.check(&hosts).await;
    OfRoute {
        route: route.name.as_str().to_owned(),
        driver: route.driver.about().kind,
        endpoint: route.driver.about().endpoint.clone(),
        asked: answer.is_some(),
        findings: answer.into_iter().flatten().map(Obstacle::from).collect(),
    }
}
