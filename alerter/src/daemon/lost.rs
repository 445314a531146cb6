//! Asks Nova for the instances of a host as soon as the cluster has lost it, for routes that send them: by the time of the
//! fencing the answer is mostly there. No mark waits for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use drivers::event;
use drivers::instances::Instances;
use marks::host::HostName;
use marks::recovery::Seen;
use marks::time::Timestamp;
use tokio::task::JoinSet;

use crate::intake::roll;
use crate::state::Shared;

/// How many hosts are asked for at once.
const AT_ONCE: usize = 4;

/// What Nova said of one lost host; nothing if it did not answer.
pub(super) type Answer = (HostName, Option<event::Instances>);

/// The hosts that are lost.
#[derive(Default)]
pub(super) struct Lost {
    pub(super) asking: JoinSet<Answer>,
    asked: BTreeSet<HostName>,
}

impl Lost {
    /// Asks for hosts that are newly lost, and forgets those that are back.
    pub(super) fn ask(&mut self, shared: &Shared, nova: &Arc<Instances>) {
        let base = &shared.base;
        if !base.settings().routes.iter().any(|route| route.driver.sends_facts()) {
            return;
        }
        let lost: BTreeSet<HostName> = base.seen().lost().keys().cloned().collect();
        self.asked.retain(|node| lost.contains(node));
        base.at_loss().retain(|node, _| lost.contains(node));
        let is_new = |node: &HostName| lost.contains(node) && !self.asked.contains(node);
        let Some(cib) = base.cib().filter(|_| lost.iter().any(is_new)) else { return };
        let mut named = roll::of(&base.settings(), &cib).named;
        named.retain(|host| is_new(&host.node));
        for host in named.into_iter().take(AT_ONCE.saturating_sub(self.asking.len())) {
            let (nova, name) = (Arc::clone(nova), nova.host_of_named(&host));
            self.asked.insert(host.node.clone());
            self.asking.spawn(async move { (host.node, nova.on(&name).await.ok().map(counted)) });
        }
    }

    /// Keeps an answer for the mark that may follow.
    pub(super) fn take_in(shared: &Shared, (node, instances): Answer) {
        let said = instances.map(|instances| (node, (Timestamp::now(), instances)));
        shared.base.at_loss().extend(said);
    }
}

/// How many there are of each project.
fn counted(found: Vec<Seen>) -> event::Instances {
    let mut counts = event::Instances { all: found.len(), ..event::Instances::default() };
    for one in found {
        *counts.projects.entry(one.project).or_default() += 1;
    }
    counts
}
