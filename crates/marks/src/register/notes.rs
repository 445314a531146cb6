//! The alerter's entries in the register beside fencings: marks, their ends, and operators' decisions.

use std::fmt;
use std::time::Duration;

use crate::fencing::Incarnation;
use crate::host::HostName;
use crate::id::{MarkId, NoteId, OperationId};
use crate::mark::{Doubt, Mark, MarkRow, Settlement, Source, Standing};
use crate::time::Timestamp;

/// `m.<mark>`: a mark, with everything that is sent of it and what another alerter needs to recognise its outage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkEntry {
    /// What is sent.
    pub mark: Mark,
    /// Its origin.
    pub source: Source,
    /// The connection that ended with the outage, if known.
    pub incarnation: Option<Incarnation>,
    /// The controller whose alerter made it.
    pub made_by: String,
    /// When.
    pub made_at: Timestamp,
}

impl MarkEntry {
    /// The register's entry of a mark, once it lacks nothing.
    pub fn of_row(row: &MarkRow) -> Option<Self> {
        Some(Self {
            mark: row.to_mark()?,
            source: row.source,
            incarnation: row.incarnation.clone(),
            made_by: row.made_by.clone(),
            made_at: row.made_at,
        })
    }

    /// The open mark that it reports: unproven so far.
    pub fn row(&self) -> MarkRow {
        let mark = &self.mark;
        MarkRow {
            id: mark.id,
            node: mark.node.clone(),
            fqdn: Some(mark.fqdn.clone()),
            on_shared_storage: Some(mark.on_shared_storage),
            failure_time: mark.failure_time,
            generated_time: mark.generated_time,
            settled: None,
            source: self.source,
            incarnation: self.incarnation.clone(),
            standing: Standing::Doubtful(Doubt::Unproven),
            made_by: self.made_by.clone(),
            made_at: self.made_at,
            returned_at: None,
            return_known_at: None,
        }
    }
}

/// `a.<mark>.<route>`: the recovery controller of a route took the mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The mark.
    pub mark: MarkId,
    /// The route's name.
    pub route: String,
    /// When.
    pub at: Timestamp,
    /// The controller whose alerter had sent it.
    pub by: String,
}

/// `s.<mark>`: a mark has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The mark.
    pub mark: MarkId,
    /// How.
    pub how: Settlement,
    /// When.
    pub at: Timestamp,
    /// The controller whose alerter settled it.
    pub by: String,
}

/// `r.<mark>`: the host of a mark was seen to be back, so that every alerter counts its next fencing as another outage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    /// The mark.
    pub mark: MarkId,
    /// When it came back.
    pub at: Timestamp,
    /// The controller whose alerter saw it.
    pub by: String,
}

/// `o.<operation>`: to which outage an operation of Pacemaker, or `node_fenced`, belongs. Each controller dates its alert by its own clock,
/// and the DC `node_fenced`, so nobody can tell who was not there when it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The fencer's id of it, or [`OperationId::of_node_fenced`].
    pub id: OperationId,
    /// The mark of that outage.
    pub mark: MarkId,
    /// When it ended, by the clock of `by`.
    pub at: Timestamp,
    /// The controller whose alerter saw it.
    pub by: String,
}

/// `p.<id>`: an operator's decision; it applies on every controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Its own id.
    pub id: NoteId,
    /// What was decided, and for what.
    pub about: About,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// Why, in the operator's words.
    pub reason: String,
}

/// `p.<id>.end`: an operator has ended a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The decision's id.
    pub id: NoteId,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// Why, in the operator's words.
    pub reason: String,
}

/// What an operator can decide for the whole cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// A held mark may be sent.
    Release(MarkId),
    /// The marks of a group that are held now may be sent.
    ReleaseGroup(String),
    /// Nothing of it is sent until an operator ends this, or until that time.
    Pause {
        /// All groups, or one.
        scope: Scope,
        /// When it ends by itself.
        until: Option<Timestamp>,
    },
    /// It is worked on, and nothing of it is sent meanwhile.
    Maintenance {
        /// A group, or one host.
        scope: Scope,
        /// When it ends by itself, even if no operator ends it.
        until: Timestamp,
    },
}

/// What a decision applies to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Every host.
    All,
    /// The hosts of a group.
    Group(String),
    /// One host, by its node name.
    Host(HostName),
}

const RELEASE: &str = "release";
const RELEASE_GROUP: &str = "release-group";
const PAUSE: &str = "pause";
const MAINTENANCE: &str = "maintenance";

impl About {
    /// The word in the register.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Release(_) => RELEASE,
            Self::ReleaseGroup(_) => RELEASE_GROUP,
            Self::Pause { .. } => PAUSE,
            Self::Maintenance { .. } => MAINTENANCE,
        }
    }

    /// Whether that word is followed by a mark.
    pub fn is_of_a_mark(kind: &str) -> bool {
        kind == RELEASE
    }

    /// The meaning of a word with its subject; `None` for what no operator can decide.
    pub fn of_scope(kind: &str, scope: Scope, until: Option<Timestamp>) -> Option<Self> {
        match (kind, scope, until) {
            (RELEASE_GROUP, Scope::Group(name), None) => Some(Self::ReleaseGroup(name)),
            (PAUSE, scope @ (Scope::All | Scope::Group(_)), until) => Some(Self::Pause { scope, until }),
            (MAINTENANCE, scope @ (Scope::Group(_) | Scope::Host(_)), Some(until)) => {
                Some(Self::Maintenance { scope, until })
            }
            _ => None,
        }
    }

    /// The mark, if it concerns one.
    pub fn mark(&self) -> Option<MarkId> {
        match self {
            Self::Release(mark) => Some(*mark),
            Self::ReleaseGroup(_) | Self::Pause { .. } | Self::Maintenance { .. } => None,
        }
    }

    /// Its scope, if it concerns more than one mark.
    pub fn scope(&self) -> Option<Scope> {
        match self {
            Self::Release(_) => None,
            Self::ReleaseGroup(name) => Some(Scope::Group(name.clone())),
            Self::Pause { scope, .. } | Self::Maintenance { scope, .. } => Some(scope.clone()),
        }
    }

    /// When it ends by itself, if it does.
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Release(_) | Self::ReleaseGroup(_) => None,
            Self::Pause { until, .. } => *until,
            Self::Maintenance { until, .. } => Some(*until),
        }
    }

    /// Whether it holds marks until it ends.
    pub fn holds(&self) -> bool {
        matches!(self, Self::Pause { .. } | Self::Maintenance { .. })
    }
}

impl Decision {
    /// For how long it was made, if it ends by itself.
    pub fn lasts(&self) -> Option<Duration> {
        self.about.until().map(|until| until.since(self.at))
    }

    /// When it ends: by itself, or when an operator ended it. The release of a mark ends only with its mark.
    pub fn over_at(&self, ended: Option<Timestamp>) -> Option<Timestamp> {
        let own = match &self.about {
            About::ReleaseGroup(_) => Some(self.at),
            other => other.until(),
        };
        own.into_iter().chain(ended).min()
    }
}

/// What holds a mark, for texts that say how the hold ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// Its scope: the group of a storm, or the scope of an operator's decision.
    pub scope: Option<Scope>,
    /// The operator's decision.
    pub decision: Option<NoteId>,
}

impl Scope {
    /// Its word and its name, as stored.
    pub fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::All => ("all", ""),
            Self::Group(name) => ("group", name),
            Self::Host(name) => ("host", name.as_str()),
        }
    }

    /// Both in one text.
    pub fn text(&self) -> String {
        let (word, name) = self.parts();
        format!("{word}:{name}")
    }

    /// Reads that text.
    pub fn of_text(text: &str) -> Option<Self> {
        let (word, name) = text.split_once(':')?;
        Self::of_parts(word, name)
    }

    /// Reads word and name.
    pub fn of_parts(word: &str, name: &str) -> Option<Self> {
        match word {
            "all" if name.is_empty() => Some(Self::All),
            "group" if !name.is_empty() => Some(Self::Group(name.to_owned())),
            "host" => HostName::parse(name).ok().map(Self::Host),
            _ => None,
        }
    }

    /// The host, if it is one.
    pub fn host(&self) -> Option<&HostName> {
        match self {
            Self::Host(host) => Some(host),
            Self::All | Self::Group(_) => None,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all groups"),
            Self::Group(name) => write!(f, "group {name}"),
            Self::Host(name) => write!(f, "host {name}"),
        }
    }
}

/// `w.<id>`: when the alerter first ran in this cluster; older events in Pacemaker's history are not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watermark {
    /// Its own id.
    pub id: NoteId,
    /// When.
    pub at: Timestamp,
    /// The controller.
    pub by: String,
}
