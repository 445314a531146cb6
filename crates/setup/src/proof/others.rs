//! Whether anything else changes than the steps may change: pure, from one document to the next.

use std::collections::BTreeSet;

use pacemaker::xml::Element;

use crate::step::{Step, clone_of};

/// What the steps may change.
#[derive(Default)]
struct Ours<'a> {
    resources: BTreeSet<&'a str>,
    clones: BTreeSet<String>,
    alerts: BTreeSet<&'a str>,
    properties: BTreeSet<&'a str>,
    /// Resources that a new constraint may concern.
    kept: BTreeSet<&'a str>,
}

impl<'a> Ours<'a> {
    fn of(steps: &'a [Step]) -> Self {
        let mut ours = Self::default();
        for step in steps {
            match step {
                Step::CreateMark { id: resource, .. }
                | Step::SetParameters { resource, .. }
                | Step::SetMeta { resource, .. }
                | Step::FenceUnhealthy { resource, .. }
                | Step::AddMonitor { resource, .. } => drop(ours.resources.insert(resource)),
                Step::CreateHealth { id } => drop(ours.clones.insert(clone_of(id))),
                Step::CreateAlerter { id, .. } => drop((ours.resources.insert(id), ours.kept.insert(id))),
                Step::KeepToControllers { resource, .. } => drop(ours.kept.insert(resource)),
                Step::SetAlert { id, .. } => drop(ours.alerts.insert(id)),
                Step::SetProperties(values) => ours.properties.extend(values.keys().map(String::as_str)),
                Step::MakeKey { .. } | Step::SetLevels { .. } => {}
            }
        }
        ours
    }

    /// Levels are compared by their meaning for each node.
    fn has(&self, around: &Element, element: &Element, old: &BTreeSet<&str>) -> bool {
        let id = element.get("id");
        match element.name.as_str() {
            "fencing-level" => true,
            "primitive" => self.resources.contains(id),
            "clone" => self.clones.contains(id),
            "alert" => self.alerts.contains(id),
            "nvpair" => {
                around.name == "cluster_property_set" && self.properties.contains(element.get("name"))
            }
            "rsc_location" => {
                let resource = element.get("rsc");
                !old.contains(id) && (self.kept.contains(resource) || self.clones.contains(resource))
            }
            _ => false,
        }
    }
}

/// The first foreign part that would change, in words.
pub(super) fn changed(before: &Element, after: &Element, steps: &[Step]) -> Option<String> {
    let old: BTreeSet<&str> = before.walk().into_iter().filter_map(|element| element.find("id")).collect();
    let ours = Ours::of(steps);
    let left = |root: &Element| {
        let mut own = root.without(&|around, element| ours.has(around, element, &old));
        own.children.retain(|section| section.name == "configuration");
        own.children.iter_mut().for_each(|configuration| configuration.children.retain_mut(is_left));
        own.children
    };
    let (was, is) = (left(before), left(after));
    (was != is).then(|| format!("{} would change, which does not belong to setup", difference(&was, &is)))
}

/// An empty section counts as missing.
fn is_left(section: &mut Element) -> bool {
    section.children.retain(|set| set.name != "cluster_property_set" || !set.children.is_empty());
    !section.children.is_empty()
}

/// The innermost element that differs, by its name and id.
fn difference(was: &[Element], is: &[Element]) -> String {
    let Some(at) = (0..was.len().max(is.len())).find(|at| was.get(*at) != is.get(*at)) else {
        return "the configuration".to_owned();
    };
    match (was.get(at), is.get(at)) {
        (Some(one), Some(other)) if one.name == other.name && one.children != other.children => {
            difference(&one.children, &other.children)
        }
        (Some(element), _) | (None, Some(element)) => format!("{} {}", element.name, element.get("id")),
        (None, None) => "the configuration".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = r#"<cib epoch="1"><configuration><crm_config><cluster_property_set id="p"><nvpair id="p1" name="no-quorum-policy"
      value="stop"/></cluster_property_set></crm_config><nodes/><resources><primitive id="vip" class="ocf" type="x"><meta_attributes
      id="vm"/></primitive><primitive id="mark" class="stonith" type="fence_mark"/></resources><constraints><rsc_location id="b"
      score="-INFINITY" node="ctl2"><resource_set id="s"><resource_ref id="vip"/><resource_ref id="mark"/></resource_set></rsc_location>
      </constraints></configuration><status/></cib>"#;

    fn with(pairs: &[(&str, &str)], steps: &[Step]) -> Option<String> {
        let after = pairs.iter().fold(BEFORE.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        });
        changed(&Element::parse(BEFORE).unwrap(), &Element::parse(&after).unwrap(), steps)
    }

    #[test]
    fn only_what_the_steps_are_about_may_change() {
        let alerter =
            || Step::CreateAlerter { id: "alerter".into(), config: "c".into(), constraint: "k".into() };
        let made = [
            ("</resources>", r#"<primitive id="alerter" class="ocf" type="y"/></resources>"#),
            ("</constraints>", r#"<rsc_location id="k" rsc="alerter"/></constraints><alerts/>"#),
            (r#"epoch="1""#, r#"epoch="2""#),
            (r#"class="ocf" type="x""#, r#"type="x" class="ocf""#),
        ];
        assert_eq!(with(&made, &[alerter()]), None);
        let why = "primitive alerter would change, which does not belong to setup";
        assert_eq!(with(&made, &[]).unwrap(), why);
        for harm in [
            (r#"<resource_ref id="vip"/>"#, ""),
            (r#"node="ctl2""#, r#"node="ctl1""#),
            (r#"value="stop""#, r#"value="ignore""#),
            (r#"<meta_attributes"#, r#"<meta_attributes x="1""#),
            ("</constraints>", r#"<rsc_location id="k" rsc="vip"/></constraints>"#),
            ("<nodes/>", r#"<nodes><node id="9" uname="x"/></nodes>"#),
        ] {
            assert!(with(&[harm], &[alerter()]).is_some(), "{harm:?}");
        }
    }
}
