//! Groups of hosts: `[groups.NAME]`, and what a route's `groups` stand for.

use std::collections::BTreeMap;

use marks::host::{HostName, HostPatterns};

use super::reader::{Section, shown, unknown_word};
use super::settings::{is_plain_name, only_tables, patterns};

/// Hosts that are told alike: those of a rack, of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name: 1 to 64 of `A-Z a-z 0-9 _ -`.
    pub name: String,
    /// The nodes in it.
    pub hosts: HostPatterns,
}

/// What stands in `[groups]`. A group with a mistake in it is known by its name all the same.
pub(super) struct Groups<'a>(BTreeMap<&'a str, Vec<&'a str>>);

impl<'a> Groups<'a> {
    /// Reads every `[groups.NAME]`.
    pub(super) fn read(mut section: Section<'a, '_>) -> Self {
        only_tables(&mut section, "group");
        let mut groups = Self(BTreeMap::new());
        for name in section.sections() {
            let mut table = section.named_section(name);
            let hosts = members(&mut table, name);
            groups.refuse_repetition(&mut table, &hosts);
            table.finish();
            groups.0.insert(name, hosts);
        }
        groups
    }

    /// A host may be in one group alone. Patterns that overlap are seen when there is such a host.
    fn refuse_repetition(&self, table: &mut Section<'a, '_>, hosts: &[&str]) {
        for (at, pattern) in hosts.iter().enumerate() {
            let is_same = |other: &&str| other.trim().eq_ignore_ascii_case(pattern.trim());
            if let Some((other, _)) = self.0.iter().find(|(_, list)| list.iter().any(is_same)) {
                let message =
                    format!("this stands in [groups.{}] too: a host may be in one group alone", shown(other));
                table.complain_in_list("hosts", at, message);
            }
        }
    }

    /// The patterns of the groups that a route names; none where it names none, or one that is not there.
    pub(super) fn named_by(&self, route: &mut Section<'a, '_>) -> Option<Vec<&'a str>> {
        // What cannot be read may hold the group.
        let is_whole = route.is_whole();
        let check = |name: &str| match self.0.contains_key(name) || !is_whole {
            true => Ok(()),
            false => Err(self.unknown(name)),
        };
        let names = route.texts("groups", check)?;
        if names.is_empty() {
            route.complain("groups", "the list is empty: name groups, or remove the key");
        }
        Some(names.iter().filter_map(|name| self.0.get(name)).flatten().copied().collect())
    }

    fn unknown(&self, name: &str) -> String {
        let known = self.0.keys().copied().filter(|name| is_plain_name(name));
        match self.0.is_empty() {
            true => "there are no groups: add a table [groups.NAME] with its hosts".to_owned(),
            false => unknown_word("group", name, known),
        }
    }

    /// The groups as the daemon knows them.
    pub(super) fn settled(&self) -> Vec<Group> {
        let group = |(name, hosts): (&&str, &Vec<&str>)| {
            let hosts = HostPatterns::from_entries(hosts.iter().copied()).ok()?;
            Some(Group { name: (*name).to_owned(), hosts })
        };
        self.0.iter().filter_map(group).collect()
    }
}

/// The hosts of one group.
fn members<'a>(table: &mut Section<'a, '_>, name: &str) -> Vec<&'a str> {
    if !is_plain_name(name) {
        table.complain_here("a group's name must be 1 to 64 letters, digits, '-' or '_'");
    }
    let hosts = patterns(table, "hosts");
    if !table.has("hosts") {
        let title = table.title().to_owned();
        table.missing(format!("[{title}] has no hosts: name them, or remove the table"));
    }
    if hosts.as_ref().is_some_and(Vec::is_empty) {
        table.complain(
            "hosts",
            "the list is empty, so nobody is in this group: name hosts, or remove the table",
        );
    }
    hosts.unwrap_or_default()
}

/// The names of the groups that a host is in: one, if the patterns are as they should be.
pub(super) fn of<'g>(groups: &'g [Group], node: &HostName) -> Vec<&'g str> {
    let own = groups.iter().filter(|group| group.hosts.covers(node));
    own.map(|group| group.name.as_str()).collect()
}
