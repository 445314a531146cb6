//! The real agent, run as Pacemaker and operators run it. "Conformance N" is an item of the list that the project keeps
//! of what fence agents must do.

#![expect(clippy::unwrap_used, reason = "in a test an unmet expectation is a failure, also in its helpers")]

mod alert;
mod bad_store;
mod common;
mod documents;
mod faults;
mod fencer;
mod names;
mod off;
mod options;
mod pacemaker;
mod questions;
mod register;
mod tools;
