//! Where location constraints let a resource run, and where Pacemaker probes it.

use pacemaker::cib::INFINITY;

use super::model::{Cluster, Condition, Location, Node, NodeKind, Part, Resource};

impl Condition {
    /// Whether it is true; `None` if that is unknown.
    fn holds(&self, node: &Node) -> Option<bool> {
        match self {
            Self::Named(name) => Some(name.eq_ignore_ascii_case(node.name.as_str())),
            Self::All(conditions) => every(conditions.iter().map(|one| one.holds(node))),
            Self::Any(conditions) => {
                every(conditions.iter().map(|one| one.holds(node).map(|holds| !holds))).map(|none| !none)
            }
            Self::Attribute { name, operation, value } => attribute(node, name, operation, value),
            Self::Other => None,
        }
    }

    /// The same, but what cannot be evaluated for any node is taken as true.
    pub(super) fn granted(&self) -> Self {
        let all = |conditions: &[Self]| conditions.iter().map(Self::granted).collect();
        match self {
            Self::All(conditions) => Self::All(all(conditions)),
            Self::Any(conditions) => Self::Any(all(conditions)),
            Self::Attribute { name, operation, .. } if !is_evaluated(name, operation) => {
                Self::All(Vec::new())
            }
            Self::Other => Self::All(Vec::new()),
            Self::Named(_) | Self::Attribute { .. } => self.clone(),
        }
    }
}

impl Part {
    pub(super) fn granted(self, is_granted: bool) -> Self {
        if is_granted { Self { condition: self.condition.granted(), ..self } } else { self }
    }
}

fn is_evaluated(attribute: &str, operation: &str) -> bool {
    let is_known = matches!(attribute, "#kind" | "#uname") || !attribute.starts_with('#');
    is_known && matches!(operation, "eq" | "ne" | "defined" | "not_defined")
}

/// False overrides unknown.
fn every(all: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut sum = Some(true);
    for one in all {
        match one {
            Some(true) => {}
            Some(false) => return Some(false),
            None => sum = None,
        }
    }
    sum
}

fn attribute(node: &Node, name: &str, operation: &str, value: &str) -> Option<bool> {
    if !is_evaluated(name, operation) {
        return None;
    }
    let found = match name {
        "#kind" => Some(node.kind.word()),
        "#uname" => Some(node.name.as_str()),
        name => node.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()),
    };
    let same = found.is_some_and(|found| found.eq_ignore_ascii_case(value));
    match operation {
        "eq" => Some(same),
        "ne" => Some(!same),
        "defined" => Some(found.is_some()),
        "not_defined" => Some(found.is_none()),
        _ => None,
    }
}

impl Cluster {
    fn locations_of<'a>(&'a self, resource: &'a Resource) -> impl Iterator<Item = &'a Location> {
        self.locations
            .iter()
            .filter(|location| location.resources.iter().any(|id| *id == resource.id || *id == resource.top))
    }

    /// Whether a resource neither runs on a node nor is probed there. Unknown conditions do not keep it away.
    pub(super) fn is_kept_from(&self, resource: &Resource, node: &Node) -> bool {
        let mut locations = self.locations_of(resource).peekable();
        let only: Vec<&Location> =
            self.locations_of(resource).filter(|location| location.discovery == "exclusive").collect();
        if !only.is_empty() {
            return !only.iter().any(|location| location.may_cover(node));
        }
        let unseen = locations.peek().is_some()
            && self.locations_of(resource).any(|l| l.discovery == "never" && l.surely_covers(node));
        unseen && self.is_banned(resource, node)
    }

    /// Whether a resource may surely not run there.
    pub(super) fn is_banned(&self, resource: &Resource, node: &Node) -> bool {
        self.ban(resource, node).is_some()
    }

    /// The constraint that keeps a resource from running there.
    pub(super) fn ban<'a>(&'a self, resource: &'a Resource, node: &Node) -> Option<&'a Location> {
        self.locations_of(resource).find(|location| {
            location
                .parts
                .iter()
                .any(|part| part.score <= -INFINITY && part.condition.holds(node) == Some(true))
        })
    }

    /// The constraints that keep a resource from every controller; `None` if one is left.
    pub(super) fn bans<'a>(&'a self, resource: &'a Resource) -> Option<Vec<&'a Location>> {
        let controllers = self.nodes.iter().filter(|node| node.kind == NodeKind::Cluster);
        let bans: Option<Vec<&Location>> = controllers.map(|node| self.ban(resource, node)).collect();
        bans.filter(|bans| !bans.is_empty())
    }

    /// Whether the fencer may choose a device for a node; `None` if only the device itself knows.
    pub(super) fn serves(&self, device: &Resource, node: &Node) -> Option<bool> {
        if device.is_stopped() || self.bans(device).is_some() {
            return Some(false);
        }
        device.is_for(node)
    }

    /// Whether any constraint on it has a rule.
    pub(super) fn has_rule(&self, resource: &str) -> bool {
        let is_rule = |part: &Part| !matches!(part.condition, Condition::Named(_));
        let mut own = self.locations.iter().filter(|l| l.resources.iter().any(|id| id == resource));
        own.any(|location| location.parts.iter().any(is_rule))
    }

    /// The constraint that lets a resource run on a node although another one keeps it to others.
    pub(super) fn admission<'a>(&'a self, resource: &'a Resource, node: &Node) -> Option<&'a Location> {
        self.locations_of(resource).find(|l| l.discovery == "exclusive" && l.may_cover(node))
    }
}

impl Location {
    fn may_cover(&self, node: &Node) -> bool {
        self.parts.iter().any(|part| part.condition.holds(node) != Some(false))
    }

    fn surely_covers(&self, node: &Node) -> bool {
        self.parts.iter().any(|part| part.condition.holds(node) == Some(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marks::host::HostName;

    fn node(name: &str, kind: NodeKind) -> Node {
        let attributes = vec![("role".to_owned(), "control".to_owned())];
        Node { name: HostName::parse(name).unwrap(), kind, attributes }
    }

    fn kind(operation: &str, value: &str) -> Condition {
        Condition::Attribute { name: "#kind".into(), operation: operation.into(), value: value.into() }
    }

    fn location(discovery: &str, score: i64, condition: Condition) -> Location {
        Location {
            id: "l".into(),
            resources: vec!["alerter".into()],
            discovery: discovery.into(),
            parts: vec![Part { score, condition }],
        }
    }

    #[test]
    fn a_resource_is_kept_from_a_node_only_if_it_is_not_probed_there_either() {
        let (ctl, compute) = (node("ctl1", NodeKind::Cluster), node("compute1", NodeKind::Remote));
        let resource = Resource { id: "alerter".into(), top: "alerter".into(), ..Resource::default() };
        let kept = |locations: Vec<Location>| {
            let cluster = Cluster { locations, ..Cluster::default() };
            [&ctl, &compute].map(|node| cluster.is_kept_from(&resource, node))
        };
        assert_eq!(kept(vec![location("exclusive", 0, kind("eq", "cluster"))]), [false, true]);
        assert_eq!(kept(vec![location("never", -INFINITY, kind("ne", "cluster"))]), [false, true]);
        let named = |name: &str| Condition::Named(name.into());
        assert_eq!(kept(vec![location("exclusive", 5, named("CTL1"))]), [false, true]);
        for not in [
            vec![],
            vec![location("", -INFINITY, named("compute1"))],
            vec![location("never", 0, named("compute1"))],
            vec![location("exclusive", 0, Condition::Other)],
            vec![
                location("exclusive", 0, kind("eq", "cluster")),
                location("exclusive", 0, named("compute1")),
            ],
        ] {
            assert!(!kept(not.clone())[1], "{not:?}");
        }
    }

    #[test]
    fn what_is_not_known_decides_nothing() {
        let ctl = node("ctl1", NodeKind::Cluster);
        let holds = |condition: Condition| condition.holds(&ctl);
        let (yes, no, unknown) = (kind("eq", "cluster"), kind("ne", "cluster"), Condition::Other);
        assert_eq!(holds(Condition::All(vec![yes.clone(), unknown.clone()])), None);
        assert_eq!(holds(Condition::All(vec![no.clone(), unknown.clone()])), Some(false));
        assert_eq!(holds(Condition::Any(vec![no.clone(), unknown.clone()])), None);
        assert_eq!(holds(Condition::Any(vec![yes, unknown])), Some(true));
        let of_role = |operation: &str, value: &str| Condition::Attribute {
            name: "role".into(),
            operation: operation.into(),
            value: value.into(),
        };
        assert_eq!(holds(of_role("eq", "control")), Some(true));
        assert_eq!(holds(of_role("defined", "")), Some(true));
        assert_eq!(holds(of_role("lt", "z")), None);
    }
}
