//! Which fencings and sightings are one outage, whether they may be believed, and under which name the host is reported. `coverage`,
//! `credible`, `judge`, `ledger`, `naming`, `roll` and `storage` are pure; the others write down what these decide.

pub mod account;
pub mod apply;
pub mod coverage;
mod credible;
pub mod files;
mod judge;
mod ledger;
mod made;
mod members;
mod naming;
mod pass;
mod register;
pub mod roll;
mod sightings;
pub mod start;
mod steps;
mod storage;
pub mod upkeep;
