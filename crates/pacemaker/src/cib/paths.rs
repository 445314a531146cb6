//! XPath expressions for the parts of the CIB that count here. Full paths: `//` costs Pacemaker five times as much.

use std::fmt::Write as _;

use super::MARK_AGENT;
use super::operations::{FAULTY, HEALTH_AGENT, REMOTE_AGENT, Total};
use marks::host::HostName;

/// Of the sets of properties those that are not the register's: its pages would be most of the answer.
const PROPERTIES: &str =
    "/cib/configuration/crm_config/cluster_property_set[not(starts-with(@id,'host-failure'))]";
/// The sections of the configuration that are small however many hosts there are.
const SMALL: [&str; 2] = ["/cib/configuration/rsc_defaults", "/cib/configuration/resources/template"];
/// Where primitives stand: alone, in a group or a clone, and in a group that is cloned.
const PRIMITIVES: [&str; 3] = [
    "/cib/configuration/resources/primitive",
    "/cib/configuration/resources/*/primitive",
    "/cib/configuration/resources/*/*/primitive",
];
/// Remote nodes, guest nodes, fence devices, what also recovers hosts, and what only its template says.
const WANTED: &str = "@type='remote' or @class='stonith' or @type='NovaEvacuate' or @template or meta_attributes/nvpair[@name='remote-node']";
const STATES: &str = "/cib/status/node_state";
const HISTORIES: &str = "/lrm/lrm_resources/lrm_resource";
/// The words by which a node is set aside until its next start.
const SET_ASIDE: &str = "instance_attributes/nvpair[@name='standby' or @name='maintenance']";

/// Everything of the configuration that a [`super::Cib`] keeps. Its elements are many: ask for them in turns.
pub(super) fn configuration() -> String {
    let mut all = vec![PROPERTIES.to_owned(), "/cib/configuration/nodes/node".to_owned()];
    all.extend(SMALL.map(str::to_owned));
    all.extend(PRIMITIVES.map(|path| format!("{path}[{WANTED}]")));
    all.push("/cib/configuration/fencing-topology/fencing-level".to_owned());
    all.join("|")
}

/// The version, the states of all nodes, which of them are set aside, and which controllers' operations, and which health
/// checks, are as they were read. To be asked without children: these are one consistent reading.
pub(super) fn status<'a>(
    known: impl Iterator<Item = (&'a str, &'a str, &'a Total)>,
    health: &Total,
    own: &[HostName],
) -> String {
    let mut all = format!(
        "/cib|{STATES}|{STATES}/transient_attributes[{SET_ASIDE}]|{STATES}/transient_attributes/{SET_ASIDE}"
    );
    let operations = |wanted: &str| format!("lrm_resource[{wanted}]/lrm_rsc_op");
    let _fits = write!(all, "|{STATES}/lrm[lrm_resources/{}]", operations(&wanted_of(None, &[])));
    for node in own.iter().filter_map(|node| literal(node.as_str())) {
        let _fits = write!(all, "|{STATES}[@uname={node}]/lrm[lrm_resources/lrm_resource/lrm_rsc_op]");
    }
    for (id, name, total) in known.filter(|(_, _, total)| !total.is_open) {
        let (Some(id), of) = (literal(id), operations(&wanted_of(Some(name), own))) else { continue };
        let _fits = write!(all, "|{STATES}[@id={id}]/lrm/lrm_resources[{}]", is_still(&of, total));
    }
    if !health.is_open {
        let of = format!("node_state[@remote_node]{HISTORIES}[{}]/lrm_rsc_op", is_unhealthy());
        let still = if health.count == 0 { format!("not({of})") } else { is_still(&of, health) };
        let _fits = write!(all, "|/cib/status[{still}]");
    }
    all
}

/// The operations of remote nodes with a health check that failed. They name the controller, and what is around them the host.
pub(super) fn unhealthy() -> String {
    format!("{STATES}[@remote_node]/lrm[lrm_resources/lrm_resource[{}]]", is_unhealthy())
}

/// Of a health check of which Pacemaker remembers a failure.
fn is_unhealthy() -> String {
    let kind = HEALTH_AGENT.rsplit(':').next().unwrap_or_default();
    let codes = FAULTY.map(|code| format!("@rc-code='{code}'")).join(" or ");
    format!("@type='{kind}' and lrm_rsc_op[{codes}]")
}

fn is_still(of: &str, total: &Total) -> String {
    let sums = Total::OF.iter().zip(total.sums).map(|(name, sum)| format!(" and sum({of}/@{name})={sum}"));
    format!("count({of})={}{}", total.count, sums.collect::<String>())
}

/// A controller's operations that count here; with `since` only the resources that have newer ones, by the controller's own
/// counter and its own clock.
pub(super) fn operations(
    controller: (&str, &str),
    own: &[HostName],
    since: Option<(i64, i64)>,
) -> Option<String> {
    let (id, name) = controller;
    let newer = since.map(|(call, second)| {
        format!("[lrm_rsc_op[@call-id>{call} or @call-id<0 or @last-rc-change>={second}]]")
    });
    let (wanted, newer) = (wanted_of(Some(name), own), newer.unwrap_or_default());
    Some(format!("{STATES}[@id={}]{HISTORIES}[{wanted}]{newer}", literal(id)?))
}

/// A compute host that is a cluster node is known by its own operations; of a controller only its connections count, and
/// what runs of this software.
fn wanted_of(controller: Option<&str>, own: &[HostName]) -> String {
    let is_own =
        controller.is_some_and(|name| own.iter().any(|node| node.as_str().eq_ignore_ascii_case(name)));
    let remote = REMOTE_AGENT.rsplit(':').next().unwrap_or_default();
    match is_own {
        true => "true()".to_owned(),
        false => format!("@type='{remote}' or @type='{MARK_AGENT}' or @type='nova-host-alerter'"),
    }
}

/// Where an agent's resource runs, as [`super::Cib::active_on`] and [`super::Cib::resource_of`] say.
pub(super) fn of_agent(agent: &str) -> Option<String> {
    let kind = literal(agent.rsplit(':').next()?)?;
    Some(format!("{STATES}{HISTORIES}[@type={kind}]|{PROPERTIES}"))
}

/// All that decides whether one host may be marked, and which life of it ended. Of the devices of its levels those that are
/// known without the levels: the mark devices, and what has this host alone to fence.
pub(super) fn host(host: &HostName) -> Option<String> {
    let (name, any_case) = (literal(host.as_str())?, literal(&host.as_str().to_ascii_lowercase())?);
    let is = |attribute: &str| {
        format!("translate({attribute},'{}','{}')={any_case}", upper(), upper().to_ascii_lowercase())
    };
    let guest = format!("meta_attributes/nvpair[@name='remote-node' and {}]", is("@value"));
    let (id, uname) = (is("@id"), is("@uname"));
    let mut all = vec![
        format!("/cib/configuration/nodes/node[not(@type='remote') or @uname={name}]"),
        format!("/cib/configuration/fencing-topology/fencing-level[not(@target) or {}]", is("@target")),
        format!("{STATES}[@remote_node and ({uname} or not(@uname) and {id})]"),
        format!("{STATES}{HISTORIES}[{id}]"),
        // Of a cluster node its own operations, without the connections to others.
        format!("{STATES}[not(@remote_node) and {uname}]{HISTORIES}[not(@type='remote')]"),
    ];
    all.extend(SMALL.map(str::to_owned));
    let list = format!("instance_attributes/nvpair[@name='pcmk_host_list' and {}]", is("@value"));
    let device = format!("@class='stonith' and (@type='{MARK_AGENT}' or {list})");
    all.extend(PRIMITIVES.map(|path| format!("{path}[{id} or {guest} or {device}]")));
    Some(all.join("|"))
}

/// The primitives of these ids.
pub(super) fn primitives<'a>(ids: impl Iterator<Item = &'a str>) -> Option<String> {
    let terms: Vec<String> = ids.filter_map(literal).map(|id| format!("@id={id}")).collect();
    let all = PRIMITIVES.map(|path| format!("{path}[{}]", terms.join(" or ")));
    (!terms.is_empty()).then(|| all.join("|"))
}

/// Some of what a path finds, from this one on (the first is 1).
pub fn some(path: &str, from: usize, count: usize) -> String {
    format!("({path})[position()>={from} and position()<{}]", from + count)
}

/// A text in XPath; there is none for a text with both kinds of quotes.
fn literal(text: &str) -> Option<String> {
    ['\'', '"'].into_iter().find(|quote| !text.contains(*quote)).map(|quote| format!("{quote}{text}{quote}"))
}

fn upper() -> String {
    ('A'..='Z').collect()
}
