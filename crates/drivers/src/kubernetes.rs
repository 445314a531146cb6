//! The `kubernetes` driver: a fenced host's Node or Machine, or an object for its remediation controller.

mod access;
mod annotate;
mod body;
mod change;
mod check;
mod condition;
mod gates;
mod keys;
mod object;
mod remediate;
mod remediation;
mod server;
mod taint;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::Mark;
use marks::terms::{IfReturned, Terms};
use marks::time::Timestamp;
use site::Section;
use tokio::time::Instant;

use crate::driver::{Check, Driver, Exchange, Failure, Kind, Message, Named, Outcome, Step, returns, usable};
use crate::kept::Unusable;
use access::Access;
pub use access::Kubeconfig;
use body::{Mode, Stored};
pub use keys::Options;
use remediate::Work;
use server::Server;

/// The driver in the registry.
pub const KIND: Kind = Kind { word: "kubernetes", configure };

/// How long a check may take for each host, and at most.
const QUESTION: Duration = Duration::from_millis(500);
const LONGEST_CHECK: Duration = Duration::from_secs(300);
/// How long an API server may be away after a fencing before that is a problem.
const USUALLY_AWAY: Duration = Duration::from_secs(120);

/// One `kubernetes` route.
pub struct Kubernetes {
    access: Access,
    options: Options,
}

impl Kubernetes {
    /// Reads the files of the account and makes its client.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn new(options: Options) -> Result<Self, Unusable> {
        let access = Access::new(options.source.clone(), options.timeout)?;
        let namespace = options.namespace.clone().or_else(|| access.namespace());
        let options = Options { namespace, ..options };
        Ok(Self { access, options })
    }

    fn server(&self) -> Server<'_> {
        Server { access: &self.access, end: Instant::now() + self.options.timeout }
    }

    /// For a check of so many hosts: one question each.
    fn server_for(&self, hosts: usize) -> Server<'_> {
        let each = QUESTION.saturating_mul(u32::try_from(hosts).unwrap_or(u32::MAX)).min(LONGEST_CHECK);
        Server { access: &self.access, end: Instant::now() + self.options.timeout + each }
    }

    /// What the message says is done, whatever the route's mode is now.
    async fn exchange(&self, message: Message<'_>) -> Outcome {
        let Some(stored) = Stored::read(message.body) else {
            return Outcome::Rejected(Failure::of_others());
        };
        let server = self.server();
        let ended = match stored.mode {
            None => self.tried(&server).await,
            Some(Mode::Remediation) => self.remediated(&server, &stored, message).await,
            Some(mode) => {
                change::changed(&server, &self.options, mode, &stored, (message.step, message.attempts)).await
            }
        };
        ended.unwrap_or_else(|outcome| outcome)
    }

    async fn remediated(
        &self,
        server: &Server<'_>,
        stored: &Stored,
        message: Message<'_>,
    ) -> Result<Outcome, Outcome> {
        let gone = "the route has no template any more: delete the object by hand if the host is back, then end the mark";
        let template = self.options.template.as_ref();
        let template = template.ok_or_else(|| Outcome::Rejected(Failure::new("rejected", gone)))?;
        let work = Work { server, options: &self.options, template, stored };
        match message.step {
            Step::Failure => work.make(message.is_released).await,
            Step::Return => work.delete().await,
        }
    }

    /// A test: whether the account may do what the mode needs, and the server has what the mode names.
    async fn tried(&self, server: &Server<'_>) -> Result<Outcome, Outcome> {
        if let Some(why) = check::missing(server, &self.options).await?.into_iter().next() {
            return Ok(Outcome::Refused(why));
        }
        check::has_kinds(server, &self.options).await?;
        Ok(Outcome::Acknowledged { reference: None })
    }
}

impl Driver for Kubernetes {
    fn kind(&self) -> &'static str {
        KIND.word
    }

    fn endpoint(&self) -> String {
        format!("Kubernetes at {} ({})", self.access.server(), self.options.mode.as_str())
    }

    /// A return must find what the failure has made: with another mode or another template it would not.
    fn target(&self) -> String {
        let Options { mode, namespace, template, .. } = &self.options;
        let within = namespace.as_ref().map_or_else(String::new, |name| format!(" namespace {name}"));
        let template =
            template.as_ref().map_or_else(String::new, |template| format!(" {}", template.target()));
        format!("{} {}{within}{template}", self.access.target(), mode.as_str())
    }

    fn secret_file(&self) -> Option<&Path> {
        Some(&self.options.source.file)
    }

    fn name_there(&self, host: &Named) -> Option<(HostName, String)> {
        self.options.host_name.there(host)
    }

    fn undo(&self, host: &Named) -> Option<String> {
        let host = body::lower(&self.options.host_name.of_host(host));
        Some(match self.options.mode {
            Mode::Taint => format!(
                "the node may have the out-of-service taint; if the host is well, run `{}`",
                taint::undo(&host)
            ),
            Mode::Condition => format!(
                "the condition {} of node {host} may be True; if the host is well, set it to False",
                condition::TYPE
            ),
            Mode::Annotate => format!(
                "the Machine of {host} may be annotated; if the host is well, run `{}`",
                annotate::UNDO
            ),
            Mode::Remediation => format!(
                "an object for the remediation of {host} may stand in Kubernetes; if the host is well, delete it"
            ),
        })
    }

    /// The pods of a host that is well would be deleted, and their volumes attached elsewhere.
    fn terms(&self) -> Terms {
        Terms { if_returned: IfReturned::Hold, ..Terms::default() }
    }

    fn body(&self, mark: &Mark) -> Vec<u8> {
        body::of_mark(mark, &self.options.host_name.of(mark), self.options.mode)
    }

    /// Its bytes are those of the failure.
    fn further_steps(&self) -> &[Step] {
        returns(self.options.clear)
    }

    fn test_body(&self, id: &MarkId, now: Timestamp) -> Vec<u8> {
        body::of_test(id, now)
    }

    fn limit(&self) -> Duration {
        self.options.timeout
    }

    /// An API server without its etcd's quorum writes nothing, and a fencing may be what took that away.
    fn usually_away(&self) -> Duration {
        USUALLY_AWAY
    }

    fn warnings(&self) -> Vec<String> {
        self.access.warnings()
    }

    fn check<'a>(&'a self, hosts: &'a [Named]) -> Check<'a> {
        Box::pin(async { Some(check::findings(&self.server_for(hosts.len()), &self.options, hosts).await) })
    }

    fn deliver<'a>(&'a self, message: Message<'a>) -> Exchange<'a> {
        Box::pin(self.exchange(message))
    }
}

/// Reads `[kubernetes.NAME]`.
fn configure(table: &mut Section<'_, '_>) -> Option<Arc<dyn Driver>> {
    let options = keys::read(table)?;
    usable(table, Kubernetes::new(options))
}
