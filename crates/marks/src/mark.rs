//! A mark: one per outage of a host, with its origin and its proof.

use serde::{Serialize, Serializer};

use crate::fencing::Incarnation;
use crate::host::HostName;
use crate::id::MarkId;
use crate::time::Timestamp;

/// What is sent of one outage. Intake sets all of it once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// The id of its first fencing.
    pub id: MarkId,
    /// The host's Pacemaker node name.
    pub node: HostName,
    /// The name that is sent.
    pub fqdn: HostName,
    /// Whether the host's instances are backed by shared storage.
    pub on_shared_storage: bool,
    /// When the fence agent was asked.
    pub failure_time: Timestamp,
    /// When the first fencing was committed.
    pub generated_time: Timestamp,
}

/// How a mark ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Settlement {
    /// Every required delivery was acknowledged.
    Acknowledged,
    /// An operator ended it.
    Dismissed,
    /// A configured rule ended it.
    Cancelled,
    /// Its outage is the mark of another alerter.
    Expired,
}

impl Settlement {
    const ALL: [Self; 4] = [Self::Acknowledged, Self::Dismissed, Self::Cancelled, Self::Expired];

    /// The word in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Acknowledged => "acknowledged",
            Self::Dismissed => "dismissed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }

    /// Reads the word of the journal.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|how| how.as_str() == word)
    }
}

/// The origin of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A record of `fence_mark`, or an operator's confirmation.
    Fencing,
    /// Pacemaker's alert about a fencing.
    Alert,
    /// Pacemaker's fencing history.
    History,
    /// `node_fenced` in the CIB.
    NodeFenced,
}

impl Source {
    const ALL: [Self; 4] = [Self::Fencing, Self::Alert, Self::History, Self::NodeFenced];

    /// The word in the journal and the register.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fencing => "fencing",
            Self::Alert => "alert",
            Self::History => "history",
            Self::NodeFenced => "node-fenced",
        }
    }

    /// Reads that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.as_str() == word)
    }
}

/// Whether a mark is trusted (design, section 6, proof).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is trusted.
    Proven(Proof),
    /// It is held until a proof comes.
    Doubtful(Doubt),
}

/// The proof of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// There is no cluster: `register = "none"`.
    Alone,
    /// Pacemaker's fencer ran `fence_mark` on this controller.
    Journal,
    /// Pacemaker's alert.
    Alert,
    /// Pacemaker's fencing history.
    History,
    /// `node_fenced` in the CIB.
    NodeFenced,
    /// An operator.
    Operator,
}

/// Why it has no proof; the name of its hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Something other than the fencer reported it, or somebody confirmed a host that the cluster has as a member.
    Unconfirmed,
    /// Only the register has it, which every member of `haclient` can write.
    Unproven,
    /// Found without any trace in the register: it may have been sent before.
    OutcomeUnknown,
    /// Fenced once more, without a sign that the host was back in between: long after the mark of its outage had ended,
    /// or so soon after an outage with an unknown connection that clocks cannot distinguish the two.
    FencedAgain,
}

impl Standing {
    const ALL: [Self; 10] = [
        Self::Proven(Proof::Alone),
        Self::Proven(Proof::Journal),
        Self::Proven(Proof::Alert),
        Self::Proven(Proof::History),
        Self::Proven(Proof::NodeFenced),
        Self::Proven(Proof::Operator),
        Self::Doubtful(Doubt::Unconfirmed),
        Self::Doubtful(Doubt::Unproven),
        Self::Doubtful(Doubt::OutcomeUnknown),
        Self::Doubtful(Doubt::FencedAgain),
    ];

    /// The word in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Proven(Proof::Alone) => "alone",
            Self::Proven(Proof::Journal) => "journal",
            Self::Proven(Proof::Alert) => "alert",
            Self::Proven(Proof::History) => "history",
            Self::Proven(Proof::NodeFenced) => "node-fenced",
            Self::Proven(Proof::Operator) => "operator",
            Self::Doubtful(Doubt::Unconfirmed) => "unconfirmed",
            Self::Doubtful(Doubt::Unproven) => "unproven",
            Self::Doubtful(Doubt::OutcomeUnknown) => "outcome-unknown",
            Self::Doubtful(Doubt::FencedAgain) => "fenced-again",
        }
    }

    /// Reads the word of the journal.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|standing| standing.as_str() == word)
    }

    /// The doubt, if any.
    pub fn doubt(self) -> Option<Doubt> {
        match self {
            Self::Doubtful(doubt) => Some(doubt),
            Self::Proven(_) => None,
        }
    }
}

/// What a mark lacks before it can be sent. Nobody guesses it: the mark is held, under this word, until the configuration says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// The name that is sent.
    Fqdn,
    /// Whether its instances are on shared storage.
    Storage,
}

impl Lack {
    /// Every one.
    pub const ALL: [Self; 2] = [Self::Fqdn, Self::Storage];

    /// The word of its hold.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fqdn => "no-fqdn",
            Self::Storage => "no-storage",
        }
    }

    /// Until when the mark is held.
    pub fn ends_when(self) -> &'static str {
        match self {
            Self::Fqdn => "its full name is known",
            Self::Storage => "it is known whether its instances are on shared storage",
        }
    }

    /// What says it.
    pub fn setting(self) -> &'static str {
        match self {
            Self::Fqdn => "[hosts] domain, or the host's full name in [hosts.names]",
            Self::Storage => "on-shared-storage in [hosts], or in the host's [groups.NAME]",
        }
    }
}

/// A mark in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MarkRow {
    /// The id of its first fencing, or of the sighting that made it.
    pub id: MarkId,
    /// The host's Pacemaker node name.
    #[serde(rename = "host")]
    pub node: HostName,
    /// The name that is sent; `None` while the mark is held as `no-fqdn`.
    pub fqdn: Option<HostName>,
    /// Whether the host's instances are backed by shared storage; `None` while the mark is held as `no-storage`.
    pub on_shared_storage: Option<bool>,
    /// When the fence agent was asked.
    pub failure_time: Timestamp,
    /// When the first fencing was committed.
    pub generated_time: Timestamp,
    /// How and when it ended; in JSON `state` says how.
    #[serde(rename = "settled_at", serialize_with = "as_time")]
    pub settled: Option<(Settlement, Timestamp)>,
    /// Its origin.
    pub source: Source,
    /// The connection that ended with the outage, if known.
    pub incarnation: Option<Incarnation>,
    /// Whether it is trusted.
    #[serde(serialize_with = "as_word")]
    pub standing: Standing,
    /// The controller whose alerter made it.
    pub made_by: String,
    /// When.
    pub made_at: Timestamp,
    /// When its host was seen to be back, by the clock of whoever saw it.
    pub returned_at: Option<Timestamp>,
    /// When this controller learned that, by its own clock, and after every release before it.
    #[serde(skip)]
    pub return_known_at: Option<Timestamp>,
}

#[expect(clippy::ref_option, reason = "serde passes a reference")]
fn as_time<S: Serializer>(
    settled: &Option<(Settlement, Timestamp)>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    settled.map(|(_, at)| at).serialize(serializer)
}

fn as_word<S: Serializer>(standing: &Standing, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(standing.as_str())
}

impl MarkRow {
    /// Whether it still needs a proof: only then it may be sent, or what follows its acknowledgement.
    pub fn wants_proof(&self) -> bool {
        let is_over = self.settled.is_some_and(|(how, _)| how != Settlement::Acknowledged);
        self.standing.doubt().is_some() && !is_over
    }

    /// What it lacks before it can be sent.
    pub fn lacks(&self) -> impl Iterator<Item = Lack> + use<> {
        let (named, said) = (self.fqdn.is_some(), self.on_shared_storage.is_some());
        Lack::ALL.into_iter().filter(move |lack| match lack {
            Lack::Fqdn => !named,
            Lack::Storage => !said,
        })
    }

    /// The mark that is sent, once it lacks nothing.
    pub fn to_mark(&self) -> Option<Mark> {
        Some(Mark {
            id: self.id,
            node: self.node.clone(),
            fqdn: self.fqdn.clone()?,
            on_shared_storage: self.on_shared_storage?,
            failure_time: self.failure_time,
            generated_time: self.generated_time,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn row() -> MarkRow {
        let (node, at) = (HostName::parse("compute1").unwrap(), Timestamp(1_000_000));
        MarkRow {
            id: crate::id::FencingId::generate().into(),
            fqdn: Some(node.clone()),
            node,
            on_shared_storage: Some(true),
            failure_time: at,
            generated_time: at,
            settled: None,
            source: Source::Fencing,
            incarnation: None,
            standing: Standing::Proven(Proof::Alone),
            made_by: "ctl1".into(),
            made_at: at,
            returned_at: None,
            return_known_at: None,
        }
    }

    /// An acknowledged mark needs one too: its further steps wait for it.
    #[test]
    fn a_doubtful_mark_wants_a_proof_unless_it_ended_unsent() {
        let (doubtful, proven) = (Standing::Doubtful(Doubt::Unproven), Standing::Proven(Proof::Alert));
        assert_eq!((doubtful.doubt(), proven.doubt()), (Some(Doubt::Unproven), None));
        for (standing, how, wants) in [
            (doubtful, None, true),
            (doubtful, Some(Settlement::Acknowledged), true),
            (doubtful, Some(Settlement::Dismissed), false),
            (proven, None, false),
            (proven, Some(Settlement::Acknowledged), false),
        ] {
            let settled = how.map(|how| (how, Timestamp(0)));
            assert_eq!(MarkRow { standing, settled, ..row() }.wants_proof(), wants, "{standing:?} {how:?}");
        }
    }

    #[test]
    fn a_mark_is_sent_once_it_lacks_nothing() {
        assert_eq!(row().to_mark().map(|mark| mark.fqdn), row().fqdn);
        let (nameless, unsaid) =
            (MarkRow { fqdn: None, ..row() }, MarkRow { on_shared_storage: None, ..row() });
        let both = MarkRow { fqdn: None, ..unsaid.clone() };
        for (row, lacks) in [(nameless, &[Lack::Fqdn][..]), (unsaid, &[Lack::Storage]), (both, &Lack::ALL)] {
            assert_eq!((row.to_mark(), row.lacks().collect::<Vec<_>>().as_slice()), (None, lacks));
        }
        assert_eq!(row().lacks().count(), 0);
    }
}
