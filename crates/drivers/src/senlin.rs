//! The `senlin` driver: nodes or clusters that lived on a failed host are recovered.

mod answer;
mod body;
mod keys;

use std::sync::Arc;
use std::time::Duration;

use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use reqwest::Method;
use serde_json::Value;
use site::Section;

use crate::driver::{About, Driver, Failure, Kind, Message, Outcome, holds, usable};
use crate::kept::Unusable;
pub use crate::openstack::ByHost;
use crate::openstack::{CLUSTERING, Exchange, Own, Place, Route, Session, is_uuid};
use crate::web::Ask;
pub use crate::which::{HostNames, WhichName};
use answer::Seen;
use body::{NODE, Stored, Whose};
pub use body::{Operation, Recovery};
pub use keys::{Options, Targets};

/// The driver in the registry.
pub const KIND: Kind = Kind { word: "senlin", configure };

/// After this time Senlin or a person may have recovered the host's nodes in another way.
const STALE: Duration = Duration::from_secs(86_400);

/// How an operator undoes what Senlin does.
const UNDO: &str =
    "Senlin may recover what ran there, which cannot be undone: see `openstack cluster action list`";

/// One `senlin` route.
pub type Senlin = Route<Options>;

impl Senlin {
    /// Reads the cloud's files and makes its client.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn new(own: Options) -> Result<Self, Unusable> {
        let session = Session::new(own.cloud.clone(), CLUSTERING)?;
        let about = About {
            names: Some(own.host_name.clone()),
            undo: Some(UNDO.to_owned()),
            // A node that is well again would be recovered once more, and lose its data.
            terms: holds(Some(STALE)),
            ..session.about(KIND.word)
        };
        Ok(Self { session, about, own })
    }
}

impl Own for Options {
    fn body(&self, mark: &Mark, _earlier: &[Timestamp]) -> Vec<u8> {
        body::of_mark(mark, &self.host_name.of(mark), &self.recovery)
    }

    fn test_body(&self, _id: &MarkId, now: Timestamp) -> Vec<u8> {
        body::of_test(now)
    }

    async fn exchange(&self, exchange: Exchange<'_>, message: Message<'_>) -> Result<Outcome, Outcome> {
        let stored = Stored::read(message.body).ok_or_else(|| Outcome::Rejected(Failure::of_others()))?;
        let (whose, all) = self.targets.all();
        let work = Work { exchange, whose, stored: &stored };
        Ok(answer::acknowledged(&work.recover_all(&all.of(stored.node().as_ref())).await?))
    }
}

/// One message, and the kind of its targets.
struct Work<'a> {
    exchange: Exchange<'a>,
    whose: Whose,
    stored: &'a Stored,
}

impl Work<'_> {
    /// One after the other: if this is cut off, the next attempt finds the actions that were begun. If one of the targets
    /// does not exist, none is begun.
    async fn recover_all(&self, targets: &[&String]) -> Result<Vec<String>, Outcome> {
        let mut wishes = Vec::new();
        for id in targets {
            wishes.push((id, self.state_of(id).await?));
        }
        if wishes.iter().any(|(_, seen)| *seen == Seen::Elsewhere) {
            self.exchange.is_known(&self.stored.host).await?;
        }
        let mut actions = Vec::new();
        for (id, seen) in wishes.into_iter().filter(|_| !self.stored.is_test()) {
            actions.extend(match seen {
                Seen::Begun(action) => Some(action),
                Seen::Idle => Some(match self.recover(id).await {
                    // What was begun stays begun, whatever happened to the next one.
                    Err(outcome) if !actions.is_empty() => return Err(outcome.left_open()),
                    answer => answer?,
                }),
                Seen::Elsewhere => None,
            });
        }
        Ok(actions)
    }

    /// A repetition would recover a node twice and lose what the first recovery made: so a recovery is searched for
    /// first.
    async fn state_of(&self, id: &str) -> Result<Seen, Outcome> {
        let Self { exchange, whose, stored } = self;
        let path = format!("/{}/{id}", whose.path);
        let there = exchange.get(&Ask::get(&path, &[]), whose.key).await?;
        let there = there.ok_or_else(|| answer::no_such(*whose, id))?;
        let query = [("target", id), ("action", whose.action)];
        let actions = exchange.get(&Ask::get("/actions", &query), "actions").await?;
        match answer::seen(stored, &there, &actions.unwrap_or_default())? {
            Seen::Idle if *whose == NODE && !stored.is_test() => self.idle(id, &there).await,
            seen => Ok(seen),
        }
    }

    /// The configuration names a node's host, which is true until its server moves: recovering a node that is well
    /// elsewhere would destroy it. In a cluster Senlin recovers no active node.
    async fn idle(&self, id: &str, node: &Value) -> Result<Seen, Outcome> {
        let server =
            node["physical_id"].as_str().filter(|id| is_uuid(id)).ok_or_else(|| answer::no_server(id))?;
        match self.exchange.place_of(server, &self.stored.host).await? {
            Place::There => Ok(Seen::Idle),
            Place::Elsewhere => Ok(Seen::Elsewhere),
            Place::Unknown => Err(answer::no_server(id)),
        }
    }

    async fn recover(&self, id: &str) -> Result<String, Outcome> {
        let (path, body) = (format!("/{}/{id}/actions", self.whose.path), self.stored.request());
        let ask = Ask::write(&Method::POST, &path, &body).in_version(self.stored.version.as_deref());
        answer::begun(self.whose, id, &self.exchange.send(&ask).await?)
    }
}

/// Reads `[senlin.NAME]`.
fn configure(table: &mut Section<'_, '_>) -> Option<Arc<dyn Driver>> {
    let options = keys::read(table)?;
    usable(table, Senlin::new(options))
}
