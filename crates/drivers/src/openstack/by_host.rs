//! A table of the configuration with a list for each node name or pattern.

use marks::host::{HostName, HostPatterns};
use site::Section;

/// Things by their hosts.
#[derive(Clone, Debug)]
pub struct ByHost<T>(Vec<(HostPatterns, Vec<T>)>);

impl<T> Default for ByHost<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: PartialEq> ByHost<T> {
    /// Adds these for the hosts of these patterns.
    pub fn add(&mut self, hosts: HostPatterns, things: Vec<T>) {
        self.0.push((hosts, things));
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|(_, things)| things.is_empty())
    }

    /// Those of one host, or of all without a host; each once.
    pub(crate) fn of(&self, node: Option<&HostName>) -> Vec<&T> {
        let is_meant = |hosts: &HostPatterns| node.is_none_or(|node| hosts.covers(node));
        let mut found: Vec<&T> = Vec::new();
        for thing in self.0.iter().filter(|(hosts, _)| is_meant(hosts)).flat_map(|(_, all)| all) {
            if !found.contains(&thing) {
                found.push(thing);
            }
        }
        found
    }

    /// Reads the table.
    pub(crate) fn read(mut table: Section<'_, '_>, parse: impl Fn(&str) -> Result<T, String>) -> Self {
        let mut all = Self::default();
        for (key, entry) in table.entries() {
            let texts = table.last_texts(entry, |text| parse(text).map(drop));
            match HostPatterns::from_entries([key]) {
                Err(why) => table.complain_at(entry.key, why.to_string()),
                Ok(hosts) => {
                    let things = texts.into_iter().flatten().filter_map(|text| parse(text).ok());
                    all.add(hosts, things.collect());
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S2-2: a host has its own things, by its name or by a pattern; duplicates count once.
    #[test]
    fn a_host_has_what_every_pattern_gives_it() {
        let mut all = ByHost::default();
        all.add(HostPatterns::parse("compute1").unwrap(), vec!["a", "b"]);
        all.add(HostPatterns::parse("compute*").unwrap(), vec!["b", "c"]);
        let of = |node: &str| {
            let node = HostName::parse(node).unwrap();
            all.of(Some(&node)).into_iter().copied().collect::<String>()
        };
        assert_eq!(["Compute1", "compute2", "ctl1"].map(of), ["abc", "bc", ""]);
        assert_eq!((all.of(None).len(), all.is_empty()), (3, false));
        assert!(ByHost::<u8>::default().is_empty());
    }
}
