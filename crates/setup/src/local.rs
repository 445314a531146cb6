//! What is on this controller: Pacemaker runs our programs from here, too.

use std::path::Path;

use nix::unistd::User;
use pacemaker::evidence::{Directory, OWNER};

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
}

impl Default for Here {
    fn default() -> Self {
        Self { missing: Vec::new(), alert: ALERT_PATHS[0].to_owned(), evidence: None }
    }
}

/// What this controller has of it.
pub fn here(evidence: &Path) -> Here {
    let is_here = |path: &&str| Path::new(path).is_file();
    let alert = ALERT_PATHS.into_iter().find(|path| is_here(path));
    let files = [FENCE_AGENT, RESOURCE_AGENT, alert.unwrap_or(ALERT_PATHS[0])];
    let missing = files.into_iter().filter(|path| !is_here(path)).map(str::to_owned).collect();
    Here { missing, alert: alert.unwrap_or(ALERT_PATHS[0]).to_owned(), evidence: unwritable(evidence) }
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
