//! A fencing: one record that a host was fenced. It is written once, judges nothing, and is never changed.

use serde::Serialize;

use crate::host::HostName;
use crate::id::FencingId;
use crate::time::Timestamp;

/// Who asked for the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Pacemaker's fencer ran the agent.
    Fencer,
    /// The agent was run by hand or by a script.
    Shell,
    /// An operator gave the word with the command `mark` of the alerter.
    Operator,
    /// A client of the API said so over the network, which proves nothing.
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

    /// Whether it shows by itself, in the journal where it was written, that the host was fenced.
    pub fn is_proof(self) -> bool {
        matches!(self, Self::Fencer | Self::Operator)
    }
}

/// Which life of the host was ended by its fencing (design, section 6). Another one means that the host was back in between.
///
/// Of a remote node it is the last good connection: controller, call id and time of the newest successful start or monitor
/// of its remote resource. Of a cluster node it is the first operation of its own since it joined: itself, call id and time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Incarnation(String);

impl Incarnation {
    /// From the three facts in the CIB: controller, call id, time (epoch seconds).
    pub fn new(controller: &str, call_id: u32, seconds: i64) -> Self {
        Self(format!("{controller}/{call_id}/{seconds}"))
    }

    /// As the journal keeps it.
    pub fn from_journal(text: String) -> Self {
        Self(text)
    }

    /// The text to keep and to compare.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// When the connection was made, as far as the text says so.
    pub fn connected_at(&self) -> Option<Timestamp> {
        self.0.rsplit('/').next()?.parse().ok().map(Timestamp::from_seconds)
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
    /// The plug that the fencer passed (`pcmk_host_map`), where it was passed.
    pub plug: Option<HostName>,
    /// When the agent was asked: the event's `failure_time`.
    pub asked_at: Timestamp,
    /// When the record was committed: the event's `generated_time`.
    pub committed_at: Timestamp,
    /// The controller that saw it.
    pub seen_by: String,
    /// Who asked for it.
    pub origin: Origin,
    /// The host's last good connection, where the CIB could be read.
    pub incarnation: Option<Incarnation>,
    /// Whether it was fenced before and has not been back since, by `node_fenced` in the CIB; `None` where the CIB could not
    /// be read or does not say so.
    pub already_down: Option<bool>,
    /// `domain` as the agent was given it; counts only where `[hosts]` is silent.
    pub given_domain: Option<String>,
    /// The opposite of `no_shared_storage` as the agent was given it; counts only where `[hosts]` is silent.
    pub given_shared_storage: Option<bool>,
}
