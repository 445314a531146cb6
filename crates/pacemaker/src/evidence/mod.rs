//! Evidence: what Pacemaker's alerts report of a fencing, and of a cluster node that has joined. `alert_mark` writes it
//! on every controller, one file for each event.

mod clock;
mod directory;
mod event;
mod history;
mod record;

pub use directory::{Broken, Directory, EvidenceError, Found, FoundJoin, Known, Reading};
pub use event::{Action, Evidence, Join, Label, Moment, Outcome};
pub use history::{HistoryError, history, node_fenced};
pub use record::{EventName, Flaw, MAX_FILE};

/// The default directory of evidence.
pub const DIRECTORY: &str = "/var/lib/nova-host-alerter/evidence";

/// The user that Pacemaker runs alert agents as, and that owns the directory.
pub const OWNER: &str = "hacluster";

#[cfg(test)]
mod tests;
