//! The alerter's queue: which delivery is due, the results of attempts, what holds a delivery, and how a mark ends.

pub(crate) mod attempts;
pub(crate) mod callbacks;
pub(crate) mod chains;
pub(crate) mod deliveries;
pub(crate) mod delivery_row;
pub(crate) mod due;
pub(crate) mod endings;
pub(crate) mod holds;
pub(crate) mod returns;
