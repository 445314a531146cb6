//! Names of hosts: which are valid, how they compare, and how a node name becomes the name that is sent.

mod overlap;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::Serialize;

/// Longest accepted name in bytes (the limit of a DNS name).
const MAX_LEN: usize = 255;

/// A host's name as Pacemaker or an operator wrote it.
///
/// 1 to 255 bytes of `A-Z a-z 0-9 . _ -`, beginning with a letter or digit, without an empty label.
/// It keeps its spelling and compares in lower case, as Pacemaker compares node names.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct HostName(String);

/// Why a text is no host name. The message never shows the text: it may be hostile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostNameError {
    /// It is empty.
    #[error("the host name is empty")]
    Empty,
    /// More than 255 bytes.
    #[error("the host name is longer than 255 bytes")]
    TooLong,
    /// A character outside of the safe alphabet, or a first one that is neither a letter nor a digit.
    #[error(
        "the host name has a character that is not allowed (allowed: letters, digits, '.', '_', '-'; first a letter or digit)"
    )]
    Character,
    /// Two dots in a row, or a dot at the end.
    #[error("the host name has an empty label (two dots in a row, or a dot at the end)")]
    EmptyLabel,
}

impl HostName {
    /// Reads a name; see the type for what is accepted.
    pub fn parse(text: &str) -> Result<Self, HostNameError> {
        let bytes = text.as_bytes();
        let first = bytes.first().ok_or(HostNameError::Empty)?;
        if bytes.len() > MAX_LEN {
            return Err(HostNameError::TooLong);
        }
        if !first.is_ascii_alphanumeric() || !bytes.iter().all(|b| is_name_byte(*b)) {
            return Err(HostNameError::Character);
        }
        if text.split('.').any(str::is_empty) {
            return Err(HostNameError::EmptyLabel);
        }
        Ok(Self(text.to_owned()))
    }

    /// The name as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the name has a domain part.
    pub fn has_domain(&self) -> bool {
        self.0.contains('.')
    }

    /// The name's first label.
    pub fn without_domain(&self) -> Self {
        Self(self.0.split('.').next().unwrap_or_default().to_owned())
    }

    /// The name with a domain behind it; unchanged if it already ends in that domain, label by label.
    pub fn with_domain(&self, domain: &str) -> Result<Self, HostNameError> {
        let domain = domain.trim_start_matches('.');
        let already = self.lower().ends_with(&format!(".{}", domain.to_ascii_lowercase()));
        if already { Ok(self.clone()) } else { Self::parse(&format!("{}.{domain}", self.0)) }
    }

    fn lower(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialEq for HostName {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for HostName {}

impl Hash for HostName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.lower().hash(state);
    }
}

impl Ord for HostName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.lower().cmp(&other.lower())
    }
}

impl PartialOrd for HostName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A list of shell-style patterns (`*` and `?`), compared without case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPatterns(Vec<String>);

/// Why a text is no list of patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostPatternError {
    /// No pattern at all.
    #[error("the list of host patterns is empty")]
    Empty,
    /// A character that cannot be in a host name.
    #[error(
        "a host pattern has a character that no host name can have (allowed beside '*' and '?': letters, digits, '.', '_', '-')"
    )]
    Character,
    /// An entry without a `*` or `?` that cannot be a host's name.
    #[error("an entry of the host patterns is no valid host name: {0}")]
    NoHost(HostNameError),
}

impl HostPatterns {
    /// Reads a comma list; spaces around an entry and empty entries are ignored.
    ///
    /// An entry that cannot be a host's name matches nothing and does not disturb the others: a fence device with one in
    /// its `hosts` must go on fencing.
    pub fn parse(list: &str) -> Result<Self, HostPatternError> {
        Self::read(list.split(','))
    }

    /// Reads a list that is already split. An entry that cannot be a host's name is an error.
    pub fn from_entries<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, HostPatternError> {
        let patterns = Self::read(entries)?;
        for name in patterns.0.iter().filter(|entry| !is_pattern(entry)) {
            HostName::parse(name).map_err(HostPatternError::NoHost)?;
        }
        Ok(patterns)
    }

    fn read<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, HostPatternError> {
        let patterns: Vec<String> = entries
            .into_iter()
            .map(str::trim)
            .filter(|e| !e.is_empty())
            .map(str::to_ascii_lowercase)
            .collect();
        if patterns.is_empty() {
            return Err(HostPatternError::Empty);
        }
        if patterns.iter().flat_map(|p| p.bytes()).any(|b| !is_name_byte(b) && !matches!(b, b'*' | b'?')) {
            return Err(HostPatternError::Character);
        }
        Ok(Self(patterns))
    }

    /// Whether any pattern matches the whole name.
    pub fn covers(&self, host: &HostName) -> bool {
        let name = host.lower();
        self.0.iter().any(|pattern| glob_matches(pattern.as_bytes(), name.as_bytes()))
    }

    /// Whether the name itself is in the list, not merely a pattern that matches it.
    pub fn names_literally(&self, host: &HostName) -> bool {
        self.0.iter().any(|pattern| pattern.eq_ignore_ascii_case(host.as_str()))
    }

    /// How many names are in the list; `None` if there is a pattern, which matches an unknown number.
    pub fn count(&self) -> Option<usize> {
        let (names, patterns) = self.split();
        patterns.is_empty().then_some(names.len())
    }

    /// The names in the list; `None` if there is a pattern or an invalid name.
    pub fn listed(&self) -> Option<Vec<HostName>> {
        let (names, patterns) = self.split();
        let names = names.into_iter().map(|name| HostName::parse(name).ok()).collect();
        if patterns.is_empty() { names } else { None }
    }

    /// Whether some name could match both lists.
    pub fn overlaps(&self, other: &Self) -> bool {
        let ((names, patterns), (its_names, its_patterns)) = (self.split(), other.split());
        let any = |patterns: &[&str], names: &BTreeSet<&str>| {
            patterns.iter().any(|p| names.iter().any(|name| glob_matches(p.as_bytes(), name.as_bytes())))
        };
        let of_both =
            |one: &&str| its_patterns.iter().any(|p| overlap::overlap(one.as_bytes(), p.as_bytes()));
        !names.is_disjoint(&its_names)
            || any(&patterns, &its_names)
            || any(&its_patterns, &names)
            || patterns.iter().any(of_both)
    }

    /// The index of the first entry that has a name in common with the other list.
    pub fn first_overlap(&self, other: &Self) -> Option<usize> {
        self.0.iter().position(|entry| other.overlaps(&Self(vec![entry.clone()])))
    }

    /// The entries in lower case, for people.
    pub fn shown(&self) -> String {
        self.0.join(", ")
    }

    /// The names, and the patterns.
    fn split(&self) -> (BTreeSet<&str>, Vec<&str>) {
        let (patterns, names): (Vec<&str>, Vec<&str>) =
            self.0.iter().map(String::as_str).partition(|entry| is_pattern(entry));
        (names.into_iter().collect(), patterns)
    }
}

fn is_pattern(entry: &str) -> bool {
    entry.contains(['*', '?'])
}

/// Linear in practice: on a mismatch only the newest `*` is tried again.
fn glob_matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, n));
                p += 1;
            }
            Some(&c) if c == b'?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match retry {
                Some((after_star, from)) => {
                    retry = Some((after_star, from + 1));
                    p = after_star;
                    n = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

/// The name that is sent for a node (design, section 2, "host"): the configured name, the mapped plug, the node name if
/// it has a domain, the node name with `domain`. `None` means that the mark is held as `no-fqdn`.
///
/// A plug that equals the node is no mapping. A mapped plug without a dot is a short name, which needs `domain` too.
pub fn resolve_fqdn(
    node: &HostName,
    plug: Option<&HostName>,
    names: &BTreeMap<HostName, HostName>,
    domain: Option<&str>,
) -> Option<HostName> {
    if let Some(name) = names.get(node) {
        return Some(name.clone());
    }
    let base = plug.filter(|plug| *plug != node).unwrap_or(node);
    if base.has_domain() {
        return Some(base.clone());
    }
    base.with_domain(domain?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    #[test]
    fn keeps_its_spelling_and_compares_without_case() {
        assert_eq!(name("Compute1").as_str(), "Compute1");
        assert_eq!(name("Compute1"), name("cOMPUTE1"));
        assert_eq!(["Compute1", "Compute1.x.org"].map(|full| name(full).without_domain().0), ["Compute1"; 2]);
    }

    #[test]
    fn refuses_what_could_be_read_as_something_else() {
        for bad in [
            "", "-N", ".", "a..b", "a.b.", "../../x", "$(id)", "a b", "a\nb", "a\0b", "a\"b", "é", "a/b",
            "a%00",
        ] {
            assert!(HostName::parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(HostName::parse(&"a".repeat(256)), Err(HostNameError::TooLong));
        assert!(HostName::parse(&"a".repeat(255)).is_ok());
    }

    #[test]
    fn patterns_match_whole_names() {
        let patterns = HostPatterns::parse("compute*, ?tl1").unwrap();
        assert!(patterns.covers(&name("COMPUTE17")) && patterns.covers(&name("ctl1")));
        assert!(!patterns.covers(&name("mycompute1")) && !patterns.covers(&name("ctl12")));
        assert!(!patterns.names_literally(&name("ctl1")));
        assert!(HostPatterns::parse("*,ctl1").unwrap().names_literally(&name("CTL1")));
        assert_eq!(HostPatterns::parse(" , "), Err(HostPatternError::Empty));
        assert_eq!(HostPatterns::parse("a;b"), Err(HostPatternError::Character));
    }

    /// The broken variant checks the characters alone: a name that cannot be a host makes a group's size unknown.
    #[test]
    fn a_name_that_can_be_no_host_is_refused() {
        let long = "a".repeat(300);
        for (entry, why) in [
            ("compute1.", HostNameError::EmptyLabel),
            ("a..b", HostNameError::EmptyLabel),
            ("-c1", HostNameError::Character),
            (long.as_str(), HostNameError::TooLong),
        ] {
            assert!(entry.bytes().all(is_name_byte), "the characters alone do not show it");
            let read = HostPatterns::from_entries(["c1", entry]);
            assert_eq!(read, Err(HostPatternError::NoHost(why)), "{entry}");
            let device = HostPatterns::parse(&format!("c1,{entry}")).unwrap();
            assert!(device.covers(&name("c1")), "a fence device goes on with the others");
        }
        for entry in ["*", "compute1.*", "-?1", "*."] {
            assert!(HostPatterns::parse(entry).is_ok(), "{entry}");
        }
    }

    #[test]
    fn lists_overlap_that_could_match_one_name() {
        let overlap = |one: &str, other: &str| {
            let lists = [one, other].map(|list| HostPatterns::parse(list).unwrap());
            assert_eq!(lists[0].overlaps(&lists[1]), lists[1].overlaps(&lists[0]), "{one} {other}");
            assert_eq!(lists[0].overlaps(&lists[1]), lists[0].first_overlap(&lists[1]).is_some());
            lists[0].overlaps(&lists[1])
        };
        assert!(overlap("x,C1", "c1,y") && overlap("r1-*", "y,R1-7") && overlap("r1-*", "r?-7"));
        assert!(!overlap("c1,c2", "c3,c4") && !overlap("r1-*,c1", "r2-*,c2"));
        let lists = ["a,b*,c*", "c1,b2"].map(|list| HostPatterns::parse(list).unwrap());
        let [one, two] = &lists;
        assert_eq!((one.first_overlap(two), two.first_overlap(one)), (Some(1), Some(0)));
    }

    #[test]
    fn names_are_counted_once_and_patterns_not_at_all() {
        let count = |list| HostPatterns::parse(list).unwrap().count();
        assert_eq!([count("a,b,A"), count("a,b?"), count("*")], [Some(2), None, None]);
    }

    /// S1-37: short name to FQDN, and an FQDN left as it is; the suffix test is by label.
    #[test]
    fn the_sent_name_is_chosen_in_the_order_of_the_design() {
        let names = BTreeMap::from([(name("compute9"), name("nine.example.org"))]);
        let chosen = |node: &str, plug: Option<&str>, domain| {
            resolve_fqdn(&name(node), plug.map(name).as_ref(), &names, domain).map(|n| n.to_string())
        };
        assert_eq!(chosen("Compute9", Some("x.y"), Some("d.e")).as_deref(), Some("nine.example.org"));
        assert_eq!(chosen("c1", Some("c1.cloud.example"), Some("d.e")).as_deref(), Some("c1.cloud.example"));
        assert_eq!(chosen("c1", Some("nova1"), Some("d.e")).as_deref(), Some("nova1.d.e"));
        assert_eq!(chosen("c1.x.y", Some("c1.x.y"), Some("d.e")).as_deref(), Some("c1.x.y"));
        assert_eq!(chosen("C1", Some("c1"), Some("d.e")).as_deref(), Some("C1.d.e"));
        assert_eq!(chosen("c1", None, None), None);
        let full = name("compute3example.com").with_domain("example.com").unwrap();
        assert_eq!(full.as_str(), "compute3example.com.example.com");
        assert_eq!(name("c3.Example.com").with_domain("example.com").unwrap().as_str(), "c3.Example.com");
    }

    proptest! {
        #[test]
        fn an_accepted_name_is_safe_everywhere(text in ".{0,40}") {
            if let Ok(host) = HostName::parse(&text) {
                prop_assert_eq!(host.as_str(), &text);
                prop_assert!(text.bytes().all(is_name_byte) && !text.starts_with('-'));
            }
        }

        #[test]
        fn a_star_matches_any_tail(head in "[a-z]{1,8}", tail in "[a-z0-9.-]{0,12}") {
            let pattern = format!("{head}*");
            let joined = format!("{head}{tail}");
            prop_assert!(glob_matches(pattern.as_bytes(), joined.as_bytes()));
        }
    }
}
