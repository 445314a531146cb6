//! The `mistral` driver: an execution of a workflow, under the mark's id.

mod answer;
mod body;
mod input;
mod keys;

use std::sync::Arc;

use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use reqwest::Method;
use site::Section;

use crate::driver::{About, Driver, Failure, Kind, Message, Outcome, usable};
use crate::kept::Unusable;
use crate::openstack::{Exchange, Own, Route, Session, WORKFLOW};
use crate::web::Ask;
use body::Stored;
pub use input::{Input, Template};
pub use keys::Options;

/// The driver in the registry.
pub const KIND: Kind = Kind { word: "mistral", configure };

/// How an operator undoes what Mistral does.
const UNDO: &str = "Mistral may run the workflow: see `openstack workflow execution list`, and end it with `openstack workflow execution update --state CANCELLED MARK`";

/// One `mistral` route.
pub type Mistral = Route<Options>;

impl Mistral {
    /// Reads the cloud's files and makes its client.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn new(own: Options) -> Result<Self, Unusable> {
        let session = Session::new(own.cloud.clone(), WORKFLOW)?;
        // A workflow that evacuates the host could start instances a second time that run there again.
        let usual = session.about(KIND.word);
        let endpoint = format!("workflow {} in {}", own.workflow, usual.endpoint);
        let about = About { endpoint, undo: Some(UNDO.to_owned()), ..usual };
        Ok(Self { session, about, own })
    }
}

impl Own for Options {
    fn body(&self, mark: &Mark, _earlier: &[Timestamp]) -> Vec<u8> {
        body::of_mark(mark, self)
    }

    fn test_body(&self, id: &MarkId, _now: Timestamp) -> Vec<u8> {
        body::of_test(id, self)
    }

    async fn exchange(&self, exchange: Exchange<'_>, message: Message<'_>) -> Result<Outcome, Outcome> {
        let stored = Stored::read(message.body).ok_or_else(|| Outcome::Rejected(Failure::of_others()))?;
        // Whether the workflow exists; this starts nothing.
        if stored.is_test() {
            let (path, query) = (stored.workflow.path(), stored.workflow.query());
            return Ok(answer::found(&exchange.send(&Ask::get(&path, &query)).await?));
        }
        let answer = exchange.send(&Ask::write(&Method::POST, "/executions", message.body)).await?;
        Ok(answer::started(&answer, &stored.id))
    }
}

/// Reads `[mistral.NAME]`.
fn configure(table: &mut Section<'_, '_>) -> Option<Arc<dyn Driver>> {
    let options = keys::read(table)?;
    usable(table, Mistral::new(options))
}
