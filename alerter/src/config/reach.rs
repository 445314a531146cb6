//! What groups need to know about a route: its name, and which hosts it takes.

use std::fmt;

use drivers::Step;
use marks::host::HostPatterns;
use site::is_plain_name;

/// A route's name: 1 to 64 of `A-Z a-z 0-9 _ -`; behind it, for a further step, what [`Step::suffix`] says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteName(String);

impl RouteName {
    /// Reads a name; `None` if it is no such name.
    pub fn parse(text: &str) -> Option<Self> {
        is_plain_name(text).then(|| Self(text.to_owned()))
    }

    /// The name of a step of this route.
    pub fn of_step(&self, step: Step) -> Self {
        Self(format!("{}{}", self.0, step.suffix()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RouteName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which hosts a route takes.
pub(super) struct Reach<'a> {
    /// Its name, which may be none.
    pub(super) name: &'a str,
    pub(super) hosts: Option<HostPatterns>,
    pub(super) groups: Vec<String>,
    pub(super) required: bool,
}

impl Reach<'_> {
    /// Whether it surely takes every host of a group.
    pub(super) fn takes_all_of(&self, group: &str) -> bool {
        let everybody = self.hosts.is_none() && self.groups.is_empty();
        everybody || self.groups.iter().any(|own| own == group)
    }
}
