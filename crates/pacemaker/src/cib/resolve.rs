//! A CIB's settings as Pacemaker's scheduler and fencer read them: references (`id-ref`) resolved, sets in their order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use crate::xml::Element;

/// The set that comes before all others, whatever its score.
const FIRST_SET: &str = "cib-bootstrap-options";
/// A value that takes an earlier one back.
const DEFAULT: &str = "#default";

/// Pacemaker's INFINITY.
pub const INFINITY: i64 = 1_000_000;

/// A score as Pacemaker reads it; what is none counts as 0.
pub fn score(text: &str) -> i64 {
    match text.to_ascii_uppercase().as_str() {
        "INFINITY" | "+INFINITY" => INFINITY,
        "-INFINITY" => -INFINITY,
        number => number.parse().unwrap_or(0_i64).clamp(-INFINITY, INFINITY),
    }
}

/// A CIB in which elements may stand for others by their id.
#[derive(Debug)]
pub struct Document<'x> {
    named: HashMap<(&'x str, &'x str), &'x Element>,
}

impl<'x> Document<'x> {
    /// Of a CIB's tree.
    pub fn of(root: &'x Element) -> Self {
        let mut named = HashMap::new();
        for element in root.at(&["configuration"]).into_iter().flat_map(Element::walk) {
            if let Some(id) = element.find("id") {
                named.entry((element.name.as_str(), id)).or_insert(element);
            }
        }
        Self { named }
    }

    /// The element that this one stands for: itself, or that of the same kind whose id it has as `id-ref`. `None` if there
    /// is none: Pacemaker ignores such an element.
    pub fn target(&self, element: &'x Element) -> Option<&'x Element> {
        match element.find("id-ref") {
            Some(id) => self.named.get(&(element.name.as_str(), id)).copied(),
            None => Some(element),
        }
    }

    /// The children of that name, each reference resolved.
    pub fn all(&self, owner: &'x Element, name: &'x str) -> impl Iterator<Item = &'x Element> {
        owner.all(name).filter_map(|child| self.target(child))
    }

    /// The values of the owners' sets of one kind. Those of the highest score come first, of the same score those that
    /// stand last in the document (seen with 2.1.5), and the first value of a name counts. `counts` says which sets apply.
    pub fn values(
        &self,
        owners: &[&'x Element],
        kind: &'x str,
        counts: impl Fn(&Element) -> bool,
    ) -> BTreeMap<String, String> {
        let sets = owners.iter().flat_map(|owner| self.all(owner, kind));
        let mut sets: Vec<&Element> = sets.filter(|set| counts(set)).collect();
        sets.reverse();
        sets.sort_by_key(|set| (set.get("id") != FIRST_SET, Reverse(score(set.get("score")))));
        let mut values = BTreeMap::new();
        for (name, value) in sets.into_iter().flat_map(|set| self.pairs(set)) {
            if value.eq_ignore_ascii_case(DEFAULT) {
                values.remove(name);
            } else {
                values.entry(name.to_owned()).or_insert_with(|| value.to_owned());
            }
        }
        values
    }

    /// The names and values of a set. A reference may give the value another name.
    fn pairs(&self, set: &'x Element) -> impl Iterator<Item = (&'x str, &'x str)> {
        set.all("nvpair").filter_map(|pair| {
            let target = self.target(pair)?;
            let own = |name| pair.find(name).or_else(|| target.find(name));
            Some((own("name")?, own("value")?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CIB: &str = r##"<cib><configuration><crm_config>
        <cluster_property_set id="low" score="-5"><nvpair id="l1" name="a" value="low"/><nvpair id="l2" name="d" value="low"/>
        </cluster_property_set>
        <cluster_property_set id="one"><nvpair id="o1" name="a" value="one"/><nvpair id="o2" name="b" value="one"/>
          <nvpair id="o3" name="b" value="twice"/></cluster_property_set>
        <cluster_property_set id="two"><nvpair id="t1" name="b" value="two"/></cluster_property_set>
        <cluster_property_set id="high" score="INFINITY"><nvpair id="h1" name="c" value="high"/><nvpair id="h2" name="e" value="high"/>
        </cluster_property_set>
        <cluster_property_set id="cib-bootstrap-options" score="-INFINITY"><nvpair id="x1" name="c" value="bootstrap"/>
          <nvpair id="x2" name="e" value="bootstrap"/></cluster_property_set>
        <cluster_property_set id="back" score="-7"><nvpair id="b1" name="e" value="#default"/><nvpair id="b2" name="f" value="#Default"/>
        </cluster_property_set><cluster_property_set id="ruled" score="9"><rule id="r"/><nvpair id="r1" name="a" value="ruled"/>
        </cluster_property_set></crm_config><resources>
        <primitive id="p"><meta_attributes id-ref="m"/><meta_attributes id-ref="none"/><meta_attributes id-ref="o1"/>
          <meta_attributes id="own" score="-1"><nvpair id="w" name="kept" value="own"/><nvpair id="v" name="more" value="own"/>
        </meta_attributes></primitive>
        <primitive id="q"><meta_attributes id="m"><nvpair id-ref="far"/><nvpair id-ref="far" name="renamed"/><nvpair id-ref="none"/>
          <nvpair id="n" name="without-a-value"/><nvpair id="k" name="kept" value="referred"/></meta_attributes></primitive>
        <primitive id="r"><instance_attributes id="i"><nvpair id="far" name="name" value="far"/></instance_attributes></primitive>
        </resources></configuration></cib>"##;

    fn read(path: &[&str], kind: &'static str) -> Vec<String> {
        let root = Element::parse(CIB).unwrap();
        let document = Document::of(&root);
        let owner = root.at(path)[0];
        let values = document.values(&[owner], kind, |set| set.all("rule").next().is_none());
        values.iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    /// As `crm_resource --get-parameter` and `crm_simulate` of 2.1.5 show it. The broken variant takes the first value in
    /// the document.
    #[test]
    fn sets_count_in_pacemakers_order() {
        let values = read(&["configuration", "crm_config"], "cluster_property_set");
        assert_eq!(values, ["a=one", "b=two", "c=bootstrap", "d=low"]);
    }

    /// The broken variant reads what stands in place.
    #[test]
    fn references_are_what_they_refer_to() {
        let values = read(&["configuration", "resources", "primitive"], "meta_attributes");
        assert_eq!(values, ["kept=referred", "more=own", "name=far", "renamed=far"]);
    }

    #[test]
    fn scores_are_read_as_pacemaker_reads_them() {
        let read = ["INFINITY", "-infinity", "+INFINITY", "100", "-5", "x", "", "9999999"].map(score);
        assert_eq!(read, [INFINITY, -INFINITY, INFINITY, 100, -5, 0, 0, INFINITY]);
    }
}
