//! The cluster's register and this journal: entries, decisions, and other controllers' changes.

pub(crate) mod decisions;
pub(crate) mod elsewhere;
pub(crate) mod entries;
pub(crate) mod published;
