//! Serves small answers: addresses by RFC 3986, and plain HTTP with bounds, so that one bad client does not harm the others.
//! Each has its own address. TLS, where a site wants it, is ended by its proxy.

mod address;
mod names;
mod places;
mod serve;
mod socket;
mod unserved;

pub(crate) use address::PATH_MAX;
pub use address::{Address, Host, parse};
pub use names::Names;
pub(crate) use places::Door;
pub use serve::{Endpoint, run};
pub(crate) use serve::{Limits, attend};
pub use socket::Owner;
pub(crate) use socket::make_directory;
pub use unserved::Unserved;
