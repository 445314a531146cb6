//! The file: where it lies, what may be in it, who may have it, and what its rows are read with.

pub(crate) mod digest;
pub(crate) mod lock;
pub(crate) mod place;
pub(crate) mod rows;
pub(crate) mod schema;
pub(crate) mod stirred;
