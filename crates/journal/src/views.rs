//! Read-only views, for commands, notices, metrics and the page; and the notices that were sent.

pub(crate) mod concerns;
pub(crate) mod damage;
pub(crate) mod figures;
pub(crate) mod notified;
pub(crate) mod recent;
