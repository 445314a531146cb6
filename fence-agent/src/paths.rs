//! The agent's paths. No option can change them.

use std::path::PathBuf;

use pacemaker::tools::Tools;

/// Files and programs outside of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// The site's configuration.
    pub config: PathBuf,
    /// Corosync's configuration.
    pub corosync: PathBuf,
    /// Pacemaker's tools.
    pub tools: Tools,
    /// The CIB in Pacemaker's file on disk.
    pub cib: PathBuf,
    /// Corosync's secret, the key of the register unless the site has its own.
    pub cluster_key: PathBuf,
    /// The lock for this agent's pages in the register. It is in memory: the journal's disk may hang.
    pub lock: PathBuf,
    /// The system log's socket.
    pub syslog: PathBuf,
    /// This program.
    pub program: PathBuf,
}

impl Default for Paths {
    fn default() -> Self {
        Self {
            config: site::CONFIG_PATH.into(),
            corosync: "/etc/corosync/corosync.conf".into(),
            tools: Tools::default(),
            cib: "/var/lib/pacemaker/cib/cib.xml".into(),
            cluster_key: site::CLUSTER_KEY.into(),
            lock: "/run/nova-host-alerter/fence_mark.lock".into(),
            syslog: "/dev/log".into(),
            program: pacemaker::aside::MYSELF.into(),
        }
    }
}
