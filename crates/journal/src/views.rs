//! Read-only views, for commands, metrics and the page.

pub(crate) mod damage;
pub(crate) mod figures;
pub(crate) mod recent;
