//! What a mark is and where it is kept. No async, no HTTP, few dependencies.

pub mod account;
pub mod chain;
pub mod child;
pub mod cib;
pub mod cluster;
pub mod delivery;
pub mod evidence;
pub mod fencing;
pub mod host;
pub mod id;
pub mod journal;
pub mod mark;
pub mod register;
pub mod returning;
pub mod rule;
pub mod site;
pub mod terms;
pub mod time;
mod xml;
