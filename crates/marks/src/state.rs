//! The states of a delivery, and the closed table of transitions.

use serde::Serialize;

use crate::mark::Settlement;

/// The states of a delivery (design, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Waits for its next attempt.
    Pending,
    /// An attempt is in flight; after a crash its outcome is unknown.
    InFlight,
    /// The recovery controller took it.
    Acknowledged,
    /// A named reason holds it.
    Held,
    /// The endpoint rejects or refuses it; it is retried forever, at long intervals.
    Parked,
    /// Its row is damaged: never sent, never dropped.
    Quarantined,
    /// An operator ended it.
    Dismissed,
    /// A configured rule ended it.
    Cancelled,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::InFlight,
        Self::Acknowledged,
        Self::Held,
        Self::Parked,
        Self::Quarantined,
        Self::Dismissed,
        Self::Cancelled,
    ];

    /// The state of an open mark is that of one of its deliveries: the first in this list, which needs an operator most.
    pub const NOTABLE: [Self; 4] = [Self::Quarantined, Self::Held, Self::Parked, Self::InFlight];

    /// The next state of an open delivery of a mark that ended so on another controller. An acknowledged mark says
    /// nothing of a route that is not required, and does not say which step of a chain has it (`has_to`: neither of the
    /// two).
    pub fn at_the_end(how: Settlement, has_to: bool) -> Self {
        match how {
            Settlement::Acknowledged if has_to => Self::Acknowledged,
            Settlement::Dismissed => Self::Dismissed,
            Settlement::Acknowledged | Settlement::Cancelled | Settlement::Expired => Self::Cancelled,
        }
    }

    /// The state of an open mark, from the states of its deliveries, each with whether it waits for another step of its
    /// chain.
    pub fn of_open(is_held: bool, deliveries: impl IntoIterator<Item = (Self, bool)>) -> Self {
        let said = |(state, waits): (Self, bool)| if waits { Self::Pending } else { state };
        let states: Vec<Self> =
            deliveries.into_iter().map(said).chain(is_held.then_some(Self::Held)).collect();
        let first = Self::NOTABLE.into_iter().find(|state| states.contains(state));
        first.unwrap_or(Self::Pending)
    }

    /// The word in the journal and on every screen.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InFlight => "in-flight",
            Self::Acknowledged => "acknowledged",
            Self::Held => "held",
            Self::Parked => "parked",
            Self::Quarantined => "quarantined",
            Self::Dismissed => "dismissed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Reads the word of the journal.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Whether nothing more will be done for it.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Acknowledged | Self::Dismissed | Self::Cancelled)
    }

    /// Whether an attempt may start from here.
    pub fn may_be_sent(self) -> bool {
        matches!(self, Self::Pending | Self::Parked)
    }

    /// The closed transition table. A final state is never left: what was sent cannot be taken back. A test does
    /// everything that the journal can do to a delivery in each state and finds exactly these transitions
    /// (`crates/journal/src/tests/transitions.rs`).
    pub fn may_become(self, next: Self) -> bool {
        use State::{Acknowledged, Cancelled, Dismissed, Held, InFlight, Parked, Pending, Quarantined};
        match self {
            // A receiver that had only accepted it may refuse it later: that parks it.
            Pending | Parked => {
                matches!(next, InFlight | Held | Pending | Parked | Quarantined | Dismissed | Cancelled)
            }
            // Its row may be found damaged when its answer comes.
            InFlight => matches!(next, Acknowledged | Pending | Parked | Held | Quarantined | Dismissed),
            Held => matches!(next, Pending | Dismissed | Cancelled | Quarantined),
            Quarantined => matches!(next, Dismissed),
            Acknowledged | Dismissed | Cancelled => false,
        }
    }

    /// The second closed table: what an alerter on another controller did to a mark ends its delivery here too, also one
    /// in flight. Only an operator ends a damaged row.
    pub fn may_end_elsewhere(self, next: Self) -> bool {
        use State::{Acknowledged, Cancelled, Dismissed, Held, InFlight, Parked, Pending, Quarantined};
        match self {
            Pending | InFlight | Held | Parked => matches!(next, Acknowledged | Dismissed | Cancelled),
            Quarantined => matches!(next, Dismissed),
            Acknowledged | Dismissed | Cancelled => false,
        }
    }
}
