//! Which marks may not go now, and why. Pure: no I/O, no clock.

pub mod rules;

use marks::journal::MarkRow;
use marks::mark::Doubt;
use serde::Serialize;

/// Why a mark is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hold {
    /// Nobody knows under which name the host is told; a configured name ends it.
    NoFqdn,
    /// Somebody else than Pacemaker's fencer says that the host was fenced; Pacemaker's word or an operator ends it.
    Unconfirmed,
    /// Only the register says so; Pacemaker's word or an operator ends it.
    Unproven,
    /// It may have been told before a failover, and the host is back; an operator ends it.
    OutcomeUnknown,
}

impl Hold {
    /// The word on every screen.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoFqdn => "no-fqdn",
            Self::Unconfirmed => "unconfirmed",
            Self::Unproven => "unproven",
            Self::OutcomeUnknown => "outcome-unknown",
        }
    }
}

/// The holds of a mark; none means that it may go. A settled mark is held by nothing.
pub fn holds(mark: &MarkRow) -> Vec<Hold> {
    if mark.settled.is_some() {
        return Vec::new();
    }
    let nameless = mark.fqdn.is_none().then_some(Hold::NoFqdn);
    nameless.into_iter().chain(mark.standing.doubt().map(Hold::from)).collect()
}

impl From<Doubt> for Hold {
    fn from(doubt: Doubt) -> Self {
        match doubt {
            Doubt::Unconfirmed => Self::Unconfirmed,
            Doubt::Unproven => Self::Unproven,
            Doubt::OutcomeUnknown => Self::OutcomeUnknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use marks::host::HostName;
    use marks::id::FencingId;
    use marks::mark::{Proof, Settlement, Source, Standing};
    use marks::time::Timestamp;

    use super::*;

    #[test]
    fn a_mark_without_a_name_is_held_until_it_has_one_or_is_settled() {
        let now = Timestamp(0);
        let node = HostName::parse("compute1").unwrap();
        let id = FencingId::generate().into();
        let nameless = MarkRow {
            id,
            node: node.clone(),
            fqdn: None,
            on_shared_storage: true,
            failure_time: now,
            generated_time: now,
            settled: None,
            source: Source::Fencing,
            incarnation: None,
            standing: Standing::Proven(Proof::Alone),
            made_by: "ctl1".into(),
            made_at: now,
            returned_at: None,
        };
        assert_eq!(holds(&nameless), [Hold::NoFqdn]);
        assert!(holds(&MarkRow { fqdn: Some(node), ..nameless.clone() }).is_empty());
        assert!(holds(&MarkRow { settled: Some((Settlement::Dismissed, now)), ..nameless }).is_empty());
    }
}
