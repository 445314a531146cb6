//! From a CIB to the model of `setup`, as Pacemaker reads it: with references resolved, and sets in their order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use marks::escapes::without_escapes;
use marks::host::HostName;
use pacemaker::cib::{self, Cib, CibError, Document, Target, score, truth};
use pacemaker::xml::Element;

use super::local::Here;
use super::model::{
    Alert, Cluster, Condition, Failure, Location, Node, NodeKind, Operation, Part, Resource, Wanted,
};

/// Exit codes of a running resource: running, promoted, and both degraded.
const GOOD: [i64; 4] = [0, 8, 190, 191];
/// The probe's exit code for a resource that does not run, as expected before its start.
const NOT_RUNNING: i64 = 7;

const META: &str = "meta_attributes";
const PARAMETERS: &str = "instance_attributes";
const PROPERTIES: &str = "cluster_property_set";

/// Reads a whole CIB.
///
/// # Errors
/// [`CibError`] if it is malformed, cut off, or another document.
pub fn read(xml: &str, here: Here, wanted: Wanted) -> Result<Cluster, CibError> {
    let (cib, root) = (Cib::parse(xml)?, cib::tree(xml)?);
    let ids = root.at(&["configuration"]).into_iter().flat_map(Element::walk).filter_map(|e| e.find("id"));
    let base = Cluster {
        pacemaker: cib.release(),
        levels: cib.levels().to_vec(),
        failures: failures(&root),
        unhealthy: cib.unhealthy(),
        taken: ids.map(str::to_owned).collect(),
        here,
        wanted,
        ..Cluster::default()
    };
    let document = Document::of(&root);
    let mut reading = Reading { cib: &cib, root: &root, document: &document, in_force: None };
    let mut cluster = reading.cluster(base);
    for id in unjudged(&root, &cluster) {
        reading.in_force = Some(id.clone());
        let other = reading.cluster(Cluster { under_rules: Vec::new(), ..cluster.clone() });
        if !other.has_settings_of(&cluster) {
            cluster.under_rules.push((id, other));
        }
    }
    Ok(cluster)
}

/// The ids of sets and constraints with a rule that cannot be judged here, such as a date.
fn unjudged(root: &Element, cluster: &Cluster) -> BTreeSet<String> {
    let is_set = |e: &&Element| [META, PARAMETERS, PROPERTIES].contains(&e.name.as_str());
    let sets = root.at(&["configuration"]).into_iter().flat_map(Element::walk).filter(is_set);
    let sets = sets.filter(|set| has_rule(set)).filter_map(|set| set.find("id"));
    let is_open = |part: &Part| part.condition.granted() != part.condition;
    let open = cluster.locations.iter().filter(|location| location.parts.iter().any(is_open));
    sets.map(str::to_owned).chain(open.map(|location| location.id.clone())).collect()
}

fn has_rule(element: &Element) -> bool {
    element.all("rule").next().is_some()
}

/// One reading of a CIB, in which no rule that cannot be judged is in force, or one.
struct Reading<'x> {
    cib: &'x Cib,
    root: &'x Element,
    document: &'x Document<'x>,
    /// The id of the set or constraint whose rule is in force.
    in_force: Option<String>,
}

impl<'x> Reading<'x> {
    /// What a rule can change.
    fn cluster(&self, base: Cluster) -> Cluster {
        let resources = self.resources();
        let nodes = self.nodes(&resources);
        let ids = resources.iter().flat_map(|resource| [&resource.id, &resource.top]);
        let ids: BTreeSet<&str> = ids.map(String::as_str).collect();
        let locations = all(self.root, "rsc_location");
        Cluster {
            properties: self.values(&self.root.at(&["configuration", "crm_config"]), PROPERTIES),
            alerts: all(self.root, "alert").map(|element| self.alert(element)).collect(),
            locations: locations.map(|element| self.location(element, &resources, &ids)).collect(),
            nodes,
            resources,
            ..base
        }
    }

    fn is_in_force(&self, ruled: &Element) -> bool {
        self.in_force.as_deref() == Some(ruled.get("id"))
    }

    fn values(&self, owners: &[&'x Element], kind: &'x str) -> BTreeMap<String, String> {
        let counts = |set: &Element| !has_rule(set) || self.is_in_force(set);
        self.document.values(owners, kind, counts)
    }

    /// The same of several layers; a value of an earlier one hides those of later ones.
    fn layers(&self, layers: &[Vec<&'x Element>], kind: &'x str) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for (name, value) in layers.iter().flat_map(|owners| self.values(owners, kind)) {
            all.entry(name).or_insert(value);
        }
        all
    }

    fn nodes(&self, resources: &[Resource]) -> Vec<Node> {
        let elements = self.root.at(&["configuration", "nodes", "node"]);
        let node = |name: &HostName, kind| {
            let is_own = |e: &&&Element| e.get("uname").eq_ignore_ascii_case(name.as_str());
            let own: Vec<&Element> = elements.iter().filter(is_own).copied().collect();
            let attributes = self.values(&own, PARAMETERS).into_iter().collect();
            Node { name: name.clone(), kind, attributes }
        };
        let guests =
            resources.iter().filter_map(|resource| HostName::parse(resource.meta("remote-node")?).ok());
        let cluster = self.cib.cluster_nodes().iter().map(|name| node(name, NodeKind::Cluster));
        let remotes = self.cib.remote_nodes().iter().map(|name| node(name, NodeKind::Remote));
        cluster.chain(remotes).chain(guests.map(|name| node(&name, NodeKind::Guest))).collect()
    }

    fn resources(&self) -> Vec<Resource> {
        let sections = self.root.at(&["configuration", "resources"]);
        let tops = sections.iter().flat_map(|section| &section.children).filter(|top| top.name != "template");
        let found = tops.flat_map(|top| {
            let primitives = top.walk().into_iter().filter(|element| element.name == "primitive");
            primitives.map(move |primitive| (top, primitive))
        });
        found.map(|(top, primitive)| self.resource(top, primitive)).collect()
    }

    fn resource(&self, top: &'x Element, primitive: &'x Element) -> Resource {
        let mut templates = self.root.at(&["configuration", "resources", "template"]).into_iter();
        let template = templates.find(|template| template.get("id") == primitive.get("template"));
        // Pacemaker puts a template's sets before those of the resource itself.
        let own: Vec<&Element> = template.into_iter().chain([primitive]).collect();
        let typed = own.iter().rev().find(|e| e.find("type").is_some()).copied().unwrap_or(primitive);
        let agent = [typed.find("class"), typed.find("provider"), typed.find("type")];
        let mut around: Vec<&Element> = top.walk().into_iter().filter(|e| is_around(e, primitive)).collect();
        around.reverse();
        let mut layers = vec![own];
        layers.extend(around.into_iter().map(|parent| vec![parent]));
        let parameters = self.layers(&layers, PARAMETERS);
        layers.push(self.root.at(&["configuration", "rsc_defaults"]));
        let operations = self.operations(primitive, template);
        Resource {
            id: primitive.get("id").to_owned(),
            top: top.get("id").to_owned(),
            is_cloned: matches!(top.name.as_str(), "clone" | "master" | "bundle"),
            agent: agent.into_iter().flatten().collect::<Vec<_>>().join(":"),
            template: template.map(|template| template.get("id").to_owned()),
            parameters,
            meta: self.layers(&layers, META),
            on_failing_start: self.on_failing_start(&operations),
            operations: operations.into_iter().map(operation).collect(),
        }
    }

    /// A resource's own operations hide those of the same name and role of its template, and all of them if its own are a
    /// reference.
    fn operations(&self, primitive: &'x Element, template: Option<&'x Element>) -> Vec<&'x Element> {
        let of = |owner: &'x Element| owner.all("operations").next();
        let (own, inherited) = (of(primitive), template.and_then(of));
        let listed = own.or(inherited).and_then(|operations| self.document.target(operations));
        let mut all: Vec<&Element> = listed.into_iter().flat_map(|operations| operations.all("op")).collect();
        if let (Some(own), Some(inherited)) = (own, inherited)
            && own.find("id-ref").is_none()
        {
            let hidden: BTreeSet<_> = all.iter().copied().map(name_and_role).collect();
            all.extend(inherited.all("op").filter(|op| !hidden.contains(&name_and_role(op))));
        }
        all
    }

    /// `on-fail` of a resource's start.
    fn on_failing_start(&self, operations: &[&'x Element]) -> Option<String> {
        let name = "on-fail";
        let start: Vec<&Element> =
            operations.iter().filter(|op| op.get("name") == "start").copied().collect();
        let own = start.first().and_then(|op| op.find(name)).map(str::to_owned);
        own.or_else(|| {
            let layers = [start, self.root.at(&["configuration", "op_defaults"])];
            self.layers(&layers, META).remove(name)
        })
    }

    fn alert(&self, element: &'x Element) -> Alert {
        let selected = element.all("select").flat_map(|select| &select.children);
        let recipients = element.all("recipient").filter(|recipient| !self.is_off(recipient));
        let path = element.get("path").to_owned();
        Alert {
            id: element.get("id").to_owned(),
            is_here: Path::new(&path).is_file(),
            path,
            selected: selected
                .filter_map(|what| what.name.strip_prefix("select_"))
                .map(str::to_owned)
                .collect(),
            recipients: recipients.map(|recipient| recipient.get("value").to_owned()).collect(),
            is_off: self.is_off(element),
        }
    }

    fn is_off(&self, alert: &'x Element) -> bool {
        self.values(&[alert], META).get("enabled").and_then(|text| truth(text)) == Some(false)
    }

    fn location(&self, element: &'x Element, resources: &[Resource], ids: &BTreeSet<&str>) -> Location {
        let sets = self.document.all(element, "resource_set");
        let in_sets = sets.flat_map(|set| set.all("resource_ref")).map(|reference| reference.get("id"));
        let named = element.find("rsc").into_iter().chain(in_sets);
        let pattern = pattern(element);
        let fits = |id: &&&str| {
            pattern
                .as_ref()
                .is_some_and(|(text, is_for)| text.covers(id, std::iter::empty()) == Some(*is_for))
        };
        let fitting = ids.iter().filter(fits).map(|id| (*id).to_owned());
        let id = element.get("id").to_owned();
        let is_granted = self.is_in_force(element);
        Location {
            resources: named.flat_map(|id| self.meant(id, resources, ids)).chain(fitting).collect(),
            discovery: element.get("resource-discovery").to_owned(),
            parts: self.parts(element).map(|part| part.granted(is_granted)).collect(),
            id,
        }
    }

    fn parts(&self, element: &'x Element) -> impl Iterator<Item = Part> {
        let by_name = element.find("node").map(|node| Part {
            score: score(element.get("score")),
            condition: Condition::Named(node.to_owned()),
        });
        let by_rule = self
            .document
            .all(element, "rule")
            .map(|rule| Part { score: score(rule.get("score")), condition: condition(rule) });
        let has_end = element.all("lifetime").next().is_some();
        by_name.into_iter().chain(by_rule).map(move |part| match has_end {
            true => Part { condition: Condition::All(vec![part.condition, Condition::Other]), ..part },
            false => part,
        })
    }

    /// The resources that a constraint means by an id, which may be that of a tag or a template too.
    fn meant(&self, id: &str, resources: &[Resource], ids: &BTreeSet<&str>) -> Vec<String> {
        let of_template = |id: &str| {
            let own = resources.iter().filter(|resource| resource.template.as_deref() == Some(id));
            own.map(|resource| resource.id.clone()).collect::<Vec<_>>()
        };
        if ids.contains(id) {
            return vec![id.to_owned()];
        }
        let tags = self.root.at(&["configuration", "tags", "tag"]).into_iter();
        let tagged = tags.filter(|tag| tag.get("id") == id).flat_map(|tag| tag.all("obj_ref"));
        let tagged = tagged.map(|reference| reference.get("id").to_owned());
        tagged.chain(of_template(id)).collect()
    }
}

/// The pattern of a constraint, and whether it applies to matches: with `!` it applies to all others.
fn pattern(location: &Element) -> Option<(Target, bool)> {
    let text = location.find("rsc-pattern")?;
    let (text, is_for) = text.strip_prefix('!').map_or((text, true), |text| (text, false));
    Some((Target::Pattern(text.to_owned()), is_for))
}

fn all<'a>(root: &'a Element, name: &'static str) -> impl Iterator<Item = &'a Element> {
    root.walk().into_iter().filter(move |element| element.name == name)
}

fn is_around(element: &Element, primitive: &Element) -> bool {
    matches!(element.name.as_str(), "group" | "clone" | "master" | "bundle")
        && element.walk().iter().any(|e| std::ptr::eq(*e, primitive))
}

/// An operation without a role is one of a resource that runs.
fn name_and_role(op: &Element) -> (&str, String) {
    let role = op.get("role").to_ascii_lowercase();
    let runs = matches!(role.as_str(), "started" | "slave" | "unpromoted");
    (op.get("name"), if runs { String::new() } else { role })
}

fn operation(op: &Element) -> Operation {
    let is_off = truth(op.get("enabled")) == Some(false) || op.get("role").eq_ignore_ascii_case("stopped");
    let [name, interval, timeout, id, on_fail] =
        ["name", "interval", "timeout", "id", "on-fail"].map(|name| op.get(name).to_owned());
    Operation { name, interval, timeout, id, on_fail, is_off }
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
        reason: without_escapes(bad.get("exit-reason")),
    })
}
