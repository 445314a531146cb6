//! What is on this controller: Pacemaker runs our programs from here, too.

use std::path::Path;

use marks::register::Register;
use nix::unistd::User;
use pacemaker::evidence::{Directory, OWNER};
use pacemaker::register::Tools;

/// Where packages put the alert agent, then where it stands when it is installed by hand.
const ALERT_PATHS: [&str; 2] = ["/usr/share/pacemaker/alerts/alert_mark", "/usr/sbin/alert_mark"];
const FENCE_AGENT: &str = "/usr/sbin/fence_mark";
const RESOURCE_AGENT: &str = "/usr/lib/ocf/resource.d/openstack/nova-host-alerter";

/// What is on this controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Here {
    /// The files of the product that are not.
    pub missing: Vec<String>,
    /// Where the alert agent is, or should be.
    pub alert: String,
    /// Why evidence cannot be written, if it cannot.
    pub evidence: Option<String>,
    /// The tool that the register needs here beside Pacemaker's, where it is missing.
    pub no_tool: Option<String>,
    /// The register's key; `None` where it needs none, or where nobody could look.
    pub key: Option<Key>,
}

/// What there is of the register's key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// The file whose first key seals, where one can be used.
    pub sealing: Option<String>,
    /// What is wrong with the files that cannot be used, a sentence each.
    pub complaints: Vec<String>,
    /// Where a file of our own stands, or would.
    pub own: String,
    /// Whether anything stands there.
    pub is_own_there: bool,
}

impl Default for Here {
    fn default() -> Self {
        let alert = ALERT_PATHS[0].to_owned();
        Self { missing: Vec::new(), alert, evidence: None, no_tool: None, key: None }
    }
}

/// What this controller has of it. Keys are read by those who read the configuration.
pub fn here(evidence: &Path, register: Register, key: Option<Key>) -> Here {
    let is_here = |path: &&str| Path::new(path).is_file();
    let alert = ALERT_PATHS.into_iter().find(|path| is_here(path));
    let files = [FENCE_AGENT, RESOURCE_AGENT, alert.unwrap_or(ALERT_PATHS[0])];
    let missing = files.into_iter().filter(|path| !is_here(path)).map(str::to_owned).collect();
    let alert = alert.unwrap_or(ALERT_PATHS[0]).to_owned();
    Here { missing, alert, evidence: unwritable(evidence), no_tool: no_tool(register), key }
}

/// Pacemaker's own come with Pacemaker.
fn no_tool(register: Register) -> Option<String> {
    let tool = Tools::default().etcdctl;
    (register == Register::Etcd && !tool.is_file()).then(|| tool.display().to_string())
}

/// Why Pacemaker's user cannot write there.
fn unwritable(directory: &Path) -> Option<String> {
    let owner = match User::from_name(OWNER) {
        Ok(Some(user)) => user.uid,
        Ok(None) => {
            return Some(format!("there is no user {OWNER}: Pacemaker is not installed on this controller"));
        }
        Err(e) => return Some(e.to_string()),
    };
    Directory::open(directory, owner).err().map(|e| e.to_string())
}
