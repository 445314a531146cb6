//! Notices: what an operator should know, told apart from the recovery routes, once when it begins and once when it ends
//! (docs/notices.md).
//!
//! What is notified is the difference between what holds now and what a target was notified already, never an event: so what was
//! missed is notified later, and what has passed meanwhile is not notified at all.

mod body;
mod condition;
mod conditions;
mod facts;
mod held_back;
mod keeper;
mod keys;
mod memory;
mod target;

pub use target::run;
