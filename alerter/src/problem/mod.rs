//! What is wrong: one typed list, made by pure functions from what is seen. `status`, the page, `/health` and the metrics
//! only render it.
//!
//! A new problem is one entry in `kind.rs`, and one line in `seen.rs`, or in `mark.rs`, that says when it holds.

mod account;
mod kind;
mod mark;
mod route;
mod seen;

pub use account::of as unaccounted;
pub use account::{of_marks, reasons_of_marks};
pub use kind::{Kind, Part};
pub use mark::{damaged, gone, holds, stage, with_marks};
pub use route::{RouteSight, Waiting, of_former};
pub use seen::{Cluster, NotInForce, Sight, of_cluster, problems};

use std::time::Duration;

use marks::time::Timestamp;
use serde::{Deserialize, Serialize};

/// How bad it is. The order is that of the exit codes of Nagios plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Nothing to do.
    Ok,
    /// Somebody should check it.
    Warning,
    /// A fenced host is not reported, or the next one would not be.
    Critical,
}

impl Level {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// How long a problem may last before it is worse.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A warning.
    pub warning: Duration,
    /// Critical.
    pub critical: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { warning: Duration::from_secs(300), critical: Duration::from_secs(900) }
    }
}

/// Where an operator has to go on this controller.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The configuration file.
    pub file: String,
    /// The directory of the journal.
    pub directory: String,
    /// How the alerter's log is read.
    pub log: &'static str,
}

impl Place {
    /// The journal's directory as it can be typed.
    pub fn typeable_directory(&self) -> String {
        setup::shell(&self.directory)
    }
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// How bad it is; [`Self::level_at`] has what its age adds.
    pub level: Level,
    /// What it is.
    pub kind: Kind,
    /// The hosts that it is about; none where it is about none in particular.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// The route that it is about.
    #[serde(default)]
    pub route: Option<String>,
    /// Since when it holds, where that is known.
    #[serde(default)]
    pub since: Option<Timestamp>,
    /// When it ends by itself, where that is known.
    #[serde(default)]
    pub until: Option<Timestamp>,
    /// What it is, one sentence.
    pub what: String,
    /// What to do, and what to type.
    pub then: String,
    /// Distinguishes it from others of its kind; stays the same while the problem lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The machine word of a route's newest failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Whether the daemon calls itself degraded for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub degrades: bool,
    /// Whether it is critical once it has lasted for as long as [`Limits::critical`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub grows: bool,
    /// When it is old enough to be shown; absent where that is at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub news_at: Option<Timestamp>,
}

impl Problem {
    /// One of this kind, with what its entry says of it.
    pub fn of(kind: Kind, what: String) -> Self {
        let entry = kind.entry();
        Self {
            level: entry.level,
            kind,
            hosts: Vec::new(),
            route: None,
            since: None,
            until: None,
            what,
            then: entry.then.to_owned(),
            subject: None,
            failure: None,
            degrades: entry.degrades,
            grows: false,
            news_at: None,
        }
    }

    /// How bad it is by now.
    pub fn level_at(&self, now: Timestamp, limits: Limits) -> Level {
        let is_old = self.since.is_some_and(|since| now.since(since) >= limits.critical);
        if self.grows && is_old { Level::Critical } else { self.level }
    }

    /// How long until it is news; nothing where it is.
    pub fn not_yet_news(&self, now: Timestamp) -> Option<Duration> {
        self.news_at.filter(|at| now < *at).map(|at| at.since(now))
    }

    /// Whether a person who asks is shown it: what ends by itself within moments is a problem only where it does not.
    pub fn is_shown(&self, now: Timestamp, limits: Limits) -> bool {
        let is_young = self.since.is_none_or(|since| now.since(since) < limits.warning);
        let passes = matches!(self.kind, Kind::Held(hold) if hold.passes());
        !(passes && is_young) && self.not_yet_news(now).is_none()
    }

    /// Its word for machines: the failure of the route, else the kind.
    pub fn word(&self) -> &str {
        self.failure.as_deref().unwrap_or_else(|| self.kind.as_str())
    }

    /// What it is and what to do, in one sentence.
    pub fn sentence(&self) -> String {
        let Self { what, then, .. } = self;
        if then.is_empty() { what.clone() } else { format!("{what}; {then}") }
    }

    /// The same for `/health`, which anybody may read: no paths, no output of tools and endpoints.
    pub fn in_public(&self) -> Option<(Part, String)> {
        let (part, says) = self.kind.entry().health?;
        let route = self.route.as_deref().unwrap_or_default();
        let failure = self.failure.as_deref().unwrap_or_default();
        Some((part, says.replace("ROUTE", route).replace("FAILURE", failure)))
    }
}
