//! From a CIB to the model of `setup`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use marks::host::HostName;
use pacemaker::cib::{self, Cib, CibError, truth};
use pacemaker::xml::Element;

use super::local::Here;
use super::location;
use super::model::{
    Alert, Cluster, Condition, Failure, Location, Node, NodeKind, Operation, Part, Resource, Wanted,
};
use super::patterns::Patterns;

/// The property set that overrides all others.
const FIRST_SET: &str = "cib-bootstrap-options";

/// Exit codes of a running resource: running, promoted, and both degraded.
const GOOD: [i64; 4] = [0, 8, 190, 191];
/// The probe's exit code for a resource that does not run, as expected before its start.
const NOT_RUNNING: i64 = 7;

/// Reads a whole CIB.
///
/// # Errors
/// [`CibError`] if it is malformed, cut off, or another document.
pub fn read(xml: &str, here: Here, wanted: Wanted) -> Result<Cluster, CibError> {
    let (cib, root) = (Cib::parse(xml)?, cib::tree(xml)?);
    let properties = properties(&root);
    let resources = resources(&root);
    let ids = resources.iter().flat_map(|resource| [&resource.id, &resource.top]);
    let ids: BTreeSet<&str> = ids.map(String::as_str).collect();
    let nodes = nodes(&cib, &root);
    let patterns = patterns(&root, &nodes, &ids);
    Ok(Cluster {
        pacemaker: cib.release(),
        levels: cib.levels().to_vec(),
        alerts: all(&root, "alert").map(alert).collect(),
        locations: all(&root, "rsc_location").map(|element| location(element, &ids, &patterns)).collect(),
        failures: failures(&root),
        taken: root
            .at(&["configuration"])
            .iter()
            .flat_map(|c| c.walk())
            .filter_map(|e| e.find("id"))
            .map(str::to_owned)
            .collect(),
        nodes,
        patterns,
        would_fence: None,
        resources,
        properties,
        here,
        wanted,
    })
}

/// Every pattern of the document with every name that it could match.
fn patterns(root: &Element, nodes: &[Node], ids: &BTreeSet<&str>) -> Patterns {
    let of_levels = all(root, "fencing-level").filter_map(|level| level.find("target-pattern"));
    let of_constraints = all(root, "rsc_location").filter_map(|location| Some(pattern(location)?.0));
    let all: BTreeSet<&str> = of_levels.chain(of_constraints).collect();
    let names: BTreeSet<&str> =
        nodes.iter().map(|node| node.name.as_str()).chain(ids.iter().copied()).collect();
    Patterns::ask(&Vec::from_iter(all), &Vec::from_iter(names))
}

/// The pattern of a constraint, and whether it applies to matches: with `!` it applies to all others.
fn pattern(location: &Element) -> Option<(&str, bool)> {
    let text = location.find("rsc-pattern")?;
    Some(text.strip_prefix('!').map_or((text, true), |text| (text, false)))
}

fn all<'a>(root: &'a Element, name: &'static str) -> impl Iterator<Item = &'a Element> {
    root.walk().into_iter().filter(move |element| element.name == name)
}

fn pairs<'a>(set: &'a Element) -> impl Iterator<Item = (String, String)> + 'a {
    set.all("nvpair").map(|pair| (pair.get("name").to_owned(), pair.get("value").to_owned()))
}

/// For each name the first value.
fn first(pairs: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (name, value) in pairs {
        all.entry(name).or_insert(value);
    }
    all
}

fn properties(root: &Element) -> BTreeMap<String, String> {
    let mut sets = root.at(&["configuration", "crm_config", "cluster_property_set"]);
    sets.sort_by_key(|set| set.get("id") != FIRST_SET);
    first(sets.into_iter().flat_map(pairs))
}

fn nodes(cib: &Cib, root: &Element) -> Vec<Node> {
    let elements = root.at(&["configuration", "nodes", "node"]);
    let attributes = |name: &HostName| {
        let own = elements.iter().filter(|e| e.get("uname").eq_ignore_ascii_case(name.as_str()));
        own.flat_map(|e| e.all("instance_attributes")).flat_map(pairs).collect()
    };
    let of_kind = |names: &[HostName], kind| -> Vec<Node> {
        names.iter().map(|name| Node { name: name.clone(), kind, attributes: attributes(name) }).collect()
    };
    let kinds = [
        of_kind(cib.cluster_nodes(), NodeKind::Cluster),
        of_kind(cib.remote_nodes(), NodeKind::Remote),
        of_kind(cib.guest_nodes(), NodeKind::Guest),
    ];
    kinds.concat()
}

fn resources(root: &Element) -> Vec<Resource> {
    let sections = root.at(&["configuration", "resources"]);
    let templates: Vec<&Element> = sections.iter().flat_map(|s| s.all("template")).collect();
    let defaults = root.at(&["configuration", "rsc_defaults"]);
    let tops = sections.iter().flat_map(|section| &section.children).filter(|top| top.name != "template");
    let found = tops.flat_map(|top| {
        let primitives = top.walk().into_iter().filter(|element| element.name == "primitive");
        primitives.map(move |primitive| (top, primitive))
    });
    found.map(|(top, primitive)| resource(top, primitive, &templates, &defaults)).collect()
}

fn resource(top: &Element, primitive: &Element, templates: &[&Element], defaults: &[&Element]) -> Resource {
    let template = templates.iter().find(|t| t.get("id") == primitive.get("template")).copied();
    let own: Vec<&Element> = std::iter::once(primitive).chain(template).collect();
    let typed = own.iter().find(|e| e.find("type").is_some()).copied().unwrap_or(primitive);
    let agent = [typed.find("class"), typed.find("provider"), typed.find("type")];
    let around = top.walk().into_iter().filter(|e| e.name != "primitive" && is_around(e, primitive));
    let with_meta = own.iter().copied().chain(around).chain(defaults.iter().copied());
    Resource {
        id: primitive.get("id").to_owned(),
        top: top.get("id").to_owned(),
        is_cloned: matches!(top.name.as_str(), "clone" | "master" | "bundle"),
        agent: agent.into_iter().flatten().collect::<Vec<_>>().join(":"),
        parameters: first(own.iter().flat_map(|e| e.all("instance_attributes")).flat_map(pairs)),
        meta: first(with_meta.flat_map(|e| e.all("meta_attributes")).flat_map(pairs)),
        operations: own.iter().flat_map(|e| e.at(&["operations", "op"])).map(operation).collect(),
    }
}

fn is_around(element: &Element, primitive: &Element) -> bool {
    matches!(element.name.as_str(), "group" | "clone" | "master")
        && element.walk().iter().any(|e| std::ptr::eq(*e, primitive))
}

fn operation(op: &Element) -> Operation {
    let own = |name| op.get(name).to_owned();
    Operation { name: own("name"), interval: own("interval"), on_fail: own("on-fail") }
}

fn alert(element: &Element) -> Alert {
    let selected = element.all("select").flat_map(|select| &select.children);
    let recipients = element.all("recipient").filter(|recipient| !is_off(recipient));
    let path = element.get("path").to_owned();
    Alert {
        id: element.get("id").to_owned(),
        is_here: Path::new(&path).is_file(),
        path,
        selected: selected.filter_map(|what| what.name.strip_prefix("select_")).map(str::to_owned).collect(),
        recipients: recipients.map(|recipient| recipient.get("value").to_owned()).collect(),
        is_off: is_off(element),
    }
}

fn is_off(alert: &Element) -> bool {
    let meta = alert.at(&["meta_attributes", "nvpair"]).into_iter();
    let mut enabled = meta.filter(|pair| pair.get("name") == "enabled");
    enabled.any(|pair| truth(pair.get("value")) == Some(false))
}

fn location(element: &Element, ids: &BTreeSet<&str>, patterns: &Patterns) -> Location {
    let named = element.find("rsc").into_iter();
    let in_sets =
        element.at(&["resource_set", "resource_ref"]).into_iter().map(|reference| reference.get("id"));
    let pattern = pattern(element);
    let fits = |id: &&&str| pattern.is_some_and(|(text, is_for)| patterns.matches(text, id) == Some(is_for));
    let resources = named.chain(in_sets).chain(ids.iter().filter(fits).copied());
    let by_name = element.find("node").map(|node| Part {
        score: location::score(element.get("score")),
        condition: Condition::Named(node.to_owned()),
    });
    let by_rule = element
        .all("rule")
        .map(|rule| Part { score: location::score(rule.get("score")), condition: condition(rule) });
    Location {
        id: element.get("id").to_owned(),
        is_plain: element.find("rsc").is_some()
            && element.find("node").is_some()
            && element.children.is_empty(),
        resources: resources.map(str::to_owned).collect(),
        discovery: element.get("resource-discovery").to_owned(),
        parts: by_name.into_iter().chain(by_rule).collect(),
    }
}

fn condition(element: &Element) -> Condition {
    match element.name.as_str() {
        "rule" => {
            let parts = element.children.iter().map(condition).collect();
            if element.get("boolean-op") == "or" { Condition::Any(parts) } else { Condition::All(parts) }
        }
        "expression" if matches!(element.get("value-source"), "" | "literal") => Condition::Attribute {
            name: element.get("attribute").to_owned(),
            operation: element.get("operation").to_owned(),
            value: element.get("value").to_owned(),
        },
        _ => Condition::Other,
    }
}

/// Failures of each resource on each node that no later success follows.
fn failures(root: &Element) -> Vec<Failure> {
    let states = root.at(&["status", "node_state"]);
    let all = states.iter().flat_map(|state| {
        let resources = state.at(&["lrm", "lrm_resources", "lrm_resource"]).into_iter();
        resources.filter_map(|resource| failure(state, resource))
    });
    all.collect()
}

fn failure(state: &Element, resource: &Element) -> Option<Failure> {
    let number = |op: &Element, name| op.get(name).parse::<i64>().unwrap_or(-1);
    let order = |op: &Element| (number(op, "call-id"), number(op, "last-rc-change"));
    let is_good = |op: &&Element| {
        matches!(op.get("operation"), "start" | "monitor") && GOOD.contains(&number(op, "rc-code"))
    };
    // An operation in flight has no result yet.
    let is_bad = |op: &&Element| {
        let code = number(op, "rc-code");
        number(op, "op-status") >= 0 && code != NOT_RUNNING && !GOOD.contains(&code)
    };
    let seen = resource.all("lrm_rsc_op").filter(is_good).map(order).max();
    let bad = resource.all("lrm_rsc_op").filter(is_bad).max_by_key(|op| order(op))?;
    let name = if state.get("uname").is_empty() { state.get("id") } else { state.get("uname") };
    seen.is_none_or(|seen| seen < order(bad)).then(|| Failure {
        resource: resource.get("id").to_owned(),
        node: name.to_owned(),
        code: number(bad, "rc-code"),
        reason: bad.get("exit-reason").to_owned(),
    })
}
