//! Confirm probes: before a mark of a group is sent, they ask whether its host is really down.

mod ask;
pub mod conclusion;
mod confirm;
mod hypervisor;
mod keeper;
pub mod keys;
mod poll_url;
mod template;

pub use self::ask::{Exec, Tries};
pub use self::conclusion::{Conclusion, Rule, Said, State};
pub use self::confirm::{Confirm, Probe, Way};
pub use self::hypervisor::Hypervisor;
pub use self::keeper::{AT_ONCE, Prober};
pub use self::poll_url::{PollUrl, PollUrlOptions};
pub use self::template::Template;
