//! The files on this controller: Pacemaker runs our programs from here, too.

use std::path::Path;

use marks::register::Register;
use nix::unistd::User;
use pacemaker::evidence::{Directory, OWNER};
use register::ETCDCTL;

/// The alert agent's path in packages, then in an installation by hand.
const ALERT_PATHS: [&str; 2] = ["/usr/share/pacemaker/alerts/alert_mark", "/usr/sbin/alert_mark"];
const FENCE_AGENT: &str = "/usr/sbin/fence_mark";
const RESOURCE_AGENT: &str = "/usr/lib/ocf/resource.d/openstack/nova-host-alerter";

/// The state of this controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Here {
    /// The missing files of the product.
    pub missing: Vec<String>,
    /// The path of the alert agent, present or future.
    pub alert: String,
    /// Why evidence cannot be written, if it cannot.
    pub evidence: Option<String>,
    /// The register's missing tool on this controller, beside Pacemaker's.
    pub no_tool: Option<String>,
    /// Pacemaker's tools that need the whole CIB get no answer.
    pub is_cib_too_large: bool,
    /// The register's key; `None` if none is needed, or if it could not be checked.
    pub key: Option<Key>,
}

/// The state of the register's key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// The file whose first key seals, if any is usable.
    pub sealing: Option<String>,
    /// One sentence for each unusable file.
    pub complaints: Vec<String>,
    /// The path of our own file.
    pub own: String,
    /// Whether that file exists.
    pub is_own_there: bool,
}

impl Default for Here {
    fn default() -> Self {
        let alert = ALERT_PATHS[0].to_owned();
        Self { missing: Vec::new(), alert, evidence: None, no_tool: None, is_cib_too_large: false, key: None }
    }
}

/// The state of this controller. The caller reads the keys, with the configuration.
pub fn here(evidence: &Path, register: Register, key: Option<Key>) -> Here {
    let is_here = |path: &&str| Path::new(path).is_file();
    let alert = ALERT_PATHS.into_iter().find(|path| is_here(path));
    let files = [FENCE_AGENT, RESOURCE_AGENT, alert.unwrap_or(ALERT_PATHS[0])];
    let missing = files.into_iter().filter(|path| !is_here(path)).map(str::to_owned).collect();
    let alert = alert.unwrap_or(ALERT_PATHS[0]).to_owned();
    Here {
        missing,
        alert,
        evidence: unwritable(evidence),
        no_tool: no_tool(register),
        is_cib_too_large: false,
        key,
    }
}

/// Pacemaker's own tools come with Pacemaker.
fn no_tool(register: Register) -> Option<String> {
    (register == Register::Etcd && !Path::new(ETCDCTL).is_file()).then(|| ETCDCTL.to_owned())
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
