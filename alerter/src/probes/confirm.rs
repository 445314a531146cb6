//! The probes of a group.

use std::sync::Arc;
use std::time::Duration;

use super::conclusion::Rule;
use super::probe::{Probe, Way};

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
