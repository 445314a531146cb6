//! Groups of hosts: `[groups.NAME]`, with their members, recipients, rules and probes.

mod members;
mod recipients;
mod rules;

use marks::host::HostName;
use site::{Place, Section, is_plain_name, shown, unknown_word};

use super::listen::Reach;
use crate::config::HostRules;
use crate::config::rules::Rules;
use crate::probes::{self, Confirm};

use members::REST;
pub use members::{Attributes, Members};
pub use recipients::{Link, NamedRecipients};

/// Hosts with the same routes and limits: those of a rack, of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name: 1 to 64 of `A-Z a-z 0-9 _ -`.
    pub name: String,
    /// Who is in it.
    pub members: Members,
    /// Who is notified of its hosts.
    pub recipients: NamedRecipients,
    /// Whether its hosts' instances are on shared storage; where unset, `[hosts]` says it.
    pub on_shared_storage: Option<bool>,
    /// The limits and times of its hosts' marks.
    pub rules: Rules,
    /// The probes that ask about a host before its mark is sent.
    pub confirm: Option<Confirm>,
}

impl Group {
    /// The group of every host that is in no other, where the configuration says nothing of it.
    pub fn rest() -> Self {
        Self {
            name: REST.to_owned(),
            members: Members::Rest,
            recipients: NamedRecipients::Covering,
            on_shared_storage: None,
            rules: Rules::default(),
            confirm: None,
        }
    }

    /// Its limit, for people.
    pub fn limit_shown(&self) -> String {
        rules::shown(self.rules.limit)
    }

    /// What an operator should know once it is known how many hosts are in it.
    pub fn warning(&self, size: usize) -> Option<String> {
        rules::zero(self.rules.limit, size).map(|why| format!("[groups.{}]: {why}", self.name))
    }
}

/// Whether the instances of a host are on shared storage: its group's answer, else that of `[hosts]`.
pub(crate) fn shared_storage(
    hosts: &HostRules,
    groups: &[Group],
    node: &HostName,
    attribute: Attributes<'_>,
) -> Option<bool> {
    of(groups, node, attribute).on_shared_storage.or(hosts.on_shared_storage)
}

/// What stands in `[groups]`, in its order, and `default` at the end. A group with a mistake in it is known by its name
/// all the same.
pub(super) struct Groups<'a>(Vec<Draft<'a>>);

struct Draft<'a> {
    name: &'a str,
    /// Whether it stands in a file.
    is_written: bool,
    place: Place<'a>,
    members: Option<Members>,
    said: recipients::Said<'a>,
    on_shared_storage: Option<bool>,
    rules: Rules,
    confirm: Option<Confirm>,
}

impl<'a> Groups<'a> {
    /// Reads every `[groups.NAME]`. `is_alone` says that there is no cluster to ask about hosts.
    pub(super) fn read(mut section: Section<'a, '_>, is_alone: bool) -> Self {
        section.only_tables("group");
        let mut names: Vec<(&'a str, Place<'a>)> = section
            .entries()
            .filter(|(_, entry)| entry.table.is_some())
            .map(|(key, entry)| (key, entry.key))
            .collect();
        names.sort_by_key(|(name, place)| (*name == REST, place.source.rank, place.offset));
        let mut groups = Self(Vec::new());
        for (name, place) in names {
            let mut table = section.named_section(name);
            let draft = Draft::read(&mut table, name, place, is_alone);
            groups.refuse_overlap(&mut table, &draft);
            table.finish();
            groups.0.push(draft);
        }
        if groups.0.last().is_none_or(|last| last.name != REST) {
            groups.0.push(Draft::rest(section.place()));
        }
        groups
    }

    /// A host may be in one group alone. Whether a name and an attribute are those of one host only the cluster knows.
    fn refuse_overlap(&self, table: &mut Section<'a, '_>, draft: &Draft<'a>) {
        for other in &self.0 {
            match (&other.members, &draft.members) {
                (Some(Members::Hosts(theirs)), Some(Members::Hosts(own))) if theirs.overlaps(own) => {
                    let at = own.first_overlap(theirs).unwrap_or_default();
                    table.complain_in_list("hosts", at, both(other.name, draft.name));
                }
                (Some(one @ Members::Attribute { .. }), Some(same)) if one == same => {
                    table.complain("attribute", both(other.name, draft.name));
                }
                _ => {}
            }
        }
    }

    /// The groups that a route names; none where it names none, or one that is not there.
    pub(super) fn named_by(&self, route: &mut Section<'a, '_>) -> Option<Vec<String>> {
        // What cannot be read may hold the group.
        let is_whole = route.is_whole();
        let check = |name: &str| match self.0.iter().find(|draft| draft.name == name) {
            Some(draft) if draft.said.recipients != NamedRecipients::Covering => Err(format!(
                "[groups.{}] names its own routes: add this route there, or leave the group out here",
                shown(name)
            )),
            None if is_whole => Err(self.unknown(name)),
            _ => Ok(()),
        };
        let names = route.texts("groups", check)?;
        if names.is_empty() {
            route.complain("groups", "the list is empty: name groups, or remove the key");
        }
        Some(names.into_iter().map(str::to_owned).collect())
    }

    fn unknown(&self, name: &str) -> String {
        match self.0.iter().any(|draft| draft.is_written) {
            false => "there are no groups: add a table [groups.NAME] with its hosts".to_owned(),
            true => {
                let known = self.0.iter().map(|draft| draft.name).filter(|name| is_plain_name(name));
                unknown_word("group", name, known)
            }
        }
    }

    /// The first group that names a route in its `routes` or `chain`.
    pub(super) fn naming(&self, route: &str) -> Option<&'a str> {
        let names =
            |draft: &&Draft<'a>| draft.said.recipients.named().iter().any(|name| name.as_str() == route);
        self.0.iter().find(names).map(|draft| draft.name)
    }

    /// The checks that need all routes: every named route exists, and every host has a route that surely acknowledges its marks.
    pub(super) fn check(&self, root: &mut Section<'a, '_>, routes: &[Reach<'a>]) {
        let is_lacking = |draft: &&Draft<'a>| !self.is_surely_notified(draft, routes);
        let rest_is_lacking = self.0.last().is_some_and(|rest| is_lacking(&rest));
        for draft in &self.0 {
            let unknown = draft.unknown(routes);
            // What cannot be read may hold the route.
            if root.is_whole() {
                unknown.iter().for_each(|place| root.complain_at(*place, "there is no route of this name"));
            }
            // If the rest has no route either, only that is reported.
            let is_covered =
                rest_is_lacking && draft.said.recipients == NamedRecipients::Covering && draft.name != REST;
            if unknown.is_empty() && !is_covered && is_lacking(&draft) {
                let message = self.no_required_route(draft);
                root.missing_at(if draft.name == REST { root.place() } else { draft.place }, message);
            }
        }
    }

    fn is_surely_notified(&self, draft: &Draft<'a>, routes: &[Reach<'a>]) -> bool {
        let mut required = routes.iter().filter(|route| route.required);
        match &draft.said.recipients {
            NamedRecipients::Covering => {
                required.any(|route| self.naming(route.name).is_none() && route.takes_all_of(draft.name))
            }
            NamedRecipients::Each(names) => {
                required.any(|route| names.iter().any(|name| name.as_str() == route.name))
            }
            // Its last step is retried forever.
            NamedRecipients::Chain(_) => true,
        }
    }

    fn no_required_route(&self, draft: &Draft<'a>) -> String {
        let name = shown(draft.name);
        let end = "so a mark could end without an acknowledgement";
        match &draft.said.recipients {
            NamedRecipients::Covering
                if self.0.iter().all(|draft| draft.said.recipients == NamedRecipients::Covering)
                    && name == REST =>
            {
                format!(
                    "no required route covers every host, {end}: leave hosts, groups and required = false out of one route"
                )
            }
            NamedRecipients::Covering if name == REST => {
                format!(
                    "no required route covers the hosts that are in no group, {end}: name one in [groups.default] routes; or leave hosts, groups and required = false out of one that no group names"
                )
            }
            NamedRecipients::Covering => {
                format!(
                    "no required route covers every host of [groups.{name}], {end}: name one in its routes"
                )
            }
            NamedRecipients::Each(_) | NamedRecipients::Chain(_) => {
                format!(
                    "no route that [groups.{name}] names is required, {end}: remove required = false from one"
                )
            }
        }
    }

    /// The groups as the daemon knows them.
    pub(super) fn settled(self) -> Vec<Group> {
        let group = |draft: Draft<'a>| {
            Some(Group {
                name: draft.name.to_owned(),
                members: draft.members?,
                recipients: draft.said.recipients,
                on_shared_storage: draft.on_shared_storage,
                rules: draft.rules,
                confirm: draft.confirm,
            })
        };
        self.0.into_iter().filter_map(group).collect()
    }
}

impl<'a> Draft<'a> {
    fn read(table: &mut Section<'a, '_>, name: &'a str, place: Place<'a>, is_alone: bool) -> Self {
        if !is_plain_name(name) {
            table.complain_here("a group's name must be 1 to 64 letters, digits, '-' or '_'");
        }
        let members = members::read(table, name, is_alone);
        let said = recipients::read(table);
        let on_shared_storage = table.flag("on-shared-storage");
        let rules = rules::read(table, members.as_ref(), is_alone);
        let confirm = probes::keys::read(table.section("confirm"));
        Self { name, is_written: true, place, members, said, on_shared_storage, rules, confirm }
    }

    /// What holds of hosts in no group where the configuration says nothing of them.
    fn rest(place: Place<'a>) -> Self {
        Self {
            name: REST,
            is_written: false,
            place,
            members: Some(Members::Rest),
            said: recipients::Said::nothing(),
            on_shared_storage: None,
            rules: Rules::default(),
            confirm: None,
        }
    }

    /// Where it names routes that are not there.
    fn unknown(&self, routes: &[Reach<'a>]) -> Vec<Place<'a>> {
        let is_there = |name: &str| routes.iter().any(|route| route.name == name);
        let named = self.said.recipients.named().into_iter().zip(&self.said.places);
        named.filter(|(name, _)| !is_there(name.as_str())).map(|(_, place)| *place).collect()
    }
}

fn both(one: &str, other: &str) -> String {
    let (one, other) = (shown(one), shown(other));
    format!("a host could be in [groups.{one}] and in [groups.{other}]: leave it in one of them")
}

/// The groups that a node is in by what each says, in their order, without `default`: one at the most, if they are as they
/// should be.
pub(crate) fn all_of<'g>(groups: &'g [Group], node: &HostName, attribute: Attributes<'_>) -> Vec<&'g Group> {
    let named = groups.iter().filter(|group| group.members != Members::Rest);
    named.filter(|group| group.members.has(node, attribute)).collect()
}

/// The group that counts for a node: the first one that it is in, `default` at last.
pub(crate) fn of<'g>(groups: &'g [Group], node: &HostName, attribute: Attributes<'_>) -> &'g Group {
    let own = groups.iter().find(|group| group.members.has(node, attribute));
    own.expect("the last group is default, and has every host")
}
