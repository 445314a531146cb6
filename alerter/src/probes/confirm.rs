//! What a group asks before a mark of its hosts is sent.

use std::sync::Arc;
use std::time::Duration;

use super::conclusion::Rule;
use super::probe::{Probe, Way};

/// What a group asks before a mark of its hosts is notified: `[groups.NAME.confirm]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirm {
    /// How the probes' answers are taken together.
    pub rule: Rule,
    /// `limit`: what is not decided after this time is asked anew from the beginning.
    pub limit: Duration,
    /// `again`: a host that was found up is asked anew after this time.
    pub again: Duration,
    /// At least one, in the order of their kinds and names.
    pub probes: Arc<[Probe]>,
}

impl Confirm {
    /// Whether it cannot do without a cluster.
    pub fn asks_pacemaker(&self) -> bool {
        self.probes.iter().any(|probe| probe.way == Way::PacemakerState)
    }

    /// What an operator is notified at each start: one sentence for each setting that endangers what it is for.
    pub fn warnings(&self) -> Vec<String> {
        let unverified = |probe: &&Probe| matches!(&probe.way, Way::PollUrl(poll) if !poll.verifies());
        let sentence = |probe: &Probe| {
            let name = &probe.name;
            format!(
                "the probe {name} has verify = false: whoever answers in a host's place decides what it says; set ca-file instead"
            )
        };
        self.probes.iter().filter(unverified).map(sentence).collect()
    }
}
