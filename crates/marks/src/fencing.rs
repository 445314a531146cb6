//! A fencing: one record that a host was fenced. It is written once, judges nothing, and is never changed.

use serde::Serialize;

use crate::host::HostName;
use crate::id::FencingId;
use crate::time::Timestamp;

/// The origin of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Pacemaker's fencer ran the agent.
    Fencer,
    /// The agent was run by hand or by a script.
    Shell,
    /// An operator confirmed it with the alerter's command `mark`.
    Operator,
    /// A client of the API reported it over the network, which proves nothing.
    Api,
}

impl Origin {
    /// The word in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fencer => "fencer",
            Self::Shell => "shell",
            Self::Operator => "operator",
            Self::Api => "api",
        }
    }

    /// Reads the word of the journal.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Fencer, Self::Shell, Self::Operator, Self::Api]
            .into_iter()
            .find(|origin| origin.as_str() == word)
    }

    /// Whether it proves by itself that the host was fenced, in the journal where it was written.
    pub fn is_proof(self) -> bool {
        matches!(self, Self::Fencer | Self::Operator)
    }
}

/// Which incarnation of the host its fencing ended (design, section 6). Another one means that the host was back in
/// between.
///
/// For a remote node it is the last good connection: controller, call id and time of the newest successful start or
/// monitor of its remote resource. For a cluster node it is its own first operation since it joined: itself, call id and
/// time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Incarnation(String);

impl Incarnation {
    /// From the three facts in the CIB: controller, call id, time (epoch seconds).
    pub fn new(controller: &str, call_id: u32, seconds: i64) -> Self {
        Self(format!("{controller}/{call_id}/{seconds}"))
    }

    /// The stored text.
    pub fn from_journal(text: String) -> Self {
        Self(text)
    }

    /// The text to keep and to compare.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// When the connection was made, if the text says so.
    pub fn connected_at(&self) -> Option<Timestamp> {
        self.0.rsplit('/').next()?.parse().ok().map(Timestamp::from_seconds)
    }

    /// The controller that made it.
    pub fn controller(&self) -> Option<&str> {
        self.0.split('/').next()
    }

    /// Whether the same controller noted it before the other one, whatever was done to its clock: its call ids ascend until it starts
    /// again.
    pub fn is_before(&self, other: &Self) -> bool {
        let placed = |of: &Self| Some((of.0.split('/').nth(1)?.parse::<u32>().ok()?, of.connected_at()?));
        let (Some((call, at)), Some((its_call, its_at))) = (placed(self), placed(other)) else {
            return false;
        };
        self.controller() == other.controller() && call < its_call && at <= its_at
    }
}

/// One record that a host was fenced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fencing {
    /// Its own id.
    pub id: FencingId,
    /// The host's Pacemaker node name.
    #[serde(rename = "host")]
    pub node: HostName,
    /// The plug that the fencer passed (`pcmk_host_map`), if any.
    pub plug: Option<HostName>,
    /// When the agent was asked: the event's `failure_time`.
    pub asked_at: Timestamp,
    /// When the record was committed: the event's `generated_time`.
    pub committed_at: Timestamp,
    /// The controller that saw it.
    pub seen_by: String,
    /// Its origin.
    pub origin: Origin,
    /// The host's last good connection, if the CIB could be read.
    pub incarnation: Option<Incarnation>,
    /// Whether it was fenced before and has not been back since, by `node_fenced` in the CIB; `None` if the CIB could not
    /// be read or does not say so.
    pub already_down: Option<bool>,
    /// The agent's option `domain`; it counts only if `[hosts]` sets none.
    pub given_domain: Option<String>,
    /// The agent's option: the opposite of `no_shared_storage`; it counts only if `[hosts]` sets none.
    pub given_shared_storage: Option<bool>,
    /// What its health check said, where that had failed: it explains, and decides nothing.
    pub cause: Option<String>,
}

impl Fencing {
    /// The cause, to be put behind a sentence.
    pub fn because(&self) -> String {
        self.cause
            .as_ref()
            .map_or_else(String::new, |cause| format!("; its health check had failed: {cause}"))
    }
}
