//! The intake's records: fencings, sightings, connections, and the marks that they are folded into.

pub(crate) mod account;
pub(crate) mod connections;
pub(crate) mod fencings;
pub(crate) mod folds;
pub(crate) mod imported;
pub(crate) mod marks;
pub(crate) mod outages;
pub(crate) mod sightings;
pub(crate) mod watermarks;
