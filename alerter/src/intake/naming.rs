//! The name under which a host is reported: never one that is another node's too. Pure.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use drivers::Named;
use marks::fencing::Fencing;
use marks::host::{HostName, resolve_fqdn};
use pacemaker::cib::Cib;

use crate::config::{HostRules, Route, RouteName};

/// The name under which a host is reported; none where it is not known. Without a name, or with a clash, the mark is held as
/// `no-fqdn`.
pub(super) type Naming = Result<Option<HostName>, Clash>;

/// Two nodes of the cluster have one name: a mark of the one would report the other, which may be alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clash {
    pub(super) node: HostName,
    pub(super) other: HostName,
    pub(super) name: HostName,
    /// What has to be corrected.
    pub(super) setting: String,
}

impl fmt::Display for Clash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, other, name, setting } = self;
        write!(
            f,
            "{node} was fenced and its mark is held (no-fqdn): its name {name} is also the name of {other}, which may be alive; correct {setting} and run `nova-host-alerter reload`"
        )
    }
}

/// The rules, and the nodes that may have a name already.
pub(super) struct Names<'a> {
    hosts: &'a HostRules,
    /// None where there is no cluster to ask: no other node is known there.
    cib: Option<&'a Cib>,
    /// The routes, whose services may have names of their own for the hosts.
    routes: &'a [Arc<Route>],
    /// Made once for all fencings of a poll, and only if there is any.
    nodes: OnceCell<Nodes>,
}

struct Nodes {
    /// All nodes of the cluster, each with whether it is a remote one.
    remote: HashMap<HostName, bool>,
    labels: HashSet<String>,
    /// The names in `[hosts.names]` that nodes of the cluster have, each with its node.
    named: HashMap<HostName, HostName>,
    /// By what each service with names of its own calls the nodes.
    there: HashMap<(RouteName, HostName), Vec<HostName>>,
}

impl<'a> Names<'a> {
    pub(super) fn new(hosts: &'a HostRules, cib: Option<&'a Cib>) -> Self {
        Self { hosts, cib, routes: &[], nodes: OnceCell::new() }
    }

    /// The same with the names that the services of these routes have.
    pub(super) fn with_routes(self, routes: &'a [Arc<Route>]) -> Self {
        Self { routes, ..self }
    }

    /// A fencing of the register may be wrong: its plug does not count if it is another node.
    pub(super) fn of_fencing(&self, fencing: &Fencing, imported: bool) -> Naming {
        let (node, plug) = (&fencing.node, fencing.plug.as_ref());
        let domain = self.hosts.domain.as_deref().or(fencing.given_domain.as_deref());
        let named = |plug| resolve_fqdn(node, plug, &self.hosts.names, domain);
        let is_anothers = |name: &HostName| imported && self.is_anothers(node, name);
        let name = named(plug);
        let name = if name.as_ref().is_some_and(is_anothers) { named(None) } else { name };
        self.unshared(node, name, domain)
    }

    /// Where nothing is known of the host but its node name.
    pub(super) fn of_node(&self, node: &HostName) -> Naming {
        self.unshared(node, self.configured(node), self.hosts.domain.as_deref())
    }

    /// The same for a name that an entry of the register gives.
    pub(super) fn of_entry(&self, node: &HostName, name: &HostName) -> Naming {
        self.unshared(node, Some(name.clone()), self.hosts.domain.as_deref())
    }

    /// Whether a name that is not configured for this node is the name of another node of this cluster.
    pub(super) fn is_anothers(&self, node: &HostName, name: &HostName) -> bool {
        let Some(nodes) = self.nodes().filter(|_| self.configured(node).as_ref() != Some(name)) else {
            return false;
        };
        let same_label = label(node) != label(name) && nodes.labels.contains(&label(name));
        same_label || self.holder(node, name, self.hosts.domain.as_deref()).is_some()
    }

    fn configured(&self, node: &HostName) -> Option<HostName> {
        resolve_fqdn(node, None, &self.hosts.names, self.hosts.domain.as_deref())
    }

    fn unshared(&self, node: &HostName, name: Option<HostName>, domain: Option<&str>) -> Naming {
        let Some(name) = name else { return Ok(None) };
        match self.holder(node, &name, domain) {
            Some(other) => {
                let setting = "[hosts.names]".to_owned();
                Err(Clash { node: node.clone(), other: other.clone(), name, setting })
            }
            None => match self.namesake(Named { node: node.clone(), fqdn: name.clone() }) {
                Some(clash) => Err(clash),
                None => Ok(Some(name)),
            },
        }
    }

    /// Another node that a route's service knows by the name that it would be sent for this one.
    fn namesake(&self, host: Named) -> Option<Clash> {
        let nodes = self.nodes()?;
        // Of a route for groups only the cluster knows the members.
        let may_get = |route: &&Arc<Route>| {
            !route.groups.is_empty() || route.hosts.as_ref().is_none_or(|hosts| hosts.covers(&host.node))
        };
        self.routes.iter().filter(may_get).find_map(|route| {
            let (name, setting) = route.driver.about().name_there(&host)?;
            let others = nodes.there.get(&(route.name.clone(), name.clone()))?;
            let other = others.iter().find(|other| !nodes.is_same(&host.node, other))?.clone();
            Some(Clash { node: host.node.clone(), other, name, setting: format!("host-name or {setting}") })
        })
    }

    /// Another node that is reported under this name: by its entry, or without one by its FQDN or the domain.
    fn holder(&self, node: &HostName, name: &HostName, domain: Option<&str>) -> Option<&HostName> {
        let nodes = self.nodes()?;
        let without_entry = |short: &HostName| !self.hosts.names.contains_key(short);
        let itself = [Some(name.clone()), short(name, domain)].into_iter().flatten().filter(without_entry);
        // If the domain is not known, it may be that of any compute host; controllers need none.
        let may_be = |other: &HostName, remote: bool| domain.is_some() || other.has_domain() || remote;
        let known = itself.filter_map(|other| nodes.remote.get_key_value(&other));
        let plain = known.filter(|(other, remote)| may_be(other, **remote)).map(|(other, _)| other);
        nodes.named.get(name).into_iter().chain(plain).find(|other| !nodes.is_same(node, other))
    }

    fn nodes(&self) -> Option<&Nodes> {
        let cib = self.cib?;
        Some(self.nodes.get_or_init(|| Nodes::of(cib, self)))
    }
}

impl Nodes {
    fn of(cib: &Cib, names: &Names<'_>) -> Self {
        let others = cib.cluster_nodes().iter().chain(cib.guest_nodes()).map(|node| (node.clone(), false));
        let remote: HashMap<_, _> =
            others.chain(cib.remote_nodes().iter().map(|node| (node.clone(), true))).collect();
        let labels = remote.keys().map(label).collect();
        let named = names.hosts.names.iter().filter(|(node, _)| remote.contains_key(*node));
        let named = named.map(|(node, name)| (name.clone(), node.clone())).collect();
        let mut there: HashMap<_, Vec<_>> = HashMap::new();
        for (route, node) in
            names.routes.iter().flat_map(|route| remote.keys().map(move |node| (route, node)))
        {
            let fqdn = names.configured(node).unwrap_or_else(|| node.clone());
            let known = route.driver.about().name_there(&Named { node: node.clone(), fqdn });
            if let Some((name, _)) = known {
                there.entry((route.name.clone(), name)).or_default().push(node.clone());
            }
        }
        Self { remote, labels, named, there }
    }

    /// Whether both are one node. An operator may have typed a node's name with or without its domain.
    fn is_same(&self, node: &HostName, other: &HostName) -> bool {
        let is_spelling = || label(node) == label(other) && !(node.has_domain() && other.has_domain());
        node == other || (!self.remote.contains_key(node) && is_spelling())
    }
}

/// The short node name that makes this name with the domain; with any domain, if none is known.
fn short(name: &HostName, domain: Option<&str>) -> Option<HostName> {
    let (short, rest) = name.as_str().split_once('.')?;
    let fits = |domain: &str| domain.trim_start_matches('.').eq_ignore_ascii_case(rest);
    HostName::parse(short).ok().filter(|_| domain.is_none_or(fits))
}

/// What stands before the first dot of a name, without case.
fn label(name: &HostName) -> String {
    name.as_str().split('.').next().unwrap_or_default().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use marks::time::Timestamp;

    use super::*;

    fn host(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    fn rules(domain: Option<&str>, names: &[(&str, &str)]) -> HostRules {
        let names: BTreeMap<_, _> = names.iter().map(|(node, name)| (host(node), host(name))).collect();
        HostRules { domain: domain.map(str::to_owned), names, ..HostRules::default() }
    }

    /// A cluster of these remote nodes, a controller and a guest.
    fn cib(remote: &[&str]) -> Cib {
        let remote: String = remote
            .iter()
            .map(|node| format!(r#"<primitive id="{node}" class="ocf" provider="pacemaker" type="remote"/>"#))
            .collect();
        let xml = format!(
            r#"<cib><configuration><crm_config/><nodes><node id="1" uname="ctl1"/></nodes><resources>{remote}
                <primitive id="vm" class="ocf" provider="heartbeat" type="VirtualDomain">
                  <meta_attributes id="m"><nvpair id="n" name="remote-node" value="guest1"/></meta_attributes>
                </primitive></resources><constraints/></configuration><status/></cib>"#
        );
        Cib::parse(&xml).unwrap()
    }

    /// What a node is called, or the node that it clashes with.
    fn named(hosts: &HostRules, cib: Option<&Cib>, node: &str) -> Result<String, String> {
        of(Names::new(hosts, cib).of_node(&host(node)))
    }

    fn of(naming: Naming) -> Result<String, String> {
        match naming {
            Ok(name) => Ok(name.map_or_else(String::new, |name| name.to_string())),
            Err(clash) => Err(clash.other.to_string()),
        }
    }

    fn fencing(node: &str, plug: Option<&str>, given_domain: Option<&str>) -> Fencing {
        Fencing {
            committed_at: Timestamp::from_seconds(2),
            plug: plug.map(host),
            given_domain: given_domain.map(str::to_owned),
            ..samples::fencing(node, Timestamp::from_seconds(1))
        }
    }

    /// S1-37: a wrong name evacuates the wrong host. Whether the other node has the name by the domain, as its own, or by
    /// an entry; in any spelling; and whatever kind of node it is. Both nodes are held: nobody knows whose name it is.
    #[test]
    fn no_host_is_notified_under_the_name_of_another_node() {
        let domain = Some("my.cloud.com");
        for other in ["compute2", "COMPUTE2", "compute2.my.cloud.com", "Compute2.My.Cloud.com"] {
            let (rules, cib) =
                (rules(domain, &[("compute1", "compute2.MY.cloud.com")]), cib(&["compute1", other]));
            assert_eq!(named(&rules, Some(&cib), "Compute1"), Err(other.to_owned()));
            assert_eq!(named(&rules, Some(&cib), other), Err("compute1".to_owned()));
        }
        for (other, name) in [("ctl1", "ctl1.my.cloud.com"), ("guest1", "guest1.my.cloud.com")] {
            let rules = rules(domain, &[("compute1", name)]);
            assert_eq!(named(&rules, Some(&cib(&["compute1"])), "compute1"), Err(other.to_owned()));
        }
        let by_entry = rules(domain, &[("compute2", "compute1.my.cloud.com")]);
        assert_eq!(
            named(&by_entry, Some(&cib(&["compute1", "compute2"])), "compute1"),
            Err("compute2".into())
        );
    }

    /// The broken variant of the row above: the table alone, as without a cluster, notifies of a host that may be alive.
    #[test]
    fn without_the_nodes_of_the_cluster_the_other_host_is_notified() {
        let rules = rules(Some("my.cloud.com"), &[("compute1", "compute2.my.cloud.com")]);
        assert_eq!(named(&rules, None, "compute1"), Ok("compute2.my.cloud.com".into()));
    }

    #[test]
    fn a_name_that_no_other_node_has_is_notified() {
        let domain = Some(".my.cloud.com");
        let entries = [
            ("compute1", "compute1.my.cloud.com"),
            // The two have each other's name, on purpose: an entry goes before what the domain would say.
            ("compute2", "compute3.my.cloud.com"),
            ("compute3", "compute2.my.cloud.com"),
            ("compute4", "compute1.elsewhere.org"),
            // The cluster does not know this one (any more).
            ("compute9", "compute5.my.cloud.com"),
        ];
        let (rules, cib) =
            (rules(domain, &entries), cib(&["compute1", "compute2", "compute3", "compute4", "compute5"]));
        for (node, name) in &entries[..4] {
            assert_eq!(named(&rules, Some(&cib), node).as_deref(), Ok(*name));
        }
        assert_eq!(named(&rules, Some(&cib), "COMPUTE5").as_deref(), Ok("COMPUTE5.my.cloud.com"));
        assert_eq!(named(&rules, Some(&cib), "compute9"), Err("compute5".into()), "that one is alive");
    }

    /// An operator types a name with or without its domain, whatever the cluster calls the node.
    #[test]
    fn another_spelling_of_a_node_is_no_other_node() {
        for domain in [Some("my.cloud.com"), None] {
            let rules = rules(domain, &[("compute3", "compute3.my.cloud.com")]);
            let cib = cib(&["compute1.my.cloud.com", "compute2", "compute3.my.cloud.com"]);
            let expect = |node: &str, name: &str| {
                assert_eq!(named(&rules, Some(&cib), node).as_deref(), Ok(name), "{node} {domain:?}");
            };
            expect("COMPUTE1.my.cloud.com", "COMPUTE1.my.cloud.com");
            expect("compute2.my.cloud.com", "compute2.my.cloud.com");
            expect("compute3", "compute3.my.cloud.com");
        }
        let both = cib(&["compute1", "compute1.my.cloud.com"]);
        let clash = named(&rules(Some("my.cloud.com"), &[]), Some(&both), "compute1");
        assert_eq!(clash, Err("compute1.my.cloud.com".into()), "the cluster says that they are two");
    }

    /// Where `[hosts]` is silent, the agent's domain counts; where nobody says one, any may be that of a compute.
    #[test]
    fn a_domain_that_only_the_agent_knows_or_nobody() {
        let (rules, cib) = (rules(None, &[("compute1", "compute2.a.org")]), cib(&["compute1", "compute2"]));
        let names = Names::new(&rules, Some(&cib));
        let by_agent = |domain| of(names.of_fencing(&fencing("compute1", None, domain), false));
        assert_eq!(by_agent(Some(".A.org")), Err("compute2".into()));
        assert_eq!(by_agent(Some("b.org")), Ok("compute2.a.org".into()));
        assert_eq!(of(names.of_node(&host("compute1"))), Err("compute2".into()));
        let controller = self::rules(None, &[("compute1", "ctl1.a.org")]);
        assert_eq!(named(&controller, Some(&cib), "compute1"), Ok("ctl1.a.org".into()));
        assert_eq!(of(names.of_node(&host("compute2"))), Ok(String::new()), "it has no name at all");
    }

    #[test]
    fn a_plug_that_is_another_node_names_nobody() {
        let (rules, cib) = (rules(Some("a.org"), &[]), cib(&["compute1", "compute2"]));
        let names = Names::new(&rules, Some(&cib));
        let by = |plug, imported| of(names.of_fencing(&fencing("compute1", Some(plug), None), imported));
        for plug in ["compute2", "compute2.a.org"] {
            assert_eq!(by(plug, false), Err("compute2".into()));
            assert_eq!(by(plug, true), Ok("compute1.a.org".into()), "the register may say anything");
        }
        assert_eq!(by("nova1", false), Ok("nova1.a.org".into()));
    }
}
