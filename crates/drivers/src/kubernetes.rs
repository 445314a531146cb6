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
mod row;
mod server;
mod taint;

use std::sync::Arc;
use std::time::Duration;

use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use site::Section;
use tokio::time::Instant;

use crate::driver::{
    About, Check, Driver, Exchange, Failure, Kind, Message, Outcome, ends, holds, returns, usable,
};
use crate::kept::Unusable;
use crate::which::Named;
use access::Access;
pub use access::Kubeconfig;
use body::Stored;
use change::row;
pub use keys::Options;
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
    about: About,
}

impl Kubernetes {
    /// Reads the files of the account and makes its client.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn new(options: Options) -> Result<Self, Unusable> {
        let access = Access::new(options.source.clone(), options.timeout)?;
        let namespace = options.namespace.clone().or_else(|| access.site().namespace.clone());
        let options = Options { namespace, ..options };
        let endpoint = format!("Kubernetes at {} ({})", access.shown, options.mode.as_str());
        let about = About {
            names: Some(options.host_name.clone()),
            undo: Some(row(options.mode).undo.to_owned()),
            secret_file: Some(options.source.file.clone()),
            // Its bytes are those of the failure.
            steps: returns(options.clear),
            // The pods of a host that is well would be deleted, and their volumes attached elsewhere.
            terms: holds(None),
            // An API server without its etcd's quorum writes nothing, and a fencing may be what took that away.
            usually_away: USUALLY_AWAY,
            warnings: access.warnings(),
            ..About::new(KIND.word, endpoint, options.timeout)
        };
        Ok(Self { access, options, about })
    }

    /// For an exchange, or for a check of so many hosts: one question each.
    fn server(&self, hosts: usize) -> Server<'_> {
        let each = QUESTION.saturating_mul(u32::try_from(hosts).unwrap_or(u32::MAX)).min(LONGEST_CHECK);
        let end = Instant::now() + self.options.timeout + each;
        Server { access: &self.access, options: &self.options, end }
    }

    /// What the message says is done, whatever the route's mode is now.
    async fn exchange(&self, message: Message<'_>) -> Result<Outcome, Outcome> {
        let others = || Outcome::Rejected(Failure::of_others());
        let stored = Stored::read(message.body).ok_or_else(others)?;
        let server = self.server(0);
        let Some(mode) = stored.mode.map(row) else { return tried(&server).await };
        match &mode.change {
            Some(change) => server.change((mode, change), &stored, message).await,
            None => server.remediate(&stored, message).await,
        }
    }
}

/// A test: whether the account may do what the mode needs, and the server has what the mode names.
async fn tried(server: &Server<'_>) -> Result<Outcome, Outcome> {
    match server.missing().await?.into_iter().next() {
        Some(why) => Ok(Outcome::Refused(why)),
        None => server.has_kinds().await.map(|()| Outcome::Acknowledged { reference: None }),
    }
}

impl Driver for Kubernetes {
    fn about(&self) -> &About {
        &self.about
    }

    /// A return must find what the failure has made: with another mode or another template it would not.
    fn target(&self) -> String {
        let Options { mode, namespace, template, .. } = &self.options;
        let within = namespace.as_ref().map_or_else(String::new, |name| format!(" namespace {name}"));
        let template =
            template.as_ref().map_or_else(String::new, |template| format!(" {}", template.target()));
        format!("{} {}{within}{template}", self.access.site().target(), mode.as_str())
    }

    fn body(&self, mark: &Mark) -> Vec<u8> {
        body::of_mark(mark, &self.options.host_name.of(mark), self.options.mode)
    }

    fn test_body(&self, id: &MarkId, now: Timestamp) -> Vec<u8> {
        body::of_test(id, now)
    }

    fn check<'a>(&'a self, hosts: &'a [Named]) -> Check<'a> {
        Box::pin(async { Some(self.server(hosts.len()).findings(hosts).await) })
    }

    fn deliver<'a>(&'a self, message: Message<'a>) -> Exchange<'a> {
        ends(self.exchange(message))
    }
}

/// Reads `[kubernetes.NAME]`.
fn configure(table: &mut Section<'_, '_>) -> Option<Arc<dyn Driver>> {
    let options = keys::read(table)?;
    usable(table, Kubernetes::new(options))
}
