//! The `mistral` driver: an execution of a workflow, under the mark's id.

mod answer;
mod body;
mod input;
mod keys;

use std::sync::Arc;

use marks::id::MarkId;
use marks::mark::Mark;
use marks::terms::{IfReturned, Terms};
use marks::time::Timestamp;
use reqwest::Method;
use site::Section;
use tokio::time::Instant;

use crate::driver::{Check, Driver, Failure, Kind, Message, Named, Outcome, Request, usable};
use crate::kept::Unusable;
use crate::openstack::{self, Ask, Session, WORKFLOW, of_session};
use body::{Stored, Workflow};
pub use input::{Input, Template};
pub use keys::Options;

/// The driver in the registry.
pub const KIND: Kind = Kind { word: "mistral", configure };

static START: Request = Request { method: Method::POST, path: "/executions" };

/// One `mistral` route.
pub struct Mistral {
    session: Session,
    workflow: Workflow,
    options: Options,
}

impl Mistral {
    /// Reads the cloud's files and makes its client.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn new(options: Options) -> Result<Self, Unusable> {
        let workflow = Workflow::of(options.workflow.clone(), options.namespace.clone());
        Ok(Self { session: Session::new(options.cloud.clone())?, workflow, options })
    }

    async fn exchange(&self, message: Message<'_>) -> Outcome {
        let end = Instant::now() + self.session.limit();
        match Stored::read(message.body) {
            Some(stored) if stored.test => self.find(&stored.workflow, end).await,
            Some(stored) => self.start(&stored, message.body, end).await,
            None => Outcome::Rejected(Failure::of_others()),
        }
    }

    async fn start(&self, stored: &Stored, body: &[u8], end: Instant) -> Outcome {
        let ask = Ask::write(&START, START.path, body);
        match self.session.send(&WORKFLOW, &ask, end).await {
            Ok(answer) => answer::started(&answer, &stored.id),
            Err(outcome) => outcome,
        }
    }

    /// Whether the workflow exists; this starts nothing.
    async fn find(&self, workflow: &Workflow, end: Instant) -> Outcome {
        let (path, query) = (workflow.path(), workflow.query());
        let ask = Ask::get(&path, &query);
        match self.session.send(&WORKFLOW, &ask, end).await {
            Ok(answer) => answer::found(&answer),
            Err(outcome) => outcome,
        }
    }
}

impl Driver for Mistral {
    fn endpoint(&self) -> String {
        format!("workflow {} in Mistral of {}", self.workflow.shown(), self.session.shown())
    }

    of_session!();

    fn undo(&self, host: &Named) -> Option<String> {
        let _all_of_them = host;
        Some(
            "Mistral may run the workflow: see `openstack workflow execution list`, and end it with `openstack workflow execution update --state CANCELLED MARK`"
                .to_owned(),
        )
    }

    /// A workflow that evacuates the host could start instances a second time that run there again.
    fn terms(&self) -> Terms {
        Terms { if_returned: IfReturned::Hold, ..Terms::default() }
    }

    fn body(&self, mark: &Mark) -> Vec<u8> {
        body::of_mark(mark, &self.workflow, &self.options)
    }

    fn test_body(&self, id: &MarkId, _now: Timestamp) -> Vec<u8> {
        body::of_test(id, &self.workflow)
    }

    fn check<'a>(&'a self, hosts: &'a [Named]) -> Check<'a> {
        let _asked_for_none = hosts;
        Box::pin(async { Some(openstack::try_out(self, &self.session, &WORKFLOW).await) })
    }
}

/// Reads `[mistral.NAME]`.
fn configure(table: &mut Section<'_, '_>) -> Option<Arc<dyn Driver>> {
    let options = keys::read(table)?;
    usable(table, Mistral::new(options))
}
