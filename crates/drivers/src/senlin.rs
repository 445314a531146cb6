//! The `senlin` driver: nodes or clusters that lived on a failed host are recovered.

mod answer;
mod body;
mod keys;

use std::sync::Arc;
use std::time::Duration;

use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::Mark;
use marks::terms::{IfReturned, Terms};
use marks::time::Timestamp;
use reqwest::Method;
use serde_json::Value;
use site::Section;
use tokio::time::Instant;

use crate::driver::{Check, Driver, Failure, Kind, Message, Named, Outcome, Request, usable};
use crate::kept::Unusable;
pub use crate::openstack::ByHost;
use crate::openstack::{
    self, Ask, CLUSTERING, Place, Session, ask_for, is_known, is_uuid, of_session, place_of,
};
pub use crate::which::{HostNames, WhichName};
use answer::Seen;
pub use body::{Operation, Recovery};
use body::{Stored, Whose};
pub use keys::{Options, Targets};

/// The driver in the registry.
pub const KIND: Kind = Kind { word: "senlin", configure };

static RECOVER: Request = Request { method: Method::POST, path: "/{nodes,clusters}/ID/actions" };

/// After this time Senlin or a person may have recovered the host's nodes in another way.
const STALE: Duration = Duration::from_secs(86_400);

/// One `senlin` route.
pub struct Senlin {
    session: Session,
    options: Options,
}

impl Senlin {
    /// Reads the cloud's files and makes its client.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn new(options: Options) -> Result<Self, Unusable> {
        Ok(Self { session: Session::new(options.cloud.clone())?.mainly(CLUSTERING), options })
    }

    async fn exchange(&self, message: Message<'_>) -> Outcome {
        let end = Instant::now() + self.session.limit();
        let Some(stored) = Stored::read(message.body) else { return Outcome::Rejected(Failure::of_others()) };
        match self.recover_all(&stored, end).await {
            Ok(actions) => answer::acknowledged(&actions),
            Err(outcome) => outcome,
        }
    }

    /// One after the other: if this is cut off, the next attempt finds the actions that were begun. If one of the targets
    /// does not exist, none is begun.
    async fn recover_all(&self, stored: &Stored, end: Instant) -> Result<Vec<String>, Outcome> {
        let (whose, all) = self.options.targets.all();
        let targets = all.of(stored.node.as_ref());
        let mut wishes = Vec::new();
        for id in targets {
            wishes.push((id, self.state_of(whose, id, stored, end).await?));
        }
        if wishes.iter().any(|(_, seen)| *seen == Seen::Elsewhere) {
            is_known(&self.session, &stored.host, end).await?;
        }
        let mut actions = Vec::new();
        for (id, seen) in wishes.into_iter().filter(|_| !stored.is_test()) {
            actions.extend(match seen {
                Seen::Begun(action) => Some(action),
                Seen::Idle => Some(match self.recover(whose, id, stored, end).await {
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
    async fn state_of(&self, whose: Whose, id: &str, stored: &Stored, end: Instant) -> Result<Seen, Outcome> {
        let path = format!("/{}/{id}", whose.path());
        let there = ask_for(&self.session, &CLUSTERING, (&path, &[]), whose.key(), end).await?;
        let there = there.ok_or_else(|| answer::no_such(whose, id))?;
        let query = [("target", id), ("action", whose.action())];
        let actions = ask_for(&self.session, &CLUSTERING, ("/actions", &query), "actions", end).await?;
        match answer::seen(stored, &there, &actions.unwrap_or_default())? {
            Seen::Idle if whose == Whose::Node && !stored.is_test() => {
                self.idle(id, &there, stored, end).await
            }
            seen => Ok(seen),
        }
    }

    /// The configuration names a node's host, which is true until its server moves: recovering a node that is well
    /// elsewhere would destroy it. In a cluster Senlin recovers no active node.
    async fn idle(&self, id: &str, node: &Value, stored: &Stored, end: Instant) -> Result<Seen, Outcome> {
        let server =
            node["physical_id"].as_str().filter(|id| is_uuid(id)).ok_or_else(|| answer::no_server(id))?;
        match place_of(&self.session, server, &stored.host, end).await? {
            Place::There => Ok(Seen::Idle),
            Place::Elsewhere => Ok(Seen::Elsewhere),
            Place::Unknown => Err(answer::no_server(id)),
        }
    }

    async fn recover(
        &self,
        whose: Whose,
        id: &str,
        stored: &Stored,
        end: Instant,
    ) -> Result<String, Outcome> {
        let (path, body) = (format!("/{}/{id}/actions", whose.path()), stored.request());
        let ask = Ask::write(&RECOVER, &path, &body).in_version(stored.version.as_deref());
        let answer = self.session.send(&CLUSTERING, &ask, end).await?;
        answer::begun(whose, id, &answer)
    }
}

impl Driver for Senlin {
    of_session!("Senlin");

    fn name_there(&self, host: &Named) -> Option<(HostName, String)> {
        self.options.host_name.there(host)
    }

    fn undo(&self, host: &Named) -> Option<String> {
        let _all_of_them = host;
        Some(
            "Senlin may recover what ran there, which cannot be undone: see `openstack cluster action list`"
                .to_owned(),
        )
    }

    /// A node that is well again would be recovered once more, and lose its data.
    fn terms(&self) -> Terms {
        Terms { if_returned: IfReturned::Hold, stale_after: Some(STALE), ..Terms::default() }
    }

    fn body(&self, mark: &Mark) -> Vec<u8> {
        body::of_mark(mark, &self.options.host_name.of(mark), &self.options.recovery)
    }

    fn test_body(&self, _id: &MarkId, now: Timestamp) -> Vec<u8> {
        body::of_test(now)
    }

    fn check<'a>(&'a self, hosts: &'a [Named]) -> Check<'a> {
        let _asked_for_none = hosts;
        Box::pin(async { Some(openstack::try_out(self, &self.session, &CLUSTERING).await) })
    }
}

/// Reads `[senlin.NAME]`.
fn configure(table: &mut Section<'_, '_>) -> Option<Arc<dyn Driver>> {
    let options = keys::read(table)?;
    usable(table, Senlin::new(options))
}
