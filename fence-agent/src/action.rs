//! The closed set of actions.

/// What the agent can be asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Mark the host.
    Off,
    /// Report whether the host may be marked, by its name alone.
    Status,
    /// Report whether a mark could be written now, and whether the fencing levels are right.
    Monitor,
    /// Print the metadata.
    Metadata,
    /// Print the metadata with the macros of a manual page.
    Manpage,
    /// Check the options.
    ValidateAll,
}

/// All of them, as in the metadata. Never `on`, `reboot` or `list`: Pacemaker would call them.
pub const ACTIONS: [(&str, Action); 6] = [
    ("off", Action::Off),
    ("status", Action::Status),
    ("monitor", Action::Monitor),
    ("metadata", Action::Metadata),
    ("manpage", Action::Manpage),
    ("validate-all", Action::ValidateAll),
];

impl Action {
    /// Reads an action's name, in any case. `meta-data` is OCF's word for `metadata`.
    pub fn parse(word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase();
        let word = if word == "meta-data" { "metadata" } else { &word };
        ACTIONS.iter().find(|(name, _)| *name == word).map(|(_, action)| *action)
    }

    /// Whether it only prints.
    pub fn is_document(self) -> bool {
        matches!(self, Self::Metadata | Self::Manpage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_any_case_and_nothing_else_is() {
        assert_eq!(Action::parse("OFF"), Some(Action::Off));
        assert_eq!(Action::parse("Meta-Data"), Some(Action::Metadata));
        for other in
            ["", " off", "off ", "on", "reboot", "enable", "disable", "list", "list-status", "o", "offf"]
        {
            assert_eq!(Action::parse(other), None, "{other:?}");
        }
    }
}
