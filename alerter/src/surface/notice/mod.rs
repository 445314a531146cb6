//! Notices to operators, never over the recovery routes: one when a condition begins and one when it ends (docs/notices.md).
//!
//! A target is notified of the difference between what holds now and what it was notified of already. So what was missed is notified
//! later, and what has passed meanwhile is not notified at all.

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
