//! What is only read, for commands, notices, metrics and the page; and what a target was told.

pub(crate) mod concerns;
pub(crate) mod damage;
pub(crate) mod figures;
pub(crate) mod notified;
pub(crate) mod recent;
