//! The file: its place, its schema, its settings, its lock, and how its rows are read.

pub(crate) mod digest;
pub(crate) mod lock;
pub(crate) mod place;
pub(crate) mod schema;
pub(crate) mod settings;
pub(crate) mod stirred;
