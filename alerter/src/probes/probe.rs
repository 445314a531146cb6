//! One question about a host.

use drivers::Named;

use super::ask::Exec;
use super::conclusion::Said;
use super::hypervisor::Hypervisor;
use super::poll_url::PollUrl;

/// One question about a host.
#[derive(Debug, PartialEq, Eq)]
pub struct Probe {
    /// What it is called, as in `poll-url.api`.
    pub name: String,
    /// How it asks.
    pub way: Way,
}

/// How a probe asks.
#[derive(Debug, PartialEq, Eq)]
pub enum Way {
    /// For a text in what the host's url answers.
    PollUrl(Box<PollUrl>),
    /// A program.
    Exec(Exec),
    /// Nova, whether the host's compute service reports.
    Hypervisor(Box<Hypervisor>),
}

impl Probe {
    /// Asks about a host, with all the tries that it takes. Dropped, it leaves nothing running.
    pub async fn ask(&self, host: &Named) -> Said {
        match &self.way {
            Way::PollUrl(poll) => poll.tries().of(|| poll.once(&host.node)).await,
            Way::Exec(exec) => exec.once(&host.node).await,
            Way::Hypervisor(nova) => nova.tries().of(|| nova.once(host)).await,
        }
    }
}
