//! Who is in a lab: names, addresses, and what is installed.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// The test's own address on the bridge.
pub(super) const HUB_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 254);

pub(super) const HUB_MAC: &str = "02:00:0a:4d:00:fe";

/// How many nodes of each kind.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Full cluster members `ctl1`, `ctl2`, …
    pub controllers: u8,
    /// `pacemaker-remoted` hosts `compute1`, `compute2`, …
    pub remotes: u8,
}

/// What of the project is installed in the nodes.
#[derive(Debug, Clone)]
pub struct Products {
    /// The directory that holds `fence_mark`, `alert_mark` and `nova-host-alerter`.
    pub programs: PathBuf,
    /// The OCF agent `nova-host-alerter`.
    pub ocf_agent: PathBuf,
}

impl Products {
    /// Those that cargo built beside this very program.
    ///
    /// # Errors
    /// It lies in no build directory.
    pub fn built() -> anyhow::Result<Self> {
        let exe = std::env::current_exe()?;
        let programs = exe.parent().and_then(Path::parent).context("no build directory")?.to_owned();
        let ocf_agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ocf/nova-host-alerter");
        Ok(Self { programs, ocf_agent })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Controller,
    Remote,
}

#[derive(Debug, Clone)]
pub(super) struct NodePlan {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Last byte of the address; also corosync's node id.
    pub(super) number: u8,
}

impl NodePlan {
    pub(super) fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, self.number)
    }

    /// The same on every boot, so that nobody's ARP cache goes stale.
    pub(super) fn mac(&self) -> String {
        format!("02:00:0a:4d:00:{:02x}", self.number)
    }

    /// The hub's end of this node's cable.
    pub(super) fn cable(&self) -> String {
        format!("v-{}", self.name)
    }
}

pub(super) fn nodes(shape: Shape) -> Vec<NodePlan> {
    let controllers = (1..=shape.controllers).map(|n| node(format!("ctl{n}"), Kind::Controller, n));
    let remotes = (1..=shape.remotes).map(|n| node(format!("compute{n}"), Kind::Remote, 100 + n));
    controllers.chain(remotes).collect()
}

fn node(name: String, kind: Kind, number: u8) -> NodePlan {
    NodePlan { name, kind, number }
}
