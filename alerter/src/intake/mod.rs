//! Which fencings and sightings are one outage, whether they may be believed, and under which name it is told. Pure but
//! for `apply` and `files`: no I/O, no clock.

pub mod apply;
mod coverage;
pub mod files;
mod fold;
mod outage;
