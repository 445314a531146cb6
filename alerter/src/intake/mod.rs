//! Which fencings and sightings are one outage, whether they may be believed, and under which name it is told. Pure are
//! `coverage`, `credible`, `fold`, `ledger`, `naming` and `roll`; the others write down what these decide.

pub mod account;
pub mod apply;
mod coverage;
mod credible;
pub mod files;
mod fold;
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
