//! The probes of a group.

use std::sync::Arc;
use std::time::Duration;

use drivers::Named;

use super::ask::Exec;
use super::conclusion::{Rule, Said};
use super::hypervisor::Hypervisor;
use super::poll_url::PollUrl;

/// The probes that confirm that a host is down before its mark is sent: `[groups.NAME.confirm]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirm {
    /// How the probes' answers are taken together.
    pub rule: Rule,
    /// `limit`: without a decision after this time all probes begin again.
    pub limit: Duration,
    /// `again`: a host that was found up is asked again after this time.
    pub again: Duration,
    /// At least one, in the order of their kinds and names.
    pub probes: Arc<[Probe]>,
}

impl Confirm {
    /// The warnings at each start: one sentence for each dangerous setting.
    pub fn warnings(&self) -> Vec<String> {
        let wrong = |probe: &Probe| match &probe.way {
            Way::PollUrl(poll) if !poll.verifies() => {
                Some("verify = false: another machine could answer in the host's place; set ca-file instead")
            }
            _ => None,
        };
        let sentence = |probe: &Probe| Some(format!("the probe {} has {}", probe.name, wrong(probe)?));
        self.probes.iter().filter_map(sentence).collect()
    }
}

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
