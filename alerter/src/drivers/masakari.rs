//! The `masakari` driver: a notification of a failed compute host.

mod answer;
mod body;
mod lookup;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use marks::id::MarkId;
use marks::mark::Mark;
use marks::terms::{IfReturned, Terms};
use marks::time::Timestamp;
use reqwest::Method;
use tokio::time::Instant;

use super::http::Unusable;
use super::{Driver, Exchange, Kind, Message, Outcome};
use crate::config::TableReader;
pub use crate::openstack::WhichName;
use crate::openstack::{self, Ask, INSTANCE_HA, Session};
use answer::{Doubt, Verdict};
use body::Told;

/// The driver in the registry.
pub const KIND: Kind = Kind { word: "masakari", configure };

/// A notification that is older is one that Masakari fails (`notifications_expired_interval`).
const STALE: Duration = Duration::from_secs(86_400);

/// What a `masakari` route is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cloud that Masakari belongs to.
    pub cloud: openstack::Options,
    /// Under which of its names Masakari knows a host.
    pub host_name: WhichName,
}

/// One `masakari` route.
pub struct Masakari {
    session: Session,
    host_name: WhichName,
}

impl Masakari {
    /// Reads the cloud's files and makes its client.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn new(options: Options) -> Result<Self, Unusable> {
        Ok(Self { session: Session::new(options.cloud)?, host_name: options.host_name })
    }

    async fn exchange(&self, message: Message<'_>) -> Outcome {
        let end = Instant::now() + self.session.limit();
        let ask = Ask {
            method: &Method::POST,
            path: "/notifications",
            query: &[],
            body: Some(message.body),
            version: None,
        };
        let answer = match self.session.send(&INSTANCE_HA, &ask, end).await {
            Ok(answer) => answer,
            Err(trouble) => return trouble.outcome(),
        };
        let told = Told::read(message.body);
        let is_test = told.as_ref().is_some_and(Told::is_test);
        match answer::verdict(&answer, is_test, message.ambiguous > 0) {
            Verdict::Ended(outcome) => outcome,
            Verdict::Doubt(doubt) => self.look(doubt, told, end).await,
        }
    }

    /// Whether it is this very notification that Masakari has.
    async fn look(&self, doubt: Doubt, told: Option<Told>, end: Instant) -> Outcome {
        let found = match told {
            Some(told) => lookup::find(&self.session, &told, end).await,
            None => Err(lookup::Unseen::Unclear),
        };
        answer::settle(doubt, found)
    }
}

impl Driver for Masakari {
    fn kind(&self) -> &'static str {
        KIND.word
    }

    fn endpoint(&self) -> String {
        format!("Masakari of {}", self.session.shown())
    }

    fn body(&self, mark: &Mark) -> Vec<u8> {
        self.body_after(mark, &[])
    }

    fn body_after(&self, mark: &Mark, earlier: &[Timestamp]) -> Vec<u8> {
        body::of_mark(self.host_name.of(mark), mark.generated_time, earlier)
    }

    fn test_body(&self, _id: &MarkId, now: Timestamp) -> Vec<u8> {
        body::of_test(now)
    }

    fn limit(&self) -> Duration {
        self.session.limit()
    }

    /// It would disable a host that is well, and evacuate it; after a day it fails what it is told.
    fn terms(&self) -> Terms {
        Terms { if_returned: IfReturned::Hold, stale_after: Some(STALE), ..Terms::default() }
    }

    fn warnings(&self) -> Vec<String> {
        self.session.warnings(&self.endpoint())
    }

    fn deliver<'a>(&'a self, message: Message<'a>) -> Exchange<'a> {
        Box::pin(self.exchange(message))
    }
}

impl fmt::Debug for Masakari {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Masakari").field("endpoint", &self.endpoint()).finish_non_exhaustive()
    }
}

/// Reads `[masakari.NAME]`.
fn configure(table: &mut TableReader<'_, '_>) -> Option<Arc<dyn Driver>> {
    let cloud = openstack::read_options(table);
    let host_name = table.choice("host-name", &WhichName::WORDS).unwrap_or_default();
    if !table.is_sound() {
        return None;
    }
    match Masakari::new(Options { cloud, host_name }) {
        Ok(driver) => Some(Arc::new(driver)),
        Err(why) => {
            table.complain(why.key, why.to_string());
            None
        }
    }
}
