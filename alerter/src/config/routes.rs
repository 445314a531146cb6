//! Routes: `[DRIVER.NAME]`, with the keys that all drivers share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use drivers::{Driver, Step};
use marks::host::{HostName, HostPatterns};
use marks::terms::{After, IfReturned, Terms};
use site::{Place, Section, shown};

use super::groups::Groups;
use super::listen::{Reach, RouteName};
use super::values::{SECONDS, patterns};
use super::written::Written;

/// A route waits so long for the one that comes first, if the configuration has no other time.
const AFTER_LIMIT: u32 = 60;

/// The keys of a route's table that all drivers share: no driver reads them.
pub const ROUTE_KEYS: [&str; 7] =
    ["hosts", "groups", "required", "after", "after-limit", "if-returned", "stale-after"];

/// One endpoint with its driver.
#[derive(Clone, Debug)]
pub struct Route {
    /// Unique over all drivers.
    pub name: RouteName,
    /// The nodes whose marks it gets: those of `hosts`, and those of `groups`; where both are absent, all of them.
    pub hosts: Option<HostPatterns>,
    /// The groups whose hosts' marks it gets too.
    pub groups: Vec<String>,
    /// `required`: whether a mark stays open until this route has it.
    pub required: bool,
    /// Its step for a mark. A driver with further steps has one such route for each.
    pub step: Step,
    /// Its terms for a mark.
    pub terms: Terms,
    /// The code that speaks with the endpoint.
    pub driver: Arc<dyn Driver>,
    /// The driver's part of its table.
    pub(crate) written: Written,
}

impl Route {
    /// Whether another reading of the configuration gives this route the same driver.
    pub fn has_driver_of(&self, other: &Self) -> bool {
        let of = |route: &Self| (route.name.clone(), route.step, route.driver.about().kind, route.written);
        of(self) == of(other)
    }

    /// Whether both ask for the same, whatever object their driver is.
    pub fn is_same(&self, other: &Self) -> bool {
        let asks =
            |route: &Self| (route.hosts.clone(), route.groups.clone(), route.required, route.terms.clone());
        self.has_driver_of(other) && asks(self) == asks(other)
    }

    /// Whether it takes the marks of this node, which is in this group.
    pub fn covers(&self, node: &HostName, group: &str) -> bool {
        let everybody = self.hosts.is_none() && self.groups.is_empty();
        let by_group = self.groups.iter().any(|own| own == group);
        everybody || by_group || self.hosts.as_ref().is_some_and(|hosts| hosts.covers(node))
    }

    /// Whether it has this step too, after an acknowledgement.
    pub fn goes_on_to(&self, step: Step) -> bool {
        self.step == Step::Failure && self.driver.about().steps.contains(&step)
    }

    /// This route, and one for each further step of its driver: nothing waits for these.
    fn with_further_steps(self) -> Vec<Self> {
        let further = |step: &Step| Self {
            name: self.name.of_step(*step),
            required: false,
            step: *step,
            terms: Terms {
                notifies_return: *step == Step::Return,
                ends_each: self.driver.about().ends_each,
                ..Terms::default()
            },
            ..self.clone()
        };
        let further: Vec<Self> = self.driver.about().steps.iter().map(further).collect();
        [self].into_iter().chain(further).collect()
    }
}

/// Reads every route of every driver.
pub(super) fn read<'a>(
    root: &mut Section<'a, '_>,
    kinds: &'static [drivers::Kind],
    groups: &Groups<'a>,
) -> Vec<Arc<Route>> {
    let mut found = Found::default();
    for kind in kinds {
        let mut of_kind = root.section(kind.word);
        found.any |= of_kind.entries().next().is_some();
        of_kind.only_tables("route");
        for key in of_kind.sections() {
            if let Some(other) = found.kinds.insert(key, kind.word) {
                let message =
                    format!("[{other}.{key}] has this name already: names are unique over all drivers");
                of_kind.named_section(key).complain_here(message);
            }
            let mut section = of_kind.named_section(key);
            let reach = reach(&mut section, key, groups);
            let after = after(&mut section).inspect(|after| found.note(key, after)).map(|after| after.of);
            found.routes.extend(route(section, kind, &reach, after));
            found.reaches.push(reach);
        }
    }
    found.check(root, kinds, groups);
    found.routes.into_iter().flat_map(Route::with_further_steps).map(Arc::new).collect()
}

/// What was read so far, and what can be checked only of all routes together.
#[derive(Default)]
struct Found<'a> {
    routes: Vec<Route>,
    any: bool,
    /// The driver of each name.
    kinds: BTreeMap<&'a str, &'static str>,
    reaches: Vec<Reach<'a>>,
    /// Which route comes before which, and where it stands.
    order: BTreeMap<&'a str, (String, Place<'a>)>,
}

impl<'a> Found<'a> {
    fn note(&mut self, key: &'a str, after: &Waits<'a>) {
        self.order.insert(key, (after.of.route.clone(), after.place));
    }

    fn check(&self, root: &mut Section<'a, '_>, kinds: &'static [drivers::Kind], groups: &Groups<'a>) {
        if !self.any {
            root.missing(format!(
                "no route is configured, so nothing would be notified: add a table such as [{}.recovery]",
                kinds[0].word
            ));
        } else if !self.reaches.is_empty() {
            groups.check(root, &self.reaches);
        }
        for (key, (first, place)) in &self.order {
            if !self.kinds.contains_key(first.as_str()) {
                if root.is_whole() {
                    root.complain_at(*place, "there is no route of this name");
                }
            } else if self.is_in_a_circle(key) {
                root.complain_at(*place, "these routes wait for one another: let one of them come first");
            }
        }
    }

    fn is_in_a_circle(&self, start: &str) -> bool {
        let (mut seen, mut at) = (BTreeSet::new(), start);
        while let Some((first, _)) = self.order.get(at) {
            if first == start {
                return true;
            }
            if !seen.insert(first) {
                return false;
            }
            at = first;
        }
        false
    }
}

fn reach<'a>(section: &mut Section<'a, '_>, name: &'a str, groups: &Groups<'a>) -> Reach<'a> {
    let hosts = patterns(section, "hosts");
    if hosts.as_ref().is_some_and(Vec::is_empty) {
        section.complain(
            "hosts",
            "the list is empty, so this route would get no mark: name hosts, or remove the key",
        );
    }
    let named = groups.named_by(section).unwrap_or_default();
    if let Some(group) = groups.naming(name) {
        refuse_reach(section, &shown(group));
    }
    let hosts = HostPatterns::from_entries(hosts.into_iter().flatten()).ok();
    Reach { name, hosts, groups: named, required: section.flag("required").unwrap_or(true) }
}

fn refuse_reach(section: &mut Section<'_, '_>, group: &str) {
    for key in ["hosts", "groups"] {
        if section.has(key) {
            let message = format!(
                "[groups.{group}] names this route, so it gets only that group's hosts: remove {key}"
            );
            section.complain(key, message);
        }
    }
}

/// `after`, and its place.
struct Waits<'a> {
    of: After,
    place: Place<'a>,
}

fn after<'a>(section: &mut Section<'a, '_>) -> Option<Waits<'a>> {
    let name = |text: &str| RouteName::parse(text).ok_or_else(|| "must be the name of a route".to_owned());
    let route = section.text("after", name);
    let limit = section.number("after-limit", 1..=3600).unwrap_or(AFTER_LIMIT);
    let limit = Duration::from_secs(limit.into());
    if section.has("after-limit") && !section.has("after") {
        section.complain("after-limit", "after is missing: which route comes first?");
    }
    let (route, place) = (route?.to_string(), section.place_of("after")?);
    Some(Waits { of: After { route, limit }, place })
}

/// What the configuration says of a route's terms; its driver says the rest.
struct Said {
    after: Option<After>,
    if_returned: Option<IfReturned>,
    stale_after: Option<Duration>,
}

impl Said {
    fn read(section: &mut Section<'_, '_>, after: Option<After>) -> Self {
        let if_returned = section.choice("if-returned", &IfReturned::WORDS);
        let stale_after = section.number("stale-after", SECONDS);
        let stale_after = stale_after.map(|seconds| Duration::from_secs(seconds.into()));
        Self { after, if_returned, stale_after }
    }

    fn or(self, usual: Terms) -> Terms {
        Terms {
            after: self.after,
            if_returned: self.if_returned.unwrap_or(usual.if_returned),
            stale_after: self.stale_after.or(usual.stale_after),
            notifies_return: false,
            ends_each: false,
        }
    }
}

fn route(
    mut section: Section<'_, '_>,
    kind: &drivers::Kind,
    reach: &Reach<'_>,
    after: Option<After>,
) -> Option<Route> {
    let name = RouteName::parse(reach.name);
    if name.is_none() {
        section.complain_here("a route's name must be 1 to 64 letters, digits, '-' or '_'");
    }
    let said = Said::read(&mut section, after);
    let (driver, written) = ((kind.configure)(&mut section), Written::of(section.table(), &ROUTE_KEYS));
    section.finish();
    let driver = driver?;
    let terms = said.or(driver.about().terms.clone());
    let (hosts, groups, required) = (reach.hosts.clone(), reach.groups.clone(), reach.required);
    Some(Route { name: name?, hosts, groups, required, step: Step::Failure, terms, driver, written })
}

#[cfg(test)]
mod tests {
    use super::super::read_texts;
    use super::*;

    /// Two drivers that take any table and make nothing of it.
    static TWO: [drivers::Kind; 2] = [
        drivers::Kind { word: "http", configure: |_| None },
        drivers::Kind { word: "other", configure: |_| None },
    ];

    fn problems_of(text: &str) -> Vec<String> {
        let read = read_texts(&[text], |mut root| {
            let groups = Groups::read(root.section("groups"), false);
            assert!(read(&mut root, &TWO, &groups).is_empty());
        });
        read.err().into_iter().collect()
    }

    /// S1-17: names are what marks remember, so no two drivers may share one.
    #[test]
    fn a_route_name_is_unique_over_all_drivers() {
        let twice = problems_of("[http.a]\n[other.b]\n[other.a]\n");
        assert_eq!(twice, ["f:3:8: [http.a] has this name already: names are unique over all drivers"]);
        assert!(problems_of("[http.a]\n[other.b]\n").is_empty());
    }

    /// The broken variant: the same order without its circle.
    #[test]
    fn routes_that_wait_for_one_another_or_for_none_are_refused() {
        let circle =
            problems_of("[http.a]\nafter = \"b\"\n[http.b]\nafter = \"c\"\n[http.c]\nafter = \"b\"\n");
        let wait = "these routes wait for one another: let one of them come first";
        assert_eq!(circle, [format!("f:4:9: {wait}\nf:6:9: {wait}")]);
        assert!(problems_of("[http.a]\nafter = \"b\"\n[other.b]\n").is_empty());
        for (text, expected) in [
            ("[http.a]\nafter = \"a\"\n[http.b]\n", format!("f:2:9: {wait}")),
            ("[http.a]\nafter = \"b\"\n", "f:2:9: there is no route of this name".to_owned()),
            ("[http.a]\nafter = \"b c\"\n", "f:2:9: must be the name of a route".to_owned()),
            ("[http.a]\nafter-limit = 5\n", "f:2:15: after is missing: which route comes first?".to_owned()),
        ] {
            assert_eq!(problems_of(text), [expected]);
        }
    }
}
