//! What the cluster's register and this journal have of each other: entries, decisions, and what others did.

pub(crate) mod decisions;
pub(crate) mod elsewhere;
pub(crate) mod entries;
pub(crate) mod published;
