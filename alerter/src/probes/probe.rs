//! One question about a host.

use std::sync::Arc;

use drivers::Named;
use marks::host::HostName;
use pacemaker::cib::Cib;
use tokio::sync::watch;

use super::ask::{Exec, Tcp};
use super::conclusion::{Said, State};
use super::hypervisor::Hypervisor;
use super::poll_url::PollUrl;

/// The newest CIB, and `None` while it cannot be read.
pub type CibNow = watch::Receiver<Option<Arc<Cib>>>;

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
    /// For a connection.
    Tcp(Tcp),
    /// Pacemaker, whether the node is online.
    PacemakerState,
    /// A program.
    Exec(Exec),
    /// Nova, whether the host's compute service reports.
    Hypervisor(Box<Hypervisor>),
}

impl Probe {
    /// Asks about a host, with all the tries that it takes. Dropped, it leaves nothing running.
    pub async fn ask(&self, host: &Named, cib: &CibNow) -> Said {
        let node = &host.node;
        match &self.way {
            Way::PollUrl(poll) => poll.tries().of(|| poll.once(node)).await,
            Way::Tcp(tcp) => tcp.tries.of(|| tcp.once(node)).await,
            Way::PacemakerState => membership(node, cib),
            Way::Exec(exec) => exec.once(node).await,
            Way::Hypervisor(nova) => nova.tries().of(|| nova.once(host)).await,
        }
    }
}

/// A node that Pacemaker does not know is none that it sees online.
fn membership(node: &HostName, cib: &CibNow) -> Said {
    let Some(cib) = cib.borrow().clone() else {
        return Said::new(State::Unknown, "cannot read Pacemaker's answer");
    };
    match cib.membership(node) {
        Some(true) => Said::new(State::Healthy, "sees it online in Pacemaker"),
        Some(false) => Said::new(State::Unhealthy, "sees it offline in Pacemaker"),
        None if cib.is_membership_unclear(node) => {
            Said::new(State::Unknown, "does not understand Pacemaker's answer about it")
        }
        None => Said::new(State::Unhealthy, "does not see it in Pacemaker"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S0-7: unhealthy unless Pacemaker sees the node online now.
    #[test]
    fn pacemaker_is_asked_for_the_node() {
        let (now, cib) = watch::channel(None);
        let node = HostName::parse("Compute1").unwrap();
        assert_eq!(membership(&node, &cib).state, State::Unknown);
        for (states, expected) in [
            (r#"<node_state uname="compute1" remote_node="true" in_ccm="true"/>"#, State::Healthy),
            (r#"<node_state uname="compute1" remote_node="true" in_ccm="false"/>"#, State::Unhealthy),
            (r#"<node_state uname="compute1" remote_node="true" in_ccm="perhaps"/>"#, State::Unknown),
            (r#"<node_state uname="compute2" remote_node="true" in_ccm="true"/>"#, State::Unhealthy),
            ("", State::Unhealthy),
        ] {
            let xml = format!("<cib><configuration/><status>{states}</status></cib>");
            now.send_replace(Some(Arc::new(Cib::parse(&xml).unwrap())));
            assert_eq!(membership(&node, &cib).state, expected, "{states}");
        }
        now.send_replace(None);
        assert_eq!(
            membership(&node, &cib).state,
            State::Unknown,
            "what cannot be read any more says nothing"
        );
    }
}
