//! Why a fencing or a sighting has its end: one word for each rule, stored in the journal beside the record.

use serde::Serialize;

/// The rule by which a record ended. It explains, and decides nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A mark was made of it.
    Made,
    /// A mark has its id: its fencing, or its operation.
    OwnMark,
    /// The alerter that saw its operation counts that to the outage, or an alert of the same moment belongs to it.
    SameOperation,
    /// Pacemaker says that the host was fenced before and has not been back since.
    AlreadyDown,
    /// It ended the same connection as the mark's outage, and nothing contradicts.
    SameConnection,
    /// The same, but another connection was made so close to it that the clocks of two controllers may be in the wrong order.
    LikelyConnection,
    /// By the clocks it came after the host's return, but Pacemaker has not fenced the host since.
    BeforeReturn,
    /// No connection decides: the times are within `coalesce`, or the record appeared here when the mark was made.
    NearByClock,
    /// `[hosts] match` does not cover its host.
    NotCovered,
    /// An alerter had it so long ago that the register has dropped it.
    Past,
    /// Another host has a mark of its id.
    IdTaken,
    /// The cluster has no such host.
    UnknownHost,
    /// Pacemaker remembers it from before the first alerter of this cluster.
    BeforeInstallation,
    /// It is `node_fenced` of a fencing that was confirmed by hand, which the history reports itself.
    ConfirmedByHand,
    /// It is `node_fenced` of a host that is a member: it is a leftover.
    Member,
}

impl Rule {
    /// Every one.
    pub const ALL: [Self; 15] = [
        Self::Made,
        Self::OwnMark,
        Self::SameOperation,
        Self::AlreadyDown,
        Self::SameConnection,
        Self::LikelyConnection,
        Self::BeforeReturn,
        Self::NearByClock,
        Self::NotCovered,
        Self::Past,
        Self::IdTaken,
        Self::UnknownHost,
        Self::BeforeInstallation,
        Self::ConfirmedByHand,
        Self::Member,
    ];

    /// The word in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Made => "made",
            Self::OwnMark => "own-mark",
            Self::SameOperation => "same-operation",
            Self::AlreadyDown => "already-down",
            Self::SameConnection => "same-connection",
            Self::LikelyConnection => "likely-connection",
            Self::BeforeReturn => "before-return",
            Self::NearByClock => "near-by-clock",
            Self::NotCovered => "not-covered",
            Self::Past => "past",
            Self::IdTaken => "id-taken",
            Self::UnknownHost => "unknown-host",
            Self::BeforeInstallation => "before-installation",
            Self::ConfirmedByHand => "confirmed-by-hand",
            Self::Member => "member",
        }
    }

    /// Reads the word of the journal.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.as_str() == word)
    }

    /// Whether the record belongs to a mark by it; otherwise it was set aside.
    pub fn has_mark(self) -> bool {
        self < Self::NotCovered
    }

    /// Whether it is more than clocks, here and where somebody else judged: a record that joins a mark by it belongs to that outage, whatever the clocks are.
    pub fn is_sure(self) -> bool {
        !matches!(self, Self::SameOperation | Self::LikelyConnection | Self::NearByClock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip_and_say_whether_there_is_a_mark() {
        assert!(Rule::ALL.into_iter().all(|rule| Rule::parse(rule.as_str()) == Some(rule)));
        assert!(Rule::ALL.is_sorted());
        let aside: Vec<&str> =
            Rule::ALL.into_iter().filter(|rule| !rule.has_mark()).map(Rule::as_str).collect();
        assert_eq!(aside[..3], ["not-covered", "past", "id-taken"]);
        assert_eq!(aside[3..], ["unknown-host", "before-installation", "confirmed-by-hand", "member"]);
    }

    #[test]
    fn clocks_alone_are_not_sure() {
        let unsure: Vec<Rule> = Rule::ALL.into_iter().filter(|rule| !rule.is_sure()).collect();
        assert_eq!(unsure, [Rule::SameOperation, Rule::LikelyConnection, Rule::NearByClock]);
    }
}
