//! The file: where it lies, what may be in it, who may have it, and which rows in it can be believed.

pub(crate) mod damage;
pub(crate) mod digest;
pub(crate) mod lock;
pub(crate) mod place;
pub(crate) mod schema;
